// @ts-check
/** How far stream consumers have confirmed the events of an open conversation. It is asked for again while one of them is behind. */
import { signal } from "../vendor/preact.js";
import { get, patiently } from "../api.js";
import { join, same } from "../store.js";

const FIRST_MS = 400;
const LAST_MS = 30_000;

/** @typedef {{channel: string, consumerId: string, connected: boolean, since: string, confirmedSequence: number|null}} Consumer */
/** @typedef {{consumers: Consumer[], newest: number, pause: number, timer: any}} Watched */

const known = signal(/** @type {ReadonlyMap<string, Consumer[]>} */ (new Map()));
/** @type {Map<string, Watched>} */
const watched = new Map();

join({
  end: () => {
    for (const each of watched.values()) clearTimeout(each.timer);
    watched.clear();
    known.value = new Map();
  },
});

/**
 * The consumers that hear a conversation; empty until known. Reads a signal.
 * @param {string} id @param {number} newest  the sequence of the newest event that is looked at @returns {Consumer[]}
 */
export function consumers(id, newest) {
  const before = watched.get(id);
  if (!before) watched.set(id, { consumers: [], newest, pause: FIRST_MS, timer: null });
  if (!before || newest > before.newest) {
    const now = /** @type {Watched} */ (watched.get(id));
    now.newest = newest;
    now.pause = FIRST_MS;
    soon(id, before ? FIRST_MS : 0);
  }
  return known.value.get(id) ?? [];
}

/** @param {string} id @param {number} ms */
function soon(id, ms) {
  const it = watched.get(id);
  if (!it) return;
  clearTimeout(it.timer);
  it.timer = setTimeout(() => ask(id), ms);
}

/** Whether an answer from now on may be another one. @param {Watched} it */
const behind = (it) => it.consumers.some((each) => (each.confirmedSequence ?? 0) < it.newest);

/** @param {string} id */
async function ask(id) {
  const still = same();
  const answer = await patiently(() => get(`conversations/${id}/consumers`)).catch(() => null);
  const it = watched.get(id);
  if (!still() || !it) return;
  if (answer) {
    it.consumers = answer.items;
    known.value = new Map(known.peek()).set(id, answer.items);
  }
  if (!behind(it) || document.hidden) return;
  it.pause = Math.min(it.pause * 2, LAST_MS);
  soon(id, it.pause);
}
