// @ts-check
/** An editor for definitions in JSON, with the problems that the service finds beside their lines. */
import { html, useEffect, useId, useRef, useState } from "../vendor/preact.js";
import { t } from "./texts.js";
import { cx } from "../ui/parts.js";
import { useFormDraft } from "../ui/form-draft.js";

/** @typedef {{line: number, path: string, code: string, message: string}} LineProblem */
/** @typedef {{value: any, problems: LineProblem[], checking: boolean, failed: any}} Checked  value: undefined if the text is no JSON */

const CHECK_DELAY_MS = 300;

/** Format a definition for editing. @param {any} value */
export const pretty = (value) => JSON.stringify(value, null, 2);

/**
 * Check a text shortly after each change.
 * @param {string} text @param {(value: any) => Promise<{path: string, code: string, message: string}[]>} ask  returns the problems of a value @returns {Checked}
 */
export function useProblems(text, ask) {
  const [known, set] = useState(/** @type {Checked} */ ({ value: undefined, problems: [], checking: true, failed: null }));
  useEffect(() => {
    const found = parseJson(text);
    if ("message" in found) return set({ value: undefined, problems: [{ line: found.line, path: "", code: "not_json", message: t.editor.notJson(found.message) }], checking: false, failed: null });
    set((before) => ({ ...before, value: found.value, checking: true }));
    let left = false;
    const timer = setTimeout(async () => {
      try {
        const errors = await ask(found.value);
        const lines = linesOf(text);
        if (!left) set({ value: found.value, problems: errors.map((each) => ({ ...each, line: lineAt(lines, each.path) })), checking: false, failed: null });
      } catch (failed) {
        if (!left) set((before) => ({ ...before, checking: false, failed }));
      }
    }, CHECK_DELAY_MS);
    return () => ((left = true), clearTimeout(timer));
  }, [text]);
  return known;
}

/** Return the result of a check in words. @param {Checked} of */
export function verdict({ checking, failed, problems }) {
  if (failed) return failed.message;
  if (checking && !problems.length) return t.editor.checking;
  return problems.length ? t.editor.problems(problems.length) : t.editor.sound;
}

/** @param {{label: string, text: string, change?: (text: string) => void, of: Checked}} props  read-only without `change` */
export function Editor({ label, text, change, of }) {
  const id = useId();
  const box = useRef(/** @type {HTMLTextAreaElement|null} */ (null));
  const whole = useRef(/** @type {HTMLElement|null} */ (null));
  useFormDraft(whole, !change);
  const rows = text.split("\n").length;
  const byLine = Map.groupBy(of.problems, (each) => each.line);
  const jump = (/** @type {number} */ line) => {
    const before = text.split("\n").slice(0, line - 1).join("\n").length + (line > 1 ? 1 : 0);
    const end = text.indexOf("\n", before);
    box.current?.focus();
    box.current?.setSelectionRange(before, end < 0 ? text.length : end);
  };
  return html`<div ref=${whole} class="editor">
    <div class="sheet">
      <div class="gutter" aria-hidden="true">${Array.from({ length: rows }, (_, i) => html`<span key=${i} class=${cx(byLine.has(i + 1) && "bad")}>${byLine.has(i + 1) ? `● ${i + 1}` : i + 1}</span>`)}</div>
      <textarea ref=${box} name="definition" class="mono" rows=${rows} wrap="off" spellcheck="false" autocapitalize="off" aria-label=${label} aria-describedby=${`${id}-verdict`} aria-invalid=${of.problems.length ? "true" : undefined}
        readonly=${!change} value=${text} onInput=${(/** @type {any} */ event) => change?.(event.target.value)}></textarea>
      <div class="beside" aria-hidden="true">${Array.from({ length: rows }, (_, i) => html`<span key=${i} title=${byLine.get(i + 1)?.map((each) => each.message).join(" ")}>${byLine.get(i + 1)?.map((each) => each.message).join(" ")}</span>`)}</div>
    </div>
    <p id=${`${id}-verdict`} class=${of.problems.length || of.failed ? "wrong" : "muted"} role="status">${verdict(of)}</p>
    ${of.problems.length > 0 && html`<ul class="problems" aria-label=${t.editor.list}>${of.problems.map((each) => html`<li key=${each.path + each.code}><button type="button" class="link" onClick=${() => jump(each.line)}>${t.editor.line(each.line)}</button> <span>${each.message}</span> <code>${each.path}</code></li>`)}</ul>`}
  </div>`;
}

const TOKEN = /"(?:[^"\\\n]|\\.)*"|[{}[\],:]|[^\s{}[\],:"]+|\n/g;
const escapePointer = (/** @type {string|number} */ name) => String(name).replaceAll("~", "~0").replaceAll("/", "~1");

/** @typedef {{pointer: string, next: number|null, key: string|null}} Container  an object has `key`, an array the index `next` */

/**
 * Return the line, from 1, of each value of a JSON text by its pointer (RFC 6901). A member's line is that of its name.
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
    return last ? `${last.pointer}/${escapePointer(last.next ?? last.key ?? "")}` : "";
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

/** Parse a JSON text; for an invalid one, return the line of the error and its message. @param {string} text @returns {{value: any} | {line: number, message: string}} */
export function parseJson(text) {
  try {
    return { value: JSON.parse(text) };
  } catch (error) {
    const message = /** @type {Error} */ (error).message;
    const position = /position (\d+)/.exec(message);
    const end = position ? Number(position[1]) : text.length;
    return { line: text.slice(0, end).split("\n").length, message: message.replace(/ in JSON at position.*$/, "").replace(/, "[\s\S]*$/, "") };
  }
}
