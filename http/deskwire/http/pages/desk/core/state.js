// @ts-check
/**
 * The client's state after each event: pure functions on immutable values.
 *
 * An event changes a row only if its id is greater than the row's `asOf`, so repeated and reordered events change nothing.
 */
import { foldName } from "./folding.js";
/** @import { AgentMessage, Envelope, Filter, Gone, Guard, Outgoing, Presence, Row } from "./types.js" */

/** The smallest event id. */
export const NO_EVENT = "evt_" + "0".repeat(26);
const PREVIEW_MAX = 160;
/** Return whether an event only says that the customer has got or read messages. @param {Envelope} event */
const isReceipt = ({ type, data }) => type === "message.reached" || type === "message.seen" || (type === "conversation.updated" && String(data.changed) === "unread" && !data.conversation.unread);

/**
 * @typedef {object} State
 * @property {string} me  the user's id
 * @property {ReadonlyMap<string, Row>} rows
 * @property {ReadonlyMap<string, Loaded>} threads
 * @property {ReadonlyMap<string, Gone>} gone
 * @property {ReadonlySet<string>} wanted  conversations in events whose rows must be loaded
 * @property {ReadonlyMap<string, string>} marks  the newest event of each resource that is reloaded when it changes, by name
 * @property {ReadonlySet<string>} touched  rows changed by the last step
 *
 * The loaded part of a thread, without gaps, oldest first. `tail`: added by events since the newest page was requested.
 * @typedef {object} Loaded
 * @property {readonly AgentMessage[]} messages
 * @property {ReadonlySet<string>} ids
 * @property {ReadonlySet<string>} tail
 */

/** Return the empty state. @param {string} me @returns {State} */
export const emptyState = (me) => ({ me, rows: new Map(), threads: new Map(), gone: new Map(), wanted: new Set(), marks: new Map(), touched: new Set() });

/** Return the state after an event. @param {State} state @param {Envelope} event @returns {State} */
export const apply = (state, event) => applyAll(state, [event]);

/** Return the state after several events. @param {State} state @param {readonly Envelope[]} events @returns {State} */
export function applyAll(state, events) {
  const step = new Step(state);
  for (const event of events) step.take(event);
  return step.after();
}

/** Return the state with rows of a response; rows older than the known ones are ignored. @param {State} state @param {readonly Row[]} given @returns {State} */
export function withRows(state, given) {
  const step = new Step(state);
  for (const row of given) step.give(row);
  return step.after();
}

/** A step from one state to the next; copies on write. */
class Step {
  /** @param {State} before */
  constructor(before) {
    this.before = before;
    this.rows = new Map(before.rows);
    this.threads = new Map(before.threads);
    this.gone = new Map(before.gone);
    this.wanted = new Set(before.wanted);
    this.marks = new Map(before.marks);
    /** @type {Set<string>} */
    this.touched = new Set();
  }

  /** @returns {State} */
  after() {
    const { rows, threads, gone, wanted, marks, touched } = this;
    return { me: this.before.me, rows, threads, gone, wanted, marks, touched };
  }

  /** @param {Row} row */
  give(row) {
    const known = this.rows.get(row.id);
    this.wanted.delete(row.id);
    if (this.gone.has(row.id) || (known && known.asOf > row.asOf)) return;
    this.rows.set(row.id, row);
    this.touched.add(row.id);
  }

  /** @param {Envelope} event */
  take(event) {
    const { type, data } = event;
    if (type === "conversation.deleted" || data?.changed?.includes("deleted")) this.remove(event);
    else if (type === "contact.updated") this.rename(event);
    else if (type.startsWith("ticket.")) this.ticket(event);
    else if (type === "contact.changed") this.mark(`contact:${data.contact.id}`, event);
    else if (type === "memory.changed") this.mark(`contact:${data.contactId}`, event);
    else if (type === "settings.changed") this.mark(`settings:${data.what}`, event);
    else if (data?.conversation) this.conversation(event);
  }

  /** @param {string} name @param {Envelope} event */
  mark(name, event) {
    if ((this.marks.get(name) ?? NO_EVENT) < event.id) this.marks.set(name, event.id);
  }

