// @ts-check
/** JSON as text: formatted, read without losing a part, and the line of each value. */
import { t } from "./texts.js";
import { t as f } from "./form-texts.js";
import { escaped } from "./form-model.js";

/** Format a definition for editing. @param {any} value */
export const pretty = (value) => JSON.stringify(value, null, 2);

const TOKEN = /"(?:[^"\\\n]|\\.)*"|[{}[\],:]|[^\s{}[\],:"]+|\n/g;

/** @typedef {{pointer: string, next: number|null, key: string|null}} Container  an object has `key`, an array the index `next` */

/**
 * Return the line, from 1, of each value of a JSON text by its pointer (RFC 6901). A member has the line of its name.
 * @param {string} text @returns {Map<string, number>}
 */
export function linesOf(text) {
  const lines = new Map([["", 1]]);
  /** @type {Container[]} */
  const around = [];
  let line = 1;
  let begun = false;
  const here = () => {
    const last = around.at(-1);
    return last ? `${last.pointer}/${escaped(last.next ?? last.key ?? "")}` : "";
  };
  const value = () => {
    if (!lines.has(here()) || !begun) lines.set(here(), line);
    begun = true;
  };
  for (const [token] of text.matchAll(TOKEN)) {
    const last = around.at(-1);
    if (token === "\n") line += 1;
    else if (token === "{" || token === "[") (value(), around.push({ pointer: here(), next: token === "[" ? 0 : null, key: null }));
    else if (token === "}" || token === "]") around.pop();
    else if (token === ",") last && (last.next === null ? (last.key = null) : (last.next += 1));
    else if (token === ":") continue;
    else if (last && last.next === null && last.key === null) ((last.key = JSON.parse(token)), lines.set(here(), line));
    else value();
  }
  return lines;
}

/** Return the line of a pointer, or of the nearest enclosing value. @param {Map<string, number>} lines @param {string} pointer */
export function lineAt(lines, pointer) {
  for (let there = pointer; there; there = there.slice(0, there.lastIndexOf("/"))) {
    const line = lines.get(there);
    if (line !== undefined) return line;
  }
  return 1;
}

/** Return the significant digits of a number. @param {string} number */
const digitsOf = (number) => number.replace(/e.*/i, "").replace(/[-.]/g, "").replace(/^0+|0+$/g, "");

/** Return the first part that is lost when a JSON text is read: a name that is given twice, or a number that has too many digits. @param {string} text @returns {{line: number, message: string}|null} */
function loss(text) {
  let line = 1;
  /** @type {(Set<string>|null)[]} */
  const names = [];
  let last = "";
  for (const [token] of text.matchAll(TOKEN)) {
    if (token === "\n") {
      line += 1;
      continue;
    }
    const known = names.at(-1);
    if (token === "{" || token === "[") names.push(token === "{" ? new Set() : null);
    else if (token === "}" || token === "]") names.pop();
    else if (token === ":" && known) {
      if (known.has(JSON.parse(last))) return { line, message: f.twice(last) };
      known.add(JSON.parse(last));
    } else if (/^-?\d/.test(token) && digitsOf(token) !== digitsOf(String(Number(token)))) return { line, message: f.inexact(token) };
    last = token;
  }
  return null;
}

/** Parse a JSON text. For an invalid one, and one of which a part would be lost, return the line of the error and its message. @param {string} text @returns {{value: any} | {line: number, message: string}} */
export function parseJson(text) {
  try {
    const value = JSON.parse(text);
    return loss(text) ?? { value };
  } catch (error) {
    const message = /** @type {Error} */ (error).message;
    const position = /position (\d+)/.exec(message);
    const end = position ? Number(position[1]) : text.length;
    return { line: text.slice(0, end).split("\n").length, message: t.editor.notJson(message.replace(/ in JSON at position.*$/, "").replace(/, "[\s\S]*$/, "")) };
  }
}
