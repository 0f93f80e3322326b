// @ts-check
/** Data of an open conversation: thread, deliveries, stream consumers, typing and context; and the snippets and tags of the project. */
import { batch, computed, signal, untracked } from "../vendor/preact.js";
import { Offline, Problem, Resource, all, call, get, retryRateLimited } from "../core/api.js";
import { connection } from "../core/feed.js";
import { composing, fetchRow, registerPart, known, put, row, runGuard, coalesce } from "../core/store.js";
import { typingMs } from "../core/session.js";
import { applyDeliveries, loadedThread, applyTyping, withNewest, withOlder } from "../core/thread-state.js";
import { receiptOf } from "../core/customer-state.js";
/** @import { AgentMessage, Delivery, Row, Thread, Typing } from "../core/types.js" */
/** @import { Signal } from "../vendor/preact.js" */

const PAGE = 50;
/** The most that the service returns. */
const LARGE_PAGE = 200;
const THREADS_MAX = 20;
const RETRY_DELAY_MS = 5_000;

/** @typedef {Omit<Thread, "id"|"messages"> & {cursor: string|null, asked: number}} Progress */
/** @type {Map<string, Signal<Progress>>} The loaded threads; the last opened one is at the end. */
const threads = new Map();
/** @type {Map<string, Resource<any>>} */
const contexts = new Map();
/** @type {Map<string, number>} The seen index not reported yet, by conversation. */
const unreportedSeen = new Map();
/** @type {Map<string, string>} The newest message whose mentions were seen and not reported yet, by conversation. */
const unreportedMentions = new Map();
const typingByConversation = signal(/** @type {ReadonlyMap<string, Typing[]>} */ (new Map()));
const deliveriesByConversation = signal(/** @type {ReadonlyMap<string, ReadonlyMap<number, Delivery[]>>} */ (new Map()));
/** The other conversations that a loaded thread shows or names, by its conversation. @type {Map<string, {others: string, splits: string}>} */
const linksOfThreads = new Map();
let marks = /** @type {ReadonlyMap<string, string>} */ (new Map());

registerPart({
  open: () => [...threads.keys()],
  reloaded: () => {
    for (const id of threads.keys()) void loadNewest(id);
    for (const each of [...contexts.values(), lookupResources.snippets, lookupResources.tags]) void each.load();
  },
  hello: () => {
    for (const [id, progress] of threads) {
      if (progress.peek().state !== "ready") void loadNewest(id);
      void loadDeliveries(id);
    }
    for (const [id, index] of unreportedSeen) void sendSeen(id, index);
    for (const [id, messageId] of unreportedMentions) void sendMentionsSeen(id, messageId);
    for (const each of [...contexts.values(), lookupResources.snippets, lookupResources.tags]) if (each.failed) void each.load();
  },
  ephemeral: (event) => {
    const { type, data } = event;
    if (type === "me.seen") applySeen(data.conversationId, data);
    else if (type === "delivery.changed") addDeliveries(data.conversationId, [data.delivery ?? data]);
    else if (type.includes(".typing.")) {
      typingByConversation.value = applyTyping(typingByConversation.peek(), event, Date.now(), typingMs.peek());
      setTimeout(() => (typingByConversation.value = new Map(typingByConversation.peek())), typingMs.peek() + 100);
    }
  },
  changed: (next) => {
    const is = (/** @type {string} */ name) => marks.get(name) !== next.marks.get(name);
    for (const [id, each] of contexts) {
      const contact = next.rows.get(id)?.contact.id;
      if (is(`conversation:${id}`) || is(`contact:${contact}`)) coalesce(`context ${id}`, 1000, () => each.load());
    }
    for (const id of threads.keys()) {
      const one = next.rows.get(id);
      const links = one && linksOf(one);
      const before = linksOfThreads.get(id) ?? links;
      if (links && before?.others !== links.others) restartThread(id);
      else if (links && before?.splits !== links.splits) reloadShown(id);
      else if (is(`redacted:${id}`)) void loadNewest(id);
      if (links) linksOfThreads.set(id, links);
    }
    if (is("settings:snippets")) void lookupResources.snippets.load();
    marks = next.marks;
  },
  end: () => {
    for (const map of [threads, contexts, unreportedSeen, unreportedMentions, receipts, linksOfThreads]) map.clear();
    batch(() => {
      typingByConversation.value = new Map();
      deliveriesByConversation.value = new Map();
    });
    lookupResources = lookups();
    marks = new Map();
  },
});

