// @ts-check
/**
 * The project's conversations and their lists, as signals. They change by events (`applyAll` of state.js, which is pure), by
 * what calls answer, and by what is in the outbox, which looks done at once. Views read them; a first read loads.
 * What belongs to an open conversation is in conversation.js.
 */
import { batch, computed, effect, signal, untracked } from "../vendor/preact.js";
import { Offline, Problem, get, patiently, signedOut } from "./api.js";
import { connection, close, healed, open as openStream, retry, view } from "./feed.js";
import { entries, rows, wake } from "./outbox.js";
import * as session from "./session.js";
import { applyAll, asExpected, asHeld, below, comparison, matches, nothing, placed, present, sortKey, withRows } from "./state.js";
/** @import { State } from "./state.js" */
/** @import { Counters, Envelope, Filter, Gone, ListView, Presence, Row } from "./types.js" */
/** @import { ReadonlySignal, Signal } from "../vendor/preact.js" */

const PAGE = 50;
const WANTED_MAX = 20;
const COUNTERS_MS = 2_000;
const HIDDEN_MS = 60_000;

/** All that is known; see state.js. */
export const known = signal(nothing(""));
/** The numbers beside the views; null until they are loaded. */
export const counters = signal(/** @type {Counters|null} */ (null));
/** Who has the desk open, by user id. */
export const presence = signal(/** @type {ReadonlyMap<string, Presence>} */ (new Map()));
/** The conversation that is written in, for colleagues; null for none. */
export const composing = signal(/** @type {string|null} */ (null));

/**
 * What lives and ends with the store: it hears of new streams, of passing events and of changes.
 * @typedef {object} Part
 * @property {() => void} [hello]
 * @property {(events: Envelope[]) => void} [heard]  stored events came
 * @property {(event: any) => void} [passing]
 * @property {(next: State) => void} [changed]
 * @property {() => void} [anew]  everything has been loaded anew
 * @property {() => string[]} [open]  conversations to load anew with it
 * @property {() => void} end
 */
const parts = /** @type {Set<Part>} */ (new Set());
/** @param {Part} part @returns {Part} */
export const join = (part) => (parts.add(part), part);

const lists = /** @type {Map<string, Shown>} */ (new Map());
const fetching = /** @type {Set<string>} Conversations whose row is on its way. */ (new Set());
/** How often a stream was opened, and its newest event then. */
let opened = { times: 0, at: "" };
let aside = /** @type {Envelope[]|null} What comes while everything is loaded anew. */ (null);
/** A number for what is begun; what was asked for before an `end` is of no use after it. */
let run = 0;
/** Tells, later, whether the store is still the same. @returns {() => boolean} */
export function same() {
  const mine = run;
  return () => mine === run;
}
let stops = /** @type {(() => void)[]} */ ([]);

/** Begins: opens the stream; the rest is loaded by who reads it. Called by the shell when a project is chosen. */
export function begin() {
  end();
  const { user, project } = session;
  if (!user.value || !project.value) return;
  const still = same();
  known.value = nothing(user.value.id);
  openStream(user.value.id, project.value.id, { hello: greeted, events: (events) => still() && heard(events), passing });
  stops = [
    effect(() => view(session.open.value ? [session.open.value] : [], composing.value)),
    effect(() => {
      const { state, reason } = connection.value;
      if (state === "ended" && reason === "session_ended") signedOut.value = true;
    }),
    effect(() => {
      if (!signedOut.value) untracked(() => connection.value.state === "ended" && retry());
    }),
    effect(expected),
  ];
  void session.reloadPeople();
  void count();
}

/** Forgets everything and closes the stream. */
export function end() {
  run += 1;
  close();
  for (const stop of stops) stop();
  stops = [];
  for (const map of [lists, fetching, rowsRead]) map.clear();
  aside = null;
  batch(() => {
    for (const part of parts) part.end();
    known.value = nothing("");
    counters.value = null;
    presence.value = new Map();
    composing.value = null;
  });
}
/** @param {any} hello */
function greeted(hello) {
  presence.value = present(new Map(), hello.presence ?? []);
  opened = { times: opened.times + 1, at: hello.at ?? "" };
  if (hello.gap) void anew();
  else if (!hello.resumedAfter) for (const each of lists.values()) if (each.asOf < opened.at) each.late();
  for (const part of parts) part.hello?.();
  void wake("offline");
  void count();
}

/** @param {Envelope[]} events */
function heard(events) {
  if (aside) aside.push(...events);
  became(applyAll(known.peek(), events));
  for (const part of parts) part.heard?.(events);
}

/** Makes this what is known, and puts the rows that changed in their place. @param {State} next */
export function became(next) {
  const { marks } = known.peek();
  batch(() => {
    known.value = next;
    place(next.touched);
    for (const part of parts) part.changed?.(next);
  });
  const anew = (/** @type {string} */ name) => next.marks.get(name) !== marks.get(name);
  if (anew("settings:members")) session.begin().catch(() => {}); // one's own role may be another; the next call says so otherwise
  if (anew("settings:members") || anew("settings:teams")) void session.reloadPeople();
  if (next.wanted.size) soon("wanted", 200, fetchWanted);
  if (next.touched.size) soon("counters", document.hidden ? HIDDEN_MS : COUNTERS_MS, count);
}

