// @ts-check
/** Pages that follow what happens: they load anew when events come, and while something is on its way. */
import { useEffect, useRef } from "../vendor/preact.js";
import { join } from "../store.js";

const AFTER_EVENT_MS = 600;
const PENDING_MS = 2_000;

/** @type {Set<(events: any[]) => void>} */
const ears = new Set();
join({ heard: (events) => ears.forEach((each) => each(events)), end: () => {} });

/** Calls with the events of the stream as they come. @param {(events: any[]) => void} hear */
export function useEvents(hear) {
  const latest = useRef(hear);
  latest.current = hear;
  useEffect(() => {
    const ear = (/** @type {any[]} */ events) => latest.current(events);
    ears.add(ear);
    return () => void ears.delete(ear);
  }, []);
}

/**
 * Loads anew a moment after events came, and every two seconds while something is on its way; not while the page is in the background.
 * @param {() => unknown} reload @param {boolean} pending  whether something is on its way @param {boolean} [held]  whether nothing is to change now
 */
export function useFresh(reload, pending, held = false) {
  const latest = useRef(reload);
  latest.current = reload;
  const timer = useRef(/** @type {any} */ (null));
  useEvents(() => {
    if (held || timer.current) return;
    timer.current = setTimeout(() => {
      timer.current = null;
      if (!document.hidden) void latest.current();
    }, AFTER_EVENT_MS);
  });
  useEffect(() => () => clearTimeout(timer.current), []);
  useEffect(() => {
    if (!pending || held) return;
    const every = setInterval(() => !document.hidden && latest.current(), PENDING_MS);
    return () => clearInterval(every);
  }, [pending, held]);
}
