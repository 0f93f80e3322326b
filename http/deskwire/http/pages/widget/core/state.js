// @ts-check
/**
 * The state after each change: pure functions on immutable values.
 *
 * Changes can come twice and in any order. A conversation changes only to a greater `sequence`; a message is known by its id. So the response to a
 * call, the event about it, and the same event in another tab make the same state.
 */
/** @import { Channel, Contact, Conversation, Message, Outgoing, State, Step } from "../customer.js" */

/**
 * @typedef {State & {gone: ReadonlySet<string>, entries: readonly Outgoing[], sending: ReadonlySet<string>, badge: number|null}} Full
 *   gone: deleted conversations. entries: the outbox as stored. badge: the unread count, as long as no list is loaded.
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
  connection: "connecting", storage: "page", problem: null, gone: new Set(), entries: [], sending: new Set(), badge: null,
};

/** True if the id is that of a conversation that the service may not have stored yet. @param {string} id */
export const isLocal = (id) => id.startsWith("client:");

/** Return the id of a conversation by which the state knows it: `cnv_…` once the service has stored it. @param {State} state @param {string} id */
export function resolve(state, id) {
  if (isLocal(id)) for (const each of state.conversations.values()) if (each.clientId === id.slice(7) && each.id !== id) return each.id;
  return id;
}

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
      const newest = items[items.length - 1]?.index ?? -1;
      // After a gap the old messages may have been redacted, so they are replaced.
      const fresh = state.loaded.has(id) ? state : { ...state, messages: put(state.messages, id, (state.messages.get(id) ?? []).filter(({ index }) => index > newest)) };
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
  const known = state.conversations.get(given.id);
  if (state.gone.has(given.id) || (known && known.sequence > given.sequence)) return state;
  return { ...state, conversations: put(state.conversations, given.id, { ...known, ...given }) };
}

/** Return the state with messages, by index and without duplicates. A page that does not touch the loaded messages replaces them. @param {Full} state @param {string} id @param {readonly Message[]} items @param {boolean} [gap]  allow one, because the missing messages are being loaded @returns {Full} */
function withMessages(state, id, items, gap) {
  const first = items[0];
  const last = items[items.length - 1];
  if (!first || !last) return state;
  let before = state.messages.get(id) ?? [];
  const newest = before[before.length - 1];
  if (!gap && newest && first.index > newest.index + 1) before = [];
  const byId = new Map(before.map((each) => [each.id, each]));
  for (const each of items) {
    const known = byId.get(each.id);
    if (!known?.redactedAt || each.redactedAt) byId.set(each.id, each);
  }
  const all = [...byId.values()].sort((a, b) => a.index - b.index);
  const loaded = first.index === 0 ? new Set(state.loaded).add(id) : state.loaded;
  return { ...state, loaded, messages: put(state.messages, id, all) };
}

/** @param {Full} state @param {any} event @returns {Full} */
function withEvent(state, { type, createdAt, data }) {
  const { conversation, message } = data;
  if (!conversation) return data.contact && state.me?.userId === data.contact.userId ? { ...state, me: { ...state.me, ...data.contact } } : state;
  const { id } = conversation;
  if (type === "conversation.deleted") {
    const { conversations, messages, gone } = state;
    return { ...state, gone: new Set(gone).add(id), conversations: without(conversations, id), messages: without(messages, id), open: state.open === id ? null : state.open };
  }
  let next = withConversation(state, message ? { ...conversation, lastMessage: message } : conversation);
  if (message) {
    const known = next.messages.get(id);
    const newest = known?.[known.length - 1];
    // Only a thread that is loaded grows: one message alone would look like the whole thread.
    if (message.index === 0 || (state.loaded.has(id) && message.index <= (newest?.index ?? -1) + 1)) next = withMessages(next, id, [message]);
    if (!message.author.self) next = { ...next, typing: without(next.typing, id) };
  }
  if (data.step) next = { ...next, steps: put(next.steps, id, data.step) };
  for (const gone of data.deletedMessageIds ?? []) next = edited(next, id, gone, () => null);
  for (const gone of data.redactedMessageIds ?? []) next = edited(next, id, gone, (each) => ({ ...each, text: "", attachments: [], redactedAt: createdAt }));
  return next;
}

/** @param {Full} state @param {string} id @param {string} messageId @param {(message: Message) => Message|null} edit @returns {Full} */
function edited(state, id, messageId, edit) {
  const before = state.messages.get(id);
  if (!before) return state;
  const after = before.map((each) => (each.id === messageId ? edit(each) : each)).filter((each) => each !== null);
  return { ...state, messages: put(state.messages, id, after) };
}

/** True if an event has a message that does not follow the loaded ones, so that the thread must be loaded again. @param {State} state @param {any} event */
export function leavesGap(state, { data }) {
  const id = data?.conversation?.id;
  if (!data?.message || !state.loaded.has(id)) return false;
  const known = state.messages.get(id) ?? [];
  return data.message.index > (known[known.length - 1]?.index ?? -1) + 1;
}

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