  /** @param {Envelope} event */
  conversation(event) {
    const { conversation, message } = event.data;
    const { id } = conversation;
    if (this.gone.has(id)) return;
    if (isReceipt(event)) return this.receipt(id, event);
    this.mark(`conversation:${id}`, event);
    if (message) this.say(id, message, event.sequence);
    for (const gone of event.data.redactedMessageIds ?? []) this.hide(id, gone, event);
    for (const gone of event.data.deletedMessageIds ?? []) this.hide(id, gone);
    const known = this.rows.get(id) ?? newRow(event);
    if (!known) this.wanted.add(id);
    else if (known.asOf < event.id) {
      this.rows.set(id, withEvent(known, event, this.before.me));
      this.touched.add(id);
    }
  }

  /** Apply a receipt. It moves no row, and causes no request. @param {string} id @param {Envelope} event */
  receipt(id, event) {
    const known = this.rows.get(id);
    if (known && known.asOf < event.id) this.rows.set(id, withEvent(known, event, this.before.me));
  }

  /** @param {string} id @param {any} message @param {number|null} sequence */
  say(id, message, sequence) {
    const thread = this.threads.get(id);
    if (!thread || thread.ids.has(message.id)) return;
    const said = { internal: false, sequence, seenAt: null, ...message };
    const ids = new Set(thread.ids).add(message.id);
    const tail = new Set(thread.tail).add(message.id);
    this.threads.set(id, { messages: [...thread.messages, said], ids, tail });
  }

  /** Clear a redacted message until its threads are reloaded; without the event, remove it. @param {string} id @param {string} gone @param {Envelope} [event] */
  hide(id, gone, event) {
    for (const [shown, thread] of this.threads) {
      if (shown !== id && !thread.ids.has(gone)) continue;
      if (event) this.mark(`redacted:${shown}`, event);
      this.threads.set(shown, { ...thread, messages: thread.messages.flatMap((each) => (each.id !== gone ? [each] : event ? [{ ...each, text: "", attachments: [], redactedAt: event.createdAt }] : [])) });
    }
  }

  /** @param {Envelope} event */
  remove(event) {
    const { id } = event.data.conversation;
    if (this.rows.delete(id)) this.touched.add(id);
    this.threads.delete(id);
    this.wanted.delete(id);
    this.gone.set(id, { reason: event.data.reason, at: event.createdAt });
  }

  /** @param {Envelope} event */
  rename(event) {
    const { contact } = event.data;
    this.mark(`contact:${contact.id}`, event);
    for (const row of this.rows.values()) {
      if (row.contact.id !== contact.id || row.asOf >= event.id) continue;
      const { id, userId, name, email } = contact;
      this.rows.set(row.id, { ...row, contact: { id, userId, name, email }, asOf: event.id });
      this.touched.add(row.id);
    }
  }

  /** @param {Envelope} event */
  ticket(event) {
    const { ticket } = event.data;
    if (ticket.conversationId) this.mark(`conversation:${ticket.conversationId}`, event);
    if (ticket.contactId) this.mark(`contact:${ticket.contactId}`, event);
    this.mark("tickets", event);
  }
}

/** Return the row of a new conversation; undefined if the event does not contain enough. @param {Envelope} event @returns {Row|undefined} */
function newRow({ type, sequence, data }) {
  if (type !== "conversation.created" || sequence !== 1 || data.conversation.splitFrom) return undefined; // the event does not say whether that one waits
  return {
    ...data.conversation,
    asOf: NO_EVENT,
    visible: true,
    tags: [],
    snoozedUntil: null,
    waitingSince: null,
    noAnswerNeededSince: null,
    messages: 0,
    lastMessage: null,
    contactReachedIndex: null,
    contactReachedAt: null,
    contactSeenIndex: null,
    contactSeenAt: null,
    networkLogsAt: null,
    workflow: null,
    followers: [],
    mine: { seenIndex: null, unread: 0, mentioned: false, unseenMentions: 0 },
  };
}

