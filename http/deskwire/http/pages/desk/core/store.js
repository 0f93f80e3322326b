// @ts-check
/**
 * The project's conversations and lists as signals. Events change them (`applyAll` of state.js), and so do responses and the outbox, whose entries
 * show at once. The first read of a list loads it. conversation.js holds the data of open conversations.
 */
import { batch, computed, effect, signal, untracked } from "../vendor/preact.js";
import { Offline, Problem, get, retryRateLimited, signedOut } from "./api.js";
import { connection, close, gapClosed, open as openStream, retry, reportView } from "./feed.js";
import { entries, rowVersions, retryWaiting } from "./outbox.js";
import * as session from "./session.js";
import { applyAll, withPending, holdOrder, appendPage, comparison, matches, emptyState, placeRows, applyPresence, sortKey, withRows } from "./state.js";
/** @import { State } from "./state.js" */
/** @import { Counters, Envelope, Filter, Gone, ListView, Presence, Row } from "./types.js" */
/** @import { ReadonlySignal, Signal } from "../vendor/preact.js" */

const PAGE = 50;
const WANTED_MAX = 20;
const COUNTERS_MS = 2_000;
const HIDDEN_MS = 60_000;

/** The state of state.js. */
export const known = signal(emptyState(""));
/** The counters of the views; null until they are loaded. */
export const counters = signal(/** @type {Counters|null} */ (null));
/** The agents who have the desk open, by user id. */
export const presence = signal(/** @type {ReadonlyMap<string, Presence>} */ (new Map()));
/** The number of events to be notified of since the user left this tab. */
export const arrivals = signal(0);
/** The conversation in which this user types; null for none. */
export const composing = signal(/** @type {string|null} */ (null));

/**
 * A module with the lifetime of the store. It is notified of new streams, events and changes.
 * @typedef {object} Part
 * @property {() => void} [hello]
 * @property {(events: Envelope[]) => void} [events]  gets stored events
 * @property {(event: any) => void} [ephemeral]
 * @property {(next: State) => void} [changed]
 * @property {() => void} [reloaded]  called after a full reload
 * @property {() => string[]} [open]  returns conversations to reload too
 * @property {() => void} end
 */
const parts = /** @type {Set<Part>} */ (new Set());
/** @param {Part} part @returns {Part} */
export const registerPart = (part) => (parts.add(part), part);

const lists = /** @type {Map<string, LoadedList>} */ (new Map());
const fetching = /** @type {Set<string>} The conversations with a row request in flight. */ (new Set());
/** How often a stream was opened, and its newest event at that time. */
let opened = { times: 0, at: "" };
let buffered = /** @type {Envelope[]|null} Events received during a full reload. */ (null);
/** Grows with each `end`, so that results requested before it are discarded. */
let runId = 0;
/** Return a function that returns true until the store ends. @returns {() => boolean} */
export function runGuard() {
  const mine = runId;
  return () => mine === runId;
}
let stops = /** @type {(() => void)[]} */ ([]);

/** Open the stream of the selected project, if the user has an inbox. Views load the rest. */
export function begin() {
  end();
  const { user, project } = session;
  if (!user.value || !project.value) return;
  const still = runGuard();
  known.value = emptyState(user.value.id);
  void session.reloadPeople();
  if (!session.reads.value) return;
  openStream(user.value.id, project.value.id, { hello: onHello, events: (events) => still() && onEvents(events), ephemeral: onEphemeral });
  stops = [
    effect(() => reportView(session.open.value ? [session.open.value] : [], composing.value)),
    effect(() => {
      const { state, reason } = connection.value;
      if (state === "ended" && reason === "session_ended") signedOut.value = true;
    }),
    effect(() => {
      if (!signedOut.value) untracked(() => connection.value.state === "ended" && retry());
    }),
    effect(placePending),
  ];
  void loadCounters();
}

/** Clear everything and close the stream. */
export function end() {
  runId += 1;
  close();
  for (const stop of stops) stop();
  stops = [];
  for (const map of [lists, fetching, rowSignals]) map.clear();
  buffered = null;
  batch(() => {
    for (const part of parts) part.end();
    known.value = emptyState("");
    counters.value = null;
    presence.value = new Map();
    composing.value = null;
    arrivals.value = 0;
  });
}
/** @param {any} hello */
function onHello(hello) {
  presence.value = applyPresence(new Map(), hello.presence ?? []);
  opened = { times: opened.times + 1, at: hello.at ?? "" };
  if (hello.gap) void reloadAll();
  else if (!hello.resumedAfter) for (const each of lists.values()) if (each.asOf < opened.at) each.refresh();
  for (const part of parts) part.hello?.();
  void retryWaiting("offline");
  void loadCounters();
}

