// @ts-check
/**
 * A list that follows the stream, as the list of conversations does: it is loaded anew when something of it happened, so filters, search and order
 * are the service's. While it is used, rows stay where they are, and what has come or moved is counted.
 */
import { html, useEffect, useRef, useState } from "../vendor/preact.js";
import { t } from "./texts.js";
import { Button } from "../parts.js";
import { asHeld } from "../state.js";
import { useFollowed } from "./fresh.js";
import { useList } from "./loading.js";
/** @import { Listed } from "./loading.js" */

/** @typedef {Listed & {fresh: number, settle: () => void, use: (using: boolean) => void}} LiveList  fresh: rows that wait to be put in their place; settle: puts them there */
/** @typedef {{id: string, row: any}} Told  row: as the event has it; null if it is gone */

/**
 * @param {string} path @param {Record<string, unknown>} query
 * @param {{told: (event: any) => Told|null, moves: (event: any) => boolean, held: boolean}} follows
 *   told: what an event says of a row of this list. moves: whether another event may move one. held: whether the order stays for a reason of the page's own
 * @returns {LiveList}
 */
export function useLiveList(path, query, { told, moves, held }) {
  const of = useList(path, query);
  const [used, use] = useState(false);
  const [, again] = useState(0);
  const kept = useRef({ asked: 0, ids: /** @type {readonly string[]} */ ([]), rows: /** @type {Map<string, any>} */ (new Map()), gone: /** @type {Set<string>} */ (new Set()), items: of.items }).current;
  useFollowed((event) => {
    const what = told(event);
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
  const { ids, fresh } = used || held ? asHeld(kept.ids, live, (id) => kept.gone.has(id)) : { ids: live, fresh: 0 };
  kept.ids = ids;
  const settle = () => ((kept.ids = live), again((n) => n + 1));
  return { ...of, items: ids.map((id) => kept.rows.get(id)), fresh, settle, use };
}

/** What holds the order of a list while the pointer or the keyboard is in it, and the button for what is new. @param {{of: LiveList, children?: any}} props */
export function Held({ of, children }) {
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
