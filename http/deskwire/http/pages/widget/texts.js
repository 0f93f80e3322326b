// @ts-check
/** The channel's settings, which the service has put into the page, and the texts in the customer's language. */

/**
 * @typedef {object} Settings
 * @property {string} channel
 * @property {string} language  of the channel's own texts
 * @property {string} texts  the shipped language
 * @property {string} file  the address of its texts
 * @property {Record<string, string>} colours
 * @property {{title?: string, greeting?: string, placeholder?: string, offline?: string}} own
 * @property {string} name
 */
/** @type {Settings} */
export const settings = JSON.parse(/** @type {HTMLMetaElement} */ (document.querySelector("meta[name=deskwire]")).content);

/** The texts; filled by `loadTexts`. @type {typeof import("./texts/en.js").texts} */
export let t;

/** Load the texts. The page has preloaded them. */
export async function loadTexts() {
  ({ texts: t } = await import(new URL(settings.file, location.href).href));
}

/** Return a point in time in words: the time today, else the date. @param {string} at */
export function timeText(at) {
  const date = new Date(at);
  const today = date.toDateString() === new Date().toDateString();
  return date.toLocaleString(settings.texts, today ? { timeStyle: "short" } : { dateStyle: "medium" });
}

/** Return a number in the customer's language. @param {number} value */
export const numberText = (value) => value.toLocaleString(settings.texts);

/** Return a size in the customer's language. @param {number} bytes */
export function sizeText(bytes) {
  const [value, unit] = bytes < 1_000_000 ? [Math.max(1, Math.round(bytes / 1000)), "kilobyte"] : [bytes / 1_000_000, "megabyte"];
  return value.toLocaleString(settings.texts, { style: "unit", unit, unitDisplay: "short", maximumFractionDigits: 1 });
}

/** Return a problem in words for the customer. @param {{code: string, detail?: string, message?: string}} problem */
export const problemText = (problem) => /** @type {Record<string, string>} */ (t.problems)[problem.code] ?? problem.detail ?? t.failed;

/** Return a name or reason so that its direction changes nothing around it (Unicode isolates). @param {string} text */
export const isolated = (text) => `\u2068${text}\u2069`;
