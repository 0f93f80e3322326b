// @ts-check
/**
 * The outbox: replies, notes and changes on their way to the server. Each entry is stored in IndexedDB before it is sent, in order within a
 * conversation, and takes effect once even if it is sent several times: its key is its `Idempotency-Key`.
 *
 * All tabs share the stored entries. The tab that holds the lock sends them; when it closes, the next one resends its unfinished entries under the
 * same keys.
 */
import { t } from "./texts.js";
import { computed, effect, signal, untracked } from "../vendor/preact.js";
import { Offline, Problem, call, get, loadModule, newKey, signedOut } from "./api.js";
import * as session from "./session.js";
import { matchesGuard } from "./state.js";
/** @import { AgentMessage, Assignee, Guard, Mention, Outgoing, OutgoingFile, Row, Then } from "./types.js" */

const RETRY_DELAY_MIN_MS = 1_000;
const RETRY_DELAY_MAX_MS = 30_000;
/** The server remembers a key for a day; this is an hour less. */
const KEY_LIFETIME_MS = 23 * 3_600_000;
const STORED_SHOWN_MS = 20_000;
const PARALLEL_SENDS_MAX = 4;
/** The code of an action refused here because its guard no longer holds. */
export const CHANGED = "changed_meanwhile";
const FINAL = new Set(["stored", "refused", "conflict"]);

/** All entries of this user and project, oldest first. Stored ones are removed after a while. */
export const entries = signal(/** @type {Outgoing[]} */ ([]));
/** False if this browser stores nothing beyond this page. */
export const durable = signal(true);
/** The number of drafts on this device only; set by drafts.js. */
export const unsaved = signal(0);
/** Return the number of entries that have not reached the service. */
export const unsent = () => entries.value.filter((each) => each.state !== "stored").length;

const byConversation = computed(() => Map.groupBy(entries.value, (each) => each.conversationId ?? ""));
/** Return the entries of a conversation. Reads a signal. @param {string} id @returns {Outgoing[]} */
export const outgoing = (id) => byConversation.value.get(id) ?? [];

// Entry states: pure functions.

/** Return the delay before the next attempt, in ms. @param {number} attempts  from 1 @param {number} random */
export const retryDelay = (attempts, random) => Math.min(RETRY_DELAY_MAX_MS, RETRY_DELAY_MIN_MS * 2 ** (attempts - 1)) * (0.5 + random / 2);

/** Return the entry in state `sending`. @param {Outgoing} entry @param {number} now @returns {Outgoing} */
export const asSending = (entry, now) => ({ ...entry, state: "sending", waitsFor: null, sentAt: entry.sentAt ?? now });

/** Return the entry after the server stored it. @param {Outgoing} entry @param {any} answer @param {number} now @param {number} tookMs @returns {Outgoing} */
export const asStored = (entry, answer, now, tookMs) => ({ ...entry, state: "stored", answer, tookMs, storedAt: now, waitsFor: null, problem: null });

/**
 * Return the entry after a failure: kept for a retry, or refused for good.
 * @param {Outgoing} entry @param {unknown} error @param {number} now @param {number} random  0 to 1
 * @param {ReadonlySet<string>} ours  ids of messages sent by this outbox, which never count as a conflict
 * @returns {Outgoing}
 */
export function afterFailure(entry, error, now, random, ours) {
  const attempts = entry.attempts + 1;
  const later = (/** @type {string} */ waitsFor, /** @type {number} */ ms) => ({ ...entry, state: /** @type {const} */ ("kept"), attempts, waitsFor, notBefore: now + ms });
  if (!(error instanceof Problem)) return later(error instanceof Offline ? "offline" : "failed", retryDelay(attempts, random));
  const { status, code, message, requestId, errors, document } = error;
  if (status === 401) return later("signed_out", retryDelay(attempts, random));
  if (status === 429) return later("rate_limited", error.retryAfterMs ?? retryDelay(attempts, random));
  if (status >= 500 || status === 408 || code === "idempotency_in_progress") return later("server_failed", error.retryAfterMs ?? retryDelay(attempts, random));
  if (code === "idempotency_answer_erased") return asStored(entry, null, now, now - (entry.sentAt ?? now));
  const problem = { status, code, detail: message, requestId, errors };
  if (code !== "conversation_moved_on") return { ...entry, state: "refused", attempts, problem };
  /** @type {AgentMessage[]} */
  const since = document.since ?? [];
  if (since.length && since.every((each) => each.internal || ours.has(each.id))) return { ...withNewKey(entry, { ifSequence: document.sequence }, now), attempts };
  return { ...entry, state: "conflict", attempts, problem, since: since.filter((each) => !ours.has(each.id)) };
}