/** @param {Envelope[]} events */
function onEvents(events) {
  if (buffered) buffered.push(...events);
  setState(applyAll(known.peek(), events));
  for (const part of parts) part.events?.(events);
}

/** Set the state, and move the changed rows in their lists. @param {State} next */
export function setState(next) {
  const { marks } = known.peek();
  batch(() => {
    known.value = next;
    place(next.touched);
    for (const part of parts) part.changed?.(next);
  });
  const isNew = (/** @type {string} */ name) => next.marks.get(name) !== marks.get(name);
  const rights = isNew("settings:members") || isNew("settings:roles");
  if (rights) session.loadSession().catch(() => {}); // the user's own role or its permissions may have changed; if this call fails, the next one reports it
  if (rights || isNew("settings:teams")) void session.reloadPeople();
  if (next.wanted.size) coalesce("wanted", 200, fetchWanted);
  if (next.touched.size) coalesce("counters", document.hidden ? HIDDEN_MS : COUNTERS_MS, loadCounters);
}

/** @param {Iterable<string>} touched @param {boolean} [own] */
function place(touched, own = false) {
  for (const each of lists.values()) each.place(touched, own);
}

/** @param {any} event */
function onEphemeral(event) {
  if (event.type === "presence") presence.value = applyPresence(presence.peek(), event.data.agents);
  else if (event.type === "me.all_seen") markAllSeen(event.data.until);
  for (const part of parts) part.ephemeral?.(event);
}

const scheduled = /** @type {Set<string>} */ (new Set());
/** Run a function after a delay, once for all calls with the same name. @param {string} name @param {number} ms @param {() => unknown} work */
export function coalesce(name, ms, work) {
  const still = runGuard();
  if (scheduled.has(name)) return;
  scheduled.add(name);
  setTimeout(() => {
    scheduled.delete(name);
    if (still()) void work();
  }, ms);
}

async function loadCounters() {
  const still = runGuard();
  if (signedOut.peek()) return;
  const counted = await retryRateLimited(() => get("inbox/counters")).catch(() => null);
  if (still() && counted) counters.value = counted;
}

async function fetchWanted() {
  const { wanted } = known.peek();
  if (wanted.size > WANTED_MAX) {
    known.value = { ...known.peek(), wanted: new Set() };
    for (const each of lists.values()) each.refresh();
  } else await Promise.all([...wanted].map(fetchRow));
}

/** Load a row. @param {string} id */
export async function fetchRow(id) {
  const still = runGuard();
  if (fetching.has(id)) return;
  fetching.add(id);
  try {
    const row = await retryRateLimited(() => get(`conversations/${id}`, { view: "agent" }));
    if (still()) setState(withRows(known.peek(), [row]));
  } catch (error) {
    if (!still() || !(error instanceof Problem)) return;
    const { gone, wanted } = known.peek();
    const left = new Set(wanted);
    left.delete(id);
    const lost = error.status === 404 && !gone.has(id) ? new Map(gone).set(id, { reason: "not_found", at: new Date().toISOString() }) : gone;
    known.value = { ...known.peek(), wanted: left, gone: lost };
  } finally {
    fetching.delete(id);
  }
}

/** Reload all visible data after a gap: missed events may concern any row. */
async function reloadAll() {
  const still = runGuard();
  buffered = [];
  try {
    const shown = [...lists.values()];
    const open = [...parts].flatMap((part) => part.open?.() ?? []);
    const pages = await Promise.all(shown.map((each) => retryRateLimited(() => each.ask(null))));
    const rows = await Promise.all(open.map((id) => retryRateLimited(() => get(`conversations/${id}`, { view: "agent" })).catch(() => null)));
    if (!still()) return;
    const { me, threads } = known.peek();
    const given = [...pages.flatMap((each) => each.items), ...rows.filter(Boolean)];
    batch(() => {
      known.value = applyAll(withRows({ ...emptyState(me), threads }, given), buffered ?? []);
      shown.forEach((each, index) => each.begin(pages[index]));
      for (const part of parts) part.reloaded?.();
    });
    gapClosed();
  } catch {
    coalesce("reload", 3000, reloadAll);
  } finally {
    if (still()) buffered = null;
  }
}

const rowSignals = /** @type {Map<string, ReadonlySignal<Row|undefined>>} */ (new Map());

