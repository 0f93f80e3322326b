// @ts-check
/** One conversation: its messages, also unsent ones, the waiting workflow step, and the rating once it is closed. */
import { h, html, useLayoutEffect, useRef, useState } from "../desk/vendor/preact.js";
import { Composer } from "./composer.js";
import { AttachmentLink, Text, lazy } from "./parts.js";
import { isolated, problemText, settings, sizeText, t, timeText } from "./texts.js";
/** @import { Customer, Message, Outgoing, State } from "./customer.js" */

const Rating = lazy("Rating");
const WorkflowStep = lazy("WorkflowStep");
const Markup = lazy("Markup", Text);

/** @param {{customer: Customer, state: State, conversation: string | null, sent: (id: string) => void}} props */
export function Thread({ customer, state, conversation, sent }) {
  const id = conversation ?? "";
  const of = state.conversations.get(id);
  const messages = state.messages.get(id) ?? [];
  const outgoing = state.outbox.filter((each) => each.conversation === id);
  const [complete, setComplete] = useState("");
  const typing = state.typing.get(id);
  const step = state.steps.get(id);
  const end = useRef(/** @type {any} */ (null));
  const newest = outgoing[outgoing.length - 1]?.clientId ?? messages[messages.length - 1]?.id;
  useLayoutEffect(() => end.current.scrollIntoView({ block: "end" }), [newest, step, of?.closed]);
  const last = messages.findLast((each) => each.author.self);
  return html`<main class="thread">
    <div class="scroll">
      ${complete !== id && messages[0] && (messages[0].index > 0 || messages[0].conversationId !== id) && html`<button type="button" class="plain" onClick=${() => customer.older(id).then((more) => more || setComplete(id), () => {})}>${t.older}</button>`}
      ${!messages.length && settings.own.greeting && html`<${Text} text=${settings.own.greeting} />`}
      <div role="log" aria-label=${t.conversations}>
        ${messages.map((each, at) => html`<${Bubble} key=${each.clientId ?? each.id} of=${each} before=${messages[at - 1]} state=${each === last && !outgoing.length && t.stored} />`)}
        ${outgoing.map((each) => html`<${Waiting} key=${each.clientId} of=${each} customer=${customer} />`)}
      </div>
      <p role="status" class="quiet">${typing ? t.typing(isolated(typing)) : ""}</p>
      ${step && html`<${WorkflowStep} key=${step.actionId} customer=${customer} conversation=${id} step=${step} />`}
      ${of?.closed && html`<p class="quiet">${t.closed}</p><${Rating} key=${of.closedAt} customer=${customer} of=${of} survey=${state.channel?.survey ?? null} />`}
      <div ref=${end}></div>
    </div>
    <${Composer} customer=${customer} state=${state} conversation=${conversation} sent=${sent} />
  </main>`;
}

/** A stored message. @param {{of: Message, before?: Message, state: string | false}} props */
function Bubble({ of, before, state }) {
  const { author } = of;
  const named = before?.author.name !== author.name || before?.author.type !== author.type;
  const name = author.self ? t.you : (author.name ?? t.support);
  return html`<article class=${author.self ? "own" : ""}>
    <p class=${named && !author.self ? "by" : "hidden"}><bdi>${name}</bdi></p>
    ${(of.text || of.redactedAt) && html`<${of.format ? Markup : Text} text=${of.text || t.removed} h=${h} t=${t} />`}
    ${of.attachments.map((each) => html`<${AttachmentLink} key=${each.id} of=${each} />`)}
    <p class=${state || named ? "quiet" : "hidden"}>${state && html`${state} · `}<time datetime=${of.createdAt}>${timeText(of.createdAt)}</time></p>
  </article>`;
}

/** A message on its way. @param {{of: Outgoing, customer: Customer}} props */
function Waiting({ of, customer }) {
  return html`<article class="own waiting">
    <p class="hidden">${t.you}</p>
    ${of.text && html`<${Text} text=${of.text} />`}
    ${of.files.map((each) => html`<span class="file" key=${each.key}><bdi>${each.name}</bdi> <small>${sizeText(each.size)}</small></span>`)}
    ${of.state === "refused"
      ? html`<p class="bad">${t.refused(isolated(of.problem ? problemText(of.problem) : t.failed))}</p><button type="button" class="plain" onClick=${() => customer.retry(of.clientId)}>${t.retry}</button><button type="button" class="plain" onClick=${() => customer.discard(of.clientId)}>${t.discard}</button>`
      : html`<p class="quiet">${of.state === "sending" ? t.sending : t.kept}</p>`}
  </article>`;
}
