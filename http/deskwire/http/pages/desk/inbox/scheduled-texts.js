// @ts-check
/** Texts of scheduled replies. */

export const t = {
  title: "Send later", inAnHour: "In an hour", tomorrow: "Tomorrow morning", monday: "Monday morning", date: "A date and time", schedule: "Schedule",
  /** @param {string} zone */ zone: (zone) => `Times are in your time zone, ${zone}.`,
  inPast: "This time is in the past.", tooFar: "Choose a time within a year.",
  /** @param {string} name */ unlessReplied: (name) => `Don't send it if ${name || "the customer"} writes first`,
  unlessRepliedText: "Then it comes back to you with the reason.",
  /** @param {string} at @param {string} zone */ at: (at, zone) => `Scheduled for ${at} (${zone})`,
  sending: "Sending…", onlyUnless: "Not sent if the customer writes first.", closed: "Not sent while the conversation is closed.",
  label: "Scheduled reply", now: "Send now", edit: "Edit", cancel: "Cancel", cancelled: "Cancelled. The reply won't be sent.", undo: "Undo",
  notScheduled: (/** @type {string} */ why) => `Couldn't schedule it again: ${why}`,
  page: "Scheduled", none: "Nothing is scheduled", noneText: "Write a reply, then choose “Send later” beside the Send button.",
  refused: "Not sent", next: "Will be sent", loading: "Loading what you have scheduled", failed: "Couldn't load what you have scheduled",
  /** @param {string} name */ to: (name) => `To ${name}`, note: "Note", files: (/** @type {number} */ n) => (n === 1 ? "1 file" : `${n} files`),
};
