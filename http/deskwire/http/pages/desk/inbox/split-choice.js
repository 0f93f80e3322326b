// @ts-check
/** The messages that a new conversation can start with: pure functions. */
/** @import { AgentMessage } from "../core/types.js" */

/** The most messages that a new conversation can start with. */
export const MESSAGES_MAX = 100;

/** Return whether another conversation shows a message already. A merge of that one into its own has ended that. @param {AgentMessage} message @param {readonly string[]} [merged]  the conversations merged into its own */
export const isTaken = ({ splitInto }, merged) => splitInto !== undefined && !merged?.includes(splitInto);

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