/** Return the thread of a conversation. The first read loads its newest page, and its row if that is unknown. Reads signals. @param {string} id @returns {Thread} */
export function thread(id) {
  let progress = threads.get(id);
  if (!progress) {
    progress = signal({ state: "loading", older: false, loadingOlder: false, error: null, cursor: null, asked: 0 });
    threads.set(id, progress);
    queueMicrotask(() => loadThread(id));
  }
  const { older, state, loadingOlder, error } = progress.value;
  return { id, messages: [...(known.value.threads.get(id)?.messages ?? [])], older, state, loadingOlder, error };
}

/** @param {string} id */
function loadThread(id) {
  for (const other of threads.keys()) {
    if (threads.size <= THREADS_MAX) break;
    threads.delete(other);
    const rest = new Map(known.peek().threads);
    rest.delete(other);
    known.value = { ...known.peek(), threads: rest };
  }
  if (!known.peek().rows.has(id)) void fetchRow(id);
  void loadNewest(id);
  void loadDeliveries(id);
}

/** Load a thread again after a failure. @param {string} id */
export const reloadThread = (id) => void loadNewest(id);

/** @param {string} id @param {Partial<Progress>} changes */
function setProgress(id, changes) {
  const progress = threads.get(id);
  if (progress) progress.value = { ...progress.peek(), ...changes };
}

/** @param {string} id @param {import("../core/state.js").Loaded} thread */
function setThread(id, thread) {
  known.value = { ...known.peek(), threads: new Map(known.peek().threads).set(id, thread) };
}

/** Return the conversations whose messages the thread of a conversation shows as well, and those that show messages of it. @param {Row} one */
const linksOf = ({ merged, splitFrom, splitInto }) => ({ others: [splitFrom ?? "", ...(merged ?? [])].join(), splits: (splitInto ?? []).join() });

/** Load the messages again that are shown: some have become part of another conversation too, or no longer are. They stay in place. @param {string} id */
function reloadShown(id) {
  const shown = known.peek().threads.get(id)?.messages.length ?? 0;
  if (shown > LARGE_PAGE) restartThread(id);
  else void loadNewest(id, shown > PAGE ? LARGE_PAGE : PAGE);
}

/** Load a thread from its end: a merge, a split or its undo has changed messages anywhere in it. @param {string} id */
function restartThread(id) {
  setThread(id, loadedThread([]));
  setProgress(id, { state: "loading", older: false, cursor: null });
  void loadNewest(id);
}

/** Load the newest page; messages that arrive during the request stay. @param {string} id @param {number} [limit] */
async function loadNewest(id, limit = PAGE) {
  const still = runGuard();
  const asked = (threads.get(id)?.peek().asked ?? 0) + 1;
  setProgress(id, { asked, error: null });
  const before = known.peek().threads.get(id);
  setThread(id, before ? { ...before, tail: new Set() } : loadedThread([]));
  try {
    const page = await retryRateLimited(() => get(`conversations/${id}/messages`, { order: "desc", limit }));
    if (!still() || threads.get(id)?.peek().asked !== asked) return;
    const { joined, ...next } = withNewest(known.peek().threads.get(id), page.items.reverse());
    batch(() => {
      setThread(id, next);
      const { cursor, older } = /** @type {Progress} */ (threads.get(id)?.peek());
      setProgress(id, { state: "ready", ...(joined ? { cursor, older } : { cursor: page.nextCursor, older: page.nextCursor !== null }) });
    });
  } catch (error) {
    if (!still() || threads.get(id)?.peek().asked !== asked) return;
    const something = (known.peek().threads.get(id)?.messages.length ?? 0) > 0;
    setProgress(id, { state: something ? "ready" : "failed", error: /** @type {Error} */ (error) });
    if (error instanceof Offline) coalesce(`thread ${id}`, RETRY_DELAY_MS, () => threads.has(id) && loadNewest(id));
    else if (error instanceof Problem && error.status === 404) void fetchRow(id); // it reports that the conversation is gone
  }
}

