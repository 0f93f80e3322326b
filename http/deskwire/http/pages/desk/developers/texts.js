// @ts-check
/** Texts of the pages for developers. */
import { many } from "../ui/texts.js";

const plain = (/** @type {number} */ n) => n.toLocaleString();

export const t = {
  pages: { webhooks: "Webhooks", consumers: "Stream consumers", events: "Live log", history: "Time travel" },
  save: "Save", saved: "Saved", close: "Close", none: "–", yes: "yes", no: "no",
  ms: (/** @type {number} */ ms) => `${plain(ms)} ms`, seconds: (/** @type {string} */ s) => `${s} s`, minutes: (/** @type {number} */ m) => `${plain(m)} min`,
  percent: (/** @type {number} */ share) => (share === 1 ? "100 %" : `${(Math.floor(share * 1000) / 10).toFixed(1)} %`),
  status: { delivered: "delivered", dropped: "dropped", skipped: "skipped", pending: "pending" },

  webhooks: {
    endpoint: "Endpoint", health: "Health", share: "Success rate (24 h)", waits: "Backlog", lastDelivery: "Last delivery", register: "Register an endpoint",
    empty: "No endpoints yet", emptyText: "Register the address of your service to receive every event, signed.",
    registered: "Endpoint registered", secretText: "Your service verifies the signature of each delivery with this secret.",
    arrivedOf: (/** @type {number} */ n, /** @type {number} */ of) => `${plain(n)} of ${plain(of)} delivered`,
    held: (/** @type {number} */ n) => `${plain(n)} held`, missed: (/** @type {number} */ n) => `${plain(n)} missed`,
    heldSince: (/** @type {number} */ n, /** @type {string} */ since) => `${many(n, "delivery is", "deliveries are")} held, the oldest since ${since}`,
    missedSince: (/** @type {number} */ n, /** @type {string} */ since) => `${many(n, "delivery was", "deliveries were")} missed since ${since} and will be retried`,
  },

  form: {
    url: "Address", urlHint: "An https address that this service can reach.", description: "Name", descriptionHint: "Shown to agents beside their messages, e.g. crm.",
    events: "Events", all: "All events of the contract", allText: "All conversation, message and contact events except typing.", these: "These events",
    contract: "Conversations, messages, contacts", typing: "Typing", extensions: "Beyond the contract", internal: "Agents' notes",
    catchUp: "Catch up automatically", catchUpText: "Resend missed events once the endpoint recovers.", change: "Edit the endpoint", registerIt: "Register",
  },

  endpoint: {
    test: "Send a test", testing: "Sending…", more: "More", rotate: "Replace the secret", disable: "Disable", enable: "Enable", enabled: "Endpoint enabled.", delete: "Delete", deleted: "Endpoint deleted.",
    rotateText: "The endpoint gets a new secret. Deliveries are also signed with the old one for 24 hours, so that you can update your service without a gap.",
    rotated: "Update your service within 24 hours. Until then, both secrets sign.",
    disableLoses: "Queued events, and events until the endpoint is enabled again, are skipped.", disableStays: "Skipped events can be recovered once it is enabled, as long as they are stored.",
    deleteLoses: "The endpoint and its secret: it gets no further events.", deleteLog: "Its delivery log.", deleteStays: "All events, conversations and other endpoints.",
    nextProbe: "Next probe", apiVersion: "Event version", secret: "Secret", oldUntil: (/** @type {string} */ until) => `the previous one also signs until ${until}`,
  },

  figures: {
    byHour: "Deliveries per hour", byDay: "Deliveries per day", since: "Time", lost: "dropped or skipped",
    days: (/** @type {number} */ n) => (n === 1 ? "24 h" : `${n} days`),
    title: (/** @type {number} */ delivered, /** @type {number} */ lost, /** @type {number} */ held) => `${plain(delivered)} delivered, ${plain(lost)} dropped or skipped, ${plain(held)} pending`,
    latency: (/** @type {number} */ n, /** @type {string} */ p50, /** @type {string} */ p99) => `Latency of the newest ${many(n, "successful delivery", "successful deliveries")}: median ${p50}, 99th percentile ${p99}.`,
  },

  log: {
    title: "Deliveries", filters: "Filters", when: "Time", event: "Event", outcome: "Outcome", attempts: "Attempts", actions: "Actions", conversation: "Conversation", since: "Since", any: "any",
    again: "again", notYet: "No attempt has finished yet.", none: "No deliveries yet", noneText: "Send a test, or wait for an event.", noneFits: "No deliveries match these filters", clear: "Clear filters",
    answered: (/** @type {number|null} */ status, /** @type {string} */ took) => `answered ${status} within ${took}`,
  },

  delivery: {
    title: "Delivery", made: "Created", next: "Next attempt", repeats: "Repeats", repeated: "Sent again as", id: "ID", history: "conversation at that time", noAttempt: "No attempts.",
    answer: "Response (first KiB)", event: "Event data", noEvent: "The event is no longer stored, or was a test.", later: (/** @type {string} */ after) => `+ ${after}`,
  },

  again: {
    one: "Send again", sentOne: "Sending again.", look: "Show", failed: (/** @type {string} */ why) => `Couldn't send it again: ${why}`,
    recover: "Recover failed deliveries", recoverShort: "Recover…", recoverText: "All deliveries dropped or skipped in this period are sent again, oldest first.",
    since: "Period", hours: (/** @type {number} */ n) => ({ 1: "the last hour", 24: "24 hours" })[n] ?? `${n / 24} days`,
    replay: "Send a conversation again", replayShort: "Replay…", replayText: "All events of one conversation are sent to this endpoint again, in order, including those already delivered.",
    conversation: "Conversation", conversationHint: "Its ID, or its address in the desk.", from: "From sequence", to: "To sequence",
    counting: "Counting…", disabled: "The endpoint is disabled. Enable it first.", sendNone: "Send again",
    would: (/** @type {number} */ n) => (n ? `${many(n, "event", "events")} would be sent.` : "No events would be sent."), pending: (/** @type {number} */ n) => `${many(n, "event is", "events are")} already pending.`,
    notStored: (/** @type {number} */ n) => `${many(n, "event is", "events are")} no longer stored.`, send: (/** @type {number} */ n) => `Send ${many(n, "event", "events")} again`, sent: (/** @type {number} */ n) => `Sending ${many(n, "event", "events")} again.`,
  },

  consumers: {
    consumer: "Consumer", state: "State", lag: "Unconfirmed", channel: "Channel", confirmed: "Confirmed up to", since: "Connected since", end: "End",
    upToDate: "up to date", behind: "behind", away: "not connected", ofProject: "the project", ofConversation: "the conversation", ofContact: "the contact",
    none: "No consumers yet", noneText: "Backends that subscribe to the realtime stream show up here, with the position they have confirmed.",
    endTitle: (/** @type {string} */ id) => `End the consumer ${id}`, ended: (/** @type {string} */ id) => `${id} was disconnected.`,
    loses: "Its connection is closed with 4009, and this consumer is refused for a minute.", stays: "Its confirmed position: the next consumer of the channel continues there.",
  },

  events: {
    about: "About", live: "live", waits: "not connected", pause: "Pause", resume: "Resume", paused: (/** @type {number} */ n) => `paused, ${plain(n)} new`, copyCursor: "Copy latest event ID",
    none: "No events", noneText: "No stored event matches the filters. Events are kept for 7 days.", reached: "Deliveries", log: "delivery log",
  },

  history: {
    of: (/** @type {string} */ name) => `Time travel: ${name}`, toConversation: "To the conversation", subject: "Subject", show: "Show history", recent: "Recent", none: "No conversations yet",
    noEvents: "No stored events", noEventsText: "Events are kept for 7 days. The state before that can't be shown.",
    slider: "Event", back: "Previous event", on: "Next event", present: "Back to present", asItIs: "Present", then: (/** @type {number} */ n) => `As of event ${plain(n)}`,
    at: (/** @type {number} */ n, /** @type {number} */ last, /** @type {string} */ when) => `#${plain(n)} of ${plain(last)}${when && `, ${when}`}`,
    fields: { status: "Status", assignee: "Assigned to", title: "Subject", tags: "Tags", snoozedUntil: "Snoozed until", archived: "Archived", visible: "Visible to the contact", ticketId: "Ticket", rating: "Rating", attributes: "Attributes" },
    statuses: { OPEN: "open", PENDING: "pending", CLOSED: "closed" }, nowIs: "now", messages: "Messages", note: "note", redacted: "Redacted", nothingSaid: "No messages.",
    later: (/** @type {number} */ n) => (n ? `${many(n, "later message", "later messages")}.` : "No later messages."), timeline: "Timeline", earlier: "Earlier", goTo: (/** @type {number} */ n) => `Go to event ${plain(n)}`,
    authors: { contact: "Contact", agent: "Agent", bot: "Bot", system: "Deskwire" },
  },

  eventText: {
    by: (/** @type {string} */ who) => `by ${who}`, workflow: (/** @type {string} */ name) => `the workflow ${name}`, actors: { key: "a server key", machine: "a machine", system: "Deskwire", contact: "the contact" },
    began: "The conversation started", reopened: "Reopened", closed: (/** @type {string} */ by) => `Closed by ${by}`, closers: { agent: "an agent", bot: "a bot", system: "Deskwire" },
    assignedTo: (/** @type {string} */ name) => `Assigned to ${name}`, unassigned: "Unassigned", updated: (/** @type {string} */ what) => `Changed: ${what}`,
    wrote: (/** @type {string} */ who, /** @type {string} */ text) => `${who} wrote “${text}”`, reached: (/** @type {number} */ n) => `the customer's browser received the messages up to no. ${n}`, seen: (/** @type {number} */ n) => `the customer saw the messages up to no. ${n}`, redacted: "A message was redacted", deleted: "A message was deleted",
    asked: (/** @type {string} */ name, /** @type {string} */ text) => `The workflow ${name} asked “${text}”`, ended: (/** @type {string} */ name, /** @type {string} */ how) => `The workflow ${name} ${how}`,
    endings: { completed: "completed", handed_off: "handed over to an agent" },
    byStep: (/** @type {string} */ flow, /** @type {number} */ action, /** @type {number|null} */ version) => `By step ${action} of ${flow}${version === null ? "" : `, version ${version}`}`,
    afterStep: (/** @type {string} */ text, /** @type {string} */ flow, /** @type {any} */ action) => `After its step ${action} of ${flow}${text && `: “${text}”`}`,
    tagged: (/** @type {string} */ name) => `tagged ${name}`, untagged: (/** @type {string} */ name) => `tag ${name} removed`, snoozed: (/** @type {string} */ until) => `snoozed until ${until}`, woke: "unsnoozed",
    status: { OPEN: "set to open", PENDING: "set to pending", CLOSED: "closed" }, named: (/** @type {string} */ title) => `subject changed to “${title}”`, archived: "archived", unarchived: "unarchived",
    unneeded: "marked as needing no answer", needed: "marked as waiting for an answer",
    shown: "shown to the contact", linked: "a ticket was linked", unlinked: "the ticket was unlinked",
  },
};
