// @ts-check
/**
 * Drafts: a reply and a note for each conversation, stored in this browser with each key press and on the server a moment later. Other tabs and
 * computers follow, and concurrent changes are merged (draft-merge.js), so that no word is lost.
 *
 * A draft contains the server's last version (`base`), and texts that were sent to the server without a response yet (`sent`). If the server returns
 * one of those, it is an earlier state of this draft, and no change by another client.
 */
import { effect, signal, untracked } from "../vendor/preact.js";
import { Problem, all, call, get, signedOut } from "../core/api.js";
import * as kept from "../core/outbox-store.js";
import { EMPTY, NOTHING_ON_SERVER, differs, empty, mergeFiles, mergeFromServer, mergeFromTab, ids, merge, saved } from "./draft-merge.js";
import { entries, outgoing, unsaved } from "../core/outbox.js";
import { beforeSignOut, may, onSignOut, project, user } from "../core/session.js";
import { connection } from "../core/feed.js";
import { registerPart } from "../core/store.js";
import { mentionsIn } from "./mention-text.js";
/** @import { Draft, Mention, Mode, OutgoingFile } from "../core/types.js" */

const PREFIX = "deskwire.draft.";
const SAVE_DELAY_MS = 700;
const SAVE_DELAY_MAX_MS = 2_500;
/** After this time another tab saves a draft, in case the tab that wrote it was closed. */
const TAKEOVER_DELAY_MS = 5_000;
const RETRY_DELAY_MS = 5_000;
const ANSWER_TIMEOUT_MS = 10_000;

/** Grows with each change, so that readers update. */
const version = signal(0);
/** True once the drafts of this browser are loaded. */
export const ready = signal(false);
/** The key prefix of this user and project; null for none. @type {string|null} */
let scope = null;
/** @type {Map<string, Draft>} */
const drafts = new Map();
/** Drafts that this browser has no room for. @type {Set<string>} */
const notStored = new Set();
/** Drafts that the server refuses. @type {Set<string>} */
const refused = new Set();
/** Drafts whose text is moving to the outbox. The stored copy stays until the outbox has it. @type {Set<string>} */
const beingSent = new Set();
/** Drafts changed by this tab. @type {Set<string>} */
const changedHere = new Set();
/** @type {Set<string>} */
const saving = new Set();
/** Server versions that arrived while a save was in flight. @type {Map<string, any>} */
const deferredServerDrafts = new Map();
/** @type {Map<string, {timer: ReturnType<typeof setTimeout>, since: number}>} */
const saveTimers = new Map();
const channel = typeof BroadcastChannel === "function" ? new BroadcastChannel("deskwire drafts") : null;

/** @param {string} id @param {Mode} mode */
const keyOf = (id, mode) => `${scope}${id}.${mode}`;
/** @param {string} key @returns {[id: string, mode: Mode]} */
const idAndMode = (key) => /** @type {[string, Mode]} */ (key.slice(scope?.length).split("."));
/** @param {string} key */
const draftOf = (key) => drafts.get(key) ?? EMPTY;
/** Return the draft of a conversation; null for none. Reads a signal. @param {string} id @param {Mode} mode @returns {Draft|null} */
export function draft(id, mode) {
  void version.value;
  const one = drafts.get(keyOf(id, mode));
  return one && !empty(one) ? one : null;
}

/** Return where a draft is stored: "" if it is empty. Reads a signal. @param {string} id @param {Mode} mode @returns {""|"saved"|"device"|"nowhere"} */
export function draftLocation(id, mode) {
  const one = draft(id, mode);
  if (!one) return "";
  if (saved(one)) return "saved";
  return notStored.has(keyOf(id, mode)) ? "nowhere" : "device";
}

/**
 * Set a draft, store it, and notify the other tabs.
 * @param {string} key @param {Draft} next @param {boolean} [quiet]  true if the other tabs get the change on their own
 */
function put(key, next, quiet = false) {
  const from = draftOf(key);
  drafts.set(key, next);
  if (!beingSent.has(key)) {
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
    notStored.delete(key);
    return void kept.removeDraft(key);
  }
  void kept.storeDraft(key, next).then((is) => {
    if (is !== notStored.has(key)) return;
    if (is) notStored.delete(key);
    else notStored.add(key);
    version.value += 1;
  });
}

// Local changes.

