// @ts-check
/** Hooks that reload a page or a list after events of the stream, and hold the order of a list while it is used. */
import { html, useEffect, useRef, useState } from "../vendor/preact.js";
import { registerPart } from "../core/store.js";
import { t } from "./texts.js";
import { Button } from "./parts.js";
import { holdOrder } from "../core/state.js";
import { useList } from "./loading.js";
/** @import { Listed } from "./loading.js" */

const REFRESH_DELAY_MS = 600;
const PENDING_POLL_INTERVAL_MS = 2_000;

/** @typedef {{events: (events: any[]) => void, missed: () => void}} RefreshListener  missed: events may have passed that nobody here has heard */
/** @type {Set<RefreshListener>} */
const listeners = new Set();
const missed = () => listeners.forEach((each) => each.missed());
registerPart({ events: (events) => listeners.forEach((each) => each.events(events)), hello: missed, reloaded: missed, end: () => {} });

/**
 * Calls with the events of the stream as they come.
 * @param {(events: any[]) => void} onEvents @param {() => void} [missed]  called when some may have been missed: the stream has just begun, or was away for too long
 */
export function useEvents(onEvents, missed = () => {}) {
  const latest = useRef({ events: onEvents, missed });
  latest.current = { events: onEvents, missed };
  useEffect(() => {
    const listener = { events: (/** @type {any[]} */ events) => latest.current.events(events), missed: () => latest.current.missed() };
    listeners.add(listener);
    return () => void listeners.delete(listener);
  }, []);
}

/**
 * Loads anew a moment after events that matter, once for all that came meanwhile, and once more if events may have been missed. A page in the
 * background does so when it is looked at again.
 * @param {(event: any) => boolean} matters @param {() => unknown} reload @param {boolean} [held]  whether nothing is to change now
 */
export function useRefreshOnEvents(matters, reload, held = false) {
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
  const soon = () => void (state.due && (state.timer ??= setTimeout(look, REFRESH_DELAY_MS)));
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
export function useAutoRefresh(reload, pending, held = false) {
  const latest = useRef(reload);
  latest.current = reload;
  useRefreshOnEvents(() => true, reload, held);
  useEffect(() => {
    if (!pending || held) return;
    const every = setInterval(() => !document.hidden && latest.current(), PENDING_POLL_INTERVAL_MS);
    return () => clearInterval(every);
  }, [pending, held]);
}

/** @typedef {Listed & {fresh: number, settle: () => void, use: (using: boolean) => void}} LiveList  fresh: rows that wait to be put in their place; settle: puts them there */
/** @typedef {{id: string, row: any}} RowChange  row: as the event has it; null if it is gone */

/**
 * @param {string} path @param {Record<string, unknown>} query
 * @param {{changeOf: (event: any) => RowChange|null, moves: (event: any) => boolean, held: boolean}} follows
 *   changeOf: what an event says of a row of this list. moves: whether another event may move one. held: whether the order stays for a reason of the page's own
 * @returns {LiveList}
 */
export function useLiveList(path, query, { changeOf, moves, held }) {
  const of = useList(path, query);
  const [used, use] = useState(false);
  const [, again] = useState(0);
  const kept = useRef({ asked: 0, ids: /** @type {readonly string[]} */ ([]), rows: /** @type {Map<string, any>} */ (new Map()), gone: /** @type {Set<string>} */ (new Set()), items: of.items }).current;
  useRefreshOnEvents((event) => {
    const what = changeOf(event);
    if (what?.row) kept.rows.set(what.id, what.row);
    else if (what) kept.gone.add(what.id);
    return what !== null || moves(event);
  }, of.renew);
  if (kept.items !== of.items) {
    kept.items = of.items;
    for (const row of of.items) kept.rows.set(row.id, row);
  }
  const live = [...new Set(of.items.map((row) => row.id))];
  if (kept.asked !== of.asked || !kept.ids.length) Object.assign(kept, { asked: of.asked, ids: live });
  const { ids, fresh } = used || held ? holdOrder(kept.ids, live, (id) => kept.gone.has(id)) : { ids: live, fresh: 0 };
  kept.ids = ids;
  const settle = () => ((kept.ids = live), again((n) => n + 1));
  return { ...of, items: ids.map((id) => kept.rows.get(id)), fresh, settle, use };
}

/** What holds the order of a list while the pointer or the keyboard is in it, and the button for what is new. @param {{of: LiveList, children?: any}} props */
export function HoldOrder({ of, children }) {
  const box = useRef(/** @type {HTMLElement|null} */ (null));
  const by = useRef({ pointer: false, focus: false }).current;
  const using = (/** @type {"pointer"|"focus"} */ how, /** @type {boolean} */ yes) => () => ((by[how] = yes), of.use(by.pointer || by.focus));
  // A row that goes takes its focus with it, and no browser tells of that.
  useEffect(() => void (by.focus && !box.current?.contains(document.activeElement) && using("focus", false)()));
  return html`<div ref=${box} onPointerEnter=${using("pointer", true)} onPointerLeave=${using("pointer", false)} onFocusIn=${using("focus", true)} onFocusOut=${using("focus", false)}>
    ${of.fresh > 0 && html`<p class="fresh"><${Button} icon="up" class="small" label=${t.fresh(of.fresh)} press=${of.settle} /></p>`}
    ${children}
  </div>`;
}
