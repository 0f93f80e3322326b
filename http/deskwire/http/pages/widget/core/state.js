// @ts-check
/**
 * The state after each change: pure functions on immutable values.
 *
 * Changes can come twice and in any order. A conversation changes only to a greater `sequence`; a message is known by its id. So the response to a
 * call, the event about it, and the same event in another tab make the same state.
 */
/** @import { Channel, Contact, Conversation, Message, Outgoing, State, Step } from "../customer.js" */

/**
 * @typedef {State & {gone: ReadonlySet<string>, entries: readonly Outgoing[], sending: ReadonlySet<string>, badge: number|null, merged: ReadonlyMap<string, {into: string, sequence: number}>}} Full
 *   merged: conversations whose messages another one shows. gone: deleted conversations. entries: the outbox as stored. badge: the unread count, as long as no list is loaded.
 *
 * @typedef {{type: "set", value: Partial<Full>}
 *   | {type: "list", items: Conversation[], instead?: readonly string[]}
 *   | {type: "messages", id: string, items: Message[]}
 *   | {type: "event", event: any}
 *   | {type: "sent", clientId: string, message: Message|null, conversation: Conversation|null}
 *   | {type: "sending", clientId: string, on: boolean}
 *   | {type: "step", id: string, step: Step|null}
 *   | {type: "typing", id: string, name: string|null}
 *   | {type: "reset"}} Change
 *   list: `instead` of these conversations.
 */

/** @type {Full} */
export const EMPTY = {
  me: null, channel: null, listed: false, conversations: new Map(), messages: new Map(), loaded: new Set(), steps: new Map(), typing: new Map(), outbox: [], unread: 0, open: null,
  connection: "connecting", storage: "page", problem: null, gone: new Set(), entries: [], sending: new Set(), badge: null, merged: new Map(),
};

/** True if the id is that of a conversation that the service may not have stored yet. @param {string} id */
export const isLocal = (id) => id.startsWith("client:");

/** Return the id of a conversation by which the state knows it: `cnv_…` once the service has stored it, and the other one once it is merged. @param {State & {merged?: Full["merged"]}} state @param {string} id */
export function resolve(state, id) {
  if (isLocal(id)) for (const each of state.conversations.values()) if (each.clientId === id.slice(7) && each.id !== id) return each.id;
  return state.merged?.get(id)?.into ?? id;
}

/** Return the index of the newest of these messages that is the conversation's own; others are of conversations that are merged into it. @param {readonly Message[]} messages @param {string} id */
export const newestIndex = (messages, id) => messages.findLast(({ conversationId }) => conversationId === id)?.index ?? -1;

/** Return the state after a change. @param {Full} state @param {Change} change @returns {Full} */
export function reduce(state, change) {
  const next = step(state, change);
  return next === state ? state : derive(next, state);
}

/** @template K, V @param {ReadonlyMap<K, V>} map @param {K} key @param {V} value @returns {ReadonlyMap<K, V>} */
const put = (map, key, value) => new Map(map).set(key, value);
/** @template K @template {ReadonlyMap<K, any>|ReadonlySet<K>} M @param {M} from @param {K} key @returns {M} */
function without(from, key) {
  if (!from.has(key)) return from;
  const copy = /** @type {any} */ (from instanceof Map ? new Map(from) : new Set(/** @type {any} */ (from)));
  copy.delete(key);
  return copy;
}

