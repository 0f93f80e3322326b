// @ts-check
/** The sentences of the pages that a project is run with. */

export const t = {
  actions: "Actions",
  pages: {
    tickets: "Tickets", contacts: "Contacts", members: "Members", roles: "Roles", teams: "Teams", projects: "Projects", keys: "Server keys",
    credentials: "Machine credentials", sessions: "Your sessions", snippets: "Snippets", health: "Health",
  },

  sessions: {
    client: "Browser", thisOne: "this one", lastSeen: "Last seen", began: "Signed in", end: "End", endOne: "End this session", endOthers: "End all others",
    ended: "Ended.", none: "There are no sessions", unknown: "Unknown client",
    losesOne: (/** @type {string} */ client) => [`The session of ${client}: its next call is refused, and it asks for the password.`],
    losesOthers: ["Every session but this one: each asks for the password again."],
    stays: ["What was written there and not sent is kept in that browser until you sign in there again.", "Access tokens that programs use."],
  },
};
