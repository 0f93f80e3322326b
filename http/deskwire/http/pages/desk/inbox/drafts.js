// @ts-check
/**
 * Drafts: a reply and a note for each conversation, kept in this browser at each key and by the server a moment later, for one user in one
 * project. Tabs and other computers follow. What meets is merged (draft-merge.js), so no word is dropped.
 *
 * A draft has what the server had last (`base`), and the texts that were sent to it and not answered yet (`sent`): when one of those comes back,
 * it is an earlier state of this draft and no change by somebody else.
 */
import { effect, signal, untracked } from "../vendor/preact.js";
import { Problem, all, call, get, signedOut } from "../core/api.js";
import * as kept from "../core/outbox-store.js";
import { EMPTY, NONE, differs, empty, filesOf, fromServer, fromTab, ids, merge, saved } from "./draft-merge.js";
import { entries, outgoing, unsaved } from "../core/outbox.js";
import { lastWords, may, parting, project, user } from "../core/session.js";
import { connection } from "../core/feed.js";
import { join } from "../core/store.js";
/** @import { Draft, Mode, OutgoingFile } from "../core/types.js" */

const PREFIX = "deskwire.draft.";
const SAVE_MS = 700;
const SAVE_MAX_MS = 2_500;
/** Another tab saves what the one that was written in has not saved by then, as when it was closed. */
const TAKEOVER_MS = 5_000;
const RETRY_MS = 5_000;
const ANSWER_MS = 10_000;

/** Grows with each change, here and elsewhere. */
const version = signal(0);
/** True once the drafts of this browser are read. */
export const ready = signal(false);
/** The prefix of the keys of this user and project; null for none. @type {string|null} */
let scope = null;
/** @type {Map<string, Draft>} */
const drafts = new Map();
/** Those that this browser has no room for. @type {Set<string>} */
const unkept = new Set();
/** Those that the server does not take as they are. @type {Set<string>} */
const refused = new Set();
/** Those whose text is on its way into the outbox: what is kept here stays until it is there. @type {Set<string>} */
const lifted = new Set();
/** Those that this tab has changed. @type {Set<string>} */
const own = new Set();
/** @type {Set<string>} */
const saving = new Set();
/** What the server said of drafts while an answer was awaited. @type {Map<string, any>} */
const waiting = new Map();
/** @type {Map<string, {timer: ReturnType<typeof setTimeout>, since: number}>} */
const due = new Map();
const channel = typeof BroadcastChannel === "function" ? new BroadcastChannel("deskwire drafts") : null;

/** @param {string} id @param {Mode} mode */
const keyOf = (id, mode) => `${scope}${id}.${mode}`;
/** @param {string} key @returns {[id: string, mode: Mode]} */
const placeOf = (key) => /** @type {[string, Mode]} */ (key.slice(scope?.length).split("."));
/** @param {string} key */
const read = (key) => drafts.get(key) ?? EMPTY;
/** Return what is being written in a conversation; null for nothing. Reads a signal. @param {string} id @param {Mode} mode @returns {Draft|null} */
export function draft(id, mode) {
  void version.value;
  const one = drafts.get(keyOf(id, mode));
  return one && !empty(one) ? one : null;
}

/** Return where a draft is kept: "" for nothing to keep. Reads a signal. @param {string} id @param {Mode} mode @returns {""|"saved"|"device"|"nowhere"} */
export function whereKept(id, mode) {
  const one = draft(id, mode);
  if (!one) return "";
  if (saved(one)) return "saved";
  return unkept.has(keyOf(id, mode)) ? "nowhere" : "device";
}

/**
 * Put a draft here, keep it, and show it to the other tabs.
 * @param {string} key @param {Draft} next @param {boolean} [quiet]  the other tabs hear of it by themselves
 */
function put(key, next, quiet = false) {
  const from = read(key);
  drafts.set(key, next);
  if (!lifted.has(key)) {
    store(key, next);
    if (!quiet) channel?.postMessage({ key, from: { text: from.text, files: from.files }, draft: next });
  }
  changed();
}

