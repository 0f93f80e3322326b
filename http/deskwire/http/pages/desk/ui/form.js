// @ts-check
/** Forms: fields with labels and hints, and the service's problems beside them. */
import { createContext, html, useContext, useEffect, useId, useLayoutEffect, useRef, useState } from "../vendor/preact.js";
import { t } from "./texts.js";
import { Button, cx } from "./parts.js";
import { Problem } from "../core/api.js";
import { useFormDraft } from "./form-draft.js";

/** @typedef {{pointer: string, code: string, message: string}} FieldProblem */
/** The problems of the enclosing form. @type {any} */
const Problems = createContext(/** @type {FieldProblem[]} */ ([]));

/** Return whether a problem concerns a field or a part of it. @param {FieldProblem} problem @param {string} name */
const about = ({ pointer }, name) => pointer === `/${name}` || pointer.startsWith(`/${name}/`);

/** The name of the focused field of a form that was just removed, "" for its button; null for none. @type {string|null} */
let lastFocus = null;

/** Keep the focus when a form is replaced, as after saving. @param {{current: HTMLFormElement|null}} box */
function useKeptFocus(box) {
  useLayoutEffect(() => {
    const form = box.current;
    if (lastFocus !== null && document.activeElement === document.body) /** @type {HTMLElement|null|undefined} */ (form?.querySelector(lastFocus ? `[name="${CSS.escape(lastFocus)}"]` : "[type=submit]"))?.focus();
    return () => {
      if (!form?.contains(document.activeElement)) return;
      lastFocus = /** @type {HTMLInputElement} */ (document.activeElement).name ?? "";
      queueMicrotask(() => void (lastFocus = null)); // the replacement is rendered by then
    };
  }, []);
}

/**
 * A form whose `save` makes the call. Problems appear beside the fields they name, others above the form. The first wrong field gets the focus.
 * @param {{save: (form: Values) => Promise<unknown>, label: string, kind?: string, cancel?: () => void, class?: string, disabled?: boolean, children?: any}} props
 *   save: may throw a Problem. cancel: the action of a second button
 */
export function Form({ save, label, kind = "primary", cancel, disabled, children, ...rest }) {
  const box = useRef(/** @type {HTMLFormElement|null} */ (null));
  useKeptFocus(box);
  useFormDraft(box, kind === "danger");
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState(/** @type {any} */ (null));
  const errors = /** @type {FieldProblem[]} */ (error?.errors ?? []);
  const fields = [...(box.current?.elements ?? [])].map((each) => /** @type {any} */ (each).name).filter(Boolean);
  const others = errors.filter((each) => !fields.some((name) => about(each, name)));
  const submit = async (/** @type {Event} */ event) => {
    event.preventDefault();
    if (busy || disabled || !box.current) return;
    setBusy(true);
    setError(null);
    try {
      await save(new Values(box.current));
    } catch (problem) {
      if (!(problem instanceof Error)) throw problem;
      setError(problem);
    } finally {
      setBusy(false);
    }
  };
  // After the fields have rendered their problems, which they do later than the form.
  useEffect(() => {
    if (error) /** @type {HTMLElement|null} */ (box.current?.querySelector("[aria-invalid=true]") ?? box.current?.querySelector("[role=alert]"))?.focus();
  }, [error]);
  const said = error && (!errors.length || others.length) ? html`<div class="wrong" role="alert" tabindex="-1"><p>${errors.length ? t.problems : error.message}</p>${others.length > 0 && html`<ul>${others.map((each) => html`<li key=${each.pointer}><code>${each.pointer}</code> ${each.message}</li>`)}</ul>`}
    ${error instanceof Problem && error.status >= 500 && html`<p class="mono">${error.requestId}</p>`}</div>` : null;
  return html`<form ref=${box} class=${cx("form", rest.class)} onSubmit=${submit} novalidate>
    <${Problems.Provider} value=${errors}>${said}${children}<//>
    <div class="actions">${cancel && html`<${Button} label=${t.cancel} kind="quiet" press=${cancel} />`}<button type="submit" class=${cx("button", kind)} aria-disabled=${busy || disabled ? "true" : undefined}>${busy ? t.doing : label}</button></div>
  </form>`;
}

