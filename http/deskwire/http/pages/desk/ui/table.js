// @ts-check
/** Tables of lists: columns, selectable rows, `j` and `k` between rows, and a button for the next page. */
import { html, useEffect, useLayoutEffect, useRef } from "../vendor/preact.js";
import { t } from "./texts.js";
import { Button, clockTime, cx } from "./parts.js";
import { firstFocusable } from "./dialog.js";
import { dayOf } from "./format.js";
import { handle } from "../core/keys.js";
import { States } from "./loading.js";
/** @import { Listed } from "./loading.js" */

/**
 * @typedef {object} Column
 * @property {string} label
 * @property {(row: any) => any} cell  the first column names the row, with a `Link` to its page if there is one
 * @property {boolean} [num]  right-aligned figures
 * @property {boolean} [silent]  true to show the label to screen readers only
 * @property {boolean} [less]  true to hide the column on narrow screens
 */
/** @typedef {{ids: ReadonlySet<string>, set: (ids: ReadonlySet<string>) => void, name: (row: any) => string}} Chosen */

/** Return the rows of a table. @param {HTMLElement|null} box */
const rowsOf = (box) => [...(box?.querySelectorAll("tbody tr") ?? [])];

/** Move the focus to the first link or button of another row. @param {HTMLElement|null} box @param {number} by */
function step(box, by) {
  const stops = rowsOf(box).map(firstFocusable).filter((each) => each !== null);
  const row = document.activeElement?.closest("tr");
  const now = stops.findIndex((each) => each.closest("tr") === row);
  stops[Math.max(0, Math.min(stops.length - 1, now < 0 ? 0 : now + by))]?.focus();
}

/** Keep the focus in the table when its row is removed: at the row in its place, or at the page's heading. @param {{current: HTMLElement|null}} box */
function useKeptFocus(box) {
  const within = box.current?.contains(document.activeElement);
  const at = within ? rowsOf(box.current).findIndex((each) => each.contains(document.activeElement)) : -1;
  useLayoutEffect(() => {
    if (!within || document.activeElement !== document.body) return;
    const rows = rowsOf(box.current);
    const row = rows[Math.min(at, rows.length - 1)];
    ((row && firstFocusable(row)) ?? /** @type {HTMLElement|null} */ (document.querySelector(".page-head h1")))?.focus();
  });
}

/**
 * @param {{caption: string, columns: Column[], rows: any[], keyOf?: (row: any) => string, chosen?: Chosen, quiet?: boolean}} props
 *   caption: for screen readers. quiet: without keys, for a table beside another
 */
export function Table({ caption, columns, rows, keyOf = (row) => row.id, chosen, quiet }) {
  const box = useRef(/** @type {HTMLElement|null} */ (null));
  useLayoutEffect(() => (quiet ? undefined : handle({ next: () => (step(box.current, 1), true), previous: () => (step(box.current, -1), true) })), [quiet]);
  useKeptFocus(box);
  const every = rows.length > 0 && chosen && rows.every((row) => chosen.ids.has(keyOf(row)));
  const toggle = (/** @type {string} */ id) => {
    const next = new Set(chosen?.ids);
    if (!next.delete(id)) next.add(id);
    chosen?.set(next);
  };
  const face = (/** @type {Column} */ each) => cx(each.num && "num", each.less && "less");
  return html`<div class="table-box" ref=${box} role="region" aria-label=${caption} tabindex="0"><table class="table">
    <caption class="sr">${caption}</caption>
    <thead><tr>
      ${chosen && html`<th scope="col" class="pick"><label><span class="sr">${t.chooseAll}</span><input type="checkbox" checked=${every} onChange=${() => chosen.set(every ? new Set() : new Set(rows.map(keyOf)))} /></label></th>`}
      ${columns.map((each) => html`<th key=${each.label} scope="col" class=${face(each)}><span class=${each.silent ? "sr" : undefined}>${each.label}</span></th>`)}
    </tr></thead>
    <tbody>${rows.map((row) => html`<tr key=${keyOf(row)} class=${cx(chosen?.ids.has(keyOf(row)) && "chosen")}>
      ${chosen && html`<td class="pick"><label><span class="sr">${`${t.choose} ${chosen.name(row)}`}</span><input type="checkbox" checked=${chosen.ids.has(keyOf(row))} onChange=${() => toggle(keyOf(row))} /></label></td>`}
      ${columns.map((each, i) => (i === 0 ? html`<th key=${each.label} scope="row" class=${face(each)}>${each.cell(row)}</th>` : html`<td key=${each.label} class=${face(each)}>${each.cell(row)}</td>`))}
    </tr>`)}</tbody>
  </table></div>`;
}

/**
 * A list as a table, with its loading states and the button for the next page.
 * @param {{of: Listed, empty: any, caption: string, columns: Column[], keyOf?: (row: any) => string, chosen?: Chosen, quiet?: boolean}} props
 */
export function ListTable({ of, empty, ...table }) {
  return html`<${States} of=${of} empty=${of.more ? html`<${More} of=${of} />` : empty}>${(/** @type {any[]} */ rows) => html`<${Table} ...${table} rows=${rows} /><${More} of=${of} />`}<//>`;
}

/** The number of rows, how far back a search has looked, and the button for the next page, which moves the focus to the first new row. @param {{of: Listed}} props */
export function More({ of }) {
  const box = useRef(/** @type {HTMLElement|null} */ (null));
  const from = useRef(/** @type {number|null} */ (null));
  useEffect(() => {
    if (from.current === null || of.loadingMore) return;
    const row = rowsOf(box.current?.parentElement ?? null)[from.current];
    from.current = null;
    if (row) firstFocusable(row)?.focus();
  }, [of.loadingMore]);
  const press = () => ((from.current = of.items.length), of.next());
  return html`<p class="table-foot" ref=${box}><span role="status">${of.loadingMore ? (of.searchedTo ? t.searching : t.loadingMore) : t.shown(of.items.length)}</span>${of.searchedTo && html`<span class="muted">${t.searchedTo(`${dayOf(of.searchedTo)}, ${clockTime(of.searchedTo)}`)}</span>`}${of.more && html`<${Button} label=${t.showMore} disabled=${of.loadingMore} press=${press} />`}</p>`;
}

/** A share as a bar. The figure itself stands beside it. @param {{share: number}} props  0 to 1 */
export const Bar = ({ share }) => html`<meter class="share" min="0" max="1" value=${share} aria-hidden="true"></meter>`;