/** Return the conversation with pending outbox entries applied. Reads a signal. @param {string} id @returns {Row|undefined} */
export function row(id) {
  let found = rowSignals.get(id);
  if (!found) rowSignals.set(id, (found = computed(() => optimisticRow(id))));
  return found.value;
}

/** The pending outbox entries by conversation. */
const pendingByConversation = computed(() => Map.groupBy(entries.value.filter((each) => each.conversationId && each.expect), (each) => each.conversationId ?? ""));

/** @param {string} id @returns {Row|undefined} */
function optimisticRow(id) {
  const row = known.value.rows.get(id);
  const expected = pendingByConversation.value.get(id);
  return row && expected ? withPending(row, expected, Date.now()) : row;
}

rowVersions.asOf = (id) => known.peek().rows.get(id)?.asOf ?? "";
let before = /** @type {Set<string>} */ (new Set());
/** Move rows in their lists when the outbox changes. */
function placePending() {
  const now = new Set(pendingByConversation.value.keys());
  const both = new Set([...before, ...now]);
  before = now;
  if (both.size) untracked(() => batch(() => place(both, true)));
}

/** Mark conversations as seen that had their last message before a time. @param {string|null} until */
function markAllSeen(until) {
  const seen = [...known.peek().rows.values()].filter((each) => each.mine.unread && until && (each.lastMessageAt ?? each.createdAt) < until);
  put(...seen.map((each) => ({ ...each, mine: { ...each.mine, seenIndex: each.messages - 1, unread: 0 } })));
  refreshLists(); // for conversations that are not loaded, and for undo
}
/** Load the lists and the counters again. */
export function refreshLists() {
  for (const each of lists.values()) each.refresh();
  void loadCounters();
}
/** Add rows of a response. @param {...Row} rows */
export const put = (...rows) => setState(withRows(known.peek(), rows));
/** Return why a conversation is gone; null if it is not. Reads a signal. @param {string} id @returns {Gone|null} */
export const gone = (id) => known.value.gone.get(id) ?? null;
/** Return the colleagues who have this conversation open. Reads a signal. @param {string} id @returns {Presence[]} */
export const viewers = (id) => [...presence.value.values()].filter((each) => each.id !== known.value.me && each.conversationIds.includes(id));

/** A list: its loaded rows and its view. */
class LoadedList {
  /** @param {Filter} filter */
  constructor(filter) {
    this.filter = filter;
    this.asOf = "";
    /** @type {string|null} The sort key of the last loaded row; null if all are loaded. */
    this.bound = "";
    this.cursor = /** @type {string|null} */ (null);
    this.live = /** @type {readonly string[]} */ ([]);
    /** With `where`, which only the service can decide: the rows of its responses. @type {Set<string>|null} */
    this.listed = filter.where ? new Set() : null;
    this.stale = false;
    this.asked = 0;
    /** @type {Signal<ListView>} */
    this.view = signal({ key: JSON.stringify(filter), filter, ids: [], fresh: 0, held: false, state: "loading", more: false, loadingMore: false, error: null });
    queueMicrotask(() => this.load());
  }

  /** @param {string|null} cursor */
  ask(cursor) {
    const { status, where, ...rest } = this.filter;
    return get("conversations", { view: "agent", ...(rest.mentioned ? {} : { archived: false }), ...rest, status: status?.join(","), ...Object.fromEntries(new URLSearchParams(where)), cursor, limit: PAGE });
  }

  /** Load the list again, because its response may be older than the stream. */
  refresh() {
    if (this.view.peek().state !== "loading") void this.load();
  }

  async load() {
    const asked = ++this.asked;
    const still = runGuard();
    if (this.view.peek().state === "failed") this.set({ state: "loading", error: null });
    try {
      const { times } = opened;
      const page = await retryRateLimited(() => this.ask(null));
      if (!still() || asked !== this.asked) return;
      setState(withRows(known.peek(), page.items));
      this.begin(page);
      if (times !== opened.times && this.asOf < opened.at) this.refresh(); // it was read before the stream began
    } catch (error) {
      if (!still() || asked !== this.asked) return;
      const known = this.live.length > 0;
      this.set({ state: known ? "ready" : "failed", error: known ? null : /** @type {Error} */ (error) });
      if (error instanceof Offline) setTimeout(() => still() && asked === this.asked && this.load(), 5000);
    }
  }

