// @ts-check
/** The figures of reports in words: units, numbers that are too small, and the change since the period before. Pure functions. */
import { locale } from "../core/texts.js";
import { t } from "./texts.js";

/** @typedef {{name: string, unit?: "time"|"percent"|"rating"}} Figure */
/** @typedef {"first-response"|"time-to-close"|"csat"|"volume"|"backlog"} Metric */

/** @type {Figure[]} */
const DURATIONS = [{ name: "median", unit: "time" }, { name: "mean", unit: "time" }, { name: "p90", unit: "time" }, { name: "count" }];
/** The figures of each report. Those in `drawn` are in its chart, and the first one also for the period before. @type {Record<Metric, {figures: Figure[], drawn: string[]}>} */
export const REPORTS = {
  "first-response": { figures: DURATIONS, drawn: ["median", "p90"] },
  "time-to-close": { figures: DURATIONS, drawn: ["median", "p90"] },
  csat: { figures: [{ name: "csat", unit: "percent" }, { name: "average", unit: "rating" }, { name: "count" }], drawn: ["csat"] },
  volume: { figures: ["conversationsCreated", "conversationsClosed", "conversationsReopened", "messages", "contactMessages", "agentMessages", "botMessages"].map((name) => ({ name })), drawn: ["conversationsCreated", "conversationsClosed"] },
  backlog: { figures: [{ name: "open" }, { name: "waiting" }], drawn: ["open"] },
};

/** The number of values from which medians and percentages are compared. Below it, the 90th percentile is the largest value, and one rating moves CSAT by more than 10 points. */
export const FEW_BELOW = 10;

const number = (/** @type {number} */ n, digits = 2) => n.toLocaleString(locale, { maximumFractionDigits: digits });
const percent = (/** @type {number} */ n, digits = 1) => (n / 100).toLocaleString(locale, { style: "percent", maximumFractionDigits: digits });

/** Units of time, from the number of seconds on from which they are used. @type {["seconds"|"minutes"|"hours"|"days", number, number][]} */
const UNITS = [["days", 86_400, 2 * 86_400], ["hours", 3600, 2 * 3600], ["minutes", 60, 60], ["seconds", 1, 0]];
const unitOf = (/** @type {number} */ seconds) => /** @type {typeof UNITS[0]} */ (UNITS.find(([, , from]) => Math.abs(seconds) >= from));

/** Format a number of seconds. @param {number} seconds */
function durationText(seconds) {
  const [unit, length] = unitOf(seconds);
  return t.reports.lasted[unit](number(seconds / length, unit === "seconds" ? 0 : 1));
}

/** Format a figure; a dash for none. @param {Figure} of @param {number|null|undefined} value */
export const shown = (of, value) => (value === null || value === undefined ? "–" : of.unit === "time" ? durationText(value) : of.unit === "percent" ? percent(value) : number(value));

/** Return the name of a figure. @param {Figure} of */
export const figureName = (of) => t.reports.figures[/** @type {"median"} */ (of.name)];

/** Return the values of a figure as a chart draws them, in one unit. @param {Figure} of @param {any[]} rows @param {number} longest  in seconds, of all figures that are drawn */
export function drawn(of, rows, longest) {
  const [, length] = unitOf(longest);
  return rows.map((row) => (typeof row?.[of.name] !== "number" ? null : of.unit === "time" ? Math.round((row[of.name] / length) * 100) / 100 : row[of.name]));
}
/** Return the unit of a figure in a chart. @param {Figure} of @param {number} longest */
export const chartUnit = (of, longest) => (of.unit === "time" ? t.reports.units[unitOf(longest)[0]] : of.unit === "percent" ? "%" : undefined);

/** Return how many values the figures of a report are made of; null if the figures are counts. @param {any} figures @returns {number|null} */
export const sizeOf = (figures) => (typeof figures?.count === "number" ? figures.count : null);

/** True if medians or percentages of this many values say little. @param {number|null} size */
export const isFew = (size) => size !== null && size < FEW_BELOW;

/** Return the number of values, and a warning if there are few. @param {Metric} metric @param {any} figures @returns {string|null} */
export function sizeText(metric, figures) {
  const size = sizeOf(figures);
  if (size === null) return null;
  const counted = t.reports.counted[/** @type {"csat"} */ (metric)](size);
  return size > 0 && isFew(size) ? t.reports.few(counted) : counted;
}

/**
 * Return the change of a figure since the period before; null if there is nothing to compare.
 * @param {Metric} metric @param {Figure} of @param {any} now @param {any} before  the figures of both periods @returns {string|null}
 */
export function changeText(metric, of, now, before) {
  const [value, earlier] = [now?.[of.name], before?.[of.name]];
  if (typeof value !== "number") return null;
  if (typeof earlier !== "number") return t.reports.nothingBefore;
  const size = of.name === "count" ? null : sizeOf(before);
  const only = size !== null && isFew(size) ? t.reports.onlyBefore(t.reports.counted[/** @type {"csat"} */ (metric)](size)) : "";
  const was = shown(of, earlier);
  if (shown(of, value) === was) return `${t.reports.unchanged(was)}${only}`;
  const by = of.unit === "percent" ? t.reports.points(number(Math.abs(value - earlier), 1)) : shown(of, Math.abs(value - earlier));
  const share = isShareKnown(of, earlier, now, before) ? percent(((value - earlier) / earlier) * 100, 0).replace(/^(?=\d)/, "+") : "";
  return `${value > earlier ? t.reports.up(by, was, share) : t.reports.down(by, was, share)}${only}`;
}

/** True if a change in percent says something: never for ratings and percentages, and not if it is of few. @param {Figure} of @param {number} earlier @param {any} now @param {any} before */
function isShareKnown(of, earlier, now, before) {
  if (of.unit === "percent" || of.unit === "rating") return false;
  if (of.unit === "time") return earlier > 0 && !isFew(sizeOf(now)) && !isFew(sizeOf(before));
  return earlier >= FEW_BELOW;
}

/** Return by how many days the period before is earlier: its own length, in whole weeks, so that the same weekdays are compared. @param {number} days */
export const daysEarlier = (days) => (days < 7 ? days : Math.ceil(days / 7) * 7);

/** Return a moment that is some days earlier at the same time of day. @param {Date} at @param {number} days */
export function earlier(at, days) {
  const then = new Date(at);
  then.setDate(then.getDate() - days);
  return then;
}