/** The requests for older messages by conversation. @type {Map<string, Promise<void>>} */
const loadsOfOlder = new Map();

/** Load older messages. @param {string} id @param {number} [limit] @returns {Promise<void>} */
export function loadOlder(id, limit = PAGE) {
  const before = loadsOfOlder.get(id);
  if (before) return before;
  const load = loadOlderPage(id, limit).finally(() => loadsOfOlder.delete(id));
  loadsOfOlder.set(id, load);
  return load;
}

/**
 * Load a thread up to a message. Throws Offline or Problem.
 * @param {string} id @param {string} messageId @returns {Promise<boolean>} False if the conversation has no such message, or it was deleted.
 */
export async function loadUpTo(id, messageId) {
  const still = runGuard();
  const isLoaded = () => Boolean(known.peek().threads.get(id)?.ids.has(messageId));
  if (isLoaded()) return true;
  if (!(await exists(id, messageId))) return false;
  // A page is dropped if the newest one was loaded again in the meantime; it is then asked for again.
  while (still() && !isLoaded() && threads.get(id)?.peek().cursor) {
    await loadOlder(id, LARGE_PAGE);
    const error = threads.get(id)?.peek().error;
    if (error) throw error;
  }
  return isLoaded();
}

/** Return whether a message exists; a deleted one keeps its place, but is in no list. @param {string} id @param {string} messageId */
async function exists(id, messageId) {
  const list = async (/** @type {Record<string, unknown>} */ query) => (await retryRateLimited(() => get(`conversations/${id}/messages`, { limit: 1, ...query }))).items[0];
  try {
    const before = await list({ order: "desc", before: messageId });
    return (await list(before ? { after: before.id } : {}))?.id === messageId;
  } catch (error) {
    if (error instanceof Problem && error.status === 404) return false;
    throw error;
  }
}

/** @param {string} id @param {number} limit */
async function loadOlderPage(id, limit) {
  const still = runGuard();
  const { cursor, loadingOlder, asked } = threads.get(id)?.peek() ?? { cursor: null, loadingOlder: false, asked: 0 };
  if (!cursor || loadingOlder) return;
  setProgress(id, { loadingOlder: true, error: null });
  try {
    const page = await retryRateLimited(() => get(`conversations/${id}/messages`, { order: "desc", limit, cursor }));
    const before = known.peek().threads.get(id);
    if (!still() || !before || threads.get(id)?.peek().asked !== asked) return;
    batch(() => {
      setThread(id, withOlder(before, page.items.reverse()));
      setProgress(id, { cursor: page.nextCursor, older: page.nextCursor !== null });
    });
  } catch (error) {
    if (still()) setProgress(id, { error: /** @type {Error} */ (error) });
  } finally {
    if (still()) setProgress(id, { loadingOlder: false });
  }
}

const NO_RECEIPTS = { contactSeenIndex: null, contactSeenAt: null, contactReachedIndex: null, contactReachedAt: null, channelId: undefined };
/** The fields of each open conversation that its ticks show. @type {Map<string, import("../vendor/preact.js").ReadonlySignal<Pick<Row, keyof typeof NO_RECEIPTS>>>} */
const receipts = new Map();

/** Return how far messages of a conversation have come to the customer, and whether a channel's browser is expected to confirm them. Reads a signal that changes with the receipts only. @param {string} id @param {AgentMessage[]} messages */
export function receiptIn(id, messages) {
  let found = receipts.get(id);
  if (!found) {
    let before = /** @type {Pick<Row, keyof typeof NO_RECEIPTS>} */ (NO_RECEIPTS);
    found = computed(() => {
      const now = known.value.rows.get(id) ?? NO_RECEIPTS;
      const same = /** @type {(keyof typeof NO_RECEIPTS)[]} */ (Object.keys(NO_RECEIPTS)).every((each) => now[each] === before[each]);
      return same ? before : (before = now);
    });
    receipts.set(id, found);
  }
  const row = found.value;
  return { receipt: receiptOf(messages, row), byChannel: Boolean(row.channelId) || (row.contactReachedIndex ?? null) !== null };
}