/** Return the entry with a new key, to be sent again. @param {Outgoing} entry @param {{text?: string, ifSequence?: number|null}} changes @param {number} now @returns {Outgoing} */
export function withNewKey(entry, changes, now) {
  const body = { ...entry.body, ...changes };
  if (body.ifSequence === null) delete body.ifSequence;
  return { ...entry, key: newKey(), body, text: body.text ?? entry.text, state: "kept", waitsFor: null, problem: null, since: [], sentAt: null, notBefore: now };
}

/** Return the entries to send now, the first of each conversation, and when the next one is due. @param {readonly Outgoing[]} all @param {number} now @returns {{ready: Outgoing[], at: number}} */
export function due(all, now) {
  const seen = new Set();
  const ready = [];
  let at = Infinity;
  for (const entry of all) {
    const lane = entry.conversationId ?? entry.key;
    if (FINAL.has(entry.state) || seen.has(lane)) continue;
    seen.add(lane);
    if (entry.state === "sending") continue;
    if (entry.notBefore <= now) ready.push(entry);
    else at = Math.min(at, entry.notBefore);
  }
  return { ready, at };
}

/** Return whether the outcome of an entry can no longer be determined. @param {Outgoing} entry @param {number} now */
export const outcomeUnknown = (entry, now) => entry.sentAt !== null && now - entry.sentAt > KEY_LIFETIME_MS;

// Storage and sending.

/** @type {import("./outbox-store.js")} Loaded lazily, so that the first list does not wait for it. */
let outboxStore;
/** @type {Promise<void>|undefined} */
let storeLoaded;
/** The user's id and the project's, separated by a space; null for none. @type {string|null} */
export let scope = null;
/** Resolves when the stored entries are loaded. @type {Promise<void>} */
let ready = Promise.resolve();
let isLeader = false;
/** @type {AbortController|null} Releases the lock, or stops waiting for it. */
let leadership = null;
/** @type {ReturnType<typeof setTimeout>|undefined} */
let wakeTimer;
let sendsInFlight = 0;
/** @type {Set<string>} */
const keysInFlight = new Set();
/** @type {Set<string>} */
const sentMessageIds = new Set();

/** Load the entries of the current user and project, and send them. @returns {Promise<void>} */
export function begin() {
  end();
  const { user, project } = session;
  if (user.value && project.value) ready = start((scope = `${user.value.id} ${project.value.id}`), (leadership = new AbortController()));
  return ready;
}

/** @param {string} of @param {AbortController} mine */
async function start(of, mine) {
  await (storeLoaded ??= loadModule(() => import("./outbox-store.js")).then((module) => {
    outboxStore = module;
    outboxStore.onChange(() => void refresh().then(() => sendDue()));
  }));
  await outboxStore.cleanUp(of);
  durable.value = await outboxStore.durable();
  if (mine.signal.aborted) return;
  await refresh();
  const lead = () => {
    isLeader = true;
    void sendDue(true);
    return new Promise((done) => mine.signal.addEventListener("abort", () => done(undefined)));
  };
  if (navigator.locks) void navigator.locks.request(`deskwire outbox ${of}`, { signal: mine.signal }, lead).catch(() => {});
  else void lead(); // without a secure context, every tab sends; the key prevents duplicates
}

