// @ts-check
/** The delivery log of an endpoint, and one delivery with its attempts. */
import { html, useEffect, useState } from "../vendor/preact.js";
import { t } from "./texts.js";
import { Button, Empty, notify } from "../ui/parts.js";
import { Pairs, Section } from "../ui/frame.js";
import { ListTable } from "../ui/table.js";
import { States, useCall, useList } from "../ui/loading.js";
import { Link, setQuery, query } from "../ui/link.js";
import { CONTRACT, EXTENSIONS, INTERNAL } from "./event-types.js";
import { conversationIn } from "./endpoint-forms.js";
import { Exact, Outcome, duration, exact, errorText } from "./format.js";
import { useAutoRefresh } from "../ui/auto-refresh.js";
import { Dialog } from "../ui/dialog.js";
import { call } from "../core/api.js";
import { Copied } from "../ui/secret.js";

const PAGE = 50;
const STATUSES = ["pending", "delivered", "dropped", "skipped"];
const FILTERS = ["status", "type", "conversation", "since"];

/** Return the filters in the address. */
function filters() {
  const since = query.value.get("since");
  return { status: query.value.get("status"), type: query.value.get("type"), conversation: query.value.get("conversation"), since: since && !Number.isNaN(Date.parse(since)) ? new Date(since).toISOString() : null };
}

/** Return the reason of a delivery's status in a few words. @param {any} row */
function reasonText(row) {
  const last = row.attempts.at(-1);
  if (row.status === "delivered") return last ? t.log.answered(String(last.status), duration(last.latencyMs)) : null;
  return row.reason ?? last?.error ?? (row.status === "pending" ? t.log.notYet : null);
}

