// @ts-check
/** Formats text with links, days and times, and names of browsers, and lists the times for snoozing. */
import { locale } from "../core/texts.js";
import { html } from "../vendor/preact.js";
import { t } from "../core/texts-lazy.js";
import { clockTime, cx, fullTime, now } from "./parts.js";

const dayName = new Intl.DateTimeFormat(locale, { weekday: "long", day: "numeric", month: "long" });
const dayYear = new Intl.DateTimeFormat(locale, { day: "numeric", month: "long", year: "numeric" });

/** Return a day in words: today, yesterday, or a weekday with its date. @param {string | number} at */
export function dayOf(at) {
  const day = new Date(at);
  const today = new Date(now.value);
  const between = Math.round((new Date(today).setHours(0, 0, 0, 0) - new Date(day).setHours(0, 0, 0, 0)) / 86_400_000);
  if (between === 0) return t.today;
  if (between === 1) return t.yesterday;
  return (between < 200 && between > -200 ? dayName : dayYear).format(day);
}

/** The time of day. @param {{at: string}} props */
export const Clock = ({ at }) => html`<time datetime=${at} title=${fullTime(at)}>${clockTime(at)}</time>`;

const toTheSecond = new Intl.DateTimeFormat(locale, { hour: "2-digit", minute: "2-digit", second: "2-digit" });
/** Return a moment to the second, with its day unless that is today. @param {string} at */
export function exactTime(at) {
  const time = toTheSecond.format(new Date(at));
  return new Date(at).toDateString() === new Date(now.value).toDateString() ? time : `${dayOf(at)}, ${time}`;
}

/** Return how long something took: milliseconds, or seconds if these are many. @param {number} ms */
export const tookText = (ms) => (ms < 10_000 ? t.truth.ms(ms) : t.truth.s(Math.round(ms / 1000)));

const moment = { weekday: "short", day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" };
/** Return a future moment with its weekday, date and time, and with its year unless that is the present one. @param {string | number | Date} at */
export function momentAhead(at) {
  const date = new Date(at);
  const year = date.getFullYear() === new Date(now.value).getFullYear() ? {} : { year: "numeric" };
  return date.toLocaleString(locale, /** @type {Intl.DateTimeFormatOptions} */ ({ ...moment, ...year }));
}
/** The name of this browser's time zone, as Europe/Berlin. */
export const zoneName = Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC";

/** Return tomorrow at nine. */
export function tomorrow() {
  const at = new Date();
  at.setDate(at.getDate() + 1);
  at.setHours(9, 0, 0, 0);
  return at;
}

/** Return the times that a conversation can be snoozed until. @returns {{label: string, at: Date, hint: string}[]} */
export function snoozeTimes() {
  const later = new Date(Math.ceil(Date.now() / 3_600_000) * 3_600_000 + 2 * 3_600_000);
  const week = tomorrow();
  week.setDate(week.getDate() + ((8 - week.getDay()) % 7 || 7) % 7);
  if (week.getTime() <= tomorrow().getTime()) week.setDate(week.getDate() + 7);
  const day = (/** @type {Date} */ at) => at.toLocaleDateString(locale, { weekday: "short" });
  const all = [
    { label: t.dialogs.laterToday, at: later, hint: clockTime(later.getTime()) },
    { label: t.dialogs.tomorrow, at: tomorrow(), hint: `${day(tomorrow())} ${clockTime(tomorrow().getTime())}` },
    { label: t.dialogs.nextWeek, at: week, hint: `${day(week)} ${clockTime(week.getTime())}` },
  ];
  return later.getDate() === new Date().getDate() ? all : all.slice(1);
}

const LINK = /https?:\/\/[^\s<>"'`\u200e\u200f\u202a-\u202e\u2066-\u2069\u061c]+/g;
const TAIL = /[.,;:!?…'"»)\]}]+$/;

/** Split a text into words and links. @param {string} text @returns {(string | {href: string})[]} */
export function splitLinks(text) {
  const found = [];
  let end = 0;
  for (const match of text.matchAll(LINK)) {
    let href = match[0].replace(TAIL, "");
    if (match[0][href.length] === ")" && href.includes("(")) href += ")";
    if (!URL.canParse(href)) continue;
    found.push(text.slice(end, match.index), { href });
    end = match.index + href.length;
  }
  return [...found, text.slice(end)].filter((each) => each !== "");
}

/** Text of other people: text nodes in their own direction, and links that send no referrer. @param {{text: string, class?: string, mark?: (words: string) => any}} props  mark: renders the text between links */
export const Text = (props) =>
  html`<div class=${cx("text", props.class)} dir="auto">
    ${splitLinks(props.text).map((each) => (typeof each === "string" ? (props.mark?.(each) ?? each) : html`<a href=${each.href} target="_blank" rel="noopener noreferrer nofollow">${each.href}</a>`))}
  </div>`;

const BROWSERS = /** @type {[RegExp, string][]} */ ([[/Edg\//, "Edge"], [/OPR\//, "Opera"], [/Firefox\//, "Firefox"], [/(HeadlessChrome|Chrome|Chromium)\//, "Chromium"], [/Safari\//, "Safari"]]);
const SYSTEMS = /** @type {[RegExp, string][]} */ ([[/Windows/, "Windows"], [/iPhone|iPad/, "iOS"], [/Android/, "Android"], [/Mac OS/, "macOS"], [/Linux|X11/, "Linux"]]);

/** Return the browser and system of a `User-Agent`, e.g. "Firefox, Windows"; the text itself for other clients. @param {string|null} agent */
export function clientName(agent) {
  if (!agent) return t.unknownClient;
  const found = [BROWSERS, SYSTEMS].map((names) => names.find(([fits]) => fits.test(agent))?.[1]).filter(Boolean);
  return found.length ? found.join(", ") : agent.slice(0, 80);
}
