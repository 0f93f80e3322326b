// @ts-check
/** Moving a card of a list by dragging its grip, with a mouse, a pen or a finger. Keys and buttons of the card do the same. */

/** The places of the card before and after. @typedef {{from: number, to: number}} Drag */

/** Return the index that a card gets if it is dropped at a height. @param {readonly number[]} middles  of all cards, from the top @param {number} from @param {number} y */
export function cardPlace(middles, from, y) {
  const others = middles.filter((_, i) => i !== from);
  const below = others.findIndex((middle) => y < middle);
  return below < 0 ? others.length : below;
}

const SCROLL_EDGE_PX = 56;
const SCROLL_STEP_PX = 14;

/** Return by how much to scroll for a pointer near the upper or lower edge: the nearer, the faster. @param {number} top @param {number} bottom @param {number} y */
export function scrollStep(top, bottom, y) {
  const depth = y < top + SCROLL_EDGE_PX ? y - top - SCROLL_EDGE_PX : y > bottom - SCROLL_EDGE_PX ? y - bottom + SCROLL_EDGE_PX : 0;
  return Math.round(Math.max(-1, Math.min(1, depth / SCROLL_EDGE_PX)) * SCROLL_STEP_PX);
}

/** Return what scrolls around an element. @param {Element|null} element @returns {Element|null} */
const scrollerOf = (element) => (!element || (element.scrollHeight > element.clientHeight && /auto|scroll/.test(getComputedStyle(element).overflowY)) ? element : scrollerOf(element.parentElement));

/**
 * Drag a card until the pointer that its grip has captured is released. Escape ends it without a move, and so does a card that is added or removed.
 * @param {{grip: HTMLElement, pointerId: number, y: number, list: HTMLElement, from: number, show: (drag: Drag|null) => void, move: (from: number, to: number) => void}} given
 *   list: has one child for each card; show: gets each change of the drag, null at its end
 */
export function dragCard({ grip, pointerId, y, list, from, show, move }) {
  const count = list.children.length;
  const scroller = scrollerOf(list);
  const over = new AbortController();
  let to = from;
  const update = () => {
    const middles = [...list.children].map((each) => each.getBoundingClientRect()).map(({ top, bottom }) => (top + bottom) / 2);
    const place = middles.length === count ? cardPlace(middles, from, y) : from;
    if (place !== to) show({ from, to: (to = place) });
  };
  const end = () => {
    over.abort();
    show(null);
  };
  const scroll = () => {
    if (over.signal.aborted) return;
    const { top, bottom } = scroller?.getBoundingClientRect() ?? { top: -Infinity, bottom: Infinity };
    const step = scrollStep(top, bottom, y);
    if (step) (scroller?.scrollBy(0, step), update());
    requestAnimationFrame(scroll);
  };
  const options = { signal: over.signal };
  grip.addEventListener("pointermove", (event) => ((y = event.clientY), update()), options);
  grip.addEventListener("pointerup", () => (end(), to !== from && list.children.length === count && move(from, to)), options);
  grip.addEventListener("pointercancel", end, options);
  grip.addEventListener("lostpointercapture", end, options);
  addEventListener("keydown", (event) => event.key === "Escape" && (event.preventDefault(), event.stopPropagation(), end()), { ...options, capture: true });
  show({ from, to });
  requestAnimationFrame(scroll);
}