/** Stop. Stored entries stay. */
export function end() {
  leadership?.abort();
  leadership = scope = null;
  isLeader = false;
  clearTimeout(wakeTimer);
  entries.value = [];
}

session.onSignOut(async () => {
  await ready;
  if (scope) await outboxStore.forget(scope);
});
effect(() => {
  if (!signedOut.value) untracked(() => void retryWaiting("signed_out"));
});
if (typeof addEventListener === "function") addEventListener("online", () => void retryWaiting("offline"));
async function refresh() {
  const mine = scope;
  if (!mine || !outboxStore) return;
  const all = await outboxStore.entriesOf(mine);
  if (mine === scope) entries.value = all.sort((a, b) => a.order - b.order);
}

/** Send the entries that wait for this reason now. @param {string} reason */
export async function retryWaiting(reason) {
  await ready;
  for (const each of entries.peek()) if (each.waitsFor === reason) await outboxStore.change(each.key, (one) => (one.state === "kept" ? { ...one, notBefore: 0 } : one));
  await refresh();
  void sendDue();
}

/** Send the entries that are due, if this tab holds the lock. @param {boolean} [first] take over the unfinished entries of another tab */
async function sendDue(first = false) {
  clearTimeout(wakeTimer);
  if (!scope) return;
  if (!isLeader) {
    const { at } = due(entries.peek(), Date.now()); // timers of a background tab are late: remind the tab that sends
    if (at < Infinity) wakeTimer = setTimeout(() => outboxStore.notifyTabs(), Math.max(50, at - Date.now()));
    return;
  }
  if (first) {
    for (const each of entries.peek()) if (each.state === "sending" && !keysInFlight.has(each.key)) await outboxStore.change(each.key, (one) => ({ ...one, state: "kept", notBefore: 0 }));
    await refresh();
  }
  const now = Date.now();
  const { ready, at } = due(entries.peek(), now);
  const leaving = entries.peek().filter((each) => each.state === "stored").map((each) => (each.storedAt ?? 0) + STORED_SHOWN_MS);
  for (const each of entries.peek()) if (each.state === "stored" && (each.storedAt ?? 0) + STORED_SHOWN_MS <= now) await outboxStore.remove(each.key);
  if (!signedOut.peek()) for (const each of ready.slice(0, PARALLEL_SENDS_MAX - sendsInFlight)) void sendEntry(each);
  const next = Math.min(at, ...leaving.filter((when) => when > now));
  if (next < Infinity) wakeTimer = setTimeout(() => void sendDue(), Math.max(50, next - now));
}

/** @param {Outgoing} entry */
async function sendEntry(entry) {
  const mine = scope;
  if (keysInFlight.has(entry.key)) return;
  keysInFlight.add(entry.key);
  sendsInFlight += 1;
  try {
    const taken = await outboxStore.change(entry.key, (one) => (FINAL.has(one.state) ? one : outcomeUnknown(one, Date.now()) ? asExpired(one) : asSending(one, Date.now())));
    if (!taken || taken.state !== "sending" || mine !== scope) return;
    await refresh();
    const next = await attempt(taken);
    await outboxStore.change(entry.key, () => next, next.key);
  } finally {
    sendsInFlight -= 1;
    keysInFlight.delete(entry.key);
    if (mine === scope) {
      await refresh();
      void sendDue();
    }
  }
}

/** @param {Outgoing} entry @returns {Outgoing} */
const asExpired = (entry) => ({ ...entry, state: "refused", problem: { status: 0, code: "outcome_unknown", detail: t.outcomeUnknown, requestId: null, errors: [] } });

