// @ts-check
/**
 * All that is known of the project's conversations, as signals. It changes by `apply` (events, pure, in state.js), and by
 * what calls answer. Views read it, and ask it to load.
 */
import { computed, signal } from "./vendor/preact.js";
/** @import { AgentMessage, Counters, Delivery, Filter, Gone, ListView, Presence, ReadonlySignal, Row, Thread, Typing } from "./types.js" */

/** Begins: opens the stream, then the rest. Called by the shell when a project is chosen. */
export function begin() {}
/** Forgets everything and closes the stream. */
export function end() {}

/** The conversation, with what is on its way in the outbox already done. @param {string} id @returns {Row|undefined} A read of signals: use it within a component. */
export function row(id) {
  return rows.value.get(id);
}
const rows = signal(/** @type {Map<string, Row>} */ (new Map()));

/** The list of a filter; the first read loads it. @param {Filter} filter @returns {import("./vendor/preact.js").ReadonlySignal<ListView>} */
export function list(filter) {
  return computed(() => ({ key: JSON.stringify(filter), filter, ids: [], fresh: 0, held: false, state: "loading", more: false, loadingMore: false, error: null }));
}
/** Loads the next page of a list. @param {Filter} filter @returns {Promise<void>} */
export async function more(filter) {
  void filter;
}
/** Loads a list anew, after a failure. @param {Filter} filter */
export function reload(filter) {
  void filter;
}
/** Holds the order of a list while it is used, or lets it go. @param {Filter} filter @param {boolean} held */
export function hold(filter, held) {
  void [filter, held];
}
/** Puts what is fresh in its place, though the list is held. @param {Filter} filter */
export function settle(filter) {
  void filter;
}

/** The thread of a conversation; the first read loads its newest page, and the row if it is not known. @param {string} id @returns {Thread} */
export function thread(id) {
  return { id, messages: [], older: false, state: "loading", loadingOlder: false, error: null };
}
/** Loads older messages. @param {string} id @returns {Promise<void>} */
export async function older(id) {
  void id;
}
/** Why a conversation is gone; null if it is not. @param {string} id @returns {Gone|null} */
export function gone(id) {
  void id;
  return null;
}
/** The numbers beside the views; null until they are loaded. */
export const counters = signal(/** @type {Counters|null} */ (null));
/** Who else has the desk open, by user id. */
export const presence = signal(/** @type {Map<string, Presence>} */ (new Map()));
/** Colleagues with this conversation open, without this user. @param {string} id @returns {Presence[]} */
export function viewers(id) {
  return [...presence.value.values()].filter((each) => each.conversationIds.includes(id));
}
/** Who is typing there now. @param {string} id @returns {Typing[]} */
export function typing(id) {
  void id;
  return [];
}
/** The deliveries of a message's event to each endpoint; empty until known. @param {string} id @param {number} sequence @returns {Delivery[]} */
export function deliveries(id, sequence) {
  void [id, sequence];
  return [];
}
/** Says that this user has seen the conversation up to this message. @param {string} id @param {number} index */
export function seen(id, index) {
  void [id, index];
}
/** The context of a conversation: contact, tickets, memory …; undefined while it loads. It follows the events. @param {string} id @returns {any} */
export function context(id) {
  void id;
  return undefined;
}
/** The members of the organisation and the teams, to assign to; loaded by the first read. @returns {{users: {id: string, name: string}[], teams: {id: string, name: string}[]}} */
export function people() {
  return { users: [], teams: [] };
}
/** The snippets; loaded by the first read. @returns {{id: string, shortcut: string, title: string, text: string, language: string|null, teamId: string|null}[]} */
export function snippets() {
  return [];
}
/** The tags in use. @returns {{name: string, conversations: number}[]} */
export function tags() {
  return [];
}
/** Searches. @param {string} q @param {AbortSignal} abort @returns {Promise<any>} */
export async function search(q, abort) {
  void [q, abort];
  return null;
}
/** Does something with a list that just came by a call. @param {Row} fresh */
export function put(fresh) {
  rows.value = new Map(rows.value).set(fresh.id, fresh);
}
