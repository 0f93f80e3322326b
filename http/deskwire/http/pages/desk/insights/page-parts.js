// @ts-check
/** Parts shared by these pages: tabs, choices, downloads, figures and the style. */
import { locale } from "../core/texts.js";
import { html } from "../vendor/preact.js";
import { t } from "./texts.js";
import { notify } from "../ui/parts.js";
import { address, credentials, problemOf } from "../core/api.js";
import { place } from "../core/session.js";
import { Link, query } from "../ui/link.js";

const style = document.createElement("link");
style.rel = "stylesheet";
style.href = new URL("./style.css", import.meta.url).href;
document.head.append(style);

/** Return the current tab. Reads a signal. @param {string} otherwise */
export const partShown = (otherwise) => query.value.get("part") ?? otherwise;

/** The tabs of a page; each has its own address. @param {{label: string, of: Record<string, string>, otherwise: string}} props */
export function Tabs({ label, of, otherwise }) {
  const path = place.value.split("?")[0];
  const here = partShown(otherwise);
  return html`<nav class="tabs" aria-label=${label}>${Object.entries(of).map(([key, name]) => html`<${Link} key=${key} to=${key === otherwise ? path : `${path}?part=${key}`} aria-current=${key === here ? "page" : undefined}>${name}<//>`)}</nav>`;
}

/** A choice above a page. @param {{label: string, value: string, of: [string, string][], set: (value: string) => void}} props */
export const Choose = ({ label, value, of, set }) => html`<label class="label"><span>${label}</span><select class="field" onChange=${(/** @type {any} */ event) => set(event.target.value)}>
  ${of.map(([key, name]) => html`<option key=${key} value=${key} selected=${key === value}>${name}</option>`)}</select></label>`;

/** Download a file with the page's session. @param {string} path @param {Record<string, unknown>} query @param {string} name */
export async function download(path, query, name) {
  try {
    const response = await fetch(address(path, query), { headers: credentials.project ? { project: credentials.project } : {}, cache: "no-store" });
    if (!response.ok) throw problemOf(response.status, await response.text(), (header) => response.headers.get(header), path);
    const url = URL.createObjectURL(await response.blob());
    const link = document.createElement("a");
    link.href = url;
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(url), 10_000);
  } catch (error) {
    notify(t.downloadFailed(/** @type {Error} */ (error).message), { bad: true });
  }
}

/** The browser's time zone, for figures by day. */
export const timezone = Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC";

/** Return the first day of a period of this many days, as the API takes it. @param {number} days */
export function daysAgo(days) {
  const day = new Date();
  day.setDate(day.getDate() - days + 1);
  return `${day.getFullYear()}-${String(day.getMonth() + 1).padStart(2, "0")}-${String(day.getDate()).padStart(2, "0")}`;
}

/** Format a figure; a dash for none. @param {number|null|undefined} n */
export const figureText = (n) => (n === null || n === undefined ? "–" : n.toLocaleString(locale, { maximumFractionDigits: 2 }));
/** Format a day of the API. @param {string} day */
export const dayName = (day) => new Date(`${day}T00:00:00`).toLocaleDateString(locale, { dateStyle: "medium" });
