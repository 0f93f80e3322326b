// @ts-check
/** The messages that a new conversation can start with, and its subject: pure functions. */
/** @import { AgentMessage } from "../core/types.js" */

/** The most messages that a new conversation can start with. */
export const MESSAGES_MAX = 100;
const SUBJECT_MAX = 80;

/** Return whether another conversation shows a message already. A merge of that one into its own has ended that. @param {AgentMessage} message @param {readonly string[]} [merged]  the conversations merged into its own */
export const isTaken = ({ splitInto }, merged) => splitInto !== undefined && !merged?.includes(splitInto);

/** Return a subject made of a message: its first line, cut between words. @param {string} text */
export function subjectFrom(text) {
  const line = text.split("\n").map((each) => each.trim()).find(Boolean) ?? "";
  if ([...line].length <= SUBJECT_MAX) return line;
  const cut = [...line].slice(0, SUBJECT_MAX).join("");
  const space = cut.lastIndexOf(" ");
  return `${space > SUBJECT_MAX / 2 ? cut.slice(0, space) : cut}…`;
}

/**
 * Return the messages that a new conversation can start with from one on.
 * @param {readonly AgentMessage[]} thread  all loaded messages, oldest first, also of other conversations @param {AgentMessage} first @param {readonly string[]} [merged]
 * @returns {{free: AgentMessage[], taken: number}} taken: how many later ones another conversation shows
 */
export function messagesFrom(thread, first, merged) {
  const own = thread.filter((each) => each.conversationId === first.conversationId);
  const later = own.slice(Math.max(0, own.findIndex((each) => each.id === first.id)));
  const free = later.filter((each) => !isTaken(each, merged));
  return { free, taken: later.length - free.length };
}
