// @ts-check
/** Texts of the first view: the list of conversations and the frame. Those of its empty list are in texts-lazy.js. A text with variables is a function. */

const plural = new Intl.PluralRules("en");
/** @param {number} n @param {string} one @param {string} other */
export const many = (n, one, other) => `${n.toLocaleString()} ${plural.select(n) === "one" ? one : other}`;

export const t = {
  name: "Deskwire", close: "Close", cancel: "Cancel", save: "Save", tryAgain: "Try again", copy: "Copy", copied: "Copied", more: "More",
  back: "Back", show: "Show", notices: "Notices", skip: "Skip to the conversation", noTitle: "No subject", you: "You", visitor: (/** @type {string} */ id) => `Visitor ${id}`,
  /** @param {string} label @param {string} keys */ withKeys: (label, keys) => (keys ? `${label} (${keys})` : label),
  /** @param {string} request */ request: (request) => `Request ${request}`,

  now: "now",
  /** @param {number} n */ minutes: (n) => `${n}m`,
  /** @param {number} n */ hours: (n) => `${n}h`,
  /** @param {number} n */ days: (n) => `${n}d`,
  today: "Today", yesterday: "Yesterday",

  views: {
    label: "Views", open: "Navigation", mine: "Mine", mentions: "Mentions", following: "Following", waiting: "Waiting", unassigned: "Unassigned", team: "Teams", snoozed: "Snoozed", all: "All", saved: "Saved view",
    search: "Search results",
  },
  /** @param {number} n @param {number} bound */ count: (n, bound) => (n >= bound ? `${bound.toLocaleString()}+` : n.toLocaleString()),
  /** @param {{value: number, more: boolean}} count */ countSome: ({ value, more }) => value.toLocaleString() + (more ? "+" : ""),

  side: {
    actions: "Search or do…", project: "Project", settings: "Settings", notifications: "Notifications", shortcuts: "Keyboard shortcuts", signOut: "Sign out",
    me: "You and your settings", status: "Connection",
  },

  connection: { gapBanner: "You were offline for over 7 days, so everything was reloaded." },

  list: {
    label: "Conversations", search: "Search", searchPlaceholder: "Search conversations, contacts, tickets",
    clear: "Clear search", start: "New conversation",
    /** @param {string} how */ waits: (how) => (how === "now" ? "waiting" : `waiting ${how}`),
    draft: "Draft", mentioned: "mentions you", writes: "typing", visitor: "visitor",
    /** @param {string} until */ snoozed: (until) => `until ${until}`,
    /** @param {number} n */ fresh: (n) => `${n} new`,
    /** @param {number} n */ selected: (n) => `${n.toLocaleString()} selected`,
    selectNone: "Clear selection", loading: "Loading conversations", failed: "Couldn't load the conversations",
    selectRow: "Select", unreadRow: "Unread", notListed: "No conversation to select.",
    /** @param {string} name */ revealed: (name) => `${name} was scrolled out of view. Press the key again.`,
  },

  actions: {
    notHere: "No conversation is open or selected.", notAllowed: "Your role here is read-only.",
    /** @param {string} text */ unplaced: (text) => `Your text was not entered, because no field opened: “${text}”`,
  },

  thread: {
    none: "No conversation is open", noneText: "Select one with j and k, and open it with Enter.", bot: "Bot",
    status: { OPEN: "open", PENDING: "pending", CLOSED: "closed" },
  },
  commands: { assignMe: "Assign to me", assign: "Assign to…", close: "Close", noAnswer: "No answer needed", pending: "Set to pending", snooze: "Snooze", tag: "Tag" },
  signIn: {
    offline: "The service is not responding. Try again in a moment.", starting: "Opening the desk",
    crashed: "Something went wrong", crashedText: "Your drafts are kept. Reload the page. If it keeps happening, send us this:",
    reload: "Reload the page",
  },
};
