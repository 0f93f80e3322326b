// @ts-check
/** An editor of a definition as JSON, with the problems that the service finds beside each line. */
import { html, useEffect, useId, useRef, useState } from "../vendor/preact.js";
import { t } from "./texts.js";
import { cx } from "../parts.js";
import { useKeptForm } from "../parts/kept-form.js";
import { lineAt, linesOf, parsed } from "./pointers.js";

/** @typedef {{line: number, path: string, code: string, message: string}} LineProblem */
/** @typedef {{value: any, problems: LineProblem[], checking: boolean, failed: any}} Checked  value: undefined for a text that is no JSON */

const PAUSE_MS = 300;

/** A definition as it is shown to be edited. @param {any} value */
export const pretty = (value) => JSON.stringify(value, null, 2);

/**
 * Has a text checked a moment after each change.
 * @param {string} text @param {(value: any) => Promise<{path: string, code: string, message: string}[]>} ask  what is wrong with a value @returns {Checked}
 */
export function useProblems(text, ask) {
  const [known, set] = useState(/** @type {Checked} */ ({ value: undefined, problems: [], checking: true, failed: null }));
  useEffect(() => {
    const found = parsed(text);
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
    }, PAUSE_MS);
    return () => ((left = true), clearTimeout(timer));
  }, [text]);
  return known;
}

/** What the state of a check is called. @param {Checked} of */
export function verdict({ checking, failed, problems }) {
  if (failed) return failed.message;
  if (checking && !problems.length) return t.editor.checking;
  return problems.length ? t.editor.problems(problems.length) : t.editor.sound;
}

/** @param {{label: string, text: string, change?: (text: string) => void, of: Checked}} props  without `change` it can only be read */
export function Editor({ label, text, change, of }) {
  const id = useId();
  const box = useRef(/** @type {HTMLTextAreaElement|null} */ (null));
  const whole = useRef(/** @type {HTMLElement|null} */ (null));
  useKeptForm(whole, !change);
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