/** @param {Outgoing} entry @returns {Promise<Outgoing>} */
async function attempt(entry) {
  try {
    await hooks.send(entry);
    const attachments = entry.files.length ? await (await import("./uploads.js")).idsOf(entry.files) : [];
    const body = attachments.length ? { ...entry.body, attachments } : entry.body;
    if (entry.guard && !matchesGuard(await get(`conversations/${entry.conversationId}`, { view: "agent" }), entry.guard)) throw new Problem(409, { code: CHANGED }, null, null);
    const began = performance.now();
    const answer = await call(entry.method, entry.path, { body, key: entry.kind === "message" ? entry.key : undefined });
    if (entry.kind === "message" && answer?.id) sentMessageIds.add(answer.id);
    for (const file of entry.files) void outboxStore.dropFile(file.key);
    return { ...asStored(entry, answer, Date.now(), Math.round(performance.now() - began)), storedAsOf: rowVersions.asOf(entry.conversationId ?? "") };
  } catch (error) {
    return afterFailure(entry, error, Date.now(), Math.random(), sentMessageIds);
  }
}

/** Runs before an entry is sent; set by held-messages.js. */
export const hooks = { send: async (/** @type {Outgoing} */ entry) => void entry };
/** Returns the newest event of a conversation's row; set by store.js. */
export const rowVersions = { asOf: (/** @type {string} */ id) => (void id, "") };

// For views.

/** @param {Partial<Outgoing> & Pick<Outgoing, "kind"|"method"|"path"|"body"|"conversationId">} made @param {number} undoMs @returns {Promise<Outgoing>} */
async function enqueue(made, undoMs) {
  await ready;
  const [userId = "", projectId = ""] = (scope ?? "").split(" ");
  const now = Date.now();
  const last = entries.peek().at(-1)?.order ?? 0;
  /** @type {Outgoing} */
  const entry = {
    key: newKey(), userId, projectId, order: Math.max(now, last + 1), createdAt: now, notBefore: now + undoMs, attempts: 0, state: undoMs > 0 ? "held" : "kept",
    expect: null, label: "", text: null, internal: false, files: [], sentAt: null, tookMs: null, answer: null, problem: null, waitsFor: null, since: [], ...made,
  };
  await outboxStore.add(entry, scope ?? "");
  await refresh();
  void sendDue();
  return entry;
}

/** @typedef {{sendAt: string, unlessReplied: boolean}} Later */

/**
 * Send a message or note. Resolves once it is stored here, so that the draft can be emptied. With `holdSeconds` the server holds it for that long,
 * with `later` until a time; with `draftVersion` it removes that version of the draft.
 * @param {string} conversationId
 * @param {{text: string, internal?: boolean, files?: OutgoingFile[], mentions?: readonly Mention[], ifSequence?: number|null, then?: Then|null, holdSeconds?: number, later?: Later|null, draftVersion?: number, format?: "markdown"}} message
 * @returns {Promise<Outgoing>}
 */
export function send(conversationId, { text, internal = false, files = [], mentions = [], ifSequence = null, then = null, holdSeconds = 0, later = null, draftVersion = 0, format }) {
  const body = { text, ...(format && { format }), internal, ...(mentions.length ? { mentions: [...new Set(mentions.map((each) => each.id))] } : {}), ...(ifSequence === null ? {} : { ifSequence }), ...(then ? { then } : {}), ...(holdSeconds && !later ? { holdSeconds } : {}), ...later, ...(draftVersion ? { draftVersion } : {}) };
  const expect = holdSeconds || later ? null : { ...(internal ? {} : { waitingSince: null, noAnswerNeededSince: null, snoozedUntil: null }), ...expectedAfter(then) };
  return enqueue({ kind: "message", conversationId, method: "POST", path: `conversations/${conversationId}/messages`, body, expect, text, internal, files, mentions: [...mentions] }, 0);
}

/** @param {Then|null} then @returns {Partial<Row>} */
function expectedAfter(then) {
  if (!then) return {};
  if (then.close) return CLOSED;
  return { ...(then.status ? { status: then.status } : {}), ...(then.snoozedUntil === undefined ? {} : { snoozedUntil: then.snoozedUntil }) };
}

/** @type {Partial<Row>} */
const CLOSED = { status: "CLOSED", closed: true, waitingSince: null, snoozedUntil: null };
/** @type {Partial<Row>} */
const OPEN = { status: "OPEN", closed: false, closedBy: null, closedAt: null, snoozedUntil: null };

