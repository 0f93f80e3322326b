// @ts-check
/** The formatting toolbar of the editor, and the preview of a message. */
import { h, html, useMemo, useRef } from "../vendor/preact.js";
import { t } from "../core/texts-lazy.js";
import { draw, parse } from "../core/markdown.js";
import { cx, spoken } from "../ui/parts.js";
import { FORMATS, formatted, setFormatted } from "./formatting.js";

/** @typedef {keyof typeof FORMATS} Format */
const KEYS = /** @type {Partial<Record<Format, string>>} */ ({ bold: "mod+b", italic: "mod+i", code: "mod+e", link: "mod+k" });
const SHAPES = {
  bold: "M5 3h4a2.4 2.4 0 0 1 0 5H5zm0 5h4.5a2.5 2.5 0 0 1 0 5H5z",
  italic: "M7 3h5M4 13h5M9.5 3l-3 10",
  code: "m5.5 4.5-3.5 3.5 3.5 3.5m5-7 3.5 3.5-3.5 3.5",
  link: "M7 9a2.6 2.6 0 0 0 3.8.2l2-2A2.6 2.6 0 0 0 9 3.5l-1 1M9 7a2.6 2.6 0 0 0-3.8-.2l-2 2A2.6 2.6 0 0 0 7 12.5l1-1",
  bullets: "M2.5 4h.1M2.5 8h.1M2.5 12h.1M6 4h8M6 8h8M6 12h8",
  numbers: "M2 3h1v3M2 10h1.5L2 13h2M7 4h7M7 8h7M7 12h7",
  quote: "M3 3v10M7 5h7M7 8h7M7 11h4",
};

/** Text of a message that is Markdown. @param {{text: string, class?: string, mark?: (text: string) => any}} props */
export function Markdown({ text, mark, ...rest }) {
  const nodes = useMemo(() => draw(parse(text), h, "", mark), [text, mark]);
  return html`<div class=${cx("text markup", rest.class)} dir="auto">${nodes}</div>`;
}

/**
 * The toolbar: one stop for Tab, and arrow keys between its buttons.
 * @param {{box: {current: HTMLTextAreaElement | null}, preview: boolean, setPreview: (on: boolean) => void}} props
 */
export function FormatBar({ box, preview, setPreview }) {
  const bar = useRef(/** @type {HTMLElement | null} */ (null));
  const at = useRef(0);
  const buttons = () => [...(bar.current?.querySelectorAll("button") ?? [])];
  const moved = (/** @type {KeyboardEvent} */ event) => {
    const all = buttons();
    const now = all.indexOf(/** @type {any} */ (document.activeElement));
    const forward = getComputedStyle(/** @type {HTMLElement} */ (bar.current)).direction === "rtl" ? "ArrowLeft" : "ArrowRight";
    const to = { Home: 0, End: all.length - 1, ArrowLeft: now + (forward === "ArrowLeft" ? 1 : -1), ArrowRight: now + (forward === "ArrowRight" ? 1 : -1) }[event.key];
    if (event.key === "Escape") (event.preventDefault(), event.stopPropagation(), box.current?.focus());
    if (to === undefined || now < 0) return;
    event.preventDefault();
    at.current = (to + all.length) % all.length;
    all.forEach((each, i) => (each.tabIndex = i === at.current ? 0 : -1));
    all[at.current]?.focus();
  };
  const button = (/** @type {string} */ label, /** @type {any} */ face, /** @type {() => void} */ press, /** @type {any} */ more) =>
    html`<button type="button" class=${cx("button quiet small", face.icon && "icon-only")} tabindex=${more.i === at.current ? 0 : -1} aria-label=${face.icon ? label : undefined} aria-pressed=${more.pressed}
      title=${more.keys ? t.withKeys(label, spoken(more.keys)) : label} onMouseDown=${(/** @type {Event} */ event) => event.preventDefault()} onClick=${press}>${face.icon ? html`<svg class="icon" viewBox="0 0 16 16" aria-hidden="true"><path d=${face.icon} /></svg>` : label}</button>`;
  const formats = /** @type {Format[]} */ (Object.keys(FORMATS));
  return html`<div ref=${bar} class="formats" role="toolbar" aria-label=${t.formatting.bar} onKeyDown=${moved}>
    ${formats.map((each, i) => button(t.formatting[each], { icon: SHAPES[each] }, () => box.current && FORMATS[each](box.current, t.formatting.words), { i, keys: KEYS[each] }))}
    ${button(t.formatting.preview, {}, () => setPreview(!preview), { i: formats.length, pressed: preview })}
    ${button(t.formatting.on, {}, () => setFormatted(!formatted.value), { i: formats.length + 1, pressed: formatted.value })}
  </div>`;
}
