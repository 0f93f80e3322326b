// @ts-check
/** Fields that edit a part of a definition, each with the problems that the service finds in it. */
import { createContext, html, useContext, useId, useRef, useState } from "../vendor/preact.js";
import { Button, cx } from "../ui/parts.js";
import { fieldText, get, numberOf, pointerOf, set } from "./form-model.js";
import { t as f } from "./form-texts.js";
/** @import { Path, PlacedProblem } from "./form-model.js" */

/**
 * @typedef {object} Edited  the definition of the enclosing form
 * @property {any} value
 * @property {(value: any, group?: string) => void} change
 * @property {Map<string, PlacedProblem[]>} problems  by the pointer of the field
 * @property {(after: any) => void} undo  takes back the change that has made this value, if it was the last one
 * @property {boolean} edits  false for a reader
 * @property {Record<string, Record<string, any>>} earlier  members that parts had before their type was changed, by id
 */
/** @type {any} */
export const Editing = createContext(null);

/** Return the definition of the enclosing form. @returns {Edited} */
export const useEdited = () => /** @type {any} */ (useContext(Editing));

/** Return a part of the definition, its problems, and a function that changes it. @param {Path} path */
export function usePart(path) {
  const { value, change, problems } = useEdited();
  const pointer = pointerOf(path);
  const put = (/** @type {any} */ next) => change(set(value, path, next), pointer);
  return { part: get(value, path), pointer, problems: problems.get(pointer) ?? [], put };
}

/** @param {PlacedProblem} problem */
const problemText = ({ rest, message }) => (rest ? `${rest}: ${message}` : message);

/** @param {{of: PlacedProblem[], id?: string}} props */
export const ProblemText = ({ of, id }) => of.length > 0 && html`<p class="wrong" id=${id}>${of.map(problemText).join(" ")}</p>`;

/** The problems of a group of fields. It takes the focus when its problem is selected. @param {{path: Path}} props */
export function GroupProblems({ path }) {
  const { problems, pointer } = usePart(path);
  return html`<div data-at=${pointer} tabindex="-1" class="group-problems"><${ProblemText} of=${problems} /></div>`;
}

/** A control with its label, hint and problems. @param {{path: Path, label: any, hint?: any, class?: string, control: (common: any) => any}} props  control: makes it with common attributes */
export function Labelled({ path, label, hint, control, ...rest }) {
  const id = useId();
  const { problems, pointer } = usePart(path);
  const described = cx(hint && `${id}-hint`, problems.length > 0 && `${id}-wrong`) || undefined;
  return html`<div class=${cx("label", rest.class)}><label for=${id}>${label}</label>
    ${control({ id, class: "field", "data-at": pointer, "aria-describedby": described, "aria-invalid": problems.length ? "true" : undefined })}
    ${hint && html`<p class="hint" id=${`${id}-hint`}>${hint}</p>`}<${ProblemText} of=${problems} id=${`${id}-wrong`} /></div>`;
}

/**
 * A text. @param {{path: Path, label: any, hint?: any, rows?: number, optional?: boolean, commit?: (text: string) => void, [more: string]: any}} props
 *   optional: an empty text removes the part; commit: is called once the text was typed, in place of each change
 */
export function TextAt({ path, label, hint, rows, optional, commit, class: name, ...more }) {
  const { part, put } = usePart(path);
  const typed = useTyped(fieldText(part), commit);
  const on = commit ? typed : { value: fieldText(part), onInput: (/** @type {any} */ event) => put(event.target.value === "" && optional ? undefined : event.target.value) };
  return html`<${Labelled} path=${path} label=${label} hint=${hint} class=${name} control=${(/** @type {any} */ common) =>
    rows ? html`<textarea ...${common} rows=${rows} dir="auto" ...${on} ...${more}></textarea>`
    : html`<input ...${common} type="text" dir=${commit ? undefined : "auto"} autocomplete="off" ...${on} ...${more} />`} />`;
}

/**
 * Return the properties of an input that commits its text when it is left, because other parts depend on the text. @param {string} text @param {(text: string) => void} [commit]
 */
export function useTyped(text, commit) {
  const [typed, setTyped] = useState(/** @type {string|null} */ (null));
  return {
    value: typed ?? text,
    onInput: (/** @type {any} */ event) => setTyped(event.target.value),
    onChange: (/** @type {any} */ event) => (setTyped(null), commit?.(event.target.value.trim())),
    onBlur: () => setTyped(null), // a text that was changed back fires no change
  };
}