/** @param {{endpoint: any, round: number}} props  round: changes when something was sent again */
export function Log({ endpoint, round }) {
  const of = useList(`webhooks/${endpoint.id}/deliveries`, filters(), PAGE);
  const open = query.value.get("delivery");
  const pending = of.items.some((/** @type {any} */ each) => each.status === "pending");
  useAutoRefresh(of.reload, pending, of.items.length > PAGE);
  useEffect(() => void of.reload(), [open, round]);
  const columns = [
    { label: t.log.when, cell: (/** @type {any} */ row) => html`<button type="button" class="link" onClick=${() => setQuery({ delivery: row.id })}><${Exact} at=${row.createdAt} /></button>` },
    { label: t.log.event, cell: (/** @type {any} */ row) => html`<span class="mono">${row.eventType ?? t.none}</span>${row.sequence !== null && html` <span class="num muted">#${row.sequence}</span>`}${row.redeliveryOf && html` <span class="chip">${t.log.again}</span>`}` },
    { label: t.log.outcome, cell: (/** @type {any} */ row) => html`<${Outcome} status=${row.status} /> <span class="muted"><bdi>${reasonText(row)}</bdi></span>` },
    { label: t.log.attempts, num: true, less: true, cell: (/** @type {any} */ row) => row.attempts.length },
    { label: t.log.actions, silent: true, cell: (/** @type {any} */ row) => row.status !== "pending" && row.eventId && html`<${Button} class="small" label=${t.again.one} press=${() => redeliver(row, of.reload)} />` },
  ];
  const some = FILTERS.some((each) => query.value.get(each));
  const none = some
    ? html`<${Empty} icon="filter" title=${t.log.noneFits} action=${html`<${Button} label=${t.log.clear} press=${() => setQuery(Object.fromEntries(FILTERS.map((each) => [each, null])))} />`} />`
    : html`<${Empty} icon="send" title=${t.log.none} text=${t.log.noneText} />`;
  return html`<${Section} title=${t.log.title}>
    <${Filters} />
    <${ListTable} of=${of} caption=${t.log.title} columns=${columns} empty=${none} />
    ${open && html`<${Delivery} key=${open} id=${open} close=${() => setQuery({ delivery: null })} />`}
  <//>`;
}

function Filters() {
  const option = (/** @type {string} */ value, /** @type {string} */ label, /** @type {string} */ name) => html`<option key=${value} value=${value} selected=${query.value.get(name) === value}>${label}</option>`;
  const picked = (/** @type {string} */ name) => (/** @type {any} */ event) => setQuery({ [name]: event.target.value || null });
  return html`<div class="filters" role="group" aria-label=${t.log.filters}>
    <label class="label">${t.log.outcome}<select class="field" onChange=${picked("status")}>${option("", t.log.any, "status")}${STATUSES.map((each) => option(each, t.status[/** @type {"pending"} */ (each)], "status"))}</select></label>
    <label class="label">${t.log.event}<select class="field" onChange=${picked("type")}>${option("", t.log.any, "type")}${[...CONTRACT, ...EXTENSIONS, ...INTERNAL, "webhook.test"].map((each) => option(each, each, "type"))}</select></label>
    <label class="label">${t.log.conversation}<input class="field mono" type="search" placeholder="cnv_…" value=${query.value.get("conversation") ?? ""} spellcheck="false" autocomplete="off" onChange=${(/** @type {any} */ event) => setQuery({ conversation: conversationIn(event.target.value) || null })} /></label>
    <label class="label">${t.log.since}<input class="field" type="datetime-local" value=${query.value.get("since") ?? ""} onChange=${picked("since")} /></label>
  </div>`;
}

/** Send the event of a delivery again, and show the new delivery. @param {any} row @param {() => unknown} then */
export async function redeliver(row, then) {
  try {
    const made = await call("POST", `deliveries/${row.id}/redeliver`);
    notify(t.again.sentOne, { action: t.again.look, run: () => setQuery({ delivery: made.id }) });
    then();
    return made;
  } catch (error) {
    notify(t.again.failed(errorText(error)), { bad: true });
    return null;
  }
}

/** @param {{id: string, close: () => void}} props */
export function Delivery({ id, close }) {
  const of = useCall(`deliveries/${id}`);
  useAutoRefresh(of.reload, of.data?.status === "pending");
  return html`<${Dialog} title=${t.delivery.title} class="wide" close=${close}><div class="body"><${States} of=${of}>${() => html`<${Shown} of=${of.data} close=${close} />`}<//></div><//>`;
}

/** @param {{of: any, close: () => void}} props */
function Shown({ of, close }) {
  const more = (/** @type {string|null} */ id) => id && html`<button type="button" class="link mono" onClick=${() => setQuery({ delivery: id })}>${id}</button>`;
  const resend = async () => {
    const made = await redeliver(of, () => {});
    if (made) setQuery({ delivery: made.id });
  };
  const rows = /** @type {[string, any][]} */ ([
    [t.log.outcome, html`<${Outcome} status=${of.status} />${of.reason && html` <bdi>${of.reason}</bdi>`}`],
    [t.log.event, html`<span class="mono">${of.eventType}</span>${of.sequence !== null && html` #${of.sequence}`}`],
    [t.log.conversation, of.conversationId && html`<${Link} to=${`c/${of.conversationId}`} class="mono">${of.conversationId}<//> · <${Link} to=${`history/${of.conversationId}${of.sequence ? `?at=${of.sequence}` : ""}`}>${t.delivery.history}<//>`],
    [t.delivery.made, html`<${Exact} at=${of.createdAt} />`],
    [t.delivery.next, of.nextAttemptAt && html`<${Exact} at=${of.nextAttemptAt} />`],
    [t.delivery.repeats, more(of.redeliveryOf)],
    [t.delivery.repeated, more(of.redeliveredAs)],
    [t.delivery.id, html`<span class="mono">${of.id}</span>`],
  ]);
  return html`<${Pairs} of=${rows.filter(([, value]) => value)} />
    <h3>${t.log.attempts}</h3>
    ${of.attempts.length ? html`<ol class="attempts">${of.attempts.map((/** @type {any} */ each) => html`<${Attempt} key=${each.number} of=${each} first=${of.attempts[0]} />`)}</ol>` : html`<p class="muted">${of.status === "pending" ? t.log.notYet : t.delivery.noAttempt}</p>`}
    ${of.eventId && html`<${Event} id=${of.eventId} />`}
    <div class="actions">${of.status !== "pending" && of.eventId && html`<${Button} kind="primary" icon="send" label=${t.again.one} press=${resend} />`}<${Button} label=${t.close} press=${close} /></div>`;
}

/** @param {{of: any, first: any}} props */
function Attempt({ of, first }) {
  const after = of.number === 1 ? exact(of.at) : t.delivery.later(duration(Date.parse(of.at) - Date.parse(first.at)));
  const well = of.error === null;
  return html`<li><span class=${well ? "good" : "bad"}>${well ? "✓" : "✗"}</span> <span class="num">${after}</span> <span>${of.status ?? ""}</span> <bdi>${well ? "" : of.error}</bdi> <span class="muted num">${duration(of.latencyMs)}</span>
    ${of.answer && html`<details><summary>${t.delivery.answer}</summary><pre class="code" tabindex="0" dir="auto">${of.answer}</pre></details>`}</li>`;
}

/** The event that was sent, fetched when it is opened. @param {{id: string}} props */
export function Event({ id }) {
  const [open, setOpen] = useState(false);
  const of = useCall(open ? `events/${id}` : null);
  return html`<details class="sent" onToggle=${(/** @type {any} */ event) => event.target.open && setOpen(true)}><summary>${t.delivery.event} <span class="mono muted">${id}</span></summary>
    ${open && (of.state === "gone" ? html`<p class="muted">${t.delivery.noEvent}</p>` : html`<${States} of=${of}>${(/** @type {any} */ data) => html`<${Copied} text=${JSON.stringify(data, null, 2)} label=${t.delivery.event} />`}<//>`)}</details>`;
}