/**
 * @typedef {{do: "assign", assignee: Assignee|null}
 *   | {do: "close"} | {do: "reopen", waitingSince?: string|null} | {do: "open"} | {do: "pending"}
 *   | {do: "tags", tags: string[]} | {do: "follow", follows: boolean, followers: string[]} | {do: "snooze", until: string|null}
 *   | {do: "noAnswer", index: number, since: string} | {do: "waitAgain", since: string}
 *   | {do: "title", title: string|null} | {do: "archive", archived: boolean} | {do: "unread", index: number, unread?: number}} Action
 */

/** Return the request of an action, and the row as it will be afterwards. @param {Action} action @returns {[method: string, path: string, body: any, expect: Partial<Row>|null]} */
function requestOf(action) {
  switch (action.do) {
    case "assign":
      return ["POST", "/assign", { assignee: action.assignee && { type: action.assignee.type, id: action.assignee.id } }, { assignee: action.assignee }];
    case "close":
      return ["POST", "/close", undefined, CLOSED];
    case "reopen":
      return ["POST", "/reopen", action.waitingSince ? { waitingSince: action.waitingSince } : undefined, { ...OPEN, ...(action.waitingSince ? { waitingSince: action.waitingSince, noAnswerNeededSince: null } : {}) }];
    case "open":
      return ["PATCH", "", { status: "OPEN" }, { status: "OPEN" }];
    case "pending":
      return ["PATCH", "", { status: "PENDING" }, { status: "PENDING", closed: false }];
    case "tags":
      return ["PATCH", "", { tags: action.tags }, { tags: action.tags }];
    case "follow":
      return [action.follows ? "PUT" : "DELETE", "/follow", undefined, { followers: action.followers }];
    case "snooze":
      return ["PATCH", "", { snoozedUntil: action.until }, { snoozedUntil: action.until }];
    case "noAnswer":
      return ["PUT", "/no-answer-needed", { index: action.index }, { waitingSince: null, noAnswerNeededSince: action.since }];
    case "waitAgain":
      return ["DELETE", "/no-answer-needed", undefined, { waitingSince: action.since, noAnswerNeededSince: null }];
    case "title":
      return ["PATCH", "", { title: action.title }, { title: action.title }];
    case "archive":
      return ["PATCH", "", { archived: action.archived }, { archived: action.archived }];
    case "unread":
      return ["PUT", "/seen", { index: action.index }, { mine: /** @type {Row["mine"]} */ ({ seenIndex: action.index < 0 ? null : action.index, unread: action.unread ?? 1 }) }];
  }
}

/**
 * Change a conversation. Views show the change at once.
 * @param {string} conversationId @param {Action} action @param {{undoMs?: number, guard?: Guard|null}} [options] guard: fields the conversation must still have @returns {Promise<Outgoing>}
 */
export function act(conversationId, action, { undoMs = 0, guard = null } = {}) {
  const [method, path, body, expect] = requestOf(action);
  return enqueue({ kind: "action", conversationId, method, path: `conversations/${conversationId}${path}`, body, expect, guard, label: action.do }, undoMs);
}

/** Withdraw an entry that was not sent. @param {string} key @returns {Promise<Outgoing|null>} The entry, for the draft; null if it is being sent or stored. */
export async function withdraw(key) {
  const gone = await outboxStore.remove(key, (one) => one.state !== "sending" && one.state !== "stored");
  await refresh();
  void sendDue();
  return gone;
}
/** Send a refused or conflicting entry again under a new key. `ifSequence` null skips the conflict check. @param {string} key @param {{text?: string, ifSequence?: number|null}} [changes] */
export async function resend(key, changes = {}) {
  const before = entries.peek().find((each) => each.key === key);
  if (!before || !FINAL.has(before.state) || before.state === "stored") return;
  const next = withNewKey(before, changes, Date.now());
  await outboxStore.change(key, () => next, next.key);
  await refresh();
  void sendDue();
}
