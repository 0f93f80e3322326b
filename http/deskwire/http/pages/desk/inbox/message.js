// @ts-check
/** A run of messages by one author: text, files, delivery status, and the receipts of each endpoint and stream consumer. */
import { html, signal, useState } from "../vendor/preact.js";
import { t } from "../core/texts-lazy.js";
import { Avatar, Button, Icon, Menu, Popover, clockTime, contactName, cx, dialog, notify, now } from "../ui/parts.js";
import { Clock, Text, exactTime, tookText } from "../ui/format.js";
import { ROOT, call } from "../core/api.js";
import { consumers, deliveries, receiptIn } from "./conversation.js";
import { hrefOf, linkedMessage, may, user } from "../core/session.js";
import { row } from "../core/store.js";
import { resend, withdraw } from "../core/outbox.js";
import { returnToDraft, useSecondsLeft } from "./held-messages.js";
import { MergedFrom } from "./merging.js";
import { AlsoIn, splitEntries } from "./splitting.js";
import { MentionName, OtherMentions } from "./mentions.js";
import { splitMentions } from "./mention-text.js";
import { Link } from "../ui/link.js";
import { Markdown } from "./format-bar.js";
/** @import { AgentMessage, Attachment, Delivery, HeldMessage, Mention, Outgoing } from "../core/types.js" */
/** @import { Receipt } from "../core/customer-state.js" */
/** @import { Consumer } from "./conversation.js" */

const TEXT_SHOWN_MAX = 1800;
const LINES_SHOWN_MAX = 28;
const PICTURES = /^image\/(png|jpeg|gif|webp|avif)$/;
/** Until then, a reply that has not reached the customer's browser is on its way. */
const UNREACHED_AFTER_MS = 60_000;
/** The statuses of a delivery that is not retried. */
export const FAILED = new Set(["dropped", "skipped", "failed"]);

/** How long the service took to store each message sent from here, in ms. */
const storeTimes = signal(/** @type {ReadonlyMap<string, number>} */ (new Map()));
/** @param {string} id @param {number | null} ms */
export const rememberStoreTime = (id, ms) => void (ms !== null && !storeTimes.peek().has(id) && (storeTimes.value = new Map(storeTimes.peek()).set(id, ms)));

/** @param {number} n */
const size = (n) => (n < 1024 ? `${n} B` : n < 1_048_576 ? `${Math.round(n / 1024)} KB` : `${(n / 1_048_576).toFixed(1)} MB`);

/** Return the address of an upload on this origin. Its path is signed for any host name. @param {string} url */
function localUploadUrl(url) {
  if (!URL.canParse(url, location.href)) return null;
  const { pathname, search } = new URL(url, location.href);
  const at = pathname.indexOf("/v3/uploads/");
  return at < 0 ? null : ROOT + pathname.slice(at + 1) + search;
}

/** @param {{of: Attachment}} props */
function AttachmentLink({ of }) {
  const [broken, setBroken] = useState(false);
  const href = localUploadUrl(of.url);
  const type = of.type ?? /** @type {any} */ (of).contentType ?? "";
  if (!href) return html`<span class="file"><${Icon} name="file" /><bdi class="ellipsis">${of.name}</bdi></span>`;
  if (PICTURES.test(type) && !broken)
    return html`<a class="picture" href=${href} target="_blank" rel="noopener" aria-label=${t.thread.attachment(of.name)}><img src=${href} alt=${of.name} loading="lazy" decoding="async" onError=${() => setBroken(true)} /></a>`;
  return html`<a class="file" href=${href} target="_blank" rel="noopener" download=${of.name}><${Icon} name="file" /><bdi class="ellipsis">${of.name}</bdi>${of.size > 0 && html`<span class="size">${size(of.size)}</span>`}</a>`;
}

/** Long messages that are shown whole, also after their part of the thread was out of the document. */
const wholeTexts = new Set();

/** Text, cut if it is very long. @param {{id: string, text: string, format?: string, mentions: readonly Mention[]}} props */
function MessageText({ id, text, format, mentions }) {
  const [whole, setShown] = useState(wholeTexts.has(id));
  const setWhole = (/** @type {boolean} */ on) => (wholeTexts[on ? "add" : "delete"](id), setShown(on));
  const long = text.length > TEXT_SHOWN_MAX || text.split("\n", LINES_SHOWN_MAX + 1).length > LINES_SHOWN_MAX;
  if (!text) return null;
  const mark = (/** @type {string} */ words) => splitMentions(words, mentions).map((each) => (typeof each === "string" ? each : html`<${MentionName} of=${each} />`));
  return html`<${format === "markdown" ? Markdown : Text} text=${long && !whole ? text.slice(0, TEXT_SHOWN_MAX) : text} mark=${mentions.length ? mark : undefined} class=${long && !whole ? "clipped" : ""} />${long && html`<${Button} class="small" kind="quiet" label=${whole ? t.thread.showLess : t.thread.showAll} press=${() => setWhole(!whole)} />`}${mentions.length > 0 && html`<${OtherMentions} text=${text} mentions=${mentions} />`}`;
}

