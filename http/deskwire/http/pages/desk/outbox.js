// @ts-check
/**
 * What was done here and has to reach the server: replies, notes, changes. Everything is kept on this computer before it is
 * sent, in order for each conversation, and sent once however often it is tried: its key is its `Idempotency-Key`.
 */
import { signal } from "./vendor/preact.js";
/** @import { Draft, Outgoing, OutgoingFile, Row, Status, Then } from "./types.js" */

/** Everything that is kept for this user and project, oldest first; what is stored leaves a while after. */
export const entries = signal(/** @type {Outgoing[]} */ ([]));

/** Those of a conversation. @param {string} id @returns {Outgoing[]} */
export const outgoing = (id) => entries.value.filter((each) => each.conversationId === id);

/** Begins for the user and project that are chosen; sends what was left. @returns {Promise<void>} */
export async function begin() {}
/** Stops. */
export function end() {}

/**
 * Sends a message or note. Resolves when it is kept here, which is when the draft may be emptied.
 * @param {string} conversationId
 * @param {{text: string, internal?: boolean, files?: OutgoingFile[], ifSequence?: number|null, then?: Then|null, undoMs?: number}} message
 * @returns {Promise<Outgoing>}
 */
export async function send(conversationId, message) {
  throw new Error(`not yet: ${conversationId} ${message}`);
}

/**
 * Changes a conversation: it looks done at once.
 * @param {string} conversationId
 * @param {Action} action
 * @param {{undoMs?: number}} [options]
 * @returns {Promise<Outgoing>}
 *
 * @typedef {{do: "assign", assignee: {type: "user"|"team", id: string, name: string}|null}
 *   | {do: "close"} | {do: "reopen"} | {do: "pending"}
 *   | {do: "tags", tags: string[]} | {do: "snooze", until: string|null}
 *   | {do: "title", title: string|null} | {do: "archive", archived: boolean} | {do: "unread", index: number}} Action
 */
export async function act(conversationId, action, options) {
  throw new Error(`not yet: ${conversationId} ${action} ${options}`);
}

/** Takes back what is held, kept, refused or in conflict. @param {string} key @returns {Promise<Outgoing|null>} What it was, for the draft. */
export async function undo(key) {
  void key;
  return null;
}
/** The newest that can still be undone; null if there is none. @returns {Outgoing|null} */
export const undoable = () => entries.value.findLast((each) => each.state === "held") ?? null;
/** Sends what is held now. @param {string} key */
export function now(key) {
  void key;
}
/** Sends what was refused or in conflict again, with a new key; `ifSequence` null: whatever has come. @param {string} key @param {{text?: string, ifSequence?: number|null}} [changes] */
export async function again(key, changes) {
  void [key, changes];
}
/**
 * Keeps a file for a message and begins to upload it; its progress is in `uploads`.
 * @param {File|Blob} file @param {string} name @returns {Promise<OutgoingFile>}
 */
export async function attach(file, name) {
  throw new Error(`not yet: ${file} ${name}`);
}
/** Forgets a file that was attached. @param {string} key */
export async function detach(key) {
  void key;
}
/** The files that are being uploaded, by key; `problem` says why one can't be. */
export const uploads = signal(/** @type {Map<string, OutgoingFile & {problem?: string}>} */ (new Map()));