  /** @param {{items: Row[], nextCursor: string|null}} page */
  begin({ items, nextCursor }) {
    const last = items.at(-1);
    this.stale = false;
    this.listed &&= new Set(items.map((each) => each.id));
    this.asOf = items.reduce((least, each) => (least && least < each.asOf ? least : each.asOf), "");
    this.cursor = nextCursor;
    this.bound = nextCursor && last ? sortKey(last, this.filter) : null;
    this.fill();
    this.set({ state: "ready", error: null, more: nextCursor !== null });
  }

  async more() {
    const { cursor } = this;
    const still = runGuard();
    const { asked } = this;
    if (!cursor || this.view.peek().loadingMore) return;
    this.set({ loadingMore: true });
    try {
      const { items, nextCursor } = await retryRateLimited(() => this.ask(cursor));
      if (!still() || asked !== this.asked) return;
      const last = items.at(-1);
      this.cursor = nextCursor;
      this.bound = nextCursor ? (last ? sortKey(last, this.filter) : this.bound) : null;
      for (const each of items) this.listed?.add(each.id);
      setState(withRows(known.peek(), items));
      batch(() => {
        this.fill();
        const { held, ids } = this.view.peek();
        this.set({ more: nextCursor !== null, error: null, ids: held ? appendPage(ids, this.live, items) : ids });
        this.show();
      });
    } catch (error) {
      if (still()) this.set({ error: /** @type {Error} */ (error) });
    } finally {
      this.set({ loadingMore: false });
    }
  }

  /** @param {string} id */
  rowOf = (id) => (this.listed?.has(id) === false ? undefined : untracked(() => optimisticRow(id)));

  /** Load the list again if only the service knows whether changed rows belong to it; when it is shown. @param {boolean} shown */
  renew(shown) {
    if (shown) coalesce(`renew ${this.view.peek().key}`, document.hidden ? HIDDEN_MS : COUNTERS_MS, () => this.stale && this.refresh());
  }

  /** Sort all known rows of this list. */
  fill() {
    const { filter, bound } = this;
    const before = comparison(filter);
    const found = [];
    for (const id of known.peek().rows.keys()) {
      const row = this.rowOf(id);
      if (!row || !matches(row, filter, known.peek().me)) continue;
      const key = sortKey(row, filter);
      if (bound === null || before(key, bound) <= 0) found.push({ id, key });
    }
    this.live = found.sort((a, b) => before(a.key, b.key)).map((each) => each.id);
    this.show();
  }

  /** @param {Iterable<string>} touched @param {boolean} own  the user's own changes leave the list even while its order is held */
  place(touched, own) {
    if (this.bound === "") return; // nothing is loaded yet
    if (this.listed) this.renew((this.stale = true) && shownKey === this.view.peek().key);
    this.live = placeRows(this.live, touched, { filter: this.filter, me: known.peek().me, bound: this.bound, rowOf: this.rowOf });
    this.show(own ? new Set(touched) : undefined);
  }

  /** @param {ReadonlySet<string>} [own] */
  show(own) {
    const view = this.view.peek();
    if (!view.held) return this.set({ ids: [...this.live], fresh: 0 });
    const there = own && new Set(this.live);
    const { rows } = known.peek();
    const leaves = (/** @type {string} */ id) => !rows.has(id) || Boolean(own?.has(id) && !there?.has(id));
    this.set(holdOrder(view.ids, this.live, leaves));
  }

  /** @param {Partial<ListView>} changes */
  set = (changes) => void (this.view.value = { ...this.view.peek(), ...changes });
}

/** @param {Filter} filter */
function listOf(filter) {
  const key = JSON.stringify(filter);
  let found = lists.get(key);
  if (!found) lists.set(key, (found = new LoadedList(filter)));
  return found;
}

let shownKey = "";
/** Return the list of a filter; the first read loads it. @param {Filter} filter @returns {ReadonlySignal<ListView>} */
export function list(filter) {
  const found = listOf(filter);
  const { key } = found.view.peek();
  if (key !== shownKey && found.stale) found.renew(true);
  shownKey = key;
  return found.view;
}
/** Load the next page of a list. @param {Filter} filter */
export const more = (filter) => listOf(filter).more();
/** Load a list again after a failure. @param {Filter} filter */
export const reload = (filter) => void listOf(filter).load();
/** Hold the order of a list while it is in use, or release it. @param {Filter} filter @param {boolean} held */
export function hold(filter, held) {
  const list = listOf(filter);
  if (list.view.peek().held === held) return;
  list.set({ held });
  list.show();
}
/** Apply the current order to a held list. @param {Filter} filter */
export const applyOrder = (filter) => listOf(filter).set({ ids: [...listOf(filter).live], fresh: 0 });
