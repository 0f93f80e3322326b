// @ts-check
/** The state of customers' browsers: their sessions, presence, and receipts of messages. Pure functions on immutable values. */
import { isVisitor } from "./state.js";
/** @import { BrowserPage, ContactSession, Envelope, Row } from "./types.js" */

/**
 * @typedef {object} Customer  a contact's browsers
 * @property {readonly ContactSession[]} sessions  newest first
 * @property {boolean} online
 * @property {BrowserPage|null} page  the page that a browser shows now; null if none is online, or none reported it
 * @property {number} changes  how many events of presence have come, so that an older response does not replace them
 */
/** @typedef {ReadonlyMap<string, Customer>} Customers  by the contact's id */

/** @type {Customer} */
const NOTHING = { sessions: [], online: false, page: null, changes: 0 };

/** Return the customers after an event; only loaded ones change. @param {Customers} known @param {Pick<Envelope, "type"|"createdAt"|"data">} event @returns {Customers} */
export function withCustomerEvent(known, { type, createdAt, data }) {
  if (type === "contact.session.started") return change(known, data.contact.id, (of) => withStarted(of, data.session, createdAt));
  if (type === "contact.presence") return change(known, data.contactId, (of) => ({ ...withPresence(of, data), changes: of.changes + 1 }));
  return known;
}

/** Return the customers with the sessions of a response. A session that an event has added since the request stays. @param {Customers} known @param {string} contactId @param {readonly ContactSession[]} sessions @returns {Customers} */
export function withSessions(known, contactId, sessions) {
  const before = known.get(contactId) ?? NOTHING;
  const ids = new Set(sessions.map((each) => each.id));
  const newest = sessions[0]?.createdAt ?? "";
  const since = before.sessions.filter((each) => !ids.has(each.id) && each.createdAt > newest);
  return new Map(known).set(contactId, { ...before, sessions: [...since, ...sessions] });
}

/** Return the customers with the presence of a response, unless an event has come since the request. @param {Customers} known @param {string} contactId @param {{online: boolean, page?: BrowserPage|null}} presence @param {number} changes  those at the request @returns {Customers} */
export const withLoadedPresence = (known, contactId, presence, changes) => change(known, contactId, (of) => (of.changes === changes ? withPresence(of, presence) : of));

/** Return the customers without a session that was ended. @param {Customers} known @param {string} contactId @param {string} sessionId @returns {Customers} */
export const withoutSession = (known, contactId, sessionId) => change(known, contactId, (of) => ({ ...of, sessions: of.sessions.filter((each) => each.id !== sessionId) }));

/** @param {Customers} known @param {string} id @param {(of: Customer) => Customer} to @returns {Customers} */
function change(known, id, to) {
  const before = known.get(id);
  return before ? new Map(known).set(id, to(before)) : known;
}

/** @param {Customer} of @param {{online: boolean, page?: BrowserPage|null}} presence @returns {Customer} */
const withPresence = (of, { online, page }) => ({ ...of, online, page: online ? (page ?? null) : null });

/** @param {Customer} of @param {any} session @param {string} at @returns {Customer} */
function withStarted(of, session, at) {
  if (of.sessions.some((each) => each.id === session.id)) return of;
  return { ...of, sessions: [{ createdAt: at, lastUsedAt: at, ...session }, ...of.sessions] };
}

/** Return how far a contact's identity can be trusted; null if no browser has reported it. @param {{userId?: string}|null|undefined} contact @param {readonly ContactSession[]} sessions @returns {"verified"|"visitor"|null} */
export function standingOf(contact, sessions) {
  if (isVisitor(contact)) return "visitor";
  return sessions.some((each) => each.verified) ? "verified" : null;
}

/** Return the fields of a contact that its backend has signed, by the newest verified session; the external id is always one. @param {readonly ContactSession[]} sessions @returns {string[]} */
export const signedFields = (sessions) => sessions.find((each) => each.verified)?.signed ?? [];

/** Return a page's address if a link to it is safe: http and https only. @param {unknown} url @returns {string|null} */
export function safeAddress(url) {
  if (typeof url !== "string" || !URL.canParse(url)) return null;
  const { protocol, href, username, password } = new URL(url);
  return /^https?:$/.test(protocol) && !username && !password ? href : null;
}

/**
 * How far messages of one author have come: all are stored, the first `reached` of them were delivered to a browser of the
 * customer, the first `seen` were shown. A time belongs to the newest message of the conversation at that state; with `exact`, to the last of these.
 * @typedef {{total: number, reached: number, reachedAt: string|null, reachedExact: boolean, seen: number, seenAt: string|null, seenExact: boolean}} Receipt
 */

/**
 * Return how far messages have come. Shown messages have reached the browser, even if only that was reported.
 * @param {readonly {index: number|null}[]} messages  in order @param {Pick<Row, "contactSeenIndex"|"contactSeenAt"|"contactReachedIndex"|"contactReachedAt">} row @returns {Receipt}
 */
export function receiptOf(messages, row) {
  const indexes = messages.flatMap((each) => (each.index === null ? [] : [each.index]));
  const count = (/** @type {number|null|undefined} */ upTo) => indexes.filter((each) => each <= (upTo ?? -1)).length;
  const seen = count(row.contactSeenIndex);
  const reported = count(row.contactReachedIndex);
  const reached = Math.max(seen, reported);
  const early = seen > reported; // shown without an earlier report
  const last = (/** @type {number} */ n) => indexes[n - 1];
  return {
    total: indexes.length,
    reached,
    reachedAt: reached ? ((early ? row.contactSeenAt : row.contactReachedAt) ?? null) : null,
    reachedExact: reached > 0 && !early && last(reached) === row.contactReachedIndex,
    seen,
    seenAt: seen ? (row.contactSeenAt ?? null) : null,
    seenExact: seen > 0 && last(seen) === row.contactSeenIndex,
  };
}