function changed() {
  version.value += 1;
  unsaved.value = [...drafts.values()].filter((each) => !empty(each) && !saved(each)).length;
}

/** @param {string} key @param {Draft} next */
function store(key, next) {
  if (empty(next) && !next.base.version && !next.sent.length) {
    drafts.delete(key);
    unkept.delete(key);
    return void kept.removeText(key);
  }
  void kept.putText(key, next).then((is) => {
    if (is !== unkept.has(key)) return;
    if (is) unkept.delete(key);
    else unkept.add(key);
    version.value += 1;
  });
}

// What is written here.

/**
 * Change a draft.
 * @param {string} id @param {Mode} mode @param {{text?: string, files?: OutgoingFile[], baseSequence?: number|null}} change
 * @param {string} [shown]  the text that was changed, if it may be another by now
 */
export function edit(id, mode, change, shown) {
  const key = keyOf(id, mode);
  const before = read(key);
  const text = change.text === undefined ? before.text : merge(shown ?? before.text, change.text, before.text);
  own.add(key);
  refused.delete(key);
  put(key, { ...before, ...change, text, at: Date.now() });
  soon(key, SAVE_MS);
}

/** Add words and files to a draft, before what is there. @param {string} id @param {Mode} mode @param {string} text @param {readonly OutgoingFile[]} [files] */
export function add(id, mode, text, files = []) {
  const before = read(keyOf(id, mode));
  edit(id, mode, { text: [text, before.text].filter((each) => each.trim()).join("\n\n"), files: filesOf([], before.files, files) });
}

/** Make the words and files of one mode those of the other, after the ones that are there. @param {string} id @param {Mode} from @param {Mode} to */
export function use(id, from, to) {
  const { text, files } = read(keyOf(id, from));
  const there = read(keyOf(id, to));
  edit(id, to, { text: [there.text, text].filter((each) => each.trim()).join("\n\n"), files: [...there.files, ...files] });
  edit(id, from, { text: "", files: [] });
}

/** Remove a draft, for good. @param {string} id @param {Mode} mode */
export const drop = (id, mode) => edit(id, mode, { text: "", files: [] });

/**
 * Empty a draft that is sent. What is kept of it stays until `done`; `failed` brings it back. The server removes it with the message.
 * @param {string} id @param {Mode} mode
 */
export function lift(id, mode) {
  const key = keyOf(id, mode);
  const taken = read(key);
  lifted.add(key);
  put(key, { ...taken, text: "", files: [] });
  const end = (/** @type {Partial<Draft>} */ change) => {
    const now = read(key);
    lifted.delete(key);
    drafts.set(key, taken);
    put(key, { ...now, ...change });
    soon(key, SAVE_MS);
  };
  return {
    taken,
    done: () => end({}),
    failed: () => end({ text: [taken.text, read(key).text].filter(Boolean).join("\n\n"), files: filesOf([], taken.files, read(key).files) }),
  };
}

/** Note that a file of a draft is at the server. @param {string} id @param {Mode} mode @param {string} fileKey @param {string} uploadId */
export function attached(id, mode, fileKey, uploadId) {
  const files = read(keyOf(id, mode)).files.map((each) => (each.key === fileKey ? { ...each, uploadId, progress: 1 } : each));
  if (files.some((each) => each.key === fileKey)) edit(id, mode, { files });
}

// What other tabs and the server say.

/** @param {MessageEvent} event */
function heard({ data: { key, from, draft } }) {
  if (!scope || !key.startsWith(scope) || !ready.peek()) return;
  put(key, fromTab(read(key), from, draft), true);
  if (!draft.sent.length) answered(key);
  if (!saved(read(key))) soon(key, own.has(key) ? SAVE_MS : TAKEOVER_MS);
}
channel?.addEventListener("message", heard);

/** Take what the server has; null for nothing. @param {string} key @param {any} given @param {import("./draft-merge.js").Given & {quiet?: boolean}} [how] */
function take(key, given, how = {}) {
  const before = read(key);
  const next = fromServer(before, given, how);
  if (next === before) return;
  put(key, next, how.quiet);
  if (!saved(next)) soon(key, SAVE_MS);
}