/** The values of a form. */
export class Values {
  /** @param {HTMLFormElement} form */
  constructor(form) {
    this.data = new FormData(form);
  }

  /** Return the trimmed text of a field; undefined if it is empty. @param {string} name @returns {string|undefined} */
  text(name) {
    return String(this.data.get(name) ?? "").trim() || undefined;
  }

  /** Return the text of a field unchanged; "" if there is none. @param {string} name */
  raw(name) {
    return String(this.data.get(name) ?? "");
  }

  /** Return the number in a field; undefined if it is empty. @param {string} name */
  number(name) {
    const text = this.text(name);
    return text === undefined ? undefined : Number(text);
  }

  /** Return whether a checkbox is ticked. @param {string} name */
  on(name) {
    return this.data.has(name);
  }

  /** Return the values of all ticked checkboxes of a name. @param {string} name */
  all(name) {
    return this.data.getAll(name).map(String);
  }
}

/** Return a problem in words, after the part of the field that it names. @param {FieldProblem} problem @param {string} name @param {(rest: string) => string} part */
const problemText = ({ pointer, message }, name, part) => (pointer === `/${name}` ? message : `${part(pointer.slice(name.length + 2))}: ${message}`);

/** The problems of a group of controls or a checkbox. @param {{name: string, id?: string}} props */
export function FieldProblems({ name, id }) {
  const problems = /** @type {FieldProblem[]} */ (useContext(Problems)).filter((each) => about(each, name));
  return problems.length > 0 && html`<p class="wrong" id=${id} role="alert" tabindex="-1">${problems.map((each) => problemText(each, name, (rest) => rest)).join(" ")}</p>`;
}

/**
 * A field with its label. The field keeps its own value; `initial` only sets the first one.
 * @param {{name: string, label: string, hint?: any, initial?: string|number|null, type?: string, rows?: number, options?: {value: string, label: string}[],
 *   mono?: boolean, exact?: boolean, part?: (rest: string) => string, [more: string]: any}} props  rows: makes it a text area; options: makes it a select;
 *   exact: problems of parts of the value are shown elsewhere; part: names a part, by the rest of the problem's pointer; more: attributes of the input
 */
export function Field({ name, label, hint, initial, type = "text", rows, options, mono, exact, part = (rest) => rest, ...more }) {
  const id = useId();
  const problems = /** @type {FieldProblem[]} */ (useContext(Problems)).filter((each) => (exact ? each.pointer === `/${name}` : about(each, name)));
  const described = cx(hint && `${id}-hint`, problems.length > 0 && `${id}-wrong`) || undefined;
  const common = { id, name, class: cx("field", mono && "mono"), "aria-describedby": described, "aria-invalid": problems.length ? "true" : undefined, ...more };
  const value = initial ?? "";
  const input = options
    ? html`<select ...${common}>${options.map((each) => html`<option key=${each.value} value=${each.value} selected=${each.value === String(value)}>${each.label}</option>`)}</select>`
    : rows
      ? html`<textarea ...${common} rows=${rows} dir="auto" defaultValue=${String(value)}></textarea>`
      : html`<input ...${common} type=${type} dir=${type === "text" && !mono ? "auto" : undefined} autocomplete=${more.autocomplete ?? "off"} defaultValue=${String(value)} />`;
  return html`<div class="label"><label for=${id}>${label}</label>${input}
    ${hint && html`<p class="hint" id=${`${id}-hint`}>${hint}</p>`}
    ${problems.length > 0 && html`<p class="wrong" id=${`${id}-wrong`}>${problems.map((each) => problemText(each, name, part)).join(" ")}</p>`}
  </div>`;
}

/** A checkbox. @param {{name: string, label: any, value?: string, initial?: boolean, hint?: any, [more: string]: any}} props */
export const Tick = ({ name, label, value = "on", initial, hint, ...more }) =>
  html`<label class="switch"><input type="checkbox" name=${name} value=${value} defaultChecked=${initial} ...${more} /><span>${label}${hint && html`<br /><span class="muted">${hint}</span>`}</span></label><${FieldProblems} name=${name} />`;
