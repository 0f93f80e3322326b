// @ts-check
/** The decision of which events a user is notified, and of quiet hours: pure functions. */
/** @import { Envelope, NotificationSettings } from "./types.js" */

/** The user: id, the ids of the user's teams, and whether the user follows a conversation. @typedef {{id: string, teams: ReadonlySet<string>, follows?: (conversationId: string) => boolean}} Me */
/** Why a user is notified. @typedef {"mine"|"teams"|"unassigned"|"mention"|"following"} Reason */

/**
 * Return why a user is to be notified of an event; null if not. Quiet hours do not count here.
 * @param {Envelope} event @param {Me} me @param {NotificationSettings} settings @returns {Reason|null}
 */
export function reasonToNotify({ type, data }, me, settings) {
  if (type === "message.created") return data.message.author.type === "contact" ? (about(data.conversation, me, settings) ?? followed(data.conversation, me, settings)) : null;
  if (type === "note.created") return data.message.author.id === me.id ? null : settings.mentions && data.mentioned.includes(me.id) ? "mention" : followed(data.conversation, me, settings);
  if (type !== "conversation.changed" || !data.changed.includes("assignee") || !data.conversation.assignee) return null;
  return data.actor.type === "user" && data.actor.id === me.id ? null : about(data.conversation, me, settings);
}

/** Events for agents alone name the followers; for others, the desk knows them. @param {any} conversation @param {Me} me @param {NotificationSettings} settings @returns {Reason|null} */
function followed({ id, archived, followers }, me, settings) {
  if (archived || !settings.mentions) return null;
  return (followers ? followers.includes(me.id) : me.follows?.(id)) ? "following" : null;
}

/** @param {any} conversation @param {Me} me @param {NotificationSettings} settings @returns {Reason|null} */
function about({ assignee, archived }, me, settings) {
  if (archived) return null;
  const reason = !assignee ? "unassigned" : assignee.type === "team" ? me.teams.has(assignee.id) && "teams" : assignee.id === me.id && "mine";
  return reason && settings[reason] ? reason : null;
}

/** Return whether a time is within the quiet hours. @param {NotificationSettings["quietHours"]} quiet @param {number} at ms @returns {boolean} */
export function isQuiet(quiet, at) {
  if (!quiet) return false;
  const { weekday, hour, minute } = local(quiet.timeZone, at);
  if (quiet.days.includes(/** @type {any} */ (weekday?.toLowerCase()))) return true;
  if (!quiet.start || !quiet.end) return false;
  const clock = `${hour}:${minute}`;
  return quiet.start < quiet.end ? quiet.start <= clock && clock < quiet.end : clock >= quiet.start || clock < quiet.end;
}

/** Return the parts of a local time. A zone that this browser does not know counts as UTC. @param {string} timeZone @param {number} at @returns {Record<string, string>} */
function local(timeZone, at) {
  const form = (/** @type {string} */ zone) => new Intl.DateTimeFormat("en-GB", { timeZone: zone, weekday: "short", hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
  let chosen;
  try {
    chosen = form(timeZone);
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    chosen = form("UTC");
  }
  return Object.fromEntries(chosen.formatToParts(at).map((part) => [part.type, part.value]));
}