/** Return a reason with its times in local time. @param {string | null} reason */
const withLocalTimes = (reason) => (reason ?? "").replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, (at) => clockTime(at));

/** Return the outcome of a delivery in words. @param {Delivery} of */
function outcome(of) {
  if (of.status === "delivered") return of.afterMs === null ? t.truth.gotIt(of.endpoint) : t.truth.got(of.endpoint, tookText(of.afterMs));
  if (FAILED.has(of.status)) return t.truth.failed(of.endpoint, withLocalTimes(of.reason) || of.status);
  if (of.attempts > 0) return t.truth.trying(of.endpoint, of.lastStatus ? ` (${of.lastStatus})` : of.reason ? ` (${withLocalTimes(of.reason)})` : "");
  return t.truth.waiting(of.endpoint);
}

/** A popover with the receipts of some messages. @param {{conversationId: string, groups: {at: string, sequence: number, of: Delivery[]}[], button: (open: boolean, toggle: () => void, hook: any) => any}} props */
const ReceiptsPopover = ({ conversationId, groups, button }) => html`<${Popover} class="popover receipts" label=${t.truth.receipts} button=${button}>${() => html`<${Receipts} conversationId=${conversationId} groups=${groups} words=${receipt} />`}<//>`;

/** @param {Delivery} of */
function receipt(of) {
  const detail = [t.truth.attempts(of.attempts), of.lastStatus && t.truth.answered(String(of.lastStatus)), of.nextAttemptAt && t.truth.next(clockTime(of.nextAttemptAt))].filter(Boolean).join(" · ");
  return { text: outcome(of), detail, state: of.status === "delivered" ? "good" : FAILED.has(of.status) ? "bad" : "warn" };
}

/** One line for a series of equal failures. @param {{of: Delivery, n: number}} props */
export function FailureLine({ of, n }) {
  const words = n > 1 ? t.truth.failedMany(of.endpoint, n, withLocalTimes(of.reason) || of.status) : t.truth.failed(of.endpoint, withLocalTimes(of.reason) || of.status);
  return html`<div class="trouble"><${Icon} name="warn" /><span>${words}</span></div>`;
}

/** Return how far a run of messages has come to the customer's browser, in words. @param {Receipt} of @param {boolean} byChannel  true if a browser is expected to confirm them */
function receiptText({ total, reached, reachedAt, reachedExact, seen, seenAt, seenExact }, byChannel) {
  if (!reached) return byChannel ? t.truth.notReached : t.truth.storedHere;
  const part = (/** @type {string} */ words, /** @type {number} */ n) => (n < total ? t.truth.some(words, n, total) : words);
  const first = part(t.truth.reached(exactTime(reachedAt ?? ""), reachedExact), reached);
  return seen ? `${first}, ${part(t.truth.seenAt(exactTime(seenAt ?? ""), seenExact), seen)}` : first;
}

/** How far messages to the customer have come: stored, reached a browser, seen. The words are its tooltip, and are shown while it has the focus. @param {{messages: AgentMessage[]}} props */
function Tick({ messages }) {
  const { receipt, byChannel } = receiptIn(messages[0]?.conversationId ?? "", messages);
  const words = receiptText(receipt, byChannel);
  const state = receipt.total && receipt.seen === receipt.total ? "seen" : receipt.total && receipt.reached === receipt.total ? "reached" : "stored";
  return html`<span class=${cx("tick", state)} role="img" tabindex="0" aria-label=${words} title=${words}><span aria-hidden="true">${state === "stored" ? "✓" : "✓✓"}</span><span class="tick-words" aria-hidden="true">${words}</span></span>`;
}

/** Return why the customer does not have a reply; null if nothing says so. @param {AgentMessage[]} messages @returns {string | null} */
function missedText(messages) {
  const last = /** @type {AgentMessage} */ (messages.at(-1));
  const { receipt, byChannel } = receiptIn(last.conversationId, messages);
  if (receipt.reached === receipt.total) return null;
  if (byChannel) return now.value - Date.parse(last.createdAt) > UNREACHED_AFTER_MS ? t.truth.unreached : null;
  const sequence = Number(last.sequence);
  const of = deliveries(last.conversationId, sequence);
  const lost = of.length > 0 && of.every((each) => FAILED.has(each.status));
  return lost && !consumers(last.conversationId, sequence).some((each) => (each.confirmedSequence ?? 0) >= sequence) ? t.truth.missed : null;
}

