// @ts-check
/** Data of an open conversation: thread, deliveries, stream consumers, typing and context; and the snippets and tags of the project. */
import { batch, signal, untracked } from "../vendor/preact.js";
import { Offline, Problem, Resource, all, call, get, patiently } from "../core/api.js";
import { connection } from "../core/feed.js";
import { composing, fetchRow, join, known, put, row, same, soon } from "../core/store.js";
import { typingMs } from "../core/session.js";
import { delivered, loaded, typed, withNewest, withOlder } from "../core/state.js";
/** @import { AgentMessage, Delivery, Row, Thread, Typing } from "../core/types.js" */
/** @import { Signal } from "../vendor/preact.js" */

const PAGE = 50;
const THREADS_MAX = 20;
const AGAIN_MS = 5_000;

/** @typedef {Omit<Thread, "id"|"messages"> & {cursor: string|null, asked: number}} Progress */
/** @type {Map<string, Signal<Progress>>} The threads that are loaded, the one that was opened last at the end. */
const threads = new Map();
/** @type {Map<string, Resource<any>>} */
const contexts = new Map();
/** @type {Map<string, number>} What was seen, and is not told yet. */
const untold = new Map();
const typists = signal(/** @type {ReadonlyMap<string, Typing[]>} */ (new Map()));
const receipts = signal(/** @type {ReadonlyMap<string, ReadonlyMap<number, Delivery[]>>} */ (new Map()));
let marks = /** @type {ReadonlyMap<string, string>} */ (new Map());

join({
  open: () => [...threads.keys()],
  anew: () => {
    for (const id of threads.keys()) void newest(id);
    for (const each of [...contexts.values(), found.snippets, found.tags]) void each.load();
  },
  hello: () => {
    for (const [id, progress] of threads) {
      if (progress.peek().state !== "ready") void newest(id);
      void receipt(id);
    }
    for (const [id, index] of untold) void tell(id, index);
    for (const each of [...contexts.values(), found.snippets, found.tags]) if (each.failed) void each.load();
  },
  passing: (event) => {
    const { type, data } = event;
    if (type === "me.seen") saw(data.conversationId, data);
    else if (type === "delivery.changed") received(data.conversationId, [data.delivery ?? data]);
    else if (type.includes(".typing.")) {
      typists.value = typed(typists.peek(), event, Date.now(), typingMs.peek());
      setTimeout(() => (typists.value = new Map(typists.peek())), typingMs.peek() + 100);
    }
  },
  changed: (next) => {
    const is = (/** @type {string} */ name) => marks.get(name) !== next.marks.get(name);
    for (const [id, each] of contexts) {
      const contact = next.rows.get(id)?.contact.id;
      if (is(`conversation:${id}`) || is(`contact:${contact}`)) soon(`context ${id}`, 1000, () => each.load());
    }
    for (const id of threads.keys()) if (is(`redacted:${id}`)) void newest(id);
    if (is("settings:snippets")) void found.snippets.load();
    marks = next.marks;
  },
  end: () => {
    for (const map of [threads, contexts, untold]) map.clear();
    batch(() => {
      typists.value = new Map();
      receipts.value = new Map();
    });
    found = lookups();
    marks = new Map();
  },
});

/** The thread of a conversation; the first read loads its newest page, and the row if it is not known. Reads signals. @param {string} id @returns {Thread} */
export function thread(id) {
  let progress = threads.get(id);
  if (!progress) {
    progress = signal({ state: "loading", older: false, loadingOlder: false, error: null, cursor: null, asked: 0 });
    threads.set(id, progress);
    queueMicrotask(() => opened(id));
  }
  const { older, state, loadingOlder, error } = progress.value;
  return { id, messages: [...(known.value.threads.get(id)?.messages ?? [])], older, state, loadingOlder, error };
}

/** @param {string} id */
function opened(id) {
  for (const other of threads.keys()) {
    if (threads.size <= THREADS_MAX) break;
    threads.delete(other);
    const rest = new Map(known.peek().threads);
    rest.delete(other);
    known.value = { ...known.peek(), threads: rest };
  }
  if (!known.peek().rows.has(id)) void fetchRow(id);
  void newest(id);
  void receipt(id);
}

/** Loads a thread anew, after a failure. @param {string} id */
export const reloadThread = (id) => void newest(id);

