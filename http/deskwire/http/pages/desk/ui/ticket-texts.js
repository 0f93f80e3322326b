// @ts-check
/** Texts about tickets, for their pages and for the panel beside a conversation. */
import { many } from "./texts.js";

export const t = {
  one: "Ticket", title: "Title", description: "Description", status: "Status", priority: "Priority", type: "Type", assignee: "Assigned to", user: "Person", team: "Team", tags: "Tags",
  snoozed: "Snoozed until", snooze: "Snooze", wake: "Unsnooze", conversation: "Conversation", contact: "Contact", updated: "Changed", createdAt: "Created", lastActivity: "Last activity",
  id: "ID", unassigned: "Unassigned", noTeam: "No team", anyAssignee: "Any assignee", anyStatus: "Any status", anyPriority: "Any priority", anyTag: "Any tag", sort: "Order", find: "Find tickets",
  statuses: { OPEN: "Open", IN_PROGRESS: "In progress", DONE: "Done" }, priorities: { LOW: "Low", MEDIUM: "Medium", HIGH: "High", URGENT: "Urgent" },
  sorts: { "": "Newest first", updatedAt: "Last changed", priority: "Most urgent", lastActivity: "Last activity" },
  durations: { 3600: "for an hour", 86400: "for a day", 604800: "for a week", 0: "Unsnooze" },
  until: (/** @type {string} */ at) => `until ${at}`,
  create: "New ticket", createIt: "Create", conversationHint: "The ID of the conversation that the ticket is about, if any. The ticket takes its contact.",
  none: "No tickets yet", noneText: "Create one here, or from a conversation.", filtered: "No tickets match these filters",
  selected: (/** @type {number} */ n) => `${many(n, "ticket", "tickets")} selected`,
  giveUser: "Assign to a person…", giveTeam: "Assign to a team…", setPriority: "Set priority…",
  bulkDone: (/** @type {number} */ n, /** @type {number} */ same, /** @type {number} */ gone) => [`${many(n, "ticket", "tickets")} changed`, same ? `${same} unchanged` : "", gone ? `${gone} deleted` : ""].filter(Boolean).join(", ") + ".",
  bulkFailed: (/** @type {string} */ why) => `Couldn't change the tickets: ${why}`,
  fields: "Ticket", about: "Related", activity: "Activity", noActivity: "No changes yet.", openConversation: "Open the conversation", openContact: "Open the contact",
  saved: "Ticket saved.", unchanged: "Nothing to change.", deleted: "Ticket deleted.", deleteOne: "Delete this ticket",
  meantime: (/** @type {string} */ who) => `${who} changed this ticket while you were editing. Your fields are unchanged.`, compare: "Compare",
  goneMeantime: (/** @type {string} */ who) => `${who} deleted this ticket. Your text stays here until you leave.`,
  losesTicket: (/** @type {string} */ title) => `The ticket “${title}”`,
  losesLog: "Its activity log", staysConversation: "Its conversation and its contact", didCreate: "created it", didChange: "changed it",
  createHere: "New ticket from this conversation", created: "Ticket created.", open: "Open the ticket", linkOne: "Link a ticket…", linkHere: "Link a ticket", unlink: "Unlink", undo: "Undo",
  aboutContact: (/** @type {string} */ name) => `The ticket is linked to this conversation and about ${name}.`,
  noTicket: "No ticket.", others: "Other tickets of this contact", noneOfContact: "This contact has no tickets. Type to search all.",
  hasConversation: "has a conversation", linkedElsewhere: "This ticket is linked to another conversation. Unlink it there first.",
  linked: (/** @type {string} */ title) => `Linked to “${title}”.`, unlinked: (/** @type {string} */ title) => `“${title}” is no longer linked.`, failed: (/** @type {string} */ why) => `Couldn't change the ticket: ${why}`,
  linkConversation: "Link a conversation", noConversation: "No conversation is linked.", findConversation: "Search conversations", noConversations: "No matching conversations.", alreadyLinked: "has a ticket", hasTicket: "This conversation has another ticket. Unlink that first.",
};
