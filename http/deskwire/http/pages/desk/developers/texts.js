// @ts-check
/** Texts of the pages for developers. */
import { many } from "../ui/texts.js";

const plain = (/** @type {number} */ n) => n.toLocaleString();

export const t = {
  pages: { webhooks: "Webhooks", consumers: "Stream consumers", events: "Live log", history: "Time travel" },
  save: "Save", saved: "Saved", close: "Close", none: "–", yes: "yes", no: "no",
  ms: (/** @type {number} */ ms) => `${plain(ms)} ms`, seconds: (/** @type {string} */ s) => `${s} s`, minutes: (/** @type {number} */ m) => `${plain(m)} min`,
  percent: (/** @type {number} */ share) => (share === 1 ? "100 %" : `${(Math.floor(share * 1000) / 10).toFixed(1)} %`),
  status: { delivered: "delivered", dropped: "dropped", skipped: "skipped", pending: "on its way" },

  webhooks: {
    endpoint: "Endpoint", health: "Health", share: "Arrived, 24 h", waits: "Waits", lastDelivery: "Last delivery", register: "Register an endpoint",
    empty: "No endpoint yet", emptyText: "Register the address of a service of yours, and it is sent every event, signed.",
    registered: "The endpoint is registered", secretText: "Your service checks the signature of each delivery with this secret.",
    arrivedOf: (/** @type {number} */ n, /** @type {number} */ of) => `${plain(n)} of ${plain(of)} arrived`,
    held: (/** @type {number} */ n) => `${plain(n)} held`, missed: (/** @type {number} */ n) => `${plain(n)} missed`,
    heldSince: (/** @type {number} */ n, /** @type {string} */ since) => `${many(n, "delivery is", "deliveries are")} held, the oldest since ${since}`,
    missedSince: (/** @type {number} */ n, /** @type {string} */ since) => `${many(n, "delivery was", "deliveries were")} missed since ${since} and will be sent again`,
  },

  form: {
    url: "Address", urlHint: "https, and a name that this service can reach.", description: "Name", descriptionHint: "What agents see beside their messages, e.g. crm.",
    events: "Events", all: "All events of the contract", allText: "All that happens to conversations, messages and contacts; no typing.", these: "These events",
    contract: "Conversations, messages, contacts", typing: "Typing", extensions: "Beyond the contract", internal: "What agents write for agents",
    catchUp: "Catch up by itself", catchUpText: "What an outage dropped is sent once more when the endpoint is well again.", change: "Change the endpoint", registerIt: "Register",
  },

  endpoint: {
    test: "Send a test", testing: "Sending …", more: "More", rotate: "Replace the secret", disable: "Disable", enable: "Enable", enabled: "It is enabled.", delete: "Delete", deleted: "It was deleted.",
    rotateText: "The endpoint gets a new secret. The one that it has now signs beside the new one for 24 hours, so that your service can be changed without a gap.",
    rotated: "Put it into your service within 24 hours: until then both secrets sign.",
    disableLoses: "What waits for the endpoint now, and what happens until it is enabled again, is skipped.", disableStays: "What was skipped can be recovered once it is enabled, as long as the events are stored.",
    deleteLoses: "The endpoint with its secret: nothing is sent to it any more.", deleteLog: "Its delivery log.", deleteStays: "All events, conversations and other endpoints.",
    nextProbe: "Next probe", secret: "Secret", oldUntil: (/** @type {string} */ until) => `the one before also signs until ${until}`,
  },

  figures: {
    byHour: "Deliveries an hour", byDay: "Deliveries a day", since: "Time", lost: "dropped or skipped",
    days: (/** @type {number} */ n) => (n === 1 ? "24 h" : `${n} days`),
    title: (/** @type {number} */ delivered, /** @type {number} */ lost, /** @type {number} */ held) => `${plain(delivered)} delivered, ${plain(lost)} dropped or skipped, ${plain(held)} on the way or held`,
    latency: (/** @type {number} */ n, /** @type {string} */ p50, /** @type {string} */ p99) => `Of the newest ${many(n, "delivery that arrived", "deliveries that arrived")}, half took at most ${p50}, and 99 % at most ${p99}.`,
  },

  log: {
    title: "Deliveries", filters: "Filters", when: "Time", event: "Event", outcome: "Outcome", attempts: "Attempts", actions: "Actions", conversation: "Conversation", since: "Since", any: "any",
    again: "again", notYet: "No attempt has ended yet.", none: "Nothing was sent yet", noneText: "Send a test, or let something happen.", noneFits: "No delivery fits these filters", clear: "Clear the filters",
    answered: (/** @type {number|null} */ status, /** @type {string} */ took) => `answered ${status} within ${took}`,
  },

  delivery: {
    title: "Delivery", made: "Made", next: "Next attempt", repeats: "Repeats", repeated: "Sent again as", id: "Id", history: "as it was then", noAttempt: "No attempt was made.",
    answer: "Answer (its first KiB)", event: "The event that was sent", noEvent: "The event is no longer stored, or is a test.", later: (/** @type {string} */ after) => `+ ${after}`,
  },

  again: {
    one: "Send again", sentOne: "It is being sent again.", look: "Look", failed: (/** @type {string} */ why) => `It could not be sent again: ${why}`,
    recover: "Recover what did not arrive", recoverShort: "Recover …", recoverText: "Everything that was dropped or skipped in this time is sent again, oldest first.",
    since: "What happened within", hours: (/** @type {number} */ n) => ({ 1: "the last hour", 24: "24 hours" })[n] ?? `${n / 24} days`,
    replay: "Send a conversation again", replayShort: "Replay …", replayText: "All events of one conversation that this endpoint is subscribed to are sent to it again, in their order, also those that had arrived.",
    conversation: "Conversation", conversationHint: "Its id, or the address of the conversation in the desk.", from: "From sequence", to: "To sequence",
    counting: "Counting …", disabled: "The endpoint is disabled. Enable it first.", sendNone: "Send again",
    would: (/** @type {number} */ n) => (n ? `${many(n, "event", "events")} would be sent.` : "Nothing would be sent."), pending: (/** @type {number} */ n) => `${many(n, "event is", "events are")} on the way anyway.`,
    notStored: (/** @type {number} */ n) => `${many(n, "event is", "events are")} no longer stored and can't be sent.`, send: (/** @type {number} */ n) => `Send ${many(n, "event", "events")} again`, sent: (/** @type {number} */ n) => `${many(n, "event is", "events are")} being sent again.`,
  },

  consumers: {
    consumer: "Consumer", state: "State", lag: "Not confirmed", channel: "Hears", confirmed: "Confirmed up to", since: "Holds it since", end: "End",
    upToDate: "up to date", behind: "behind", away: "not connected", ofProject: "all of the project", ofConversation: "the conversation", ofContact: "the contact",
    none: "No consumer has been here", noneText: "A backend that subscribes to the realtime stream appears here, with how far it has confirmed the events.",
    endTitle: (/** @type {string} */ id) => `End the consumer ${id}`, ended: (/** @type {string} */ id) => `${id} was ended.`,
    loses: "Its connection: it is closed with 4009, and this consumer is refused for a minute.", stays: "Its confirmed position: the next consumer of the channel goes on there.",
  },

  events: {
    about: "About", live: "live", waits: "not connected", pause: "Pause", resume: "Go on", paused: (/** @type {number} */ n) => `paused, ${plain(n)} new`, copyCursor: "Copy the newest id",
    none: "Nothing has happened", noneText: "Or nothing that fits the filters. Events are kept for 7 days.", reached: "What became of it", log: "delivery log",
  },

  history: {
    of: (/** @type {string} */ name) => `Time travel: ${name}`, toConversation: "To the conversation", subject: "Subject", show: "Show its history", recent: "Lately", none: "There is no conversation yet",
    noEvents: "No event is stored", noEventsText: "Events are kept for 7 days. What is older can't be shown as it was.",
    slider: "Event", back: "One event back", on: "One event on", present: "Back to now", asItIs: "As it is now", then: (/** @type {number} */ n) => `As it was behind event ${plain(n)}`,
    at: (/** @type {number} */ n, /** @type {number} */ last, /** @type {string} */ when) => `#${plain(n)} of ${plain(last)}${when && `, ${when}`}`,
    fields: { status: "Status", assignee: "Assigned to", title: "Subject", tags: "Tags", snoozedUntil: "Snoozed until", archived: "Archived", visible: "Visible to the contact", ticketId: "Ticket", rating: "Rating", attributes: "Attributes" },
    statuses: { OPEN: "open", PENDING: "pending", CLOSED: "closed" }, nowIs: "now", messages: "Messages", note: "note", redacted: "Redacted", nothingSaid: "Nothing had been said.",
    later: (/** @type {number} */ n) => (n ? `${many(n, "message", "messages")} came later.` : "No message came later."), timeline: "What happened", earlier: "Earlier", goTo: (/** @type {number} */ n) => `Go to event ${plain(n)}`,
    authors: { contact: "Contact", agent: "Agent", bot: "Bot", system: "Deskwire" },
  },

  told: {
    by: (/** @type {string} */ who) => `by ${who}`, workflow: (/** @type {string} */ name) => `the workflow ${name}`, actors: { key: "a server key", machine: "a machine", system: "Deskwire", contact: "the contact" },
    began: "The conversation began", reopened: "Reopened", closed: (/** @type {string} */ by) => `Closed by ${by}`, closers: { agent: "an agent", bot: "a bot", system: "Deskwire" },
    assignedTo: (/** @type {string} */ name) => `Assigned to ${name}`, unassigned: "Assigned to nobody", updated: (/** @type {string} */ what) => `Changed: ${what}`,
    wrote: (/** @type {string} */ who, /** @type {string} */ text) => `${who} wrote “${text}”`, redacted: "A message was redacted", deleted: "A message was deleted",
    asked: (/** @type {string} */ name, /** @type {string} */ text) => `The workflow ${name} asked “${text}”`, ended: (/** @type {string} */ name, /** @type {string} */ how) => `The workflow ${name} ${how}`,
    endings: { completed: "came to its end", handed_off: "handed over to people" },
    byStep: (/** @type {string} */ flow, /** @type {number} */ action, /** @type {number|null} */ version) => `By step ${action} of ${flow}${version === null ? "" : `, version ${version}`}`,
    afterStep: (/** @type {string} */ text, /** @type {string} */ flow, /** @type {any} */ action) => `After its step ${action} of ${flow}${text && `: “${text}”`}`,
    tagged: (/** @type {string} */ name) => `tagged ${name}`, untagged: (/** @type {string} */ name) => `tag ${name} removed`, snoozed: (/** @type {string} */ until) => `snoozed until ${until}`, woke: "woken up",
    status: { OPEN: "set to open", PENDING: "set to pending", CLOSED: "closed" }, named: (/** @type {string} */ title) => `named “${title}”`, archived: "archived", unarchived: "taken out of the archive",
    shown: "shown to the contact", linked: "a ticket was linked", unlinked: "the ticket was unlinked",
  },
};