/** @param {string} id @param {Partial<Progress>} changes */
function progressed(id, changes) {
  const progress = threads.get(id);
  if (progress) progress.value = { ...progress.peek(), ...changes };
}

/** @param {string} id @param {import("../core/state.js").Loaded} thread */
function threaded(id, thread) {
  known.value = { ...known.peek(), threads: new Map(known.peek().threads).set(id, thread) };
}

/** Loads the newest page. What events bring meanwhile is kept. @param {string} id */
async function newest(id) {
  const still = same();
  const asked = (threads.get(id)?.peek().asked ?? 0) + 1;
  progressed(id, { asked, error: null });
  const before = known.peek().threads.get(id);
  threaded(id, before ? { ...before, tail: new Set() } : loaded([]));
  try {
    const page = await patiently(() => get(`conversations/${id}/messages`, { order: "desc", limit: PAGE }));
    if (!still() || threads.get(id)?.peek().asked !== asked) return;
    const { joined, ...next } = withNewest(known.peek().threads.get(id), page.items.reverse());
    batch(() => {
      threaded(id, next);
      const { cursor, older } = /** @type {Progress} */ (threads.get(id)?.peek());
      progressed(id, { state: "ready", ...(joined ? { cursor, older } : { cursor: page.nextCursor, older: page.nextCursor !== null }) });
    });
  } catch (error) {
    if (!still() || threads.get(id)?.peek().asked !== asked) return;
    const something = (known.peek().threads.get(id)?.messages.length ?? 0) > 0;
    progressed(id, { state: something ? "ready" : "failed", error: /** @type {Error} */ (error) });
    if (error instanceof Offline) soon(`thread ${id}`, AGAIN_MS, () => threads.has(id) && newest(id));
    else if (error instanceof Problem && error.status === 404) void fetchRow(id); // which says that it is gone
  }
}

/** Loads older messages. @param {string} id @returns {Promise<void>} */
export async function older(id) {
  const still = same();
  const { cursor, loadingOlder, asked } = threads.get(id)?.peek() ?? { cursor: null, loadingOlder: false, asked: 0 };
  if (!cursor || loadingOlder) return;
  progressed(id, { loadingOlder: true, error: null });
  try {
    const page = await patiently(() => get(`conversations/${id}/messages`, { order: "desc", limit: PAGE, cursor }));
    const before = known.peek().threads.get(id);
    if (!still() || !before || threads.get(id)?.peek().asked !== asked) return;
    batch(() => {
      threaded(id, withOlder(before, page.items.reverse()));
      progressed(id, { cursor: page.nextCursor, older: page.nextCursor !== null });
    });
  } catch (error) {
    if (still()) progressed(id, { error: /** @type {Error} */ (error) });
  } finally {
    if (still()) progressed(id, { loadingOlder: false });
  }
}

/** The deliveries of a message's event to each endpoint; empty until known. Reads a signal. @param {string} id @param {number} sequence @returns {Delivery[]} */
export const deliveries = (id, sequence) => receipts.value.get(id)?.get(sequence) ?? [];

/** @param {string} id @param {Delivery[]} given */
function received(id, given) {
  receipts.value = new Map(receipts.peek()).set(id, delivered(receipts.peek().get(id), given));
}

/** @param {string} id */
async function receipt(id) {
  const still = same();
  const given = await patiently(() => get(`conversations/${id}/deliveries`, { limit: 100 })).catch(() => null);
  if (still() && given) received(id, given.items);
}

/** Who is typing there now. Reads a signal. @param {string} id @returns {Typing[]} */
export const typing = (id) => (typists.value.get(id) ?? []).filter((each) => each.until > Date.now() && each.id !== known.value.me);

const SAID_MS = 4_000;
const NOBODY = { id: "", internal: false, at: 0 };
let said = NOBODY;
/** Tells colleagues, and the contact unless it is a note, that this user writes there, or has stopped. @param {string} id @param {boolean} something @param {boolean} internal */
export function writing(id, something, internal) {
  composing.value = something ? id : null;
  if (connection.peek().state !== "live" || (!something && said.id !== id)) return;
  if (something && said.id === id && said.internal === internal && Date.now() - said.at < SAID_MS) return;
  said = something ? { id, internal, at: Date.now() } : NOBODY;
  call("POST", `conversations/${id}/typing`, { body: { typing: something, internal } }).catch(() => {}); // of the moment: it is not said again
}