/** @param {Full} state @param {Change} change @returns {Full} */
function step(state, change) {
  switch (change.type) {
    case "set":
      return { ...state, ...change.value };
    case "list":
      return change.items.reduce(withConversation, { ...state, badge: null, listed: true, conversations: (change.instead ?? []).reduce(without, state.conversations) });
    case "messages": {
      const { id, items } = change;
      const newest = newestIndex(items, id);
      // After a gap the old messages may have been redacted, so they are replaced.
      const fresh = state.loaded.has(id) ? state : { ...state, messages: put(state.messages, id, (state.messages.get(id) ?? []).filter(({ index, conversationId }) => conversationId === id && index > newest)) };
      return { ...withMessages(fresh, id, items), loaded: new Set(state.loaded).add(id) };
    }
    case "event":
      return withEvent(state, change.event);
    case "sent": {
      const { clientId, message } = change;
      // Before the list is loaded, the row of a conversation comes from the outbox: without this copy it would disappear until then.
      const local = state.conversations.get(state.entries.find((each) => each.clientId === clientId)?.conversation ?? "");
      const given = change.conversation ?? (message && local?.sequence === 0 && { ...local, id: message.conversationId, lastMessage: message });
      const at = given ? withConversation(state, given) : state;
      const own = { ...at, entries: at.entries.filter((each) => each.clientId !== clientId) };
      return message ? withMessages(own, message.conversationId, [message], true) : own;
    }
    case "sending": {
      const sending = without(state.sending, change.clientId);
      return { ...state, sending: change.on ? new Set(sending).add(change.clientId) : sending };
    }
    case "step":
      return { ...state, steps: put(state.steps, change.id, change.step) };
    case "typing":
      return { ...state, typing: change.name === null ? without(state.typing, change.id) : put(state.typing, change.id, change.name) };
    case "reset":
      return { ...EMPTY, channel: state.channel, storage: state.storage, problem: state.problem };
  }
}

/** @param {Full} state @param {Conversation} given @returns {Full} */
function withConversation(state, given) {
  const { id, sequence, mergedInto: into } = /** @type {Conversation & {mergedInto?: string}} */ (given);
  const known = state.conversations.get(id);
  const was = state.merged.get(id);
  if (state.gone.has(id) || /** @type {any} */ (known ?? was)?.sequence > sequence) return state;
  let next = { ...state, conversations: into ? without(state.conversations, id) : put(state.conversations, id, { ...known, ...given }), merged: into ? put(state.merged, id, { into, sequence }) : without(state.merged, id) };
  // The thread of the other conversation has more messages now, or fewer, and must be loaded again.
  const other = into ?? was?.into;
  if (other && was?.into !== into) next = { ...next, loaded: without(state.loaded, other), messages: without(state.messages, other) };
  return next;
}

/** Return the state with messages, by index and without duplicates. A page that does not touch the loaded messages replaces them. @param {Full} state @param {string} id @param {readonly Message[]} items @param {boolean} [gap]  allow one, because the missing messages are being loaded @returns {Full} */
function withMessages(state, id, items, gap) {
  if (!items.length) return state;
  const first = items.find(({ conversationId }) => conversationId === id);
  let before = state.messages.get(id) ?? [];
  if (!gap && before.length && first && first.index > newestIndex(before, id) + 1) before = [];
  const byId = new Map(before.map((each) => [each.id, each]));
  for (const each of items) {
    const known = byId.get(each.id);
    if (!known?.redactedAt || each.redactedAt) byId.set(each.id, each);
  }
  const all = [...byId.values()].sort((a, b) => (a.conversationId === b.conversationId ? a.index - b.index : a.createdAt < b.createdAt ? -1 : 1));
  const begins = first?.index === 0 && !state.conversations.get(id)?.splitFrom; // such a thread has messages of the other conversation before
  const loaded = begins ? new Set(state.loaded).add(id) : state.loaded;
  return { ...state, loaded, messages: put(state.messages, id, all) };
}

/** @param {Full} state @param {any} event @returns {Full} */
function withEvent(state, { type, createdAt, data }) {
  const { conversation, message } = data;
  if (!conversation) return data.contact && state.me?.userId === data.contact.userId ? { ...state, me: { ...state.me, ...data.contact } } : state;
  const { id } = conversation;
  if (type === "conversation.deleted") {
    const { conversations, messages, gone } = state;
    return { ...state, gone: new Set(gone).add(id), conversations: without(conversations, id), messages: withoutMessages(messages, id), open: state.open === id ? null : state.open };
  }
  let next = withConversation(state, message ? { ...conversation, lastMessage: message } : conversation);
  if (message) {
    // Only a thread that is loaded grows: one message alone would look like the whole thread.
    if ((message.index === 0 && !conversation.splitFrom) || (state.loaded.has(id) && message.index <= newestIndex(next.messages.get(id) ?? [], id) + 1)) next = withMessages(next, id, [message]);
    if (!message.author.self) next = { ...next, typing: without(next.typing, id) };
  }
  if (data.step) next = { ...next, steps: put(next.steps, id, data.step) };
  for (const gone of data.deletedMessageIds ?? []) next = edited(next, gone, () => null);
  for (const gone of data.redactedMessageIds ?? []) next = edited(next, gone, (each) => ({ ...each, text: "", attachments: [], redactedAt: createdAt }));
  return next;
}