/** Take a draft that a call gave, as when a reply was taken back. @param {string} id @param {Mode} mode @param {any} given @param {boolean} [keep]  what is written here stays as it is */
export const given = (id, mode, given, keep = false) => take(keyOf(id, mode), given, { keep });

/** Take what came while an answer was awaited. @param {string} key */
function answered(key) {
  const given = waiting.get(key);
  if (waiting.delete(key)) take(key, given, { quiet: true });
}

/** Ask the server for the drafts of a conversation. Those of one that is gone stay here. @param {string} id */
async function check(id) {
  const mine = scope;
  const answer = await get(`conversations/${id}/drafts`).catch((error) => {
    if (error instanceof Problem && (error.status === 404 || error.status === 403)) return null;
    throw error;
  });
  if (mine !== scope) return;
  for (const mode of /** @type {Mode[]} */ (["reply", "note"])) {
    const key = keyOf(id, mode);
    if (answer) take(key, answer[mode]);
    else if (drafts.has(key)) (refused.add(key), put(key, { ...read(key), base: NONE, sent: [] }));
  }
}

/** Ask the server for all drafts, and save what it does not have. */
async function pull() {
  const mine = scope;
  if (!mine || signedOut.peek() || !may("conversations.reply")) return;
  const items = await all("drafts");
  if (mine !== scope) return;
  const found = new Set();
  for (const each of items) {
    const key = keyOf(each.conversationId, each.mode);
    found.add(key);
    if (!saving.has(key)) take(key, each);
  }
  const missing = [...drafts].filter(([key, one]) => !found.has(key) && (one.base.version || one.sent.length) && !saving.has(key)).map(([key]) => placeOf(key)[0]);
  for (const id of new Set(missing)) await check(id);
  refused.clear();
  for (const [key, one] of drafts) if (!saved(one)) soon(key, SAVE_MS);
}

/** @param {any} event */
function passing({ type, data }) {
  if (type !== "draft.updated" || !ready.peek()) return;
  const key = keyOf(data.conversationId, data.mode);
  const one = read(key);
  if (one.sent.length) {
    if (data.draft) waiting.set(key, data.draft);
    setTimeout(() => scope && key.startsWith(scope) && answered(key), ANSWER_MS);
  } else if (data.draft) take(key, data.draft, { quiet: true });
  else if (one.base.version) void check(data.conversationId).catch(() => {});
}

// What the server gets.

/** Save a draft shortly after its last change. @param {string} key @param {number} ms */
function soon(key, ms) {
  const before = due.get(key);
  const since = before?.since ?? Date.now();
  clearTimeout(before?.timer);
  const wait = ms > SAVE_MAX_MS ? ms : Math.max(0, Math.min(ms, since + SAVE_MAX_MS - Date.now()));
  due.set(key, { since, timer: setTimeout(() => (due.delete(key), void save(key)), wait) });
}

/** Whether a message that is on its way takes the draft with it. @param {string} key */
function leaves(key) {
  const [id, mode] = placeOf(key);
  return empty(read(key)) && outgoing(id).some((each) => each.kind === "message" && each.internal === (mode === "note") && each.state !== "stored");
}

/** Save a draft now, one tab at a time. @param {string} key @returns {Promise<void>} */
async function save(key) {
  const mine = scope;
  if (!mine || !key.startsWith(mine) || signedOut.peek() || saving.has(key) || lifted.has(key)) return;
  saving.add(key);
  try {
    if (navigator.locks) await navigator.locks.request(key, () => saveOnce(key));
    else await saveOnce(key);
  } catch (error) {
    if (mine !== scope) return;
    const final = error instanceof Problem && error.status >= 400 && error.status < 500 && ![401, 408, 429].includes(error.status);
    if (final) (refused.add(key), put(key, { ...read(key), sent: [] }));
    else soon(key, (error instanceof Problem && error.retryAfterMs) || RETRY_MS);
  } finally {
    saving.delete(key);
  }
  if (mine !== scope) return;
  answered(key);
  if (!due.has(key) && differs(read(key)) && !refused.has(key) && !leaves(key)) soon(key, SAVE_MS);
}