/** Return the row after a newer event. @param {Row} row @param {Envelope} event @param {string} me @returns {Row} */
function withEvent(row, event, me) {
  const { type, data, createdAt: at, id: asOf } = event;
  /** @type {Row} */
  const next = { ...row, mergedInto: undefined, merged: undefined, splitFrom: undefined, splitInto: undefined, ...data.conversation, mine: row.mine, asOf };
  switch (type) {
    case "conversation.created":
      return { ...next, visible: true };
    case "message.created":
      return withMessage(next, row, data.message);
    case "conversation.closed":
      return { ...next, waitingSince: null, snoozedUntil: null };
    case "conversation.reopened":
      return { ...next, snoozedUntil: null };
    case "conversation.updated":
      return data.changed.includes("unread") && !next.unread ? { ...next, contactSeenIndex: row.messages - 1, contactSeenAt: at } : next;
    case "message.reached":
      return { ...next, contactReachedIndex: data.index, contactReachedAt: data.at };
    case "message.seen":
      return { ...next, contactSeenIndex: data.index, contactSeenAt: data.at };
    case "workflow.step.presented":
      return { ...next, workflow: row.workflow && { ...row.workflow, waiting: true } };
    case "workflow.completed":
      return { ...next, workflow: null };
    case "note.created":
      if (data.mentioned?.includes(me)) next.mine = { ...row.mine, mentioned: true, unseenMentions: row.mine.unseenMentions + 1 };
      return next;
    default:
      return next;
  }
}

/** Return the row after a message. One that is already counted changes no count. @param {Row} next @param {Row} row @param {AgentMessage} message @returns {Row} */
function withMessage(next, row, message) {
  const { author, index } = message;
  if (index === null || index < row.messages) return next;
  const asks = author.type === "contact";
  const unseen = asks && index > (row.mine.seenIndex ?? -1);
  const waiting = author.type === "system" || (asks && row.waitingSince) ? row.waitingSince : asks ? message.createdAt : null;
  return {
    ...next,
    messages: index + 1,
    waitingSince: waiting,
    noAnswerNeededSince: author.type === "system" ? row.noAnswerNeededSince : null,
    snoozedUntil: asks ? null : row.snoozedUntil,
    lastMessage: preview(message),
    mine: unseen ? { ...row.mine, unread: row.mine.unread + 1 } : row.mine,
  };
}

/** Return a message as rows preview it. Lengths are in code points. @param {AgentMessage} message */
export function preview({ id, author, text, internal, createdAt }) {
  const words = text.length > PREVIEW_MAX ? [...text.slice(0, 2 * PREVIEW_MAX)].slice(0, PREVIEW_MAX).join("") : text;
  return { id, author, text: words, internal: internal ?? false, createdAt };
}

/** Return whether a row has a tag, compared by its folded name. @param {Row} row @param {string} tag */
export const hasTag = (row, tag) => row.tags.some((each) => foldName(each) === foldName(tag));

/** Return whether a row belongs to the list of a filter. @param {Row} row @param {Filter} filter @param {string} me @returns {boolean} */
export function matches(row, filter, me) {
  const { status, assignee, team, unread, tag, snoozed, visible, waiting, sort, mentioned, following } = filter;
  const of = row.assignee;
  if ((row.mergedInto && !mentioned) || row.archived !== (filter.archived ?? (mentioned && row.archived) ?? false) || (status && !status.includes(row.status))) return false;
  if (mentioned !== undefined && row.mine.mentioned !== mentioned) return false;
  if (following !== undefined && row.followers.includes(me) !== following) return false;
  if (assignee === "none" && of) return false;
  if (assignee === "me" && of?.id !== me) return false;
  if (assignee && assignee !== "none" && assignee !== "me" && of?.id !== assignee) return false;
  if (team && of?.id !== team) return false;
  if (unread !== undefined && row.mine.unread > 0 !== unread) return false;
  if (tag && !hasTag(row, tag)) return false;
  if (snoozed !== undefined && (row.snoozedUntil !== null) !== snoozed) return false;
  if (visible !== undefined && row.visible !== visible) return false;
  if (waiting !== undefined && (row.waitingSince !== null) !== waiting) return false;
  return sort !== "waiting" || row.waitingSince !== null;
}

/** Return the sort key of a row: a time, then the id. @param {Row} row @param {Filter} filter @returns {string} */
export function sortKey(row, { sort }) {
  const at = sort === "waiting" ? row.waitingSince : sort === "created" ? row.createdAt : (row.lastMessageAt ?? row.createdAt);
  return `${at ?? ""} ${row.id}`;
}

/** Return the comparator of sort keys. The longest wait is the largest. @param {Filter} filter @returns {(a: string, b: string) => number} */
export function comparison({ sort, order }) {
  const ascending = (order === "asc") !== (sort === "waiting");
  return (a, b) => (a === b ? 0 : a < b === ascending ? -1 : 1);
}