/** The words beside the tick of a reply that the customer does not have. @param {{messages: AgentMessage[]}} props */
function Missed({ messages }) {
  const words = missedText(messages);
  return words && html`<span class=${cx(words === t.truth.missed && "fail")}><${Icon} name=${words === t.truth.missed ? "warn" : "clock"} /> ${words}</span>`;
}

/** The delivery status of stored messages: for agents, one tick for replies; for users who manage webhooks, also the receipts. @param {{messages: AgentMessage[], ours: boolean}} props */
function DeliveryStatus({ messages, ours }) {
  const tick = ours && html`<${Tick} messages=${messages} /><${Missed} messages=${messages} />`;
  if (may("webhooks.manage")) return html`<${WebhookStatus} messages=${messages} ours=${ours} tick=${tick} />`;
  return tick && html`<div class="truth">${tick}</div>`;
}

/** How far messages have come to endpoints and stream consumers; the words show while the run has the pointer or the focus. @param {{messages: AgentMessage[], ours: boolean, tick: any}} props */
function WebhookStatus({ messages, ours, tick }) {
  const groups = messages.filter((each) => each.sequence).map((each) => ({ at: each.createdAt, sequence: Number(each.sequence), of: deliveries(each.conversationId, Number(each.sequence)) }));
  const last = messages.at(-1);
  const streamConsumers = last?.sequence ? consumers(last.conversationId, last.sequence) : [];
  const late = streamConsumers.filter((each) => (each.confirmedSequence ?? 0) < Number(last?.sequence));
  const ms = last && storeTimes.value.get(last.id);
  const of = (last?.sequence && deliveries(last.conversationId, last.sequence)) || [];
  const done = of.filter((each) => each.status === "delivered");
  const brief = done.length > 2 ? [t.truth.gotAll(done.length)] : done.map(outcome);
  const pending = of.filter((each) => each.status !== "delivered" && !FAILED.has(each.status));
  const failed = of.filter((each) => FAILED.has(each.status));
  if (!of.length && !streamConsumers.length && !ours) return null;
  const words = html`<span>${t.truth.onDisk}${ms !== undefined && ` ${t.truth.within(tookText(ms))}`}</span>${brief.length > 0 && html`<span>→ ${brief.join(" · ")}</span>`}${pending.map((each) => html`<span>→ ${outcome(each)}</span>`)}${failed.map((each) => html`<span class="fail">→ ${each.endpoint} ✗</span>`)}${late.map((each) => html`<span>→ ${each.connected ? t.truth.behind(each.consumerId) : t.truth.away(each.consumerId)}</span>`)}${!of.length && streamConsumers.length > late.length && html`<span>→ ${t.truth.confirmed(streamConsumers.length - late.length)}</span>`}`;
  const face = (/** @type {boolean} */ open, /** @type {() => void} */ toggle, /** @type {any} */ hook) => html`<button type="button" ref=${hook} class="why" aria-expanded=${open} title=${t.truth.receipts} onClick=${toggle}><span class="why-words">${words}</span></button>`;
  return html`<div class="truth">${tick || html`<span class="ok" aria-hidden="true">✓</span>`}<${ReceiptsPopover} conversationId=${last?.conversationId} groups=${groups} button=${face} /></div>`;
}

const KEPT_REASONS = /** @type {Record<string, string>} */ ({ rate_limited: t.truth.keptLimited, signed_out: t.truth.keptSignedOut, server_failed: t.truth.keptFailed, offline: t.truth.kept });

/** The countdown of a held message. @param {{of: HeldMessage}} props */
function HeldStatus({ of }) {
  const left = useSecondsLeft(of);
  return html`<div class="truth"><span class="num"><${Icon} name="clock" /> ${left > 0 ? t.composer.sendingIn(left) : t.truth.sending}</span></div>`;
}

