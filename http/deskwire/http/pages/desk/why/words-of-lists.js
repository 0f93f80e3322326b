// @ts-check
/** What is said of a conversation and a list that it is in, or is not. */

export const t = {
  in: (/** @type {string} */ view) => `Why it is in “${view}”`, notIn: (/** @type {string} */ view) => `Why it is not in “${view}”`, all: "Every conversation that is not archived is in it.", travel: "Time travel",
  archived: "It is archived.", status: { OPEN: "It is open.", PENDING: "It is pending.", CLOSED: "It is closed." },
  unassigned: "It is assigned to nobody.", assignedToYou: "It is assigned to you.", assignedTo: (/** @type {string} */ name) => `It is assigned to ${name}.`,
  ofTeam: (/** @type {string} */ name) => `It is assigned to the team ${name}.`, notOfTeam: (/** @type {string} */ name) => `It is not assigned to the team ${name}.`,
  unread: (/** @type {number} */ n) => `You have not seen ${n.toLocaleString()} of its messages.`, allSeen: "You have seen all of it.",
  tagged: (/** @type {string} */ tag) => `It has the tag ${tag}.`, notTagged: (/** @type {string} */ tag) => `It does not have the tag ${tag}.`,
  snoozed: (/** @type {string} */ until) => `It is snoozed until ${until}.`, notSnoozed: "It is not snoozed.", visible: "The contact sees it.", hidden: "The contact does not see it yet.",
  waits: (/** @type {string} */ since) => `Its contact has waited for an answer since ${since}.`, answered: "Its contact does not wait for an answer.",
};
