// @ts-check
/** The past of a conversation, computed from stored events, messages and activity: pure functions. */

/**
 * @typedef {object} Moment  an event or an activity
 * @property {string} key
 * @property {string} at
 * @property {number|null} sequence  null for events that only agents get
 * @property {any} event  the envelope; null for an activity without an event
 * @property {any} activity  the activity; null for an event without one
 * @property {any} step  the workflow step that caused it; if unrecorded, the last step shown before
 */

/**
 * Merge events with their activity, newest first.
 * @param {any[]} events  newest first @param {any[]} activity  newest first @param {string|null} since  the time of the oldest loaded event, if there are older ones
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
 * Return the conversation as of an event: its state in the event, and agents' fields reverted by the activity.
 * @param {any[]} events  newest first @param {any} now  the current conversation, for agents @param {any[]} activity  newest first @param {number} sequence
 * @returns {{event: any, conversation: any} | null}  null if no stored event has it
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

/** Return the messages as of an event, oldest first; notes by their time. @param {any[]} messages @param {any} event @returns {any[]} */
export const messagesAt = (messages, event) => messages.filter((each) => (each.sequence ? each.sequence <= event.sequence : each.createdAt <= event.createdAt));

/** Return which of these fields differ between two views of a conversation. @param {any} before @param {any} after @param {string[]} fields @returns {string[]} */
export const changedFields = (before, after, fields) => fields.filter((each) => JSON.stringify(before?.[each] ?? null) !== JSON.stringify(after?.[each] ?? null));
