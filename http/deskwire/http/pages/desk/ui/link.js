// @ts-check
/** Links to places of the desk, the table of its pages, and the query of the address. */
import { computed, html } from "../vendor/preact.js";
import { go, hrefOf, may, place, typedWords } from "../core/session.js";
/** @import { PageEntry } from "../core/types.js" */

/** The pages of the desk. The shell fills this table, so that pages link to each other without importing the shell. @type {PageEntry[]} */
export const PAGES = [];

/** Return the pages for the user's navigation. Reads signals. @returns {PageEntry[]} */
export const places = () => PAGES.filter((each) => (!each.permission || may(each.permission)) && (!each.listed || may(each.listed)));

/** Filters into which users type words. */
const TYPED_FILTERS = new Set(["q", "contact"]);

/** A link to a place: `<${Link} to="tickets/tic_…">`. Modified clicks open a new tab. @param {{to: string, [more: string]: any}} props */
export function Link({ to, children, ...rest }) {
  const pressed = (/** @type {MouseEvent} */ event) => {
    if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey || event.button) return;
    event.preventDefault();
    go(to);
  };
  return html`<a href=${hrefOf(to)} onClick=${pressed} ...${rest}>${children}</a>`;
}

/** The filter of the place: the address's query and the typed words. */
export const query = computed(() => {
  const found = new URLSearchParams(place.value.split("?")[1] ?? "");
  for (const [name, value] of Object.entries(typedWords.value)) found.set(name, value);
  return found;
});

/** Change the filter; null and "" remove a part. @param {Record<string, string|null>} changes */
export function setQuery(changes) {
  const next = new URLSearchParams(query.peek());
  for (const [name, value] of Object.entries(changes)) value ? next.set(name, value) : next.delete(name);
  const words = Object.fromEntries([...next].filter(([name]) => TYPED_FILTERS.has(name)));
  for (const name of TYPED_FILTERS) next.delete(name);
  const shown = next.toString();
  go(place.peek().split("?")[0] + (shown && `?${shown}`), { replace: true, words });
}
