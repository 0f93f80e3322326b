// @ts-check
/** Formats endpoints, deliveries, times and durations. */
import { locale } from "../core/texts.js";
import { html } from "../vendor/preact.js";
import { t } from "./texts.js";
import { cx, fullTime } from "../ui/parts.js";

/** Return the name of an endpoint: its description, or the host of its address. @param {any} endpoint @returns {string} */
export function endpointName(endpoint) {
  if (endpoint.description) return endpoint.description;
  return URL.canParse(endpoint.url) ? new URL(endpoint.url).host : endpoint.url;
}

const STATES = /** @type {Record<string, string>} */ ({ delivered: "good", dropped: "bad", skipped: "bad", pending: "waits" });

/** The outcome of a delivery as a chip. @param {{status: string}} props */
export const Outcome = ({ status }) => html`<span class=${cx("chip", STATES[status])}>${t.status[/** @type {"pending"} */ (status)] ?? status}</span>`;

const time = new Intl.DateTimeFormat(locale, { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });

/** Return a time in milliseconds, with the day unless it is today. @param {string} at */
export function exact(at) {
  const day = new Date(at);
  const ms = String(day.getMilliseconds()).padStart(3, "0");
  const today = day.toDateString() === new Date().toDateString();
  return `${today ? "" : `${day.toLocaleDateString(locale, { day: "numeric", month: "short" })} `}${time.format(day)}.${ms}`;
}

/** @param {{at: string}} props */
export const Exact = ({ at }) => html`<time class="num" datetime=${at} title=${fullTime(at)}>${exact(at)}</time>`;

/** Return a duration: "85 ms", "2.1 s". @param {number} ms */
export const duration = (ms) => (ms < 1000 ? t.ms(Math.round(ms)) : ms < 60_000 ? t.seconds((ms / 1000).toFixed(1)) : t.minutes(Math.round(ms / 60_000)));

/** Return the message of an error. @param {unknown} error */
export const errorText = (error) => (error instanceof Error ? error.message : String(error));