/** Return the deliveries of a message's event, one for each endpoint; empty until known. Reads a signal. @param {string} id @param {number} sequence @returns {Delivery[]} */
export const deliveries = (id, sequence) => deliveriesByConversation.value.get(id)?.get(sequence) ?? [];

/** @param {string} id @param {Delivery[]} given */
function addDeliveries(id, given) {
  deliveriesByConversation.value = new Map(deliveriesByConversation.peek()).set(id, applyDeliveries(deliveriesByConversation.peek().get(id), given));
}

/** @param {string} id */
async function loadDeliveries(id) {
  const still = runGuard();
  const given = await retryRateLimited(() => get(`conversations/${id}/deliveries`, { limit: 100 })).catch(() => null);
  if (still() && given) addDeliveries(id, given.items);
}

/** Return the users who are typing there now. Reads a signal. @param {string} id @returns {Typing[]} */
export const typing = (id) => (typingByConversation.value.get(id) ?? []).filter((each) => each.until > Date.now() && each.id !== known.value.me);

const TYPING_INTERVAL_MS = 4_000;
const NOT_TYPING = { id: "", internal: false, at: 0 };
let lastTyping = NOT_TYPING;
/** Report that the user types or has stopped, to colleagues and, unless it is a note, to the contact. @param {string} id @param {boolean} something @param {boolean} internal */
export function reportTyping(id, something, internal) {
  composing.value = something ? id : null;
  if (connection.peek().state !== "live" || (!something && lastTyping.id !== id)) return;
  if (something && lastTyping.id === id && lastTyping.internal === internal && Date.now() - lastTyping.at < TYPING_INTERVAL_MS) return;
  lastTyping = something ? { id, internal, at: Date.now() } : NOT_TYPING;
  call("POST", `conversations/${id}/typing`, { body: { typing: something, internal } }).catch(() => {}); // typing indicators are not retried
}

/** Report that the user has seen the conversation up to this message. @param {string} id @param {number} index */
export function reportSeen(id, index) {
  const mine = untracked(() => row(id))?.mine;
  if (!mine || (mine.seenIndex !== null && mine.seenIndex >= index && !mine.unread)) return;
  if ((unreportedSeen.get(id) ?? -1) >= index) return;
  unreportedSeen.set(id, index);
  void sendSeen(id, index);
}

/** Report that the user has seen the mentions in a conversation up to a message or note. @param {string} id @param {string} messageId */
export function reportMentionsSeen(id, messageId) {
  if (unreportedMentions.get(id) === messageId || !untracked(() => row(id))?.mine.unseenMentions) return;
  unreportedMentions.set(id, messageId);
  void sendMentionsSeen(id, messageId);
}

/** @param {string} id @param {string} messageId */
async function sendMentionsSeen(id, messageId) {
  const still = runGuard();
  try {
    const { mine } = await retryRateLimited(() => call("PUT", `conversations/${id}/mentions/seen`, { body: { messageId } }));
    if (still()) applySeen(id, mine);
  } catch (error) {
    if (error instanceof Offline) return; // reported when the stream is back
  }
  if (still() && unreportedMentions.get(id) === messageId) unreportedMentions.delete(id);
}

/** @param {string} id @param {number} index */
async function sendSeen(id, index) {
  const still = runGuard();
  try {
    const { mine } = await retryRateLimited(() => call("PUT", `conversations/${id}/seen`, { body: { index } }));
    if (still()) applySeen(id, mine);
  } catch (error) {
    if (error instanceof Offline) return; // reported when the stream is back
  }
  if (still() && unreportedSeen.get(id) === index) unreportedSeen.delete(id);
}

