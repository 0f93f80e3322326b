// @ts-check
/** Why a conversation is in a list, or is not: each condition of the list's filter, and whether it holds. */
import { hasTag } from "../core/state.js";
import { t } from "./list-reason-texts.js";
/** @import { Filter, Row } from "../core/types.js" */

/** @typedef {{holds: boolean, text: string}} Reason */

/**
 * Return the conditions of a filter, and whether a row fulfils each. Equal to `matches` of state.js.
 * @param {Row} row @param {Filter} filter @param {string} me @param {{team?: string, listed?: boolean, time: (at: string) => string}} words  team: the name of the filter's team; listed: whether the service lists it
 * @returns {Reason[]}
 */
export function listReasons(row, filter, me, { team = "", listed = false, time }) {
  /** @type {Reason[]} */
  const found = [];
  const add = (/** @type {boolean} */ holds, /** @type {string} */ text) => found.push({ holds, text });
  const of = row.assignee;
  if (row.archived && !filter.mentioned) add(false, t.archived);
  if (filter.status) add(filter.status.includes(row.status), t.status[/** @type {"OPEN"} */ (row.status)] ?? row.status);
  if (filter.assignee === "none") add(!of, of ? t.assignedTo(of.name) : t.unassigned);
  else if (filter.assignee) {
    const wanted = filter.assignee === "me" ? me : filter.assignee;
    add(of?.id === wanted, !of ? t.unassigned : of.id === me ? t.assignedToYou : t.assignedTo(of.name));
  }
  if (filter.team) add(of?.id === filter.team, of?.id === filter.team ? t.ofTeam(of?.name ?? team) : t.notOfTeam(team));
  if (filter.unread !== undefined) add(row.mine.unread > 0 === filter.unread, row.mine.unread > 0 ? t.unread(row.mine.unread) : t.allSeen);
  if (filter.mentioned !== undefined) add(row.mine.mentioned === filter.mentioned, row.mine.mentioned ? t.mentioned : t.notMentioned);
  if (filter.following !== undefined) add(row.followers.includes(me) === filter.following, row.followers.includes(me) ? t.followed : t.notFollowed);
  if (filter.tag) add(hasTag(row, filter.tag), hasTag(row, filter.tag) ? t.tagged(filter.tag) : t.notTagged(filter.tag));
  if (filter.snoozed !== undefined) add((row.snoozedUntil !== null) === filter.snoozed, row.snoozedUntil ? t.snoozed(time(row.snoozedUntil)) : t.notSnoozed);
  if (filter.visible !== undefined) add(row.visible === filter.visible, row.visible ? t.visible : t.hidden);
  const waits = row.waitingSince !== null;
  if (filter.waiting !== undefined || filter.sort === "waiting") add((filter.waiting === undefined || waits === filter.waiting) && (filter.sort !== "waiting" || waits), row.waitingSince ? t.waits(time(row.waitingSince)) : row.noAnswerNeededSince ? t.unneeded : t.answered);
  if (filter.where) add(listed, listed ? t.further : t.notFurther);
  return found;
}
