// @ts-check
/** The list of the customer's conversations. */
import { html, useState } from "../desk/vendor/preact.js";
import { t, timeText } from "./texts.js";
/** @import { Conversation, Customer, State } from "./customer.js" */

/** @param {{customer: Customer, state: State, open: (id: string | null) => void}} props */
export function List({ customer, state, open }) {
  const [more, setMore] = useState(state.conversations.size >= 50);
  return html`<main class="list">
    <ul aria-label=${t.conversations}>${[...state.conversations.values()].map((each) => html`<li key=${each.clientId ?? each.id}><${Row} of=${each} state=${state} open=${open} /></li>`)}</ul>
    ${more && html`<button type="button" class="plain" onClick=${() => customer.more().then(setMore, () => {})}>${t.more}</button>`}
    <button type="button" class="solid" onClick=${() => open(null)}>${t.newConversation}</button>
  </main>`;
}

/** @param {{of: Conversation, state: State, open: (id: string) => void}} props */
function Row({ of, state, open }) {
  const waiting = state.outbox.findLast((each) => each.conversation === of.id);
  const last = of.lastMessage;
  const author = waiting || last?.author.self ? t.you : (last?.author.name ?? of.assignee?.name ?? t.support);
  return html`<button type="button" class="row" onClick=${() => open(of.id)}>
    <b><bdi>${author}</bdi>${of.unread && html`<i class="dot"></i><span class="hidden"> (${t.unread})</span>`}</b>
    <time datetime=${of.lastMessageAt}>${timeText(of.lastMessageAt ?? of.createdAt)}</time>
    <span dir="auto">${waiting?.text || last?.text || (last?.redactedAt ? t.removed : (last?.attachments ?? [])[0]?.name) || of.title || ""}</span>
  </button>`;
}