/** Says that this user has seen the conversation up to this message. @param {string} id @param {number} index */
export function seen(id, index) {
  const mine = untracked(() => row(id))?.mine;
  if (!mine || (mine.seenIndex !== null && mine.seenIndex >= index && !mine.unread)) return;
  if ((untold.get(id) ?? -1) >= index) return;
  untold.set(id, index);
  void tell(id, index);
}

/** @param {string} id @param {number} index */
async function tell(id, index) {
  const still = same();
  try {
    const { mine } = await patiently(() => call("PUT", `conversations/${id}/seen`, { body: { index } }));
    if (still()) saw(id, mine);
  } catch (error) {
    if (error instanceof Offline) return; // told when the stream is back
  }
  if (still() && untold.get(id) === index) untold.delete(id);
}

/** @param {string} id @param {any} told */
function saw(id, told) {
  const before = known.peek().rows.get(id);
  const { seenIndex = told.index ?? null, unread = 0 } = told.mine ?? told;
  if (before) put({ ...before, mine: { seenIndex, unread } });
}

/** The context of a conversation: contact, tickets, memory …; undefined while it loads. It follows the events. Reads a signal. @param {string} id @returns {any} */
export function context(id) {
  let context = contexts.get(id);
  if (!context) contexts.set(id, (context = new Resource(() => get(`conversations/${id}/context`), undefined)));
  return context.value;
}

/** @typedef {import("api").Snippet} Snippet */
/** @returns {{snippets: Resource<Snippet[]>, tags: Resource<import("api").TagUse[]>}} */
const lookups = () => ({ snippets: new Resource(() => all("snippets"), []), tags: new Resource(async () => (await get("tags")).items, []) });
let found = lookups();
/** The snippets; the first read loads them. Reads a signal. @returns {Snippet[]} */
export const snippets = () => found.snippets.value;
/** The tags in use; the first read loads them. Reads a signal. */
export const tags = () => found.tags.value;

/** Searches conversations, contacts and tickets. @param {string} q @param {AbortSignal} abort @returns {Promise<any>} */
export const search = (q, abort) => get("search", { q, limit: 20 }, abort);

const CONSUMERS_POLL_MIN_MS = 400;
const CONSUMERS_POLL_MAX_MS = 30_000;

/** @typedef {{channel: string, consumerId: string, connected: boolean, since: string, confirmedSequence: number|null}} Consumer */
/** @typedef {{consumers: Consumer[], newest: number, pause: number, timer: any}} Watched */

const confirmed = signal(/** @type {ReadonlyMap<string, Consumer[]>} */ (new Map()));
/** @type {Map<string, Watched>} */
const watched = new Map();

join({
  end: () => {
    for (const each of watched.values()) clearTimeout(each.timer);
    watched.clear();
    confirmed.value = new Map();
  },
});

/**
 * The consumers that hear a conversation; empty until known. Reads a signal.
 * @param {string} id @param {number} newest  the sequence of the newest event that is looked at @returns {Consumer[]}
 */
export function consumers(id, newest) {
  const before = watched.get(id);
  if (!before) watched.set(id, { consumers: [], newest, pause: CONSUMERS_POLL_MIN_MS, timer: null });
  if (!before || newest > before.newest) {
    const now = /** @type {Watched} */ (watched.get(id));
    now.newest = newest;
    now.pause = CONSUMERS_POLL_MIN_MS;
    askLater(id, before ? CONSUMERS_POLL_MIN_MS : 0);
  }
  return confirmed.value.get(id) ?? [];
}

/** @param {string} id @param {number} ms */
function askLater(id, ms) {
  const it = watched.get(id);
  if (!it) return;
  clearTimeout(it.timer);
  it.timer = setTimeout(() => ask(id), ms);
}

/** Whether an answer from now on may be another one. @param {Watched} it */
const behind = (it) => it.consumers.some((each) => (each.confirmedSequence ?? 0) < it.newest);

/** @param {string} id */
async function ask(id) {
  const still = same();
  const answer = await patiently(() => get(`conversations/${id}/consumers`)).catch(() => null);
  const it = watched.get(id);
  if (!still() || !it) return;
  if (answer) {
    it.consumers = answer.items;
    confirmed.value = new Map(confirmed.peek()).set(id, answer.items);
  }
  if (!behind(it) || document.hidden) return;
  it.pause = Math.min(it.pause * 2, CONSUMERS_POLL_MAX_MS);
  askLater(id, it.pause);
}
