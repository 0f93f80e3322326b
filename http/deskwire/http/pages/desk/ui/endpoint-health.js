// @ts-check
/** The health of a webhook endpoint, as the service reports it. */
import { locale } from "../core/texts.js";
import { html } from "../vendor/preact.js";
import { t } from "./texts.js";
import { cx } from "./parts.js";

/**
 * Return the health of an endpoint: the chip's kind, its word, and the reason. Only `healthy` counts; a requested pause is no fault.
 * @param {any} endpoint @returns {{kind: ""|"good"|"waits"|"bad", word: string, why: string|null}}
 */
export function healthOf(endpoint) {
  const words = t.endpointHealth;
  if (endpoint.healthy) return endpoint.pausedUntil ? { kind: "waits", word: words.paused, why: words.pausedWhy(shortTime(endpoint.pausedUntil)) } : { kind: "good", word: words.healthy, why: null };
  switch (endpoint.healthCode) {
    case "disabled": return { kind: "", word: words.disabled, why: endpoint.statusReason };
    case "circuit_open": return { kind: "bad", word: endpoint.circuit === "half_open" ? words.halfOpen : words.open, why: endpoint.circuitReason };
    case "failing": return { kind: "bad", word: words.failing, why: endpoint.failingSince && words.failingWhy(shortTime(endpoint.failingSince)) };
    case "dropped": return { kind: "bad", word: words.dropped, why: words.droppedWhy(endpoint.dropped) };
    default: return { kind: "bad", word: words.unhealthy, why: endpoint.healthReason ?? null };
  }
}

/** @param {{of: any}} props */
export function Health({ of }) {
  const { kind, word } = healthOf(of);
  return html`<span class=${cx("chip", kind)}>${word}</span>`;
}

const clock = new Intl.DateTimeFormat(locale, { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });
const dated = new Intl.DateTimeFormat(locale, { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });

/** @param {string} at */
function shortTime(at) {
  const day = new Date(at);
  return (day.toDateString() === new Date().toDateString() ? clock : dated).format(day);
}
