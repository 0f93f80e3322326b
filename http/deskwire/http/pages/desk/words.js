// @ts-check
/** What strangers have written as text with links, and days in words. */
import { html } from "./vendor/preact.js";
import { t } from "./texts.js";
import { clockTime, cx, fullTime, now } from "./parts.js";

const dayName = new Intl.DateTimeFormat(undefined, { weekday: "long", day: "numeric", month: "long" });
const dayYear = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "long", year: "numeric" });

/** A day in words: today, yesterday, a weekday with its date. @param {string | number} at */
export function dayOf(at) {
  const day = new Date(at);
  const today = new Date(now.value);
  const between = Math.round((new Date(today).setHours(0, 0, 0, 0) - new Date(day).setHours(0, 0, 0, 0)) / 86_400_000);
  if (between === 0) return t.today;
  if (between === 1) return t.yesterday;
  return (between < 200 && between > -200 ? dayName : dayYear).format(day);
}

/** A time of day. @param {{at: string}} props */
export const Clock = ({ at }) => html`<time datetime=${at} title=${fullTime(at)}>${clockTime(at)}</time>`;

const LINK = /https?:\/\/[^\s<>"'`\u200e\u200f\u202a-\u202e\u2066-\u2069\u061c]+/g;
const TAIL = /[.,;:!?…'"»)\]}]+$/;

/** Split text into words and links. @param {string} text @returns {(string | {href: string})[]} */
export function pieces(text) {
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

/** A stranger's text: text nodes, in its own direction, with links that tell nothing. @param {{text: string, class?: string}} props */
export const Text = (props) =>
  html`<div class=${cx("text", props.class)} dir="auto">
    ${pieces(props.text).map((each) => (typeof each === "string" ? each : html`<a href=${each.href} target="_blank" rel="noopener noreferrer nofollow">${each.href}</a>`))}
  </div>`;