/** A number; other text is kept as such, for the service to name. @param {{path: Path, label: any, hint?: any, [more: string]: any}} props */
export function NumberAt({ path, label, hint, ...more }) {
  const { part, put } = usePart(path);
  const [typed, setTyped] = useState("");
  const shown = typed.trim() && numberOf(typed) === part ? typed : fieldText(part);
  return html`<${Labelled} path=${path} label=${label} hint=${hint} control=${(/** @type {any} */ common) =>
    html`<input ...${common} type="text" inputmode="decimal" autocomplete="off" value=${shown} onInput=${(/** @type {any} */ event) => (setTyped(event.target.value), put(numberOf(event.target.value)))} ...${more} />`} />`;
}

/**
 * A choice. A value that is not among the options is shown as it is. @param {{path: Path, label: any, hint?: any, options: {value: string, label: string}[], pick?: (value: string) => void}} props
 *   pick: is called in place of the change
 */
export function ChooseAt({ path, label, hint, options, pick }) {
  const { part, put } = usePart(path);
  const known = options.some((each) => each.value === (typeof part === "boolean" ? String(part) : (part ?? "")));
  const all = known ? options : [{ value: fieldText(part), label: fieldText(part) || f.choose }, ...options];
  return html`<${Labelled} path=${path} label=${label} hint=${hint} control=${(/** @type {any} */ common) =>
    html`<select ...${common} onChange=${(/** @type {any} */ event) => (pick ?? put)(event.target.value)}>${all.map((each) => html`<option key=${each.value} value=${each.value} selected=${each.value === fieldText(part)}>${each.label}</option>`)}</select>`} />`;
}

/** A box to tick; unticked, the member is left out. @param {{path: Path, label: any}} props */
export function TickAt({ path, label }) {
  const id = useId();
  const { part, pointer, problems, put } = usePart(path);
  return html`<div><label class="switch"><input type="checkbox" data-at=${pointer} checked=${part === true} aria-invalid=${problems.length ? "true" : undefined} aria-describedby=${problems.length ? id : undefined} onChange=${(/** @type {any} */ event) => put(event.target.checked || undefined)} /><span>${label}</span></label><${ProblemText} of=${problems} id=${id} /></div>`;
}

/** The members without a field, shown as JSON. @param {{path: Path, names: string[]}} props */
export function OtherMembers({ path, names }) {
  const { value, change } = useEdited();
  if (!names.length) return null;
  return html`<ul class="other-members">${names.map((name) => html`<li key=${name}><code>${name}</code> <code class="ellipsis">${JSON.stringify(get(value, [...path, name]))}</code>
    <${Button} label=${f.remove(name)} icon="close" only kind="quiet" class="small" press=${() => change(set(value, [...path, name], undefined))} /></li>`)}</ul>`;
}

/**
 * The buttons of an item of a list. The focus stays with the item, or goes to its neighbour if it is removed; cards of questions move it themselves.
 * @param {{name: string, at: number, count: number, move: (to: number) => void, remove: () => void, copy?: () => void}} props
 *   name: of the item, in the labels
 */
export function ItemButtons({ name, at, count, move, remove, copy }) {
  const box = useRef(/** @type {HTMLElement|null} */ (null));
  const act = (/** @type {() => void} */ change, /** @type {number} */ step) => {
    const item = box.current?.closest("li:not(.question)");
    const list = item?.parentElement;
    const button = [...(box.current?.children ?? [])].indexOf(/** @type {Element} */ (document.activeElement));
    const place = item ? [...(list?.children ?? [])].indexOf(item) + step : 0;
    change();
    if (!list) return;
    queueMicrotask(() => { // after the list is rendered, and before the next key
      const next = list.children[Math.min(place, list.children.length - 1)];
      const own = next?.querySelector(".item-buttons")?.children;
      const there = own ? (own[button] ?? own[0]) : list.parentElement?.querySelector(":scope > .button");
      /** @type {HTMLElement|null|undefined} */ (there)?.focus();
    });
  };
  return html`<span ref=${box} class="item-buttons">
    <${Button} label=${f.up(name)} icon="up" only kind="quiet" class="small" disabled=${at === 0} press=${() => act(() => move(at - 1), -1)} />
    <${Button} label=${f.down(name)} icon="end" only kind="quiet" class="small" disabled=${at >= count - 1} press=${() => act(() => move(at + 1), 1)} />
    ${copy && html`<${Button} label=${f.copy(name)} icon="copy" only kind="quiet" class="small" press=${copy} />`}
    <${Button} label=${f.remove(name)} icon="close" only kind="quiet" class="small" press=${() => act(remove, 0)} /></span>`;
}