/** The status of a message on its way to the server. @param {{out: Outgoing}} props */
function OutgoingStatus({ out }) {
  // The conversation may have been merged since the message was written.
  const edit = async () => returnToDraft(row(out.conversationId ?? "")?.mergedInto ?? out.conversationId ?? "", await withdraw(out.key));
  if (out.state === "refused" || out.state === "conflict") {
    return html`<div class="truth"><span class="fail"><${Icon} name="warn" /> ${t.truth.notAccepted}${out.problem?.detail ? `: ${out.problem.errors?.map((each) => each.message).join(" ") || out.problem.detail}` : ""}</span>
      <${Button} class="small" label=${t.truth.edit} press=${edit} /><${Button} class="small" kind="quiet" label=${t.truth.discard} press=${() => withdraw(out.key)} />${out.state === "refused" && html`<${Button} class="small" kind="quiet" label=${t.truth.retry} press=${() => resend(out.key)} />`}</div>`;
  }
  if (out.state === "stored") return html`<div class="truth"><span class="tick stored" role="img" aria-label=${t.truth.storedHere}>✓</span></div>`;
  if (out.state === "sending") return html`<div class="truth"><span><${Icon} name="spin" class="spin" /> ${t.truth.sending}</span></div>`;
  return html`<div class="truth"><span><${Icon} name="clock" /> ${out.waitsFor ? (KEPT_REASONS[out.waitsFor] ?? t.truth.kept) : t.truth.keptNext}</span>${out.waitsFor && html`<${Button} class="small" kind="quiet" label=${t.truth.edit} press=${edit} />`}</div>`;
}

/** @param {HeldMessage} of @returns {AgentMessage} */
const heldMessage = ({ id, conversationId, text, format, attachments, createdAt, internal, mentions }) => ({ format, id, conversationId, author: { type: "agent", id: user.value?.id ?? null, name: user.value?.name ?? t.you }, text, attachments, createdAt, redactedAt: null, index: null, internal, mentions });

/** Return an outgoing message in the form of a stored one. @param {Outgoing} out @returns {AgentMessage} */
const outgoingMessage = (out) => ({
  id: out.key,
  conversationId: out.conversationId ?? "",
  author: { type: "agent", id: user.value?.id ?? null, name: user.value?.name ?? t.you },
  text: out.text ?? "",
  format: out.body.format,
  attachments: [],
  createdAt: new Date(out.createdAt).toISOString(),
  redactedAt: null,
  index: null,
  internal: out.internal,
  mentions: out.mentions ?? [],
});

/** Copy the address of a message. @param {AgentMessage} of */
const copyLink = ({ id, conversationId }) => navigator.clipboard?.writeText(location.origin + hrefOf(`c/${conversationId}/m/${id}`)).then(() => notify(t.copied));

/** The menu of one message: its link, a new conversation from it, and its removal for users who may delete. @param {{of: AgentMessage}} props */
function MessageMenu({ of }) {
  const open = (/** @type {string} */ what) => () => void (dialog.value = { name: "rewrite", message: of, what });
  const redact = of.text || of.attachments?.length ? [{ label: t.thread.redact, icon: "pencil", pick: open("redact") }] : [];
  return html`<${Menu} label=${t.thread.messageActions} icon="more" only kind="quiet" class="small rewriting" entries=${() => [{ label: t.thread.copyMessageLink, icon: "copy", pick: () => void copyLink(of) }, ...splitEntries(of), ...(may("conversations.delete") ? [...redact, { label: t.thread.deleteMessage, icon: "close", danger: true, pick: open("delete") }] : [])]} />`;
}

/**
 * A run of messages by one author.
 * @param {{messages?: AgentMessage[], out?: Outgoing, held?: HeldMessage}} props  out, held: a message that is not sent yet
 */
