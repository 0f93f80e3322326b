// @ts-check
/**
 * The part of a thread that is in the document: chunks near the viewport. A chunk that is far from it leaves one element of the same height, and a
 * text for the browser's search. The scroll position does not move, because the heights are measured.
 */
import { Component, html } from "../vendor/preact.js";
import { cx } from "../ui/parts.js";
import { dayOf } from "../ui/format.js";
import { FailureLine, Run } from "./message.js";
/** @import { AgentMessage, Delivery } from "../core/types.js" */

/** @typedef {{kind: "day", key: string, at: string} | {kind: "run", key: string, messages: AgentMessage[]} | {kind: "trouble", key: string, of: Delivery, n: number}} Part */

/** Chunks within this distance of the viewport are rendered. */
const MARGIN_PX = 1_200;
const WEIGHT_MIN = 8;
const WEIGHT_MAX = 32;

/** @param {Part} part */
const weight = (part) => (part.kind === "run" ? part.messages.length : 1);

/** Split parts into chunks of some messages that stay the same when older ones are loaded. @param {Part[]} all @returns {Part[][]} */
export function chunks(all) {
  /** @type {Part[][]} */
  const found = [];
  let size = 0;
  for (const each of all) {
    const last = found.at(-1);
    let hash = 0;
    for (const letter of each.key) hash = (hash * 31 + letter.charCodeAt(0)) >>> 0;
    if (!last || size + weight(each) > WEIGHT_MAX || (size > WEIGHT_MIN && hash % 10 === 0)) (found.push([each]), (size = 0));
    else last.push(each);
    size += weight(each);
  }
  return found;
}

// The line of a day moves up when older messages of the day are loaded, and the browser keeps the place of an element that moves.
/** Return the key of a chunk. @param {Part[]} chunk */
export const keyOf = (chunk) => (chunk.find((each) => each.kind === "run") ?? chunk[0])?.key;

/** @param {Part} a @param {Part | undefined} b */
const samePart = (a, b) => b !== undefined && a.key === b.key && (a.kind === "run" ? b.kind === "run" && a.messages.length === b.messages.length && a.messages.every((each, i) => each === b.messages[i]) : a.kind !== "trouble" || (b.kind === "trouble" && a.n === b.n));

/** The chunks of the open thread by their elements. @type {Map<Element, Chunk>} */
const shown = new Map();
/** @type {IntersectionObserver | null} */
let observer = null;

/** Return what notices which chunks are near the viewport of the messages. @param {Element} element */
function observing(element) {
  const root = element.closest(".log");
  if (!observer || observer.root !== root) {
    observer?.disconnect();
    observer = new IntersectionObserver((entries) => entries.forEach((each) => shown.get(each.target)?.moved(each.isIntersecting)), { root, rootMargin: `${MARGIN_PX}px 0px` });
    for (const each of shown.keys()) if (root?.contains(each)) observer.observe(each);
  }
  return observer;
}

/** Render all chunks, for printing. */
const renderAll = () => shown.forEach((each) => each.moved(true));
if (typeof addEventListener === "function") addEventListener("beforeprint", renderAll);

/** Render the chunk of a message, if it is loaded. @param {string} id @returns {boolean} */
export function renderMessage(id) {
  const of = [...shown.values()].find((chunk) => /** @type {Part[]} */ (/** @type {any} */ (chunk).props.of).some((each) => each.kind === "run" && each.messages.some((one) => one.id === id)));
  of?.moved(true);
  return Boolean(of);
}

/** A chunk of the thread. It renders again only if its content changes, and nothing of it while it is far from the viewport. */
export class Chunk extends Component {
  box = { current: /** @type {HTMLElement | null} */ (null) };
  /** The height without its content; 0 while it is rendered. */
  height = 0;

  /** @override */
  componentDidMount() {
    const el = /** @type {HTMLElement} */ (this.box.current);
    shown.set(el, this);
    observing(el).observe(el);
  }
  /** @override */
  componentWillUnmount() {
    const el = /** @type {HTMLElement} */ (this.box.current);
    shown.delete(el);
    observer?.unobserve(el);
  }
  // Together with the content, and not before: until then the element must be as high as it was.
  /** @override */
  componentDidUpdate() {
    this.box.current?.style.setProperty("height", this.height ? `${this.height}px` : "auto");
  }
  /** Render again: the height may be another now. The observer then reports if the chunk is near. */
  measureAgain() {
    const el = /** @type {HTMLElement} */ (this.box.current);
    this.height = 0;
    observer?.unobserve(el);
    observer?.observe(el);
  }
  /** @param {boolean} near */
  moved(near) {
    const el = /** @type {HTMLElement} */ (this.box.current);
    if (near === !this.height || (!near && (/** @type {any} */ (this).props.last || el.contains(document.activeElement) || selected(el)))) return;
    this.height = near ? 0 : el.getBoundingClientRect().height;
    this.forceUpdate();
  }
  /** @override @param {any} next */
  shouldComponentUpdate(next) {
    const now = /** @type {any} */ (this).props;
    const changed = next.last !== now.last || next.of.length !== now.of.length || !next.of.every((/** @type {Part} */ each, /** @type {number} */ i) => samePart(each, now.of[i]));
    if (changed && this.height) this.measureAgain();
    return changed;
  }
  render() {
    const { of, last } = /** @type {any} */ (this).props;
    const found = () => (this.moved(true), requestAnimationFrame(() => this.box.current?.scrollIntoView({ block: "center" })));
    return html`<div ref=${this.box} class=${cx("chunk", last && "last")}>${
      this.height
        ? html`<p key="text" hidden="until-found" onbeforematch=${found}>${of.flatMap((/** @type {Part} */ each) => (each.kind === "run" ? each.messages.map((one) => one.text) : [])).join("\n")}</p>`
        : of.map((/** @type {Part} */ each) => (each.kind === "day" ? html`<div key=${each.key} class="day"><span>${dayOf(each.at)}</span></div>` : each.kind === "trouble" ? html`<${FailureLine} key=${each.key} of=${each.of} n=${each.n} />` : html`<${Run} key=${each.key} messages=${each.messages} />`))
    }</div>`;
  }
}

/** True if the user's selection begins or ends in an element, so that it must stay. @param {Element} el */
function selected(el) {
  const now = getSelection();
  return Boolean(now && !now.isCollapsed && (el.contains(now.anchorNode) || el.contains(now.focusNode)));
}
