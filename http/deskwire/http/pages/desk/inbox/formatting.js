// @ts-check
/** Markdown in the editor: commands for its markup, lists that continue, and pasted formatting. The browser's undo covers all of it. */
import { signal } from "../vendor/preact.js";
import { safeAddress } from "../core/markdown-inline.js";
import { hasMarkup } from "../core/markdown.js";
import { toMarkdown } from "./rich-paste.js";

const SETTING_KEY = "deskwire.formatting";
const LIST = /^(\s*(?:>\s?)*)([-*+]|(\d{1,9})([.)]))(\s+)(.*)$/;
const BLOCK_MARK = /^(\s*)(?:[-*+]\s+|\d{1,9}[.)]\s+|>\s?)?/;

/** True if messages are sent as Markdown where they have markup. Stored in this browser. */
export const formatted = signal(storedSetting());
function storedSetting() {
  try {
    return localStorage.getItem(SETTING_KEY) !== "off";
  } catch {
    return true;
  }
}

/** @param {boolean} on */
export function setFormatted(on) {
  formatted.value = on;
  try {
    localStorage.setItem(SETTING_KEY, on ? "on" : "off");
  } catch {
    // then it applies to this page only
  }
}

/** Return the format of a text to send: Markdown if it looks different from plain text. @param {string} text @returns {"markdown" | undefined} */
export const formatOf = (text) => (formatted.value && hasMarkup(text) ? "markdown" : undefined);

/**
 * Replace a part of a field's text as if it were typed, so that the browser can undo it.
 * @param {HTMLTextAreaElement} el @param {number} from @param {number} to @param {string} text
 * @param {[number, number]} [selected]  the selection afterwards; by default a caret after the text
 */
export function replacePart(el, from, to, text, selected = [from + text.length, from + text.length]) {
  el.focus();
  el.setSelectionRange(from, to);
  const done = from === to && !text ? true : text ? document.execCommand("insertText", false, text) : document.execCommand("delete");
  if (!done) {
    el.setRangeText(text, from, to, "end");
    el.dispatchEvent(new Event("input", { bubbles: true }));
  }
  el.setSelectionRange(...selected);
}

/** Return the selection without white space at its ends, which no markup may enclose. @param {HTMLTextAreaElement} el */
function selection({ value, selectionStart, selectionEnd }) {
  let [from, to] = [selectionStart, selectionEnd];
  while (from < to && /\s/.test(value[from] ?? "")) from += 1;
  while (to > from && /\s/.test(value[to - 1] ?? "")) to -= 1;
  return { value, from, to, text: value.slice(from, to) };
}

/** Put a mark around the selection, or remove it. @param {HTMLTextAreaElement} el @param {string} mark */
function toggleMark(el, mark) {
  const { value, from, to, text } = selection(el);
  const n = mark.length;
  const outside = value.slice(from - n, from) === mark && value.slice(to, to + n) === mark && from >= n;
  if (outside && text) return replacePart(el, from - n, to + n, text, [from - n, to - n]);
  if (text.length > 2 * n && text.startsWith(mark) && text.endsWith(mark)) return replacePart(el, from, to, text.slice(n, -n), [from, to - 2 * n]);
  if (!text.includes("\n")) return replacePart(el, from, to, mark + text + mark, [from + n, to + n]);
  // Markup does not reach from one block to the next, so each line gets its own.
  const marked = text.replace(/^(\s*(?:[-*+]\s+|\d{1,9}[.)]\s+|>\s?)?)(\S.*?)(\s*)$/gm, (_, start, words, end) => start + mark + words + mark + end);
  replacePart(el, from, to, marked, [from, from + marked.length]);
}

