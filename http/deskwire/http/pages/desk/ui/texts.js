// @ts-check
/** Texts shared by all pages; each group of pages has its own texts. */
import { many, t as desk } from "../core/texts.js";

export { many };

const SIGNED = /** @type {Record<string, string>} */ ({ name: "name", email: "email", phone: "phone", avatar: "picture", attributes: "attributes" });
/** @param {string[]} fields */
const signedNames = (fields) => ["external ID", ...fields.map((each) => SIGNED[each] ?? each)].join(", ");

export const t = {
  me: (/** @type {string} */ name) => `${name} (you)`, commas: "Separated by commas.",
  tryAgain: desk.tryAgain, cancel: desk.cancel, save: desk.save, close: desk.close, copy: desk.copy, copied: desk.copied,
  groups: { work: "Work", insights: "Insights", console: "Console", settings: "Settings" },
  endpointHealth: {
    healthy: "healthy", disabled: "disabled", open: "failing, held back", halfOpen: "testing", paused: "rate-limited us", failing: "failing", dropped: "events lost", unhealthy: "not healthy",
    pausedWhy: (/** @type {string} */ until) => `The receiver asked us to pause until ${until}.`, failingWhy: (/** @type {string} */ since) => `No attempt has succeeded since ${since}.`,
    droppedWhy: (/** @type {number} */ n) => `${many(n, "delivery", "deliveries")} of the last 24 hours failed.`,
  },
  customer: {
    verified: "Verified", verifiedText: (/** @type {string[]} */ signed) => `Your backend has signed this customer's ${signedNames(signed)}. Other fields can be what the customer has typed.`,
    signed: (/** @type {string[]} */ signed) => signedNames(signed),
    visitor: "Unverified visitor", visitorText: "This visitor has not signed in. Name, email and phone are what the visitor has typed.",
    online: "Online", offline: "Offline", page: "On the page", language: "Language", timezone: "Time zone", referrer: "Came from",
    unverified: "Reported by the customer's browser. Nothing of it is verified.",
    sessions: "Browser sessions", noSessions: "No browser or app has signed in.", client: "Device", channel: "Channel", lastUsed: "Last used", began: "Began", end: "End", endOne: "End this session", ended: "Session ended.", is: { verified: "verified", visitor: "visitor", over: "ended" },
    actions: "Actions", endLoses: (/** @type {string} */ client) => [`The session in ${client} ends within a second. The customer signs in again with the next page.`, "A visitor can't continue the conversations of this session in that browser."],
    endStays: ["The contact, and all conversations", "Unsent messages in that browser, until the customer signs in again"],
    deletedChannel: "Deleted channel",
  },
  blocking: {
    badge: "Blocked", by: "Blocked by", service: "your backend", title: "Block the contact", block: "Block", unblock: "Unblock", unblockTitle: "Unblock the contact",
    /** @param {string} name */ effects: (name) => [`New messages, files, ratings and conversations of ${name} are refused.`, "Their chat says that they have been blocked. It doesn't say why or by whom."],
    /** @param {string} name */ stays: (name) => [`All conversations: ${name} can read them`, "Replies of your team, which still arrive"],
    reason: "Reason (optional)", reasonHint: "Only your team and your backend see it.",
    /** @param {string} name */ done: (name) => `${name} is blocked.`,
    /** @param {string} name */ unblocked: (name) => `${name} can write again.`,
  },
  toInbox: "Go to the inbox",
  unknown: "Page not found", unknownText: "The address may belong to another version of the desk.",
  forbidden: "Your role can't open this page",
  /** @param {string} permission */ forbiddenText: (permission) => `It requires the permission ${permission}. An administrator of your organisation can give you a role that includes it.`,
  crashed: "Something went wrong", notFetched: "Couldn't load the page",
  loading: "Loading", failed: "Couldn't load the data", gone: "Not found", goneText: "It was deleted, belongs to another project, or the address is wrong.",
  noMore: "That is all.", showMore: "Show more", loadingMore: "Loading more",
  /** @param {number} n */ shown: (n) => `Showing ${n.toLocaleString()}`,
  /** @param {number} n */ fresh: (n) => `${n.toLocaleString()} new or moved`,
  searching: "Searching older entries",
  /** @param {string} when */ searchedTo: (when) => `Searched back to ${when}.`,
  /** @param {string} at */ asOf: (at) => `As of ${at}: the service is not responding.`,
  more: "More", calls: "API calls of this page", asJson: "As JSON", asCurl: "As curl",
  asCurlText: "Set DESKWIRE_TOKEN to your access token or a machine credential.",
  choose: "Select", chooseAll: "Select all shown", nothingChosen: "Nothing selected",
  required: "Required.", problems: "Couldn't save:",
  confirmWord: (/** @type {string} */ word) => `Type “${word}” to confirm`, wordWrong: (/** @type {string} */ word) => `This is not “${word}”.`,
  willBeGone: "This permanently deletes:", effects: "Effects:", willStay: "This is kept:", doing: "Working…",
  changedMeanwhile: "Someone else changed this", changedText: "Nothing was saved yet. Compare both versions, and choose which one to keep.",
  field: "Field", theirs: "Theirs", mine: "Yours", keepTheirs: "Keep theirs", saveMine: "Save yours", empty: "–",
  asTable: "As a table", asChart: "As a chart", time: "Time", noFigures: "No data for this period.", readPoints: (/** @type {string} */ title) => `Figures of ${title}`,
  secretOnce: "Copy it now: it is shown only once.", secretLost: "It was created, but the first response did not reach this page, and it is shown only once. Revoke it, or create another one.", secret: "Secret",
};
