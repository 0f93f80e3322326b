// @ts-check
/** A conversation as it was: pure functions of its stored events, its messages and what its activity says. */

/**
 * @typedef {object} Moment  something that happened
 * @property {string} key
 * @property {string} at
 * @property {number|null} sequence  null for what agents alone are told
 * @property {any} event  the envelope; null for what has none
 * @property {any} activity  who did it; null for what has no entry
 * @property {any} step  the step of a workflow that did it; of what does not say so the one that was shown last before it
 */

/**
 * Puts events and activity together, newest first: an entry that is of an event stands with it.
 * @param {any[]} events  newest first @param {any[]} activity  newest first @param {string|null} since  when the events begin, if there are older ones
 * @returns {Moment[]}
 */
export function moments(events, activity, since) {
  const byEvent = new Map(activity.filter((each) => each.eventId).map((each) => [each.eventId, each]));
  const shown = new Set(events.map((each) => each.id));
  const steps = events.filter((each) => each.type === "workflow.step.presented");
  const before = (/** @type {any} */ event) => (event.sequence === null ? null : (steps.find((each) => each.sequence < event.sequence)?.data.step ?? null));
  const found = events.map((event) => {
    const entry = byEvent.get(event.id) ?? null;
    const bot = event.type === "workflow.completed" || entry?.actor.type === "bot";
    return { key: event.id, at: event.createdAt, sequence: event.sequence, event, activity: entry, step: entry?.step ?? (bot ? before(event) : null) };
  });
  const alone = activity
    .filter((each) => !shown.has(each.eventId) && (since === null || each.at >= since))
    .map((each) => ({ key: each.id, at: each.at, sequence: null, event: null, activity: each, step: each.step ?? null }));
  return [...found, ...alone].sort((a, b) => (a.at === b.at ? order(b) - order(a) : a.at < b.at ? 1 : -1));
}

/** @param {Moment} each */
const order = (each) => each.sequence ?? -1;

/**
 * The conversation as it was behind an event: what the event says of it, and what only agents see, taken back by the activity.
 * @param {any[]} events  newest first @param {any} now  the conversation as it is, for agents @param {any[]} activity  newest first @param {number} sequence
 * @returns {{event: any, conversation: any} | null}  null if no event is stored that tells
 */
export function conversationAt(events, now, activity, sequence) {
  const event = events.find((each) => each.sequence !== null && each.sequence <= sequence && each.data.conversation);
  if (!event) return null;
  const own = /** @type {Record<string, any>} */ ({ tags: now.tags, snoozedUntil: now.snoozedUntil, visible: now.visible });
  for (const entry of activity) {
    if (entry.at <= event.createdAt) break;
    for (const { field, from } of entry.changes) if (field in own) own[field] = from;
  }
  return { event, conversation: { ...event.data.conversation, ...own } };
}

/** The messages that were there behind an event, oldest first; notes by their time. @param {any[]} messages @param {any} event @returns {any[]} */
export const messagesAt = (messages, event) => messages.filter((each) => (each.sequence ? each.sequence <= event.sequence : each.createdAt <= event.createdAt));

/** Which of these fields differ between two views of a conversation. @param {any} before @param {any} after @param {string[]} fields @returns {string[]} */
export const changedFields = (before, after, fields) => fields.filter((each) => JSON.stringify(before?.[each] ?? null) !== JSON.stringify(after?.[each] ?? null));
