// @ts-check
/** Links to places of the desk, and the part of the address behind the question mark. */
import { computed, html } from "../vendor/preact.js";
import { go, hrefOf, place } from "../session.js";

/** A link to a place: `<${Link} to="tickets/tic_…">`. Opens in a new tab where the browser is asked to. @param {{to: string, [more: string]: any}} props */
export function Link({ to, children, ...rest }) {
  const pressed = (/** @type {MouseEvent} */ event) => {
    if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey || event.button) return;
    event.preventDefault();
    go(to);
  };
  return html`<a href=${hrefOf(to)} onClick=${pressed} ...${rest}>${children}</a>`;
}

/** What stands behind the question mark of the address. */
export const query = computed(() => new URLSearchParams(place.value.split("?")[1] ?? ""));

/** Changes what stands behind the question mark; null and "" take a part away. @param {Record<string, string|null>} changes */
export function ask(changes) {
  const next = new URLSearchParams(query.peek());
  for (const [name, value] of Object.entries(changes)) value ? next.set(name, value) : next.delete(name);
  const words = next.toString();
  go(place.peek().split("?")[0] + (words && `?${words}`), { replace: true });
}
