// @ts-check
/** Customers' browsers as signals: the sessions and presence of shown contacts. Events change them; only a shown contact causes requests. */
import { signal } from "../vendor/preact.js";
import { Problem, call, get, retryRateLimited } from "./api.js";
import { registerPart, runGuard } from "./store.js";
import { withCustomerEvent, withLoadedPresence, withSessions, withoutSession } from "./customer-state.js";
/** @import { Customer, Customers } from "./customer-state.js" */

const SESSIONS_MAX = 50; // as many as the service keeps for one contact

const known = signal(/** @type {Customers} */ (new Map()));
/** How many components show each contact. @type {Map<string, number>} */
const shown = new Map();

registerPart({
  hello: () => {
    for (const id of shown.keys()) void load(id); // presence is not repeated after a break
  },
  events: (events) => void (known.value = events.reduce(withCustomerEvent, known.peek())),
  ephemeral: (event) => void (known.value = withCustomerEvent(known.peek(), event)),
  end: () => {
    known.value = new Map();
    shown.clear();
  },
});

/** Return a contact's browsers; undefined until they are loaded, or if this user may not read them. Reads a signal. @param {string|undefined} contactId @returns {Customer|undefined} */
export const customer = (contactId) => (contactId ? known.value.get(contactId) : undefined);

/** Load a contact's browsers, and follow them until the returned function is called. @param {string} contactId @returns {() => void} */
export function watch(contactId) {
  const before = shown.get(contactId) ?? 0;
  shown.set(contactId, before + 1);
  if (!before) void load(contactId);
  return () => {
    const left = (shown.get(contactId) ?? 1) - 1;
    if (left) return void shown.set(contactId, left);
    shown.delete(contactId);
    const rest = new Map(known.peek());
    rest.delete(contactId);
    known.value = rest;
  };
}

/** @param {string} contactId */
async function load(contactId) {
  const running = runGuard();
  const still = () => running() && shown.has(contactId);
  try {
    const { items } = await retryRateLimited(() => get(`contacts/${contactId}/sessions`, { limit: SESSIONS_MAX }));
    if (!still()) return;
    known.value = withSessions(known.peek(), contactId, items);
    if (!items.length) return; // without a session, no browser can be online
    await refreshPresence(contactId);
  } catch {
    // the service does not answer: the next stream loads it
  }
}

/** Ask whether a loaded contact is online; an event that comes in the meantime counts instead. @param {string} contactId */
export async function refreshPresence(contactId) {
  const still = runGuard();
  const before = known.peek().get(contactId);
  if (!before?.sessions.length) return;
  const presence = await retryRateLimited(() => get(`contacts/${contactId}/presence`)).catch(() => null);
  if (still() && presence) known.value = withLoadedPresence(known.peek(), contactId, presence, before.changes);
}

/** End a session of a contact. Throws Offline or Problem. @param {string} contactId @param {string} sessionId */
export async function endSession(contactId, sessionId) {
  await call("DELETE", `contacts/${contactId}/sessions/${sessionId}`);
  known.value = withoutSession(known.peek(), contactId, sessionId);
}

/** Names of channels by id; null for a deleted channel. */
const names = signal(/** @type {ReadonlyMap<string, string|null>} */ (new Map()));
/** @type {Set<string>} The channels whose request is in flight. */
const asking = new Set();
registerPart({
  events: (events) => events.some((each) => each.type === "settings.changed" && each.data.what === "channels") && void (names.value = new Map()),
  end: () => void (names.value = new Map()),
});

/** Return the name of a channel; null if it was deleted, undefined until it is known. The first read asks for the public settings, which need no permission. Reads a signal. @param {string} id @returns {string|null|undefined} */
export function channelName(id) {
  if (!names.value.has(id)) queueMicrotask(() => loadName(id));
  return names.value.get(id);
}

/** @param {string} id */
async function loadName(id) {
  const still = runGuard();
  if (names.peek().has(id) || asking.has(id)) return;
  asking.add(id);
  try {
    const { name } = await retryRateLimited(() => get(`customer/channels/${id}`));
    if (still()) names.value = new Map(names.peek()).set(id, name);
  } catch (error) {
    if (still() && error instanceof Problem && error.status === 404) names.value = new Map(names.peek()).set(id, null);
  } finally {
    asking.delete(id);
  }
}
