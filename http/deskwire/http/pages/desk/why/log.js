// @ts-check
/** The delivery log of an endpoint: filters that are in the address, attempts and answers of each delivery, and sending one again. */
import { html, useEffect } from "../vendor/preact.js";
import { t } from "./texts.js";
import { Button, Empty } from "../parts.js";
import { Section } from "../parts/frame.js";
import { ListTable } from "../parts/table.js";
import { useList } from "../parts/loading.js";
import { ask, query } from "../parts/link.js";
import { CONTRACT, EXTENSIONS, INTERNAL } from "./event-types.js";
import { Delivery, again } from "./delivery.js";
import { conversationIn } from "./endpoint-forms.js";
import { Exact, Outcome, duration } from "./words.js";
import { useFresh } from "../parts/fresh.js";

const PAGE = 50;
const STATUSES = ["pending", "delivered", "dropped", "skipped"];
const FILTERS = ["status", "type", "conversation", "since"];

/** What the address asks for. */
function filters() {
  const since = query.value.get("since");
  return { status: query.value.get("status"), type: query.value.get("type"), conversation: query.value.get("conversation"), since: since && !Number.isNaN(Date.parse(since)) ? new Date(since).toISOString() : null };
}

/** Why a delivery is as it is, in a few words. @param {any} row */
function because(row) {
  const last = row.attempts.at(-1);
  if (row.status === "delivered") return last ? t.log.answered(last.status, duration(last.latencyMs)) : null;
  return row.reason ?? last?.error ?? (row.status === "pending" ? t.log.notYet : null);
}

/** @param {{endpoint: any, round: number}} props  round: another one when something was sent again */
export function Log({ endpoint, round }) {
  const of = useList(`webhooks/${endpoint.id}/deliveries`, filters(), PAGE);
  const open = query.value.get("delivery");
  const pending = of.items.some((/** @type {any} */ each) => each.status === "pending");
  useFresh(of.reload, pending, of.items.length > PAGE);
  useEffect(() => void of.reload(), [open, round]);
  const columns = [
    { label: t.log.when, cell: (/** @type {any} */ row) => html`<button type="button" class="link" onClick=${() => ask({ delivery: row.id })}><${Exact} at=${row.createdAt} /></button>` },
    { label: t.log.event, cell: (/** @type {any} */ row) => html`<span class="mono">${row.eventType ?? t.none}</span>${row.sequence !== null && html` <span class="num muted">#${row.sequence}</span>`}${row.redeliveryOf && html` <span class="chip">${t.log.again}</span>`}` },
    { label: t.log.outcome, cell: (/** @type {any} */ row) => html`<${Outcome} status=${row.status} /> <span class="muted"><bdi>${because(row)}</bdi></span>` },
    { label: t.log.attempts, num: true, less: true, cell: (/** @type {any} */ row) => row.attempts.length },
    { label: t.log.actions, silent: true, cell: (/** @type {any} */ row) => row.status !== "pending" && row.eventId && html`<${Button} class="small" label=${t.again.one} press=${() => again(row, of.reload)} />` },
  ];
  const some = FILTERS.some((each) => query.value.get(each));
  const none = some
    ? html`<${Empty} icon="filter" title=${t.log.noneFits} action=${html`<${Button} label=${t.log.clear} press=${() => ask(Object.fromEntries(FILTERS.map((each) => [each, null])))} />`} />`
    : html`<${Empty} icon="send" title=${t.log.none} text=${t.log.noneText} />`;
  return html`<${Section} title=${t.log.title}>
    <${Filters} />
    <${ListTable} of=${of} caption=${t.log.title} columns=${columns} empty=${none} />
    ${open && html`<${Delivery} key=${open} id=${open} close=${() => ask({ delivery: null })} />`}
  <//>`;
}

function Filters() {
  const option = (/** @type {string} */ value, /** @type {string} */ label, /** @type {string} */ name) => html`<option key=${value} value=${value} selected=${query.value.get(name) === value}>${label}</option>`;
  const picked = (/** @type {string} */ name) => (/** @type {any} */ event) => ask({ [name]: event.target.value || null });
  return html`<div class="filters" role="group" aria-label=${t.log.filters}>
    <label class="label">${t.log.outcome}<select class="field" onChange=${picked("status")}>${option("", t.log.any, "status")}${STATUSES.map((each) => option(each, t.status[/** @type {"pending"} */ (each)], "status"))}</select></label>
    <label class="label">${t.log.event}<select class="field" onChange=${picked("type")}>${option("", t.log.any, "type")}${[...CONTRACT, ...EXTENSIONS, ...INTERNAL, "webhook.test"].map((each) => option(each, each, "type"))}</select></label>
    <label class="label">${t.log.conversation}<input class="field mono" type="search" placeholder="cnv_…" value=${query.value.get("conversation") ?? ""} spellcheck="false" autocomplete="off" onChange=${(/** @type {any} */ event) => ask({ conversation: conversationIn(event.target.value) || null })} /></label>
    <label class="label">${t.log.since}<input class="field" type="datetime-local" value=${query.value.get("since") ?? ""} onChange=${picked("since")} /></label>
  </div>`;
}
