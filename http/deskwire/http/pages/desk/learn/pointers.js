// @ts-check
/** The lines of a JSON text: on which each of its values stands, by JSON pointer (RFC 6901). */

const TOKEN = /"(?:[^"\\\n]|\\.)*"|[{}[\],:]|[^\s{}[\],:"]+|\n/g;
const escaped = (/** @type {string|number} */ name) => String(name).replaceAll("~", "~0").replaceAll("/", "~1");

/** @typedef {{pointer: string, next: number|null, key: string|null}} Around  an object has `key`, an array counts with `next` */

/**
 * The line, from 1, on which each value of a valid JSON text begins; that of a member is the line of its name.
 * @param {string} text @returns {Map<string, number>}
 */
export function linesOf(text) {
  const lines = new Map([["", 1]]);
  /** @type {Around[]} */
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

/** The line of a pointer, or that of the nearest value around it that is there. @param {Map<string, number>} lines @param {string} pointer */
export function lineAt(lines, pointer) {
  for (let there = pointer; there; there = there.slice(0, there.lastIndexOf("/"))) {
    const line = lines.get(there);
    if (line !== undefined) return line;
  }
  return 1;
}

/** The value of a JSON text, or the line on which it is none, and why. @param {string} text @returns {{value: any} | {line: number, message: string}} */
export function parsed(text) {
  try {
    return { value: JSON.parse(text) };
  } catch (error) {
    const message = /** @type {Error} */ (error).message;
    const position = /position (\d+)/.exec(message);
    const end = position ? Number(position[1]) : text.length;
    return { line: text.slice(0, end).split("\n").length, message: message.replace(/ in JSON at position.*$/, "").replace(/, "[\s\S]*$/, "") };
  }
}
