// @ts-check
/** Drafts: one for each user and conversation, kept in this browser as it is written. */
/** @import { Draft } from "./types.js" */

/** The draft of a conversation, null if there is none. Reads a signal. @param {string} conversationId @returns {Draft|null} */
export function draft(conversationId) {
  void conversationId;
  return null;
}
/** Keeps a draft at once; an empty one is forgotten. @param {string} conversationId @param {Omit<Draft, "at">} written @returns {boolean} False if this browser can't keep it: say so. */
export function keep(conversationId, written) {
  void [conversationId, written];
  return true;
}
/** Forgets it. @param {string} conversationId */
export function drop(conversationId) {
  void conversationId;
}
/** The conversations with a draft. Reads a signal. @returns {Set<string>} */
export function drafted() {
  return new Set();
}