/** @param {string} key */
async function saveOnce(key) {
  const mine = scope;
  if (refused.has(key) || !differs(read(key)) || leaves(key)) return;
  const [id, mode] = placeOf(key);
  if (read(key).sent.length) await check(id); // whether it came the last time is not known
  const one = read(key);
  if (mine !== scope || !differs(one) || leaves(key)) return;
  const { text, base, baseSequence } = one;
  put(key, { ...one, sent: [text] });
  const body = { text, attachments: ids(one.files), version: base.version, baseText: base.text, baseSequence };
  const answer = await call("PUT", `conversations/${id}/drafts/${mode}`, { body });
  if (mine === scope) take(key, answer.draft, { sent: text });
}

/** Save what is not saved yet, as before signing out. */
async function saveAll() {
  await Promise.all([...drafts].filter(([, one]) => !saved(one)).map(([key]) => (clearTimeout(due.get(key)?.timer), due.delete(key), save(key))));
}
lastWords.add(saveAll);

/** Send what was written last as the page goes; whether it came is asked for when the desk is opened again. */
function leave() {
  for (const key of own) {
    const one = read(key);
    if (!scope || !key.startsWith(scope) || one.sent.length || !differs(one) || refused.has(key) || leaves(key) || lifted.has(key)) continue;
    const [id, mode] = placeOf(key);
    put(key, { ...one, sent: [one.text] });
    const body = { text: one.text, attachments: ids(one.files), version: one.base.version, baseText: one.base.text, baseSequence: one.baseSequence };
    void call("PUT", `conversations/${id}/drafts/${mode}`, { body, keepalive: true }).then((answer) => take(key, answer.draft, { sent: one.text }), () => {});
  }
}

// Beginning and end.

/** @param {string|null} of */
async function begin(of) {
  scope = of;
  ready.value = false;
  for (const { timer } of due.values()) clearTimeout(timer);
  for (const each of [drafts, unkept, refused, lifted, own, waiting, due]) each.clear();
  changed();
  if (!of) return;
  const found = await kept.texts(of);
  if (scope !== of) return;
  for (const [key, one] of found) drafts.set(key, { ...EMPTY, ...one });
  for (const [key, one] of found) if (!key.slice(of.length).includes(".")) renew(key, one);
  ready.value = true;
  changed();
  if (connection.peek().state === "live") void pull().catch(() => {});
}

/** Take a draft of before there were two texts. @param {string} key @param {any} one */
function renew(key, { text = "", internal = false, files = [], baseSequence = null }) {
  drafts.delete(key);
  void kept.removeText(key);
  const there = read(`${key}.${internal ? "note" : "reply"}`);
  put(`${key}.${internal ? "note" : "reply"}`, { ...there, text: merge("", there.text, text), files: filesOf([], there.files, files), baseSequence, at: Date.now() });
}

join({ hello: () => void (ready.peek() && pull().catch(() => {})), passing, end: () => {} });
effect(() => {
  const of = user.value && project.value ? `${PREFIX}${user.value.id}.${project.value.id}.` : null;
  if (of !== scope) untracked(() => void begin(of));
});
effect(() => {
  if (!signedOut.value) untracked(() => ready.peek() && void pull().catch(() => {}));
});
effect(() => {
  const sent = entries.value.filter((each) => each.kind === "message");
  untracked(() => sent.forEach(departed));
});

/** Forget what the server had of a draft that it removed with its message. @param {import("../core/types.js").Outgoing} entry */
function departed({ conversationId, internal, state, body }) {
  const key = keyOf(conversationId ?? "", internal ? "note" : "reply");
  const one = drafts.get(key);
  if (state === "stored" && one && body.draftVersion && one.base.version === body.draftVersion) put(key, { ...one, base: NONE });
  if (one && differs(read(key)) && !due.has(key) && !refused.has(key)) soon(key, SAVE_MS);
}

parting(async () => {
  const of = `${PREFIX}${user.peek()?.id}.`;
  scope = null;
  drafts.clear();
  await kept.removeTexts(of);
});
if (typeof addEventListener === "function") addEventListener("pagehide", leave);