export function Run(props) {
  const { out, held } = props;
  const messages = out ? [outgoingMessage(out)] : held ? [heldMessage(held)] : (props.messages ?? []);
  const [first] = messages;
  if (!first) return null;
  const { author, internal } = first;
  const mine = author.type === "agent" && author.id === user.value?.id;
  const bot = author.type === "bot" || author.type === "system";
  const side = internal ? "note" : author.type === "contact" ? "in" : "out";
  const name = mine ? t.you : (author.name || (author.type === "contact" && contactName(row(first.conversationId)?.contact)) || (bot ? (author.type === "bot" ? t.thread.bot : t.thread.system) : ""));
  const face = html`<${Avatar} name=${author.name || (side === "in" ? name : null)} id=${author.id} bot=${bot} size=${internal ? "s" : ""} />`;
  return html`<article class=${cx("run", side, bot && "bot")} aria-label=${internal ? `${t.thread.note}, ${name}` : name}>
    ${!internal && face}
    <div class="said">
      <div class="by">${internal && face}<b><bdi>${name}</bdi></b><${Clock} at=${first.createdAt} />${!out && !held && html`<${MergedFrom} id=${first.conversationId} />`}${internal && html`<span class="badge"><${Icon} name="lock" />${t.thread.note}</span>`}</div>
      ${messages.map((each) => html`<div key=${each.id} id=${each.id} tabindex=${linkedMessage.value === each.id ? -1 : undefined} aria-current=${linkedMessage.value === each.id ? "true" : undefined} class=${cx("message", linkedMessage.value === each.id && "found", (held || (out && out.state !== "stored")) && "kept", out?.state === "refused" && "refused")}>
        ${each.redactedAt && !each.text ? html`<i class="muted">${t.thread.redacted}</i>` : html`<${MessageText} id=${each.id} text=${each.text} format=${each.format} mentions=${each.mentions ?? []} />`}
        ${each.attachments?.length > 0 && html`<div class="files">${each.attachments.map((file) => html`<${AttachmentLink} key=${file.id} of=${file} />`)}</div>`}
        ${each.splitInto && html`<${AlsoIn} id=${each.splitInto} />`}
        ${!out && !held && html`<${MessageMenu} of=${each} />`}
        ${out && out.files.length > 0 && html`<div class="files">${out.files.map((file) => html`<span key=${file.key} class="file"><${Icon} name="file" /><bdi class="ellipsis">${file.name}</bdi><span class="size">${size(file.size)}</span></span>`)}</div>`}
      </div>`)}
      ${out ? html`<${OutgoingStatus} out=${out} />` : held ? html`<${HeldStatus} of=${held} />` : !internal && html`<${DeliveryStatus} messages=${messages} ours=${side === "out"} />`}
    </div>
  </article>`;
}

/** @param {{conversationId: string, groups: {at: string, sequence: number, of: Delivery[]}[], words: (of: Delivery) => {text: string, detail: string, state: "good"|"bad"|"warn"}}} props */
export function Receipts({ conversationId, groups, words }) {
  const newest = Math.max(0, ...groups.map((each) => each.sequence));
  const streamConsumers = consumers(conversationId, newest);
  return html`<div tabindex="-1" autofocus><h2>${t.receipts.title}</h2>${groups.map(({ at, sequence, of }) => html`<p class="muted" key=${sequence}><${Clock} at=${at} /> <${Link} to=${`history/${conversationId}?at=${sequence}`} class="num">#${sequence}<//></p>
    <ul>${of.map((each) => html`<${EndpointReceipt} key=${each.endpointId} of=${each} conversationId=${conversationId} words=${words(each)} />`)}${streamConsumers.map((each) => html`<${ConsumerReceipt} key=${each.channel} of=${each} sequence=${sequence} />`)}</ul>`)}
    ${groups.every((each) => !each.of.length) && !streamConsumers.length && html`<p class="muted">${t.receipts.none}</p>`}</div>`;
}

/** @param {{of: Delivery, conversationId: string, words: {text: string, detail: string, state: string}}} props */
function EndpointReceipt({ of, conversationId, words }) {
  const [busy, setBusy] = useState(false);
  const manages = may("webhooks.manage");
  const resend = async () => {
    setBusy(true);
    try {
      const { count } = await call("POST", `webhooks/${of.endpointId}/replay`, { body: { conversationId, from: of.sequence, to: of.sequence } });
      notify(count ? t.receipts.sent(of.endpoint) : t.receipts.onItsWay(of.endpoint));
    } catch (error) {
      notify(t.receipts.failed(/** @type {Error} */ (error).message), { bad: true });
    }
    setBusy(false);
  };
  return html`<li><${Icon} name=${words.state === "good" ? "check" : words.state === "bad" ? "warn" : "clock"} class=${words.state} /><span>${words.text}</span><span></span><span class="detail">${words.detail}
    ${manages && html`<span class="does">${of.status !== "pending" && html`<${Button} class="small" label=${busy ? t.receipts.sending : t.receipts.again} disabled=${busy} press=${resend} />`}<${Link} to=${`webhooks/${of.endpointId}?conversation=${conversationId}`}>${t.receipts.log}<//></span>`}</span></li>`;
}

/** @param {{of: Consumer, sequence: number}} props */
function ConsumerReceipt({ of, sequence }) {
  const has = (of.confirmedSequence ?? 0) >= sequence;
  return html`<li><${Icon} name=${has ? "check" : "clock"} class=${has ? "good" : "warn"} /><span>${has ? t.receipts.heard(of.consumerId) : of.connected ? t.receipts.behind(of.consumerId) : t.receipts.away(of.consumerId)}</span><span></span><span class="detail">${t.receipts.consumer}</span></li>`;
}