/** @param {string} id @param {any} answer */
function applySeen(id, answer) {
  const before = known.peek().rows.get(id);
  const { seenIndex = answer.index ?? null, unread = 0, mentioned, unseenMentions } = answer.mine ?? answer;
  if (before) put({ ...before, mine: { seenIndex, unread, mentioned: mentioned ?? before.mine.mentioned, unseenMentions: unseenMentions ?? before.mine.unseenMentions } });
}

/** Return the context of a conversation: contact, tickets, memory and more; undefined while it loads. Events reload it. Reads a signal. @param {string} id @returns {any} */
export function context(id) {
  let context = contexts.get(id);
  if (!context) contexts.set(id, (context = new Resource(() => get(`conversations/${id}/context`), undefined)));
  return context.value;
}

/** @typedef {import("api").Snippet} Snippet */
/** @returns {{snippets: Resource<Snippet[]>, tags: Resource<import("api").TagUsage[]>}} */
const lookups = () => ({ snippets: new Resource(() => all("snippets"), []), tags: new Resource(async () => (await get("tags")).items, []) });
let lookupResources = lookups();
/** Return the snippets; the first read loads them. Reads a signal. @returns {Snippet[]} */
export const snippets = () => lookupResources.snippets.value;
/** Return the tags in use; the first read loads them. Reads a signal. */
export const tags = () => lookupResources.tags.value;

/** Search conversations, contacts and tickets. @param {string} q @param {AbortSignal} abort @returns {Promise<any>} */
export const search = (q, abort) => get("search", { q, limit: 20 }, abort);

const CONSUMERS_POLL_MIN_MS = 400;
const CONSUMERS_POLL_MAX_MS = 30_000;

/** @typedef {{channel: string, consumerId: string, connected: boolean, since: string, confirmedSequence: number|null}} Consumer */
/** @typedef {{consumers: Consumer[], newest: number, pause: number, timer: any}} Watched */

const consumersByConversation = signal(/** @type {ReadonlyMap<string, Consumer[]>} */ (new Map()));
/** @type {Map<string, Watched>} */
const watched = new Map();

registerPart({
  end: () => {
    for (const each of watched.values()) clearTimeout(each.timer);
    watched.clear();
    consumersByConversation.value = new Map();
  },
});

/**
 * Return the stream consumers subscribed to a conversation, with their confirmed position; empty until known. They are polled while one is behind.
 * Reads a signal.
 * @param {string} id @param {number} newest  the sequence of the newest shown event @returns {Consumer[]}
 */
export function consumers(id, newest) {
  const before = watched.get(id);
  if (!before) watched.set(id, { consumers: [], newest, pause: CONSUMERS_POLL_MIN_MS, timer: null });
  if (!before || newest > before.newest) {
    const now = /** @type {Watched} */ (watched.get(id));
    now.newest = newest;
    now.pause = CONSUMERS_POLL_MIN_MS;
    scheduleConsumers(id, before ? CONSUMERS_POLL_MIN_MS : 0);
  }
  return consumersByConversation.value.get(id) ?? [];
}

/** @param {string} id @param {number} ms */
function scheduleConsumers(id, ms) {
  const it = watched.get(id);
  if (!it) return;
  clearTimeout(it.timer);
  it.timer = setTimeout(() => loadConsumers(id), ms);
}

/** Return whether a consumer has not confirmed the newest event. @param {Watched} it */
const isBehind = (it) => it.consumers.some((each) => (each.confirmedSequence ?? 0) < it.newest);

/** @param {string} id */
async function loadConsumers(id) {
  const still = runGuard();
  const answer = await retryRateLimited(() => get(`conversations/${id}/consumers`)).catch(() => null);
  const it = watched.get(id);
  if (!still() || !it) return;
  if (answer) {
    it.consumers = answer.items;
    consumersByConversation.value = new Map(consumersByConversation.peek()).set(id, answer.items);
  }
  if (!isBehind(it) || document.hidden) return;
  it.pause = Math.min(it.pause * 2, CONSUMERS_POLL_MAX_MS);
  scheduleConsumers(id, it.pause);
}
