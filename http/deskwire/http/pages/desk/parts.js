// @ts-check
/** Small parts of views: buttons, dialogs, times, notices. */
import { signal } from "./vendor/preact.js";

/** What is said at the edge of the page at the moment. */
export const notices = signal(/** @type {{id: number, text: string, action?: string, run?: () => void}[]} */ ([]));
let last = 0;

/**
 * Says something for a moment, at the edge of the page and to screen readers.
 * @param {string} text @param {{action?: string, run?: () => void, ms?: number}} [options] @returns {() => void} Takes it away.
 */
export function say(text, options = {}) {
  const id = ++last;
  const away = () => {
    notices.value = notices.value.filter((each) => each.id !== id);
  };
  notices.value = [...notices.value, { id, text, action: options.action, run: options.run }];
  setTimeout(away, options.ms ?? 6000);
  return away;
}