/** @param {Iterable<string>} touched @param {boolean} [own] */
function place(touched, own = false) {
  for (const each of lists.values()) each.place(touched, own);
}

/** @param {any} event */
function passing(event) {
  if (event.type === "presence") presence.value = present(presence.peek(), event.data.agents);
  else if (event.type === "me.all_seen") allSeen(event.data.until);
  for (const part of parts) part.passing?.(event);
}

const coming = /** @type {Set<string>} */ (new Set());
/** Does something a moment later, once for all who ask. @param {string} name @param {number} ms @param {() => unknown} work */
export function soon(name, ms, work) {
  const still = same();
  if (coming.has(name)) return;
  coming.add(name);
  setTimeout(() => {
    coming.delete(name);
    if (still()) void work();
  }, ms);
}

async function count() {
  const still = same();
  if (signedOut.peek()) return;
  const counted = await patiently(() => get("inbox/counters")).catch(() => null);
  if (still() && counted) counters.value = counted;
}

async function fetchWanted() {
  const { wanted } = known.peek();
  if (wanted.size > WANTED_MAX) {
    known.value = { ...known.peek(), wanted: new Set() };
    for (const each of lists.values()) each.late();
  } else await Promise.all([...wanted].map(fetchRow));
}

/** Loads a row anew, or one that is not known. @param {string} id */
export async function fetchRow(id) {
  const still = same();
  if (fetching.has(id)) return;
  fetching.add(id);
  try {
    const row = await patiently(() => get(`conversations/${id}`, { view: "agent" }));
    if (still()) became(withRows(known.peek(), [row]));
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

/** Loads everything anew that is shown: events are missing, and no row can tell whether they were for it. */
async function anew() {
  const still = same();
  aside = [];
  try {
    const shown = [...lists.values()];
    const open = [...parts].flatMap((part) => part.open?.() ?? []);
    const pages = await Promise.all(shown.map((each) => patiently(() => each.ask(null))));
    const rows = await Promise.all(open.map((id) => patiently(() => get(`conversations/${id}`, { view: "agent" })).catch(() => null)));
    if (!still()) return;
    const { me, threads } = known.peek();
    const given = [...pages.flatMap((each) => each.items), ...rows.filter(Boolean)];
    batch(() => {
      known.value = applyAll(withRows({ ...nothing(me), threads }, given), aside ?? []);
      shown.forEach((each, index) => each.begin(pages[index]));
      for (const part of parts) part.anew?.();
    });
    healed();
  } catch {
    soon("anew", 3000, anew);
  } finally {
    if (still()) aside = null;
  }
}

const rowsRead = /** @type {Map<string, ReadonlySignal<Row|undefined>>} */ (new Map());

/** The conversation, with what is on its way in the outbox already done. Reads a signal. @param {string} id @returns {Row|undefined} */
export function row(id) {
  let found = rowsRead.get(id);
  if (!found) rowsRead.set(id, (found = computed(() => shownRow(id))));
  return found.value;
}

/** What is in the outbox, by conversation. */
const underway = computed(() => Map.groupBy(entries.value.filter((each) => each.conversationId && each.expect), (each) => each.conversationId ?? ""));

/** @param {string} id @returns {Row|undefined} */
function shownRow(id) {
  const row = known.value.rows.get(id);
  const expected = underway.value.get(id);
  return row && expected ? asExpected(row, expected, Date.now()) : row;
}

rows.asOf = (id) => known.peek().rows.get(id)?.asOf ?? "";
let before = /** @type {Set<string>} */ (new Set());
/** Puts rows in their place when the outbox changes. */
function expected() {
  const now = new Set(underway.value.keys());
  const both = new Set([...before, ...now]);
  before = now;
  if (both.size) untracked(() => batch(() => place(both, true)));
}

/** Shows as seen what was there before a time. @param {string|null} until */
function allSeen(until) {
  const seen = [...known.peek().rows.values()].filter((each) => each.mine.unread && until && (each.lastMessageAt ?? each.createdAt) < until);
  put(...seen.map((each) => ({ ...each, mine: { seenIndex: each.messages - 1, unread: 0 } })));
  for (const each of lists.values()) each.late(); // of others, and where the mark was taken back
  void count();
}
/** Takes rows that a call gave. @param {...Row} rows */
export const put = (...rows) => became(withRows(known.peek(), rows));
/** Why a conversation is gone; null if it is not. Reads a signal. @param {string} id @returns {Gone|null} */
export const gone = (id) => known.value.gone.get(id) ?? null;
/** Colleagues with this conversation open. Reads a signal. @param {string} id @returns {Presence[]} */
export const viewers = (id) => [...presence.value.values()].filter((each) => each.id !== known.value.me && each.conversationIds.includes(id));

/** A list as it is loaded and shown. */
class Shown {
  /** @param {Filter} filter */
  constructor(filter) {
    this.filter = filter;
    this.asOf = "";
    /** @type {string|null} The key of the last row that is loaded; null if all are. */
    this.bound = "";
    this.cursor = /** @type {string|null} */ (null);
    this.live = /** @type {readonly string[]} */ ([]);
    this.asked = 0;
    /** @type {Signal<ListView>} */
    this.view = signal({ key: JSON.stringify(filter), filter, ids: [], fresh: 0, held: false, state: "loading", more: false, loadingMore: false, error: null });
    queueMicrotask(() => this.load());
  }

  /** @param {string|null} cursor */
  ask(cursor) {
    const { status, ...rest } = this.filter;
    return get("conversations", { view: "agent", archived: false, ...rest, status: status?.join(","), cursor, limit: PAGE });
  }

  /** Asks once more, for what was read may be older than the stream. */
  late() {
    if (this.view.peek().state !== "loading") void this.load();
  }

  async load() {
    const asked = ++this.asked;
    const still = same();
    if (this.view.peek().state === "failed") this.set({ state: "loading", error: null });
    try {
      const { times } = opened;
      const page = await patiently(() => this.ask(null));
      if (!still() || asked !== this.asked) return;
      became(withRows(known.peek(), page.items));
      this.begin(page);
      if (times !== opened.times && this.asOf < opened.at) this.late(); // it was read before the stream began
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
    this.asOf = items.reduce((least, each) => (least && least < each.asOf ? least : each.asOf), "");
    this.cursor = nextCursor;
    this.bound = nextCursor && last ? sortKey(last, this.filter) : null;
    this.fill();
    this.set({ state: "ready", error: null, more: nextCursor !== null });
  }

  async more() {
    const { cursor } = this;
    const still = same();
    const { asked } = this;
    if (!cursor || this.view.peek().loadingMore) return;
    this.set({ loadingMore: true });
    try {
      const { items, nextCursor } = await patiently(() => this.ask(cursor));
      if (!still() || asked !== this.asked) return;
      const last = items.at(-1);
      this.cursor = nextCursor;
      this.bound = nextCursor && last ? sortKey(last, this.filter) : null;
      became(withRows(known.peek(), items));
      batch(() => {
        this.fill();
        const { held, ids } = this.view.peek();
        this.set({ more: nextCursor !== null, error: null, ids: held ? below(ids, this.live, items) : ids });
        this.show();
      });
    } catch (error) {
      if (still()) this.set({ error: /** @type {Error} */ (error) });
    } finally {
      this.set({ loadingMore: false });
    }
  }

  /** Puts all that is known and belongs here in order. */
  fill() {
    const { filter, bound } = this;
    const before = comparison(filter);
    const found = [];
    for (const id of known.peek().rows.keys()) {
      const row = untracked(() => shownRow(id));
      if (!row || !matches(row, filter, known.peek().me)) continue;
      const key = sortKey(row, filter);
      if (bound === null || before(key, bound) <= 0) found.push({ id, key });
    }
    this.live = found.sort((a, b) => before(a.key, b.key)).map((each) => each.id);
    this.show();
  }

  /** @param {Iterable<string>} touched @param {boolean} own  what was done here leaves the list though its order is held */
  place(touched, own) {
    if (this.bound === "") return; // nothing is loaded yet
    const rowOf = (/** @type {string} */ id) => untracked(() => shownRow(id));
    this.live = placed(this.live, touched, { filter: this.filter, me: known.peek().me, bound: this.bound, rowOf });
    this.show(own ? new Set(touched) : undefined);
  }

  /** @param {ReadonlySet<string>} [own] */
  show(own) {
    const view = this.view.peek();
    if (!view.held) return this.set({ ids: [...this.live], fresh: 0 });
    const there = own && new Set(this.live);
    const { rows } = known.peek();
    const leaves = (/** @type {string} */ id) => !rows.has(id) || Boolean(own?.has(id) && !there?.has(id));
    this.set(asHeld(view.ids, this.live, leaves));
  }

  /** @param {Partial<ListView>} changes */
  set = (changes) => void (this.view.value = { ...this.view.peek(), ...changes });
}

/** @param {Filter} filter */
function shown(filter) {
  const key = JSON.stringify(filter);
  let found = lists.get(key);
  if (!found) lists.set(key, (found = new Shown(filter)));
  return found;
}

/** The list of a filter; the first read loads it. @param {Filter} filter @returns {ReadonlySignal<ListView>} */
export const list = (filter) => shown(filter).view;
/** Loads the next page of a list. @param {Filter} filter */
export const more = (filter) => shown(filter).more();
/** Loads a list anew, after a failure. @param {Filter} filter */
export const reload = (filter) => void shown(filter).load();
/** Holds the order of a list while it is used, or lets it go. @param {Filter} filter @param {boolean} held */
export function hold(filter, held) {
  const list = shown(filter);
  if (list.view.peek().held === held) return;
  list.set({ held });
  list.show();
}
/** Puts what is fresh in its place, though the list is held. @param {Filter} filter */
export const settle = (filter) => shown(filter).set({ ids: [...shown(filter).live], fresh: 0 });