/**
 * Change a draft.
 * @param {string} id @param {Mode} mode @param {{text?: string, files?: OutgoingFile[], mentions?: readonly Mention[], baseSequence?: number|null}} change
 * @param {string} [shown]  the text the user changed, if the draft may be newer
 */
export function edit(id, mode, change, shown) {
  const key = keyOf(id, mode);
  const before = draftOf(key);
  const text = change.text === undefined ? before.text : merge(shown ?? before.text, change.text, before.text);
  changedHere.add(key);
  refused.delete(key);
  put(key, { ...before, ...change, text, mentions: mentionsIn(text, change.mentions ?? before.mentions), at: Date.now() });
  scheduleSave(key, SAVE_DELAY_MS);
}

/** Insert text, files and mentions before a draft's own. @param {string} id @param {Mode} mode @param {string} text @param {readonly OutgoingFile[]} [files] @param {readonly Mention[]} [mentions] */
export function prepend(id, mode, text, files = [], mentions = []) {
  const before = draftOf(keyOf(id, mode));
  edit(id, mode, { text: [text, before.text].filter((each) => each.trim()).join("\n\n"), files: mergeFiles([], before.files, files), mentions: [...mentions, ...before.mentions] });
}

/** Append the draft of one mode to that of the other. @param {string} id @param {Mode} from @param {Mode} to */
export function moveDraft(id, from, to) {
  const { text, files, mentions } = draftOf(keyOf(id, from));
  const there = draftOf(keyOf(id, to));
  edit(id, to, { text: [there.text, text].filter((each) => each.trim()).join("\n\n"), files: [...there.files, ...files], mentions: [...there.mentions, ...mentions] });
  edit(id, from, { text: "", files: [] });
}

/** Delete a draft. @param {string} id @param {Mode} mode */
export const removeDraft = (id, mode) => edit(id, mode, { text: "", files: [] });

/**
 * Empty a draft that is being sent. The stored copy stays until `done`; `failed` restores it. The server deletes its version with the message.
 * @param {string} id @param {Mode} mode
 */
export function takeForSending(id, mode) {
  const key = keyOf(id, mode);
  const taken = draftOf(key);
  beingSent.add(key);
  put(key, { ...taken, text: "", files: [], mentions: [] });
  const end = (/** @type {Partial<Draft>} */ change) => {
    const now = draftOf(key);
    beingSent.delete(key);
    drafts.set(key, taken);
    put(key, { ...now, ...change });
    scheduleSave(key, SAVE_DELAY_MS);
  };
  return {
    taken,
    done: () => end({}),
    failed: () => end({ text: [taken.text, draftOf(key).text].filter(Boolean).join("\n\n"), files: mergeFiles([], taken.files, draftOf(key).files), mentions: [...taken.mentions, ...draftOf(key).mentions] }),
  };
}

/** Note that a file of a draft was uploaded. @param {string} id @param {Mode} mode @param {string} fileKey @param {string} uploadId */
export function markUploaded(id, mode, fileKey, uploadId) {
  const files = draftOf(keyOf(id, mode)).files.map((each) => (each.key === fileKey ? { ...each, uploadId, progress: 1 } : each));
  if (files.some((each) => each.key === fileKey)) edit(id, mode, { files });
}

// Changes by other tabs and the server.

/** @param {MessageEvent} event */
function onTabChange({ data: { key, from, draft } }) {
  if (!scope || !key.startsWith(scope) || !ready.peek()) return;
  put(key, mergeFromTab(draftOf(key), from, draft), true);
  if (!draft.sent.length) applyDeferred(key);
  if (!saved(draftOf(key))) scheduleSave(key, changedHere.has(key) ? SAVE_DELAY_MS : TAKEOVER_DELAY_MS);
}
channel?.addEventListener("message", onTabChange);

/** Merge the server's version; null if it has none. @param {string} key @param {any} given @param {import("./draft-merge.js").Given & {quiet?: boolean}} [how] */
function applyServerState(key, given, how = {}) {
  const before = draftOf(key);
  const next = mergeFromServer(before, given, how);
  if (next === before) return;
  put(key, next, how.quiet);
  if (!saved(next)) scheduleSave(key, SAVE_DELAY_MS);
}

/** Merge a draft from a response, as after a cancelled reply. @param {string} id @param {Mode} mode @param {any} given */
export const applyServerDraft = (id, mode, given) => applyServerState(keyOf(id, mode), given, { returned: true });