/** Make the selection code: a block if it has several lines. @param {HTMLTextAreaElement} el */
function toggleCode(el) {
  const { value, from, to, text } = selection(el);
  if (!text.includes("\n")) return toggleMark(el, text.includes("`") && !/^`.*`$/.test(text) ? "``" : "`");
  const fence = "`".repeat(Math.max(3, ...[...text.matchAll(/`+/g)].map((each) => each[0].length + 1)));
  const before = from && value[from - 1] !== "\n" ? "\n" : "";
  replacePart(el, from, to, `${before}${fence}\n${text}\n${fence}${value[to] && value[to] !== "\n" ? "\n" : ""}`);
}

const encoded = (/** @type {string} */ href) => href.replaceAll("(", "%28").replaceAll(")", "%29");

/** Make the selection a link. @param {HTMLTextAreaElement} el @param {string} [words]  for an empty selection */
function insertLink(el, words = "") {
  const { from, to, text } = selection(el);
  const href = safeAddress(text);
  const label = href ? words : text || words;
  const address = href ? encoded(href) : `https:/${"/"}`;
  const at = from + 1;
  const place = at + label.length + 2;
  replacePart(el, from, to, `[${label}](${address})`, href || !text ? [at, at + label.length] : [place, place + address.length]);
}

/** Begin each selected line with a mark, or remove it from all. @param {HTMLTextAreaElement} el @param {(at: number) => string} mark @param {RegExp} has */
function toggleLines(el, mark, has) {
  const from = el.value.lastIndexOf("\n", el.selectionStart - 1) + 1;
  const end = el.value.indexOf("\n", Math.max(el.selectionEnd - Number(el.selectionEnd > el.selectionStart), from));
  const to = end < 0 ? el.value.length : end;
  const lines = el.value.slice(from, to).split("\n");
  const on = lines.every((each) => !each.trim() || has.test(each)) && lines.some((each) => has.test(each));
  let n = 0;
  const text = lines.map((each) => (!each.trim() && lines.length > 1 ? each : each.replace(BLOCK_MARK, (_, indent) => indent + (on ? "" : mark((n += 1)))))).join("\n");
  replacePart(el, from, to, text, lines.length > 1 ? [from, from + text.length] : undefined);
}

/** The commands of the toolbar, in its order. @type {Record<"bold" | "italic" | "code" | "link" | "bullets" | "numbers" | "quote", (el: HTMLTextAreaElement, words: string) => void>} */
export const FORMATS = {
  bold: (el) => toggleMark(el, "**"),
  italic: (el) => toggleMark(el, /[\p{L}\p{N}]/u.test(`${el.value[el.selectionStart - 1] ?? ""}${el.value[el.selectionEnd] ?? ""}`) ? "*" : "_"),
  code: toggleCode,
  link: insertLink,
  bullets: (el) => toggleLines(el, () => "- ", /^\s*[-*+]\s/),
  numbers: (el) => toggleLines(el, (n) => `${n}. `, /^\s*\d{1,9}[.)]\s/),
  quote: (el) => toggleLines(el, () => "> ", /^\s*>/),
};

/** Continue the list of the line with the caret, or end it if its item is empty. Return false if there is none. @param {HTMLTextAreaElement} el */
export function continueList(el) {
  const { value, selectionStart: at, selectionEnd } = el;
  const from = value.lastIndexOf("\n", at - 1) + 1;
  const found = at === selectionEnd && LIST.exec(value.slice(from, value.indexOf("\n", at) < 0 ? undefined : value.indexOf("\n", at)));
  if (!found) return false;
  const [, indent = "", marker = "", digits, end, space = "", words = ""] = found;
  if (at < from + indent.length + marker.length + space.length) return false;
  if (!words.trim()) replacePart(el, from, at, indent.includes(">") ? indent : "");
  else replacePart(el, at, at, `\n${indent}${digits === undefined ? marker : `${Number(digits) + 1}${end}`} `);
  return true;
}

/**
 * Paste an address over a selection as a link, and formatted text as Markdown. Return false to leave it to the browser.
 * @param {HTMLTextAreaElement} el @param {DataTransfer} data
 */
export function paste(el, data) {
  if (!formatted.value) return false;
  const plain = data.getData("text/plain");
  const href = safeAddress(plain.trim());
  const { from, to, text } = selection(el);
  if (href && text && !text.includes("\n") && !safeAddress(text)) return (replacePart(el, from, to, `[${text}](${encoded(href)})`), true);
  const html = data.getData("text/html");
  const markdown = !href && html ? toMarkdown(html) : "";
  if (!markdown || !hasMarkup(markdown) || markdown === plain) return false;
  replacePart(el, el.selectionStart, el.selectionEnd, markdown);
  return true;
}
