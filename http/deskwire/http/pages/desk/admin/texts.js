// @ts-check
/** Texts of the administration pages. */
import { many, t as shared } from "../ui/texts.js";
import { t as ticketTexts } from "../ui/ticket-texts.js";

export const t = {
  actions: "Actions", delete: "Delete", edit: "Edit", save: "Save", saveChanges: "Save changes", search: "Search", clearFilters: "Clear filters", none: "–", never: "never", system: "Deskwire",
  yes: "yes", no: "no", commas: shared.commas, me: shared.me,
  actionsFor: (/** @type {string} */ name) => `Actions for ${name}`,
  pages: {
    tickets: "Tickets", scheduled: "Scheduled", contacts: "Contacts", members: "Members", organisation: "Organisation", roles: "Roles", teams: "Teams", projects: "Projects", channels: "Channels", keys: "Server keys",
    credentials: "Machine credentials", sessions: "Your sessions", snippets: "Snippets", health: "Health", account: "Your account", notifications: "Notifications", audit: "Audit trail",
  },

  tickets: ticketTexts,

  contacts: {
    one: "Contact", name: "Name", email: "Email", phone: "Phone", userId: "External ID", id: "ID", tags: "Tags", attributes: "Attributes", updated: "Changed", created: "Created", title: "Subject", status: "Status", lastActivity: "Last activity",
    attributesHint: "One per line, as “name: value”. Numbers, true, false and JSON keep their type.", anyTag: "Any tag", find: "Name, email or external ID",
    none: "No contacts yet", noneText: "Contacts show up here once your backend or an agent starts a conversation.",
    noneFound: (/** @type {string} */ q) => `No contacts for “${q}”`,
    identity: "Contact", about: "IDs and times", browsers: "Browser sessions", browser: "Reported by the browser", block: "Block", blocked: "Blocked", visitor: "visitor", conversations: "Conversations", noConversations: "No conversations yet", noTickets: "No tickets yet", untitled: "No subject",
    statuses: { OPEN: "Open", PENDING: "Pending", CLOSED: "Closed" }, saved: "Contact saved.",
    merge: "Merge…", export: "Export", exported: "The export is in your downloads.", exportFailed: (/** @type {string} */ why) => `Export failed: ${why}`, mergeWhich: "Duplicate contact: name, email or external ID", mergeIt: "Merge", merged: "Contacts merged.",
    mergeText: (/** @type {string} */ from, /** @type {string} */ into) => `All data of ${from} moves to ${into}. This can't be undone.`,
    losesContact: (/** @type {string} */ name) => `The contact ${name}: its ID then refers to the other one`, losesValues: "Its name, email, attributes and memory wherever the other one has a value",
    losesSessions: "The visitor's browser sessions: a merge does not prove who the visitor is, so that browser must not see the other contact's conversations",
    mergeStays: ["All conversations, tickets and survey responses of both"],
    erase: "Erase…", eraseIt: "Erase permanently", erased: "Contact erased.", counting: "Counting the contact's data…",
    eraseText: "This can't be undone by anyone.",
    losesIdentity: (/** @type {string} */ name) => `${name}: name, addresses, attributes and tags`,
    losesConversations: (/** @type {string} */ n) => `Conversations: ${n}, with all messages, notes and files`,
    losesTickets: (/** @type {string} */ n) => `Tickets: ${n}`, losesMemory: (/** @type {string} */ n) => `Memory entries: ${n}`,
    losesElsewhere: "Its browser sessions, survey responses, events, queued deliveries and search entries",
    stays: ["Copies in your own systems", "Backups, until they are overwritten"],
  },

  members: {
    name: "Name", email: "Email", role: "Role", joined: "Joined", you: "you", none: "No members yet", invite: "Invite a member", inviteIt: "Invite", nameHint: "The person can change it.", changeRole: "Change the role", endSessions: "End all sessions", remove: "Remove",
    roles: { owner: "Owner", admin: "Admin", agent: "Agent", viewer: "Viewer" }, roleHint: "Takes effect immediately. Only owners can add owners.",
    actionsFor: (/** @type {string} */ name) => `Actions for ${name}`, invitationOf: (/** @type {string} */ email) => `Invitation of ${email}`, link: "One-time link", linkOf: (/** @type {string} */ name) => `One-time link for ${name}`, done: "Done",
    mailed: (/** @type {string} */ email, /** @type {string} */ end) => `The link is on its way to ${email} by mail. You can also share it yourself: it works once, until ${end}, and is shown only now.`,
    notMailed: (/** @type {string} */ email, /** @type {string} */ end) => `Share this link with ${email} securely. It works once, until ${end}, and is shown only now.`,
    linkLost: "The link was created, but the first response did not reach this page, and it is shown only once. Renew the invitation for another one.",
    invitations: "Open invitations", noInvitations: "No open invitations.", invited: "Invited", expires: "Expires", expired: "expired", renew: "New link", revoke: "Revoke", revokeOne: "Revoke this invitation", revoked: "Invitation revoked.", losesLink: (/** @type {string} */ email) => `The link of ${email} stops working`,
    roleOf: (/** @type {string} */ name) => `Role of ${name}`, roleSaved: "Role changed.", sessions: "Sessions…", sessionsOf: (/** @type {string} */ name) => `Sessions of ${name}`, sessionsEnded: "Sessions ended.", removed: "Member removed.",
    losesSessions: (/** @type {string} */ name) => `All sessions of ${name} end, and ask to sign in again`, losesSession: (/** @type {string} */ client) => `The session of ${client} ends, and asks to sign in again`, staysTokens: "Access tokens that programs use, until they expire",
    newPassword: "Link for a new password…", newPasswordIt: "Create the link", linkReplaces: (/** @type {string} */ name) => `You get a one-time link for ${name}. Earlier links stop working`, staysPassword: "The current password and the sessions, until the link is used", staysMember: "The membership, the role and the teams",
    resetFactors: "Reset second factor…", resetFactorsIt: "Reset", factorsReset: "Second factor reset.", losesFactors: (/** @type {string} */ name) => `The authenticator app, passkeys and recovery codes of ${name} stop working, and all sessions end. Be sure that it is ${name} who asks`,
    losesAccess: (/** @type {string} */ name) => `${name} loses access to this organisation and its projects`, losesTeams: "The team memberships",
    staysWritten: ["Their messages and activity, under their name", "Their account, for other organisations"],
  },

  organisation: {
    about: "Organisation", name: "Name", saved: "Organisation saved.", signIn: "Sign-in of members", save: "Save these rules", factor: "Require a second factor",
    factorHint: "Members without one must set it up before they can go on. A company account counts if its provider asks for a second factor.",
    idle: "Sign out after hours without use", max: "Sign out after hours at the latest", limitHint: "Leave empty for the limit of this service; a longer one has no effect.",
  },

  roles: {
    name: "Name", description: "Description", permissions: "Permissions", members: "Members", builtIn: "built-in", owner: "Only owners can add or remove owners.",
    lead: (/** @type {string} */ role) => `Your role here is ${role}. Built-in roles can't be changed.`, none: "No roles",
    count: (/** @type {number} */ count) => (count === 1 ? "1 permission" : `${count} permissions`),
    show: "Show permissions", copy: "Create a similar role", create: "New role", createIt: "Create", created: "Role created.", saved: "Role saved.", deleted: "Role deleted.", editOne: "Edit role", deleteOne: "Delete this role",
    of: (/** @type {string} */ role) => `Permissions of ${role}`, nothing: "No permissions", losesRole: (/** @type {string} */ role) => `The role ${role}, which no member has`,
    atOnce: (/** @type {number} */ count) => (count === 1 ? "The change applies at once to the member with this role." : `The change applies at once to the ${count} members with this role.`),
    onlyOwn: "You can give only the permissions that you have.",
    areas: { conversations: "Conversations", tickets: "Tickets", surveys: "Surveys", translations: "Translations", contacts: "Contacts", memory: "Memory of contacts", snippets: "Snippets", webhooks: "Webhooks", projects: "Projects", members: "Members" },
    means: {
      "conversations.read": "read conversations, notes and reports", "tickets.read": "read tickets", "surveys.read": "read surveys and responses", "translations.read": "read translations", "contacts.read": "read contacts",
      "memory.read": "read the memory of contacts", "conversations.reply": "reply and write notes", "conversations.manage": "assign, close, tag and snooze", "tickets.manage": "create and change tickets", "contacts.manage": "change and merge contacts",
      "memory.manage": "change the memory of contacts", "snippets.manage": "write snippets", "conversations.delete": "delete conversations, redact messages, erase contacts", "surveys.manage": "edit surveys", "translations.manage": "edit translations",
      "webhooks.manage": "manage webhooks and consumers", "projects.manage": "manage the project, its channels, keys, credentials and workflows", "members.manage": "manage members and teams, and read the audit trail",
    },
  },

  teams: {
    name: "Name", members: "Members", updated: "Changed", create: "New team", created: "Team created.", saved: "Team saved.", deleted: "Team deleted.", editOne: "Edit this team", deleteOne: "Delete this team",
    none: "No teams yet", noneText: "Conversations and tickets can also be assigned to teams.", losesTeam: (/** @type {string} */ name) => `The team ${name}`, losesTickets: "The assignment of its tickets",
    staysConversations: "Its conversations, under its name until reassigned", staysMembers: "Its members",
  },

  keys: {
    label: "Label", key: "Key", lastUsed: "Last used", created: "Created", create: "New server key", createIt: "Create", labelHint: "A note on where it is used.", expires: "Expires", expiresHint: "Leave empty for no expiry.", isExpired: "expired", expiresSoon: "soon", replace: (/** @type {string[]} */ labels) => `${many(labels.length, "key expires", "keys expire")} within a week: ${labels.join(", ")}. Create a new key, and put it in place before then.`, none: "No server keys yet",
    lead: "A server key gives your backend full access to this project. For less access, use a machine credential.", newKey: (/** @type {string} */ label) => `The server key ${label}`, secretText: "Keep it on your server, never in a page or an app.",
    revoke: "Revoke", revokeOne: "Revoke this server key", revoked: "Key revoked.", isRevoked: "revoked", losesCalls: (/** @type {string} */ label) => `Every call with the key ${label} is refused from now on`, losesStreams: "Streams authorized with it end",
    lastCall: (/** @type {string} */ at) => `It was last used ${at}.`, neverUsed: "It was never used.", staysListed: "It stays in this list, and in the audit trail",
  },

  credentials: {
    name: "Name", nameHint: "The program that uses it. The audit trail and activities show this name.", secret: "Secret", permissions: "Permissions", lastUsed: "Last used", expires: "Expires", expiresHint: "Leave empty for no expiry.",
    create: "New credential", createIt: "Create", editOne: "Edit this credential", saved: "Credential saved.", none: "No machine credentials yet", noneText: "A machine credential gives a program exactly the permissions it needs.",
    lead: "A machine credential gives a program access to the API, limited to the permissions that you select.", count: (/** @type {number} */ n) => many(n, "permission", "permissions"),
    rotate: "Rotate the secret", rotateIt: "Create a new secret", rotateText: "The new secret is shown once. The current one stays valid for a while, so that you can update the program without an interruption.", overlap: "The current secret stays valid",
    overlaps: { 0: "no longer", 3600: "for an hour", 86400: "for a day", 604800: "for a week" }, secretOf: (/** @type {string} */ name) => `The secret of ${name}`, secretText: "Keep it where the program reads it, never in a page or an app.",
    revoke: "Revoke", revoked: "Credential revoked.", isRevoked: "revoked", isOver: "expired", losesCalls: (/** @type {string} */ name) => `Every call of ${name} is refused from now on, including those with an earlier secret`,
    losesPermissions: (/** @type {number} */ n) => `It loses its ${many(n, "permission", "permissions")}`,
    losesMade: "Credentials that it created are revoked, and its webhook endpoints are disabled", madeByMachine: "Created by another credential, and revoked with it",
    makers: { left: ["creator has left", (/** @type {string} */ who) => `${who} created it and is no longer a member of the organisation. Rotate or revoke it.`], demoted: ["creator was demoted", (/** @type {string} */ who) => `${who} created it and no longer has all of its permissions. Check whether it still needs them.`] },
  },

  projects: {
    one: "Project", name: "Name", id: "ID", streamKey: "Stream key", created: "Created", thisOne: "current", create: "New project", createIt: "Create", none: "No projects yet", open: "Open", settings: "Settings", about: "IDs and times",
    primaryLanguage: "Primary language", languages: "Languages", retention: "Days until archived conversations are deleted", retentionHint: "Leave empty to keep them forever.", quota: "Upload quota (MiB)", memory: "Memory of contacts", memoryHint: "When this is off, existing entries are kept but not shown.",
    saved: "Project saved.", deleted: "Project deleted.", deleteOne: "Delete this project", deleteText: "Only projects without conversations, contacts and other data can be deleted.",
    losesProject: (/** @type {string} */ name) => `The project ${name} and its settings`, losesKeys: "Its server keys and machine credentials: programs that use them are refused",
  },

  snippets: {
    shortcut: "Shortcut", title: "Title", text: "Text", team: "For", updated: "Changed", language: "Language", languageHint: "Such as en or pt-BR.", everybody: "Everyone", create: "New snippet", created: "Snippet created.", saved: "Snippet saved.",
    deleted: "Snippet deleted.", editOne: "Edit this snippet", deleteOne: "Delete this snippet", none: "No snippets yet", noneText: "Agents insert a snippet into a reply with ; and its shortcut.",
    shortcutHint: "Lower-case letters, digits, dots and dashes.", textHint: "{contact.name} and {agent.name} are replaced by the names.", losesSnippet: (/** @type {string} */ title) => `The snippet “${title}”, for everyone`, staysReplies: "Replies written with it",
  },

  sessions: {
    client: "Browser", thisOne: "current", lastSeen: "Last seen", began: "Signed in", by: "With", ways: /** @type {Record<string, string>} */ ({ password: "Password", passkey: "Passkey", oidc: "Company account", invitation: "One-time link" }), withFactor: (/** @type {string} */ way) => `${way}, second factor`, end: "End", endOne: "End this session", endOthers: "End all others",
    ended: "Session ended.", none: "No sessions",
    losesOne: (/** @type {string} */ client) => [`The session of ${client} ends with its next call, and asks to sign in again.`],
    losesOthers: ["All other sessions end, and ask to sign in again."],
    stays: ["Unsent texts stay in that browser until you sign in there again.", "Access tokens of programs."],
  },

  notifications: {
    browser: "This browser", on: "Turn on in this browser", off: "Turn off in this browser", isOn: "This browser shows notifications while the desk is open in a tab.", isOff: "This browser shows no notifications. The desk still plays its sound and marks its tab.",
    try: "Show an example", tryTitle: "Deskwire", tryBody: "Notifications look like this.",
    insecure: "Notifications need https. This page was opened without it.", unsupported: "This browser does not offer notifications.",
    denied: "Notifications of this site are blocked. Allow them in the settings of the browser, beside the address, and reload the page.", dismissed: "The browser did not get your permission.",
    which: "Notify me of", mine: "Conversations assigned to me", teams: "Conversations assigned to my teams", unassigned: "Conversations assigned to no one", mentions: "Mentions and followed conversations",
    how: "Appearance", preview: "Show the text of messages", previewHint: "Without it, notifications have only the name of the contact.", sound: "Play a sound",
    quiet: "Quiet hours", quietHint: "No notifications and no sound. Leave both times empty for none.", start: "From", end: "Until", days: "Quiet all day", title: "Settings", zone: "Time zone",
    weekdays: { mon: "Monday", tue: "Tuesday", wed: "Wednesday", thu: "Thursday", fri: "Friday", sat: "Saturday", sun: "Sunday" },
    closed: {
      title: "When the desk is closed", on: "Notify me when the desk is closed", off: "Turn off while the desk is closed",
      isOn: "This browser notifies you when the desk is closed, until you sign out. The push service of the browser delivers the notifications; it can't read them.",
      isOff: "This browser does not notify you when the desk is closed.",
      noPush: "This browser can't notify you when the desk is closed. On an iPhone or iPad, add the desk to the Home Screen first.",
      failed: "The browser could not reach its push service. Check its connection and settings, and try again.",
      recent: "Recent notifications", at: "Time", result: "Result", waiting: "Waiting to be sent",
      reasons: {
        accepted: "Sent", accessLost: "Not sent: you no longer have access", deskOpen: "Not sent: the desk was open in this browser", erased: "Not sent: the message was deleted", expired: "Not sent: it was too late",
        gone: "Not sent: the browser no longer accepts notifications", interrupted: "Perhaps not sent: Deskwire was restarted", quietHours: "Not sent: quiet hours", refused: "Not sent: the push service refused it",
        seen: "Not sent: you had seen the conversation", settings: "Not sent: your settings or the conversation had changed", subscriptionEnded: "Not sent: notifications were turned off, or you had signed out",
        superseded: "Not sent: a newer notification replaced it", tooMany: "Not sent: too many were waiting", unanswered: "Perhaps not sent: the push service did not answer", unreadable: "Not sent: turn notifications on again",
      },
    },
    saved: "Notification settings saved.", everywhere: "These settings apply in all your projects and browsers.",
  },

  account: {
    you: "You", email: "Email", name: "Name", nameHint: "Visible to colleagues and customers.", nameSaved: "Name saved.", sessions: "Sessions", seeSessions: "Your active sessions", password: "Password", present: "Current password", new: "New password",
    again: "Confirm new password", changePassword: "Change password", passwordSaved: "Password changed.", notTheSame: "The passwords do not match.",
    identities: "Company accounts", identitiesText: "These accounts sign you in here.", provider: "Provider", since: "Connected", removeIdentity: "Disconnect", removeIdentityOne: "Disconnect this company account", identityRemoved: "Company account disconnected.",
    losesIdentity: (/** @type {string} */ email) => `${email} no longer signs you in, until you connect it again`,
    passwordText: "A new password ends all your other sessions and revokes all your access tokens.",
  },

  audit: {
    at: "Time", actor: "Actor", action: "Action", object: "Target", details: "Details", since: "Since", until: "Until", anyActor: "Any actor", none: "No records yet", noneFound: "No records match these filters",
    /** @type {Record<string, string>} */
    actions: {
      "sign_in.succeeded": "Signed in", "sign_in.failed": "Sign-in failed", "sign_in.proved": "Identity proved again", "sign_in.new_device": "Signed in with a new browser", "access.refused": "Access refused",
      "contact.merged_away": "Contact merged into another", "history.imported": "History imported", "bulk_job.started": "Bulk change started", "bulk_job.undone": "Bulk change undone", "identity.linked": "Company account connected", "identity.unlinked": "Company account disconnected",
    },
    actors: { server_key: "Server key", machine: "Machine credential", operator: "Operator", system: "Deskwire", anonymous: "Not signed in", unknown: "Unknown", user: "User" },
  },

  health: {
    well: "All deliveries succeed.", unwell: "Some deliveries are failing.", refresh: "Refresh", oldestWaiting: "Longest-waiting customer", noneWaiting: "No one is waiting.", open: "Open the conversation", outstanding: "Outstanding", uploads: "Uploads",
    deliveries: (/** @type {number} */ n) => many(n, "delivery", "deliveries"), used: (/** @type {string} */ used, /** @type {string} */ quota) => `${used} of ${quota}`,
    endpoints: "Webhook endpoints", endpoint: "Endpoint", state: "State", lastDelivery: "Last delivery", noEndpoints: "No webhook endpoints yet",
    consumers: "Stream consumers", consumer: "Consumer", channel: "Channel", connected: "connected", away: "away", lag: "Unconfirmed events", noConsumers: "No stream consumers yet",
  },
};
