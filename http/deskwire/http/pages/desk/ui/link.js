// @ts-check
/** Links to places of the desk, and the part of the address behind the question mark. */
import { computed, html } from "../vendor/preact.js";
import { go, hrefOf, may, place, typedWords } from "../core/session.js";
/** @import { PageEntry } from "../core/types.js" */

/** The pages of the desk. The shell fills this table: pages link to each other without importing it. @type {PageEntry[]} */
export const PAGES = [];

/** The pages that the signed-in user may open. Reads signals. @returns {PageEntry[]} */
export const places = () => PAGES.filter((each) => !each.permission || may(each.permission));

/** Parts of a list's filter that people type words into. */
const TYPED_FILTERS = new Set(["q", "contact"]);

/** A link to a place: `<${Link} to="tickets/tic_…">`. Opens in a new tab where the browser is asked to. @param {{to: string, [more: string]: any}} props */
export function Link({ to, children, ...rest }) {
  const pressed = (/** @type {MouseEvent} */ event) => {
    if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey || event.button) return;
    event.preventDefault();
    go(to);
  };
  return html`<a href=${hrefOf(to)} onClick=${pressed} ...${rest}>${children}</a>`;
}

/** The filter of the place: the query of the address, and the words that were typed. */
export const query = computed(() => {
  const found = new URLSearchParams(place.value.split("?")[1] ?? "");
  for (const [name, value] of Object.entries(typedWords.value)) found.set(name, value);
  return found;
});

/** Changes the filter; null and "" take a part away. @param {Record<string, string|null>} changes */
export function setQuery(changes) {
  const next = new URLSearchParams(query.peek());
  for (const [name, value] of Object.entries(changes)) value ? next.set(name, value) : next.delete(name);
  const words = Object.fromEntries([...next].filter(([name]) => TYPED_FILTERS.has(name)));
  for (const name of TYPED_FILTERS) next.delete(name);
  const shown = next.toString();
  go(place.peek().split("?")[0] + (shown && `?${shown}`), { replace: true, words });
}