/**
 * Return the list after some rows have changed.
 * @param {readonly string[]} ids  in order
 * @param {Iterable<string>} touched  ids of changed, added or removed rows
 * @param {{filter: Filter, me: string, bound: string|null, rowOf: (id: string) => Row|undefined}} list
 *   bound: the key of the last loaded row, null if all are; later rows wait for their page.
 * @returns {string[]}
 */
export function placeRows(ids, touched, { filter, me, bound, rowOf }) {
  const changed = new Set(touched);
  const before = comparison(filter);
  const next = ids.filter((id) => !changed.has(id));
  for (const id of changed) {
    const row = rowOf(id);
    if (!row || !matches(row, filter, me)) continue;
    const key = sortKey(row, filter);
    if (bound !== null && before(key, bound) > 0) continue;
    let low = 0;
    let high = next.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      const other = rowOf(/** @type {string} */ (next[middle]));
      if (other && before(sortKey(other, filter), key) < 0) low = middle + 1;
      else high = middle;
    }
    next.splice(low, 0, id);
  }
  return next;
}

/**
 * Return a list while its order is held: rows keep their places, and only removed ones leave.
 * @param {readonly string[]} held @param {readonly string[]} live @param {(id: string) => boolean} leaves
 * @returns {{ids: string[], fresh: number}} fresh: the number of moved and new rows.
 */
export function holdOrder(held, live, leaves) {
  const ids = held.filter((id) => !leaves(id));
  const shown = new Set(ids);
  const common = live.filter((id) => shown.has(id));
  const places = new Map(common.map((id, index) => [id, index]));
  let moved = 0;
  let furthest = -1;
  for (const id of ids) {
    const place = places.get(id);
    if (place === undefined || place < furthest) moved += 1;
    else furthest = place;
  }
  return { ids, fresh: live.length - common.length + moved };
}

/** Return a held list with a newly loaded page appended. @param {readonly string[]} held @param {readonly string[]} live @param {readonly Row[]} page @returns {string[]} */
export function appendPage(held, live, page) {
  const [shown, there] = [new Set(held), new Set(live)];
  return [...held, ...page.map((each) => each.id).filter((id) => there.has(id) && !shown.has(id))];
}

/** How long a row shows a stored change without a confirming event. */
const PENDING_MAX_MS = 10_000;

/** Return the row with pending outbox entries that no event has confirmed. @param {Row} row @param {readonly Outgoing[]} entries @param {number} now @returns {Row} */
export function withPending(row, entries, now) {
  const counts = (/** @type {Outgoing} */ { state, storedAt, storedAsOf }) =>
    state === "stored" ? row.asOf <= (storedAsOf ?? "") && now - (storedAt ?? 0) < PENDING_MAX_MS : state === "held" || state === "kept" || state === "sending";
  return entries.reduce((shown, each) => (counts(each) ? { ...shown, ...each.expect, mine: { ...shown.mine, ...each.expect?.mine } } : shown), row);
}

/** @param {string|null|undefined} at */
const time = (at) => (at ? Date.parse(at) : null);

/** Return whether a conversation still has the fields of a guard; missing fields match anything. @param {Row} now @param {Guard} left */
export const matchesGuard = (now, left) =>
  (left.status === undefined || now.status === left.status) &&
  (!left.closedAt || !now.closedAt || time(now.closedAt) === time(left.closedAt)) &&
  (left.assignee === undefined || now.assignee?.id === left.assignee?.id) &&
  (left.title === undefined || now.title === left.title) &&
  (left.archived === undefined || now.archived === left.archived) &&
  (left.tags === undefined || now.tags.join("\n") === left.tags.join("\n")) &&
  (left.snoozedUntil === undefined || time(now.snoozedUntil) === time(left.snoozedUntil)) &&
  (left.noAnswerNeededSince === undefined || time(now.noAnswerNeededSince) === time(left.noAnswerNeededSince));

/** Return the online agents after a presence event. @param {ReadonlyMap<string, Presence>} known @param {Presence[]} agents @returns {ReadonlyMap<string, Presence>} */
export function applyPresence(known, agents) {
  const next = new Map(known);
  for (const agent of agents) {
    if (agent.online) next.set(agent.id, agent);
    else next.delete(agent.id);
  }
  return next;
}

/** The reserved prefix of the external ids of visitors. */
const VISITOR = "visitor-";
/** Return whether a contact is a visitor whose identity was never signed. @param {{userId?: string}|null|undefined} contact */
export const isVisitor = (contact) => Boolean(contact?.userId?.startsWith(VISITOR));
