// @ts-check
/** Pages that follow what happens: they load anew when events come, and while something is on its way. */
import { useEffect, useRef } from "../vendor/preact.js";
import { join } from "../store.js";

const AFTER_EVENT_MS = 600;
const PENDING_MS = 2_000;

/** @typedef {{heard: (events: any[]) => void, missed: () => void}} Ear  missed: events may have passed that nobody here has heard */
/** @type {Set<Ear>} */
const ears = new Set();
const missed = () => ears.forEach((each) => each.missed());
join({ heard: (events) => ears.forEach((each) => each.heard(events)), hello: missed, anew: missed, end: () => {} });

/**
 * Calls with the events of the stream as they come.
 * @param {(events: any[]) => void} heard @param {() => void} [missed]  called when some may have been missed: the stream has just begun, or was away for too long
 */
export function useEvents(heard, missed = () => {}) {
  const latest = useRef({ heard, missed });
  latest.current = { heard, missed };
  useEffect(() => {
    const ear = { heard: (/** @type {any[]} */ events) => latest.current.heard(events), missed: () => latest.current.missed() };
    ears.add(ear);
    return () => void ears.delete(ear);
  }, []);
}

/**
 * Loads anew a moment after events that matter, once for all that came meanwhile, and once more if events may have been missed. A page in the
 * background does so when it is looked at again.
 * @param {(event: any) => boolean} matters @param {() => unknown} reload @param {boolean} [held]  whether nothing is to change now
 */
export function useFollowed(matters, reload, held = false) {
  const latest = useRef({ reload, held });
  latest.current = { reload, held };
  const state = useRef({ due: false, busy: false, timer: /** @type {any} */ (null) }).current;
  const look = async () => {
    state.timer = null;
    if (!state.due || state.busy || document.hidden || latest.current.held) return;
    Object.assign(state, { due: false, busy: true });
    await latest.current.reload();
    state.busy = false;
    soon();
  };
  const soon = () => void (state.due && (state.timer ??= setTimeout(look, AFTER_EVENT_MS)));
  const mark = () => ((state.due = true), soon());
  useEvents((events) => events.some(matters) && mark(), mark);
  useEffect(() => {
    const seen = () => !document.hidden && soon();
    document.addEventListener("visibilitychange", seen);
    return () => (document.removeEventListener("visibilitychange", seen), clearTimeout(state.timer));
  }, []);
  useEffect(soon, [held]);
}

/**
 * Loads anew a moment after events came, and every two seconds while something is on its way; not while the page is in the background.
 * @param {() => unknown} reload @param {boolean} pending  whether something is on its way @param {boolean} [held]  whether nothing is to change now
 */
export function useFresh(reload, pending, held = false) {
  const latest = useRef(reload);
  latest.current = reload;
  useFollowed(() => true, reload, held);
  useEffect(() => {
    if (!pending || held) return;
    const every = setInterval(() => !document.hidden && latest.current(), PENDING_MS);
    return () => clearInterval(every);
  }, [pending, held]);
}
