// @ts-check
/** Texts shared by all pages; each group of pages has its own texts. */
import { many, t as desk } from "../core/texts.js";

export { many };

export const t = {
  tryAgain: desk.tryAgain, cancel: desk.cancel, save: desk.save, close: desk.close, copy: desk.copy, copied: desk.copied,
  groups: { work: "Work", learn: "Learn", console: "Console", settings: "Settings" },
  endpointHealth: {
    healthy: "healthy", disabled: "disabled", open: "failing, held back", halfOpen: "being probed", paused: "asked for a pause", failing: "failing", dropped: "events lost", unhealthy: "not healthy",
    pausedWhy: (/** @type {string} */ until) => `It asked for a pause until ${until}.`, failingWhy: (/** @type {string} */ since) => `No attempt has succeeded since ${since}.`,
    droppedWhy: (/** @type {number} */ n) => `${many(n, "delivery", "deliveries")} of the last 24 hours did not arrive.`,
  },
  toInbox: "Go to the inbox", pages: "Pages",
  unknown: "There is no such page", unknownText: "The address may be that of another version of the desk.",
  forbidden: "Your role may not open this page",
  /** @param {string} permission */ forbiddenText: (permission) => `It needs the permission ${permission}. An administrator of your organisation can give you a role that has it.`,
  crashed: "Something in this page failed", notFetched: "The page could not be fetched",
  loading: "Loading", failed: "It could not be loaded", gone: "There is nothing here", goneText: "It was deleted, it is in another project, or the address is wrong.",
  noMore: "That is all.", showMore: "Show more", loadingMore: "Loading more",
  /** @param {number} n */ shown: (n) => `${n.toLocaleString()} shown`,
  /** @param {number} n */ fresh: (n) => `${n.toLocaleString()} new or moved`,
  searching: "Searching further back",
  /** @param {string} when */ searchedTo: (when) => `Looked back to ${when}.`,
  /** @param {string} at */ asOf: (at) => `As of ${at}: the service does not answer.`,
  more: "More", calls: "Calls of this page", asJson: "As JSON", asCurl: "As curl",
  asCurlText: "Set DESKWIRE_TOKEN to an access token of yours, or to a machine credential.",
  choose: "Choose", chooseAll: "Choose all that are shown", nothingChosen: "Nothing is chosen",
  required: "This is needed.", problems: "This was not accepted",
  confirmWord: (/** @type {string} */ word) => `Type “${word}” to go on`, wordWrong: (/** @type {string} */ word) => `This is not “${word}”.`,
  willBeGone: "This will be gone, for good:", willStay: "This stays:", doing: "Working …",
  changedMeanwhile: "Somebody changed this meanwhile", changedText: "Nothing was saved yet. Compare, and choose whose values stay.",
  field: "Field", theirs: "Theirs", mine: "Yours", keepTheirs: "Keep theirs", saveMine: "Save yours", empty: "–",
  asTable: "As a table", asChart: "As a chart", time: "Time", noFigures: "There are no figures for this time.",
  secretOnce: "This is shown once. Copy it now: nobody can show it again.", secretLost: "It was made, but the first answer did not reach this page, and it is not shown twice. Revoke it or make another one.", secret: "Secret",
};
