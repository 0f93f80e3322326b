// @ts-check
/** Texts of bulk jobs. */
import { many } from "../core/texts.js";

const of = (/** @type {number} */ n) => many(n, "conversation", "conversations");

export const t = {
  selectAll: (/** @type {string} */ total) => `Select all ${total ? `${total} ` : ""}in this view`,
  allSelected: (/** @type {string} */ total) => `All ${total ? `${total} ` : ""}in this view`,
  notForAll: "This works for selected conversations only, not for all of a view.",
  tagsOfAll: "Tags of all in this view",
  failed: (/** @type {string} */ why) => `Couldn't change all conversations: ${why}`,
  /** A change in progress. @type {Record<string, (n: number) => string>} */
  doing: {
    close: (n) => `Closing ${of(n)}`, reopen: (n) => `Reopening ${of(n)}`, pending: (n) => `Setting ${of(n)} to pending`,
    assign: (n) => `Assigning ${of(n)}`, unassign: (n) => `Unassigning ${of(n)}`, tag: (n) => `Changing the tags of ${of(n)}`,
    snooze: (n) => `Snoozing ${of(n)}`, wake: (n) => `Unsnoozing ${of(n)}`, archive: (n) => `Archiving ${of(n)}`, unarchive: (n) => `Unarchiving ${of(n)}`,
  },
  /** A change in words, for its undo. @type {Record<string, (n: number) => string>} */
  what: {
    close: (n) => `Close ${of(n)}`, reopen: (n) => `Reopen ${of(n)}`, pending: (n) => `Set ${of(n)} to pending`,
    assign: (n) => `Assign ${of(n)}`, unassign: (n) => `Unassign ${of(n)}`, tag: (n) => `Change the tags of ${of(n)}`,
    snooze: (n) => `Snooze ${of(n)}`, wake: (n) => `Unsnooze ${of(n)}`, archive: (n) => `Archive ${of(n)}`, unarchive: (n) => `Unarchive ${of(n)}`,
  },
  /** The outcome; follows a number. @type {Record<string, string>} */
  done: { close: "closed", reopen: "reopened", pending: "set to pending", assign: "assigned", unassign: "unassigned", tag: "with changed tags", snooze: "snoozed", wake: "no longer snoozed", archive: "archived", unarchive: "no longer archived" },
  undoing: (/** @type {string} */ what) => `Undoing “${what}”`,
  progress: (/** @type {number} */ n) => `${n.toLocaleString()} done`,
  count: (/** @type {number} */ n) => n.toLocaleString(),
  skipped: (/** @type {number} */ n) => `${n.toLocaleString()} skipped`,
  undone: (/** @type {number} */ n) => `${n.toLocaleString()} restored`,
  kept: (/** @type {number} */ n) => `${n.toLocaleString()} not restored`,
  left: (/** @type {number} */ n) => `${n.toLocaleString()} left as they were`,
  cancelled: "Cancelled", why: "Why", undo: "Undo", cancel: "Cancel", dismiss: "Dismiss", bar: "Bulk change", example: "Show one",
  /** Why a job stopped. @type {Record<string, string>} */
  stopped: { permission_lost: "Stopped: you may no longer change conversations", assignee_gone: "Stopped: the assignee is no longer there", snooze_ended: "Stopped: the end of the snooze has passed" },
  stop: "Stopped",
  /** Why conversations were skipped, or not restored. @type {Record<string, string>} */
  reasons: {
    unchanged: "Nothing to change", conversation_closed: "Closed", conversation_deleted: "Deleted in the meantime", tag_limit_reached: "Would have more than 20 tags",
    changed_since: "Changed by someone else since", assignee_gone: "The former assignee is no longer there", internal_error: "Something went wrong in the service",
  },
};
