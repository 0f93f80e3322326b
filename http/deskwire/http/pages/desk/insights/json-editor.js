// @ts-check
/** An editor for definitions in JSON, with the problems that the service finds beside their lines. */
import { html, useId, useRef } from "../vendor/preact.js";
import { t } from "./texts.js";
import { cx } from "../ui/parts.js";
import { verdict } from "./definition-check.js";
/** @import { Checked } from "./definition-check.js" */

/** @param {{label: string, text: string, change?: (text: string) => void, of: Checked}} props  read-only without `change` */
export function Editor({ label, text, change, of }) {
  const id = useId();
  const box = useRef(/** @type {HTMLTextAreaElement|null} */ (null));
  const rows = text.split("\n").length;
  const byLine = Map.groupBy(of.problems, (each) => each.line);
  const jump = (/** @type {number} */ line) => {
    const before = text.split("\n").slice(0, line - 1).join("\n").length + (line > 1 ? 1 : 0);
    const end = text.indexOf("\n", before);
    box.current?.focus();
    box.current?.setSelectionRange(before, end < 0 ? text.length : end);
  };
  return html`<div class="editor">
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
