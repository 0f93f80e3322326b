// @ts-check
/** Texts of the administration pages. */
import { many } from "../ui/texts.js";

export const t = {
  actions: "Actions", delete: "Delete", edit: "Edit", save: "Save", saveChanges: "Save changes", search: "Search", clearFilters: "Clear filters", none: "–", never: "never", system: "Deskwire",
  yes: "yes", no: "no", commas: "With commas between them.",
  me: (/** @type {string} */ name) => `${name} (you)`,
  actionsFor: (/** @type {string} */ name) => `Actions for ${name}`,
  pages: {
    tickets: "Tickets", contacts: "Contacts", members: "Members", roles: "Roles", teams: "Teams", projects: "Projects", keys: "Server keys",
    credentials: "Machine credentials", sessions: "Your sessions", snippets: "Snippets", health: "Health", account: "Your account", audit: "Audit trail",
  },

  tickets: {
    one: "Ticket", title: "Title", description: "Description", status: "Status", priority: "Priority", type: "Type", assignee: "Assigned to", user: "Person", team: "Team", tags: "Tags",
    snoozed: "Snoozed until", snooze: "Snooze", wake: "Wake up now", conversation: "Conversation", contact: "Contact", updated: "Changed", createdAt: "Created", lastActivity: "Last activity",
    id: "Id", nobody: "Nobody", noTeam: "No team", anybody: "Assigned to anybody", anyStatus: "Any status", anyPriority: "Any priority", anyTag: "Any tag", sort: "Order", find: "Find tickets",
    statuses: { OPEN: "Open", IN_PROGRESS: "In progress", DONE: "Done" }, priorities: { LOW: "Low", MEDIUM: "Medium", HIGH: "High", URGENT: "Urgent" },
    sorts: { "": "Newest first", updatedAt: "Last changed", priority: "Most urgent", lastActivity: "Last activity" },
    durations: { 3600: "for an hour", 86400: "for a day", 604800: "for a week", 0: "Wake up now" },
    until: (/** @type {string} */ at) => `until ${at}`,
    create: "New ticket", createIt: "Create it", conversationHint: "The id of a conversation, if the ticket is about one. It takes over the contact.",
    none: "There are no tickets", noneText: "Create one here, or from a conversation.", filtered: "No ticket fits these filters",
    selected: (/** @type {number} */ n) => `${many(n, "ticket", "tickets")} chosen`,
    giveUser: "Give to a person …", giveTeam: "Give to a team …", setPriority: "Set the priority …",
    bulkDone: (/** @type {number} */ n, /** @type {number} */ same, /** @type {number} */ gone) => [`${many(n, "ticket was", "tickets were")} changed`, same ? `${same} had it already` : "", gone ? `${gone} are gone` : ""].filter(Boolean).join(", ") + ".",
    bulkFailed: (/** @type {string} */ why) => `The tickets were not changed: ${why}`,
    fields: "Ticket", about: "Belongs to", activity: "Activity", noActivity: "Nothing was changed yet.", openConversation: "Open the conversation", openContact: "Open the contact",
    saved: "The ticket is changed.", unchanged: "Nothing was changed.", deleted: "The ticket is deleted.", deleteOne: "Delete this ticket",
    meantime: (/** @type {string} */ who) => `${who} changed this ticket while you write. Your fields stay as they are.`, compare: "Compare",
    goneMeantime: (/** @type {string} */ who) => `${who} deleted this ticket. What you have written stays here until you leave.`,
    losesTicket: (/** @type {string} */ title) => `The ticket “${title}”`,
    losesLog: "Its log of who changed what", staysConversation: "Its conversation and its contact", didCreate: "created it", didChange: "changed it",
  },

  contacts: {
    one: "Contact", name: "Name", email: "E-mail", phone: "Phone", userId: "Your id", id: "Id", tags: "Tags", attributes: "Attributes", updated: "Changed", created: "Created", title: "Title", status: "Status", lastActivity: "Last activity",
    attributesHint: "A line for each: its name, a colon, its value. Numbers, true, false and JSON are taken as what they are.", anyTag: "Any tag", find: "Name, e-mail or your id",
    none: "There are no contacts", noneText: "They appear when your backend or an agent starts a conversation with one.",
    noneFound: (/** @type {string} */ q) => `No contact has “${q}”`,
    identity: "Contact", about: "Ids and times", conversations: "Conversations", noConversations: "There is no conversation.", noTickets: "There is no ticket.", untitled: "No title",
    statuses: { OPEN: "Open", PENDING: "Pending", CLOSED: "Closed" }, saved: "The contact is changed.",
    merge: "Merge …", export: "Export", exported: "The export is in your downloads.", exportFailed: (/** @type {string} */ why) => `The export failed: ${why}`, mergeWhich: "Which contact is the same person? Name, e-mail or your id", mergeIt: "Merge them", merged: "The contacts are one now.",
    mergeText: (/** @type {string} */ from, /** @type {string} */ into) => `Everything of ${from} will belong to ${into}. This can't be taken back.`,
    losesContact: (/** @type {string} */ name) => `The contact ${name}: its id leads to the other one from then on`, losesValues: "Its name, e-mail, attributes and memory where the other one has a value of its own",
    mergeStays: ["All conversations, tickets and survey responses of both"],
    erase: "Erase …", eraseIt: "Erase for good", erased: "The contact is erased.", counting: "Counting what belongs to this contact …",
    eraseText: "Nobody can bring this back: not you, not whoever runs the service.",
    losesIdentity: (/** @type {string} */ name) => `${name}: name, addresses, attributes and tags`,
    losesConversations: (/** @type {string} */ n) => `Conversations: ${n}, with all messages, notes and files`,
    losesTickets: (/** @type {string} */ n) => `Tickets: ${n}`, losesMemory: (/** @type {string} */ n) => `Memory entries: ${n}`,
    losesElsewhere: "Its survey responses, its events and waiting deliveries, and what the search knows of it",
    stays: ["What your own systems have received before", "Backups, until they are overwritten"],
  },

  members: {
    name: "Name", email: "E-mail", role: "Role", joined: "Joined", you: "you", none: "There are no members", add: "Add a member", addIt: "Add", changeRole: "Change the role", endSessions: "End the sessions", remove: "Remove",
    roles: { owner: "Owner", admin: "Admin", agent: "Agent", viewer: "Viewer" }, roleHint: "It holds from the next call on. Only an owner can make an owner.",
    actionsFor: (/** @type {string} */ name) => `Actions for ${name}`, added: (/** @type {string} */ name) => `${name} is a member.`,
    passwordOf: (/** @type {string} */ name) => `One-time password of ${name}`, passwordText: (/** @type {string} */ email, /** @type {string} */ end) => `Give it to ${email} on a way that you trust. The first sign-in asks for a password of their own, and has to come before ${end}.`,
    roleOf: (/** @type {string} */ name) => `Role of ${name}`, roleSaved: "The role is changed.", sessionsEnded: "The sessions are ended.", removed: "The member is removed.",
    losesSessions: (/** @type {string} */ name) => `Every session of ${name}, in all browsers: each asks for the password again`, staysTokens: "Access tokens that programs use, until they expire",
    newPassword: "Give a new password …", newPasswordIt: "Give it", losesPassword: (/** @type {string} */ name) => `The password that ${name} has now`, staysMember: "The membership, the role and the teams",
    losesAccess: (/** @type {string} */ name) => `${name} may no longer see this organisation and its projects`, losesTeams: "The place in its teams",
    staysWritten: ["What they wrote and did, under their name", "Their account, for other organisations"],
  },

  roles: {
    permission: "Permission", yes: "yes", no: "no", owner: "Owners can besides make and remove other owners.",
    lead: (/** @type {string} */ role) => `Your role here is ${role}. The roles are fixed; what each may do is the same in every organisation.`,
    means: {
      "conversations.read": "read conversations, notes and reports", "tickets.read": "read tickets", "surveys.read": "read surveys and responses", "translations.read": "read translations", "contacts.read": "read contacts",
      "memory.read": "read what is remembered of contacts", "conversations.reply": "answer and write notes", "conversations.manage": "assign, close, tag and snooze", "tickets.manage": "create and change tickets", "contacts.manage": "change and merge contacts",
      "memory.manage": "change what is remembered", "snippets.manage": "write snippets", "conversations.delete": "delete conversations, redact messages, erase contacts", "surveys.manage": "edit surveys", "translations.manage": "edit translations",
      "webhooks.manage": "manage webhooks and consumers", "projects.manage": "manage the project, its keys, credentials and workflows", "members.manage": "manage members and teams, and read the audit trail",
    },
  },

  teams: {
    name: "Name", members: "Members", updated: "Changed", create: "New team", created: "The team is there.", saved: "The team is changed.", deleted: "The team is deleted.", editOne: "Edit this team", deleteOne: "Delete this team",
    none: "There are no teams", noneText: "Conversations and tickets can be assigned to a team, too.", losesTeam: (/** @type {string} */ name) => `The team ${name}`, losesTickets: "The assignment of its tickets",
    staysConversations: "Its conversations, under its name until they are assigned anew", staysMembers: "Its members",
  },

  keys: {
    label: "Label", key: "Key", lastUsed: "Last used", created: "Created", create: "New server key", createIt: "Create it", labelHint: "Where it will be used, for those who read this list later.", none: "There are no server keys",
    lead: "With a server key your backend may do everything in this project. A machine credential may be given less.", newKey: (/** @type {string} */ label) => `The server key ${label}`, secretText: "Keep it on your server, never in a page or an app.",
    revoke: "Revoke", revokeOne: "Revoke this server key", revoked: "The key is revoked.", isRevoked: "revoked", losesCalls: (/** @type {string} */ label) => `Every call with the key ${label} is refused from now on`, losesStreams: "The streams that it authorized end",
    lastCall: (/** @type {string} */ at) => `It was last used ${at}.`, neverUsed: "It was never used.", staysListed: "It stays in this list, and in the audit trail",
  },

  credentials: {
    name: "Name", nameHint: "The program that uses it. The audit trail and activities show this name.", secret: "Secret", permissions: "Permissions", lastUsed: "Last used", expires: "Expires", expiresHint: "Nothing: it does not expire.",
    create: "New credential", createIt: "Create it", editOne: "Edit this credential", saved: "The credential is changed.", none: "There are no machine credentials", noneText: "A program gets one with exactly the permissions that it needs.",
    lead: "A machine credential opens the API to a program, with the permissions that you give it and no more.", count: (/** @type {number} */ n) => many(n, "permission", "permissions"),
    rotate: "Rotate the secret", rotateIt: "Make a new secret", rotateText: "There will be a new secret, shown once. The present one is good beside it for a while, so that the program can be changed without a break.", overlap: "The present secret is good",
    overlaps: { 0: "no longer", 3600: "for an hour", 86400: "for a day", 604800: "for a week" }, secretOf: (/** @type {string} */ name) => `The secret of ${name}`, secretText: "Keep it where the program reads it, never in a page or an app.",
    revoke: "Revoke", revoked: "The credential is revoked.", isRevoked: "revoked", isOver: "expired", losesCalls: (/** @type {string} */ name) => `Every call of ${name} is refused from now on, also with a former secret`,
    losesPermissions: (/** @type {number} */ n) => `Its ${many(n, "permission", "permissions")}`,
    losesMade: "The credentials that it created are revoked, and its webhook endpoints are disabled", madeByMachine: "Created by another credential, and ends with it",
    makers: { left: ["creator has left", (/** @type {string} */ who) => `${who} created it and is no longer a member of the organisation. Rotate or revoke it.`], demoted: ["creator was demoted", (/** @type {string} */ who) => `${who} created it and no longer has all of its permissions. Check whether it is still to have them.`] },
  },

  projects: {
    one: "Project", name: "Name", id: "Id", streamKey: "Stream key", created: "Created", thisOne: "this one", create: "New project", createIt: "Create it", none: "There are no projects", open: "Work in it", settings: "Settings", about: "Ids and times",
    primaryLanguage: "Primary language", languages: "Languages", retention: "Days until archived conversations are deleted", retentionHint: "Nothing: they are kept for good.", quota: "Room for uploads, in MiB", memory: "Memory of contacts", memoryHint: "What is remembered stays when this is off, and is not shown.",
    saved: "The project is changed.", deleted: "The project is deleted.", deleteOne: "Delete this project", deleteText: "Only a project without conversations, contacts and other data can be deleted.",
    losesProject: (/** @type {string} */ name) => `The project ${name} and its settings`, losesKeys: "Its server keys and machine credentials: programs that use them are refused",
  },

  snippets: {
    shortcut: "Shortcut", title: "Title", text: "Text", team: "For", updated: "Changed", language: "Language", languageHint: "Such as en or pt-BR.", everybody: "Everybody", create: "New snippet", created: "The snippet is there.", saved: "The snippet is changed.",
    deleted: "The snippet is deleted.", editOne: "Edit this snippet", deleteOne: "Delete this snippet", none: "There are no snippets", noneText: "A snippet is a text that agents put into a reply with ; and its shortcut.",
    shortcutHint: "Small letters, digits, dots and dashes.", textHint: "{contact.name} and {agent.name} become the names.", losesSnippet: (/** @type {string} */ title) => `The snippet “${title}”, for everybody who uses it`, staysReplies: "Replies that were written with it",
  },

  sessions: {
    client: "Browser", thisOne: "this one", lastSeen: "Last seen", began: "Signed in", end: "End", endOne: "End this session", endOthers: "End all others",
    ended: "Ended.", none: "There are no sessions", unknown: "Unknown client",
    losesOne: (/** @type {string} */ client) => [`The session of ${client}: its next call is refused, and it asks for the password.`],
    losesOthers: ["Every session but this one: each asks for the password again."],
    stays: ["What was written there and not sent is kept in that browser until you sign in there again.", "Access tokens that programs use."],
  },

  account: {
    you: "You", email: "E-mail", name: "Name", nameHint: "Colleagues and customers see it.", nameSaved: "Your name is changed.", sessions: "Sessions", seeSessions: "Where you are signed in", password: "Password", present: "Present password", new: "New password",
    again: "New password once more", changePassword: "Change the password", passwordSaved: "The password is changed.", notTheSame: "This is not the same as the new password.",
    passwordText: "A new password ends all of your other sessions and revokes all of your access tokens.",
  },

  audit: {
    at: "When", actor: "Who", action: "What", object: "To what", details: "Details", since: "Since", until: "Until", anybody: "Anybody", none: "Nothing is recorded yet", noneFound: "No record fits these filters",
    actors: { server_key: "Server key", machine: "Machine credential", operator: "Operator", system: "Deskwire", anonymous: "Nobody signed in", unknown: "Unknown", user: "User" },
  },

  health: {
    well: "Everything is delivered.", unwell: "Something does not arrive.", refresh: "Look again", oldestWaiting: "Longest wait", nobodyWaits: "Nobody waits for an answer.", open: "Open the conversation", outstanding: "Outstanding", uploads: "Uploads",
    deliveries: (/** @type {number} */ n) => many(n, "delivery", "deliveries"), used: (/** @type {string} */ used, /** @type {string} */ quota) => `${used} of ${quota}`,
    endpoints: "Webhook endpoints", endpoint: "Endpoint", state: "State", lastDelivery: "Last delivery", noEndpoints: "There is no webhook endpoint.",
    consumers: "Stream consumers", consumer: "Consumer", channel: "Channel", connected: "connected", away: "away", lag: "Events behind", noConsumers: "Nobody has consumed the stream.",
  },
};