/** Edit a message in each thread and row that show it; null removes it. @param {Full} state @param {string} messageId @param {(message: Message) => Message|null} edit @returns {Full} */
function edited(state, messageId, edit) {
  let { conversations, messages } = state;
  for (const [id, row] of conversations) if (row.lastMessage?.id === messageId) conversations = put(conversations, id, { ...row, lastMessage: edit(row.lastMessage) });
  for (const [id, before] of messages) {
    if (!before.some((each) => each.id === messageId)) continue;
    messages = put(messages, id, before.map((each) => (each.id === messageId ? edit(each) : each)).filter((each) => each !== null));
  }
  return { ...state, conversations, messages };
}

/** Return the threads without that of a conversation, and without its messages in the others. @param {Full["messages"]} messages @param {string} id @returns {Full["messages"]} */
const withoutMessages = (messages, id) => new Map([...without(messages, id)].map(([of, all]) => [of, all.filter(({ conversationId }) => conversationId !== id)]));

/** True if an event has a message that does not follow the loaded ones, so that the thread must be loaded again. @param {State} state @param {any} event */
export function leavesGap(state, { data }) {
  const id = data?.conversation?.id;
  if (!data?.message || !state.loaded.has(id)) return false;
  return data.message.index > newestIndex(state.messages.get(id) ?? [], id) + 1;
}

/** True if a row has no newest message, because its conversation was split off or is no longer merged, or the message was deleted. @param {Conversation|undefined} row */
export const lacksLastMessage = (row) => Boolean(row && !row.lastMessage && (row.splitFrom || row.lastMessageAt));

/** Return the state with the values that follow from others. @param {Full} state @param {Full} before @returns {Full} */
function derive(state, before) {
  const open = state.open && resolve(state, state.open);
  if (state.conversations === before.conversations && state.entries === before.entries && state.messages === before.messages && state.sending === before.sending && state.badge === before.badge && open === before.open) return { ...state, open };
  /** @type {Map<string, Conversation>} */
  const all = new Map([...state.conversations].filter(([id]) => !isLocal(id)));
  const stored = { ...state, conversations: all };
  const outbox = state.entries
    .map((each) => ({ ...each, conversation: resolve(stored, each.conversation), state: state.sending.has(each.clientId) ? /** @type {const} */ ("sending") : each.state }))
    .filter((each) => !state.messages.get(each.conversation)?.some(({ clientId }) => clientId === each.clientId));
  for (const { conversation: id, createdAt } of outbox) if (isLocal(id) && !all.has(id)) all.set(id, localConversation(id, createdAt));
  const activity = (/** @type {Conversation} */ each) => each.lastMessageAt ?? each.createdAt;
  const conversations = new Map([...all].sort(([, a], [, b]) => (activity(a) < activity(b) ? 1 : activity(a) > activity(b) ? -1 : 0)));
  const unread = state.badge ?? [...all.values()].filter((each) => each.unread).length;
  return { ...state, open, conversations, outbox, unread };
}

/** @param {string} id @param {string} createdAt @returns {Conversation} */
const localConversation = (id, createdAt) => ({
  id, clientId: id.slice(7), title: null, status: "OPEN", closed: false, closedBy: null, unread: false, assignee: null, rating: null,
  lastMessageAt: createdAt, lastMessage: null, createdAt, updatedAt: createdAt, closedAt: null, sequence: 0,
});
