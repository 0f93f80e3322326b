// @ts-check
/** A field that filters a list, to choose one entry by keys or pointer. */
import { html, useState } from "../vendor/preact.js";
import { Icon, cx } from "./parts.js";

/** @typedef {{key: string, label: string, face?: any, icon?: string, hint?: string, chosen?: boolean, checked?: boolean | "mixed", pick: () => void}} Option */

/** The box of an option that can be checked. @param {{checked: boolean | "mixed"}} props */
const CheckBox = ({ checked }) => html`<span class=${cx("tick", checked && "on")}>${checked && html`<${Icon} name=${checked === "mixed" ? "minus" : "check"} />`}</span>`;

/**
 * A field that filters a list. Arrow keys move in it, Enter chooses.
 * @param {{label: string, options: Option[], empty: string, q: string, type: (q: string) => void, multiple?: boolean, submit?: () => void}} props
 *   multiple: options are checked and unchecked; submit: called by Ctrl Enter
 */
export function Chooser({ label, options, empty, q, type, multiple = false, submit }) {
  const [at, setAt] = useState(0);
  const now = Math.min(at, options.length - 1);
  const pressed = (/** @type {KeyboardEvent} */ event) => {
    if ((event.key === "ArrowDown" || event.key === "ArrowUp") && options.length) (event.preventDefault(), setAt((now + (event.key === "ArrowDown" ? 1 : options.length - 1)) % options.length));
    if (event.key === "Enter" && submit && (event.ctrlKey || event.metaKey)) (event.preventDefault(), submit());
    else if (event.key === "Enter") (event.preventDefault(), options[now]?.pick());
  };
  return html`<div class="chooser">
    <input class="field" type="text" role="combobox" autofocus autocomplete="off" aria-label=${label} placeholder=${label} aria-expanded="true" aria-controls="choices" aria-activedescendant=${options.length ? `choice-${now}` : undefined}
      value=${q} onInput=${(/** @type {any} */ event) => (type(event.target.value), setAt(0))} onKeyDown=${pressed} />
    ${options.length === 0 && html`<p class="muted">${empty}</p>`}
    <div class="choices" role="listbox" id="choices" aria-label=${label} aria-multiselectable=${multiple ? "true" : undefined}>${options.map((each, i) => html`<div key=${each.key} id=${`choice-${i}`} class=${cx("menu-item", i === now && "active")} role="option" aria-selected=${each.checked === undefined ? Boolean(i === now) : undefined} aria-checked=${each.checked === undefined ? undefined : String(each.checked)}
      onMouseMove=${() => i !== now && setAt(i)} onClick=${each.pick}>${each.checked !== undefined && html`<${CheckBox} checked=${each.checked} />`}${each.face ?? (each.icon && html`<${Icon} name=${each.icon} />`)}<bdi class="ellipsis">${each.label}</bdi>${each.hint && html`<span class="hint">${each.hint}</span>`}${each.chosen && html`<span class="hint"><${Icon} name="check" /></span>`}</div>`)}</div>
  </div>`;
}
