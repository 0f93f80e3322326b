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

/** @typedef {{events: (events: any[]) => void, missed: () => void}} RefreshListener  missed: called when events may have been missed */
/** @type {Set<RefreshListener>} */
const listeners = new Set();
const missed = () => listeners.forEach((each) => each.missed());
registerPart({ events: (events) => listeners.forEach((each) => each.events(events)), hello: missed, reloaded: missed, end: () => {} });

/**
 * Call a function with the events of the stream.
 * @param {(events: any[]) => void} onEvents @param {() => void} [missed]  called when events may have been missed: the stream has just opened, or had a gap
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
 * Reload shortly after relevant events, once for several, and after possibly missed ones. A page in the background reloads when it becomes visible.
 * @param {(event: any) => boolean} matters @param {() => unknown} reload @param {boolean} [held]  true while the page must not change
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
 * Reload shortly after any event, and every two seconds while something is pending. A page in the background does not reload.
 * @param {() => unknown} reload @param {boolean} pending  true while a result is expected @param {boolean} [held]  true while the page must not change
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

/** @typedef {Listed & {fresh: number, settle: () => void, use: (using: boolean) => void}} LiveList  fresh: the number of new and moved rows; settle: applies the current order */
/** @typedef {{id: string, row: any}} RowChange  row: as in the event; null if it was deleted */

/**
 * Load a list that follows the stream. Events reload it, so that filters, search and order remain the service's. While the list is in use, rows keep
 * their places, and new or moved ones are counted.
 * @param {string} path @param {Record<string, unknown>} query
 * @param {{changeOf: (event: any) => RowChange|null, moves: (event: any) => boolean, held: boolean}} follows
 *   changeOf: the change of a row by an event. moves: true if another event may move a row. held: true while the page itself holds the order
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

/** Holds the order of a list while the pointer or the focus is in it, and shows the button for new rows. @param {{of: LiveList, children?: any}} props */
export function HoldOrder({ of, children }) {
  const box = useRef(/** @type {HTMLElement|null} */ (null));
  const by = useRef({ pointer: false, focus: false }).current;
  const using = (/** @type {"pointer"|"focus"} */ how, /** @type {boolean} */ yes) => () => ((by[how] = yes), of.use(by.pointer || by.focus));
  // A row that is removed takes its focus with it, and no browser fires an event for that.
  useEffect(() => void (by.focus && !box.current?.contains(document.activeElement) && using("focus", false)()));
  return html`<div ref=${box} onPointerEnter=${using("pointer", true)} onPointerLeave=${using("pointer", false)} onFocusIn=${using("focus", true)} onFocusOut=${using("focus", false)}>
    ${of.fresh > 0 && html`<p class="fresh"><${Button} icon="up" class="small" label=${t.fresh(of.fresh)} press=${of.settle} /></p>`}
    ${children}
  </div>`;
}
