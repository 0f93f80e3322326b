// @ts-check
/** One delivery: each attempt with its answer, the event that was sent, and sending it again. */
import { html, useState } from "../vendor/preact.js";
import { t } from "./texts.js";
import { Button, say } from "../parts.js";
import { Dialog } from "../dialog.js";
import { call } from "../api.js";
import { Pairs } from "../parts/frame.js";
import { States, useCall } from "../parts/loading.js";
import { Link, ask } from "../parts/link.js";
import { Copied } from "../parts/secret.js";
import { Exact, Outcome, duration, exact, reasonOf } from "./words.js";
import { useFresh } from "../parts/fresh.js";

/** Sends the event of a delivery again, and shows the new delivery. @param {any} row @param {() => unknown} then */
export async function again(row, then) {
  try {
    const made = await call("POST", `deliveries/${row.id}/redeliver`);
    say(t.again.sentOne, { action: t.again.look, run: () => ask({ delivery: made.id }) });
    then();
    return made;
  } catch (error) {
    say(t.again.failed(reasonOf(error)), { bad: true });
    return null;
  }
}

/** @param {{id: string, close: () => void}} props */
export function Delivery({ id, close }) {
  const of = useCall(`deliveries/${id}`);
  useFresh(of.reload, of.data?.status === "pending");
  return html`<${Dialog} title=${t.delivery.title} class="wide" close=${close}><div class="body"><${States} of=${of}>${() => html`<${Shown} of=${of.data} close=${close} />`}<//></div><//>`;
}

/** @param {{of: any, close: () => void}} props */
function Shown({ of, close }) {
  const more = (/** @type {string|null} */ id) => id && html`<button type="button" class="link mono" onClick=${() => ask({ delivery: id })}>${id}</button>`;
  const resend = async () => {
    const made = await again(of, () => {});
    if (made) ask({ delivery: made.id });
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

/** The event that was sent, fetched when somebody looks. @param {{id: string}} props */
export function Event({ id }) {
  const [open, setOpen] = useState(false);
  const of = useCall(open ? `events/${id}` : null);
  return html`<details class="sent" onToggle=${(/** @type {any} */ event) => event.target.open && setOpen(true)}><summary>${t.delivery.event} <span class="mono muted">${id}</span></summary>
    ${open && (of.state === "gone" ? html`<p class="muted">${t.delivery.noEvent}</p>` : html`<${States} of=${of}>${(/** @type {any} */ data) => html`<${Copied} text=${JSON.stringify(data, null, 2)} label=${t.delivery.event} />`}<//>`)}</details>`;
}
