// @ts-check
/** The loaded part of a thread, its deliveries and its typing indicators: pure functions on immutable values. */
/** @import { Loaded } from "./state.js" */
/** @import { AgentMessage, Delivery, Typing } from "./types.js" */

/**
 * Return the thread after its newest page was loaded, oldest first. Older messages stay if the page continues them; messages from events follow the
 * page.
 * @param {Loaded|undefined} known @param {readonly AgentMessage[]} page @returns {Loaded & {joined: boolean}} joined: true if the older ones stayed.
 */
export function withNewest(known, page) {
  const inPage = new Set(page.map((each) => each.id));
  const before = known?.messages ?? [];
  const first = before.findIndex((each) => inPage.has(each.id));
  const last = before.findLastIndex((each) => inPage.has(each.id));
  const older = first < 0 ? [] : before.slice(0, first);
  const newer = before.slice(last + 1).filter((each) => last >= 0 || known?.tail.has(each.id));
  return { ...loadedThread([...older, ...page, ...newer]), joined: older.length > 0 };
}

/** Return the thread after an older page was loaded, oldest first. @param {Loaded} known @param {readonly AgentMessage[]} page @returns {Loaded} */
export function withOlder(known, page) {
  return { ...loadedThread([...page.filter((each) => !known.ids.has(each.id)), ...known.messages]), tail: known.tail };
}

/** @param {AgentMessage[]} messages @returns {Loaded} */
export const loadedThread = (messages) => ({ messages, ids: new Set(messages.map((each) => each.id)), tail: new Set() });

/** Return the typing indicators after an ephemeral event. `until` is by this browser's clock. @param {ReadonlyMap<string, Typing[]>} known @param {{type: string, data: any}} event @param {number} now @param {number} lastsMs @returns {ReadonlyMap<string, Typing[]>} */
export function applyTyping(known, { type, data }, now, lastsMs) {
  const who = data.agent ?? data.contact ?? {};
  const kind = type.startsWith("contact.") ? "contact" : "agent";
  const others = (known.get(data.conversationId) ?? []).filter((each) => each.until > now && (each.type !== kind || each.id !== (who.id ?? null)));
  /** @type {Typing} */
  const entry = { type: kind, id: who.id ?? null, name: who.name ?? null, internal: data.internal ?? false, until: now + lastsMs };
  return new Map(known).set(data.conversationId, type.endsWith(".started") ? [...others, entry] : others);
}

/** Return the deliveries by event sequence, after some have changed. @param {ReadonlyMap<number, Delivery[]>|undefined} known @param {Delivery[]} given @returns {ReadonlyMap<number, Delivery[]>} */
export function applyDeliveries(known, given) {
  const next = new Map(known);
  for (const each of given) {
    const others = (next.get(each.sequence) ?? []).filter((one) => one.endpointId !== each.endpointId);
    next.set(each.sequence, [...others, each].sort((a, b) => (a.endpoint < b.endpoint ? -1 : 1)));
  }
  return next;
}