/** Apply the version that arrived while a save was in flight. @param {string} key */
function applyDeferred(key) {
  const given = deferredServerDrafts.get(key);
  if (deferredServerDrafts.delete(key)) applyServerState(key, given, { quiet: true });
}

/** Load the drafts of a conversation from the server. If the conversation is gone, local drafts stay. @param {string} id */
async function syncConversation(id) {
  const mine = scope;
  const answer = await get(`conversations/${id}/drafts`).catch((error) => {
    if (error instanceof Problem && (error.status === 404 || error.status === 403)) return null;
    throw error;
  });
  if (mine !== scope) return;
  for (const mode of /** @type {Mode[]} */ (["reply", "note"])) {
    const key = keyOf(id, mode);
    if (answer) applyServerState(key, answer[mode]);
    else if (drafts.has(key)) (refused.add(key), put(key, { ...draftOf(key), base: NOTHING_ON_SERVER, sent: [] }));
  }
}

/** Load all drafts from the server, and save those that differ. */
async function syncAll() {
  const mine = scope;
  if (!mine || signedOut.peek() || !may("conversations.reply")) return;
  const items = await all("drafts");
  if (mine !== scope) return;
  const found = new Set();
  for (const each of items) {
    const key = keyOf(each.conversationId, each.mode);
    found.add(key);
    if (!saving.has(key)) applyServerState(key, each);
  }
  const missing = [...drafts].filter(([key, one]) => !found.has(key) && (one.base.version || one.sent.length) && !saving.has(key)).map(([key]) => idAndMode(key)[0]);
  for (const id of new Set(missing)) await syncConversation(id);
  refused.clear();
  for (const [key, one] of drafts) if (!saved(one)) scheduleSave(key, SAVE_DELAY_MS);
}

/** @param {any} event */
function onEphemeral({ type, data }) {
  if (type !== "draft.updated" || !ready.peek()) return;
  const key = keyOf(data.conversationId, data.mode);
  const one = draftOf(key);
  if (one.sent.length) {
    if (data.draft) deferredServerDrafts.set(key, data.draft);
    setTimeout(() => scope && key.startsWith(scope) && applyDeferred(key), ANSWER_TIMEOUT_MS);
  } else if (data.draft) applyServerState(key, data.draft, { quiet: true });
  else if (one.base.version) void syncConversation(data.conversationId).catch(() => {});
}

// Saving to the server.

/** Schedule a save shortly after the last change. @param {string} key @param {number} ms */
function scheduleSave(key, ms) {
  const before = saveTimers.get(key);
  const since = before?.since ?? Date.now();
  clearTimeout(before?.timer);
  const wait = ms > SAVE_DELAY_MAX_MS ? ms : Math.max(0, Math.min(ms, since + SAVE_DELAY_MAX_MS - Date.now()));
  saveTimers.set(key, { since, timer: setTimeout(() => (saveTimers.delete(key), void save(key)), wait) });
}

/** Return whether an outgoing message includes the draft. @param {string} key */
function leavesWithMessage(key) {
  const [id, mode] = idAndMode(key);
  return empty(draftOf(key)) && outgoing(id).some((each) => each.kind === "message" && each.internal === (mode === "note") && each.state !== "stored");
}

/** Save a draft now; a lock admits one tab at a time. @param {string} key @returns {Promise<void>} */
async function save(key) {
  const mine = scope;
  if (!mine || !key.startsWith(mine) || signedOut.peek() || saving.has(key) || beingSent.has(key)) return;
  saving.add(key);
  try {
    if (navigator.locks) await navigator.locks.request(key, () => saveOnce(key));
    else await saveOnce(key);
  } catch (error) {
    if (mine !== scope) return;
    const final = error instanceof Problem && error.status >= 400 && error.status < 500 && ![401, 408, 429].includes(error.status);
    if (final) (refused.add(key), put(key, { ...draftOf(key), sent: [] }));
    else scheduleSave(key, (error instanceof Problem && error.retryAfterMs) || RETRY_DELAY_MS);
  } finally {
    saving.delete(key);
  }
  if (mine !== scope) return;
  applyDeferred(key);
  if (!saveTimers.has(key) && differs(draftOf(key)) && !refused.has(key) && !leavesWithMessage(key)) scheduleSave(key, SAVE_DELAY_MS);
}

