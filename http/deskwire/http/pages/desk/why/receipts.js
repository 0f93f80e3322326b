// @ts-check
/** Who got a message: each endpoint with its reason, each stream consumer, and the way to send it again. */
import { html, useState } from "../vendor/preact.js";
import { t } from "./texts.js";
import { Button, Icon, say } from "../parts.js";
import { Clock } from "../words.js";
import { call } from "../api.js";
import { may } from "../session.js";
import { Link } from "../parts/link.js";
import { consumers } from "./reach.js";
import { reasonOf } from "./words.js";
/** @import { Consumer } from "./reach.js" */
/** @import { Delivery } from "../types.js" */

/** @param {{conversationId: string, groups: {at: string, sequence: number, of: Delivery[]}[], words: (of: Delivery) => {text: string, detail: string, state: "good"|"bad"|"warn"}}} props */
export function Receipts({ conversationId, groups, words }) {
  const newest = Math.max(0, ...groups.map((each) => each.sequence));
  const hear = consumers(conversationId, newest);
  return html`<div tabindex="-1" autofocus><h2>${t.receipts.title}</h2>${groups.map(({ at, sequence, of }) => html`<p class="muted" key=${sequence}><${Clock} at=${at} /> <${Link} to=${`history/${conversationId}?at=${sequence}`} class="num">#${sequence}<//></p>
    <ul>${of.map((each) => html`<${Receipt} key=${each.endpointId} of=${each} conversationId=${conversationId} words=${words(each)} />`)}${hear.map((each) => html`<${Heard} key=${each.channel} of=${each} sequence=${sequence} />`)}</ul>`)}
    ${groups.every((each) => !each.of.length) && !hear.length && html`<p class="muted">${t.receipts.nobody}</p>`}</div>`;
}

/** @param {{of: Delivery, conversationId: string, words: {text: string, detail: string, state: string}}} props */
function Receipt({ of, conversationId, words }) {
  const [busy, setBusy] = useState(false);
  const manages = may("webhooks.manage");
  const again = async () => {
    setBusy(true);
    try {
      const { count } = await call("POST", `webhooks/${of.endpointId}/replay`, { body: { conversationId, from: of.sequence, to: of.sequence } });
      say(count ? t.receipts.sent(of.endpoint) : t.receipts.onItsWay(of.endpoint));
    } catch (error) {
      say(t.again.failed(reasonOf(error)), { bad: true });
    }
    setBusy(false);
  };
  return html`<li><${Icon} name=${words.state === "good" ? "check" : words.state === "bad" ? "warn" : "clock"} class=${words.state} /><span>${words.text}</span><span></span><span class="detail">${words.detail}
    ${manages && html`<span class="does">${of.status !== "pending" && html`<${Button} class="small" label=${busy ? t.receipts.sending : t.again.one} disabled=${busy} press=${again} />`}<${Link} to=${`webhooks/${of.endpointId}?conversation=${conversationId}`}>${t.receipts.log}<//></span>`}</span></li>`;
}

/** @param {{of: Consumer, sequence: number}} props */
function Heard({ of, sequence }) {
  const has = (of.confirmedSequence ?? 0) >= sequence;
  return html`<li><${Icon} name=${has ? "check" : "clock"} class=${has ? "good" : "warn"} /><span>${has ? t.receipts.heard(of.consumerId) : of.connected ? t.receipts.behind(of.consumerId) : t.receipts.away(of.consumerId)}</span><span></span><span class="detail">${t.receipts.consumer}</span></li>`;
}