/** @param {string} key */
async function saveOnce(key) {
  const mine = scope;
  if (refused.has(key) || !differs(draftOf(key)) || leavesWithMessage(key)) return;
  const [id, mode] = idAndMode(key);
  if (draftOf(key).sent.length) await syncConversation(id); // the outcome of the last save is unknown
  const one = draftOf(key);
  if (mine !== scope || !differs(one) || leavesWithMessage(key)) return;
  const { text, mentions, base, baseSequence } = one;
  put(key, { ...one, sent: [text] });
  const body = { text, attachments: ids(one.files), mentions, version: base.version, baseText: base.text, baseSequence };
  const answer = await call("PUT", `conversations/${id}/drafts/${mode}`, { body });
  if (mine === scope) applyServerState(key, answer.draft, { sent: text });
}

/** Save all unsaved drafts, as before sign-out. */
async function saveAll() {
  await Promise.all([...drafts].filter(([, one]) => !saved(one)).map(([key]) => (clearTimeout(saveTimers.get(key)?.timer), saveTimers.delete(key), save(key))));
}
beforeSignOut.add(saveAll);

/** Save the last changes while the page closes. The next visit checks whether that succeeded. */
function saveOnPageHide() {
  for (const key of changedHere) {
    const one = draftOf(key);
    if (!scope || !key.startsWith(scope) || one.sent.length || !differs(one) || refused.has(key) || leavesWithMessage(key) || beingSent.has(key)) continue;
    const [id, mode] = idAndMode(key);
    put(key, { ...one, sent: [one.text] });
    const body = { text: one.text, attachments: ids(one.files), mentions: one.mentions, version: one.base.version, baseText: one.base.text, baseSequence: one.baseSequence };
    void call("PUT", `conversations/${id}/drafts/${mode}`, { body, keepalive: true }).then((answer) => applyServerState(key, answer.draft, { sent: one.text }), () => {});
  }
}

// Loading and cleanup.

/** @param {string|null} of */
async function begin(of) {
  scope = of;
  ready.value = false;
  for (const { timer } of saveTimers.values()) clearTimeout(timer);
  for (const each of [drafts, notStored, refused, beingSent, changedHere, deferredServerDrafts, saveTimers]) each.clear();
  changed();
  if (!of) return;
  const found = await kept.readDrafts(of);
  if (scope !== of) return;
  for (const [key, one] of found) drafts.set(key, { ...EMPTY, ...one });
  for (const [key, one] of found) if (!key.slice(of.length).includes(".")) migrate(key, one);
  ready.value = true;
  changed();
  if (connection.peek().state === "live") void syncAll().catch(() => {});
}

/** Convert a draft of an older version, which had one text for both modes. @param {string} key @param {any} one */
function migrate(key, { text = "", internal = false, files = [], baseSequence = null }) {
  drafts.delete(key);
  void kept.removeDraft(key);
  const there = draftOf(`${key}.${internal ? "note" : "reply"}`);
  put(`${key}.${internal ? "note" : "reply"}`, { ...there, text: merge("", there.text, text), files: mergeFiles([], there.files, files), baseSequence, at: Date.now() });
}

registerPart({ hello: () => void (ready.peek() && syncAll().catch(() => {})), ephemeral: onEphemeral, end: () => {} });
effect(() => {
  const of = user.value && project.value ? `${PREFIX}${user.value.id}.${project.value.id}.` : null;
  if (of !== scope) untracked(() => void begin(of));
});
effect(() => {
  if (!signedOut.value) untracked(() => ready.peek() && void syncAll().catch(() => {}));
});
effect(() => {
  const sent = entries.value.filter((each) => each.kind === "message");
  untracked(() => sent.forEach(afterMessage));
});

/** Reset the base of a draft that the server deleted with its message. @param {import("../core/types.js").Outgoing} entry */
function afterMessage({ conversationId, internal, state, body }) {
  const key = keyOf(conversationId ?? "", internal ? "note" : "reply");
  const one = drafts.get(key);
  if (state === "stored" && one && body.draftVersion && one.base.version === body.draftVersion) put(key, { ...one, base: NOTHING_ON_SERVER });
  if (one && differs(draftOf(key)) && !saveTimers.has(key) && !refused.has(key)) scheduleSave(key, SAVE_DELAY_MS);
}

onSignOut(async () => {
  const of = `${PREFIX}${user.peek()?.id}.`;
  scope = null;
  drafts.clear();
  await kept.removeDrafts(of);
});
if (typeof addEventListener === "function") addEventListener("pagehide", saveOnPageHide);
