// @ts-check
/** Where a chart draws its values: ticks, gaps, and space between series that would hide each other. Pure functions. */

/** @typedef {{x: number, y: number}} Point */

/** The least distance between the points of two series at one time, in pixels. */
export const APART_PX = 5;
const TICKS_WANTED = 4;

/**
 * Return the ticks of an axis that has all values and zero: multiples of 1, 2 or 5 times a power of ten.
 * @param {(number|null)[]} values @param {boolean} [whole]  true for whole ticks, as counts need them @returns {number[]}
 */
export function ticksOf(values, whole = false) {
  const known = values.filter((each) => each !== null);
  const low = Math.min(0, ...known);
  const high = Math.max(0, ...known) || (low ? 0 : 1);
  const rough = (high - low) / TICKS_WANTED;
  const power = 10 ** Math.floor(Math.log10(rough));
  const nice = power * (rough / power <= 1 ? 1 : rough / power <= 2 ? 2 : rough / power <= 5 ? 5 : 10);
  const step = whole ? Math.max(1, nice) : nice;
  const [first, last] = [Math.floor(low / step), Math.ceil(high / step)];
  return Array.from({ length: last - first + 1 }, (_, i) => Number(((first + i) * step).toPrecision(12)));
}

/**
 * Split a series where it has no figures, so that no line crosses a gap.
 * @param {(Point|null)[]} points @returns {Point[][]}
 */
export function partsOf(points) {
  /** @type {Point[][]} */
  const parts = [];
  let before = /** @type {Point|null} */ (null);
  for (const each of points) {
    if (each && before) parts.at(-1)?.push(each);
    else if (each) parts.push([each]);
    before = each;
  }
  return parts;
}

/**
 * Return the heights of several series at one time, moved apart where they are closer than `APART_PX`. Their order stays; of equal
 * ones the first is on top. Lines that never share two points never hide each other.
 * @param {(number|null)[]} heights  in pixels, null for none @returns {(number|null)[]}
 */
export function movedApart(heights) {
  const order = heights.flatMap((y, i) => (y === null ? [] : [{ y, i }])).sort((a, b) => a.y - b.y || a.i - b.i);
  /** Neighbours that touch share a group, which is centred on their mean. @type {{sum: number, of: number[]}[]} */
  const groups = [];
  for (const { y, i } of order) {
    groups.push({ sum: y, of: [i] });
    for (let [last, previous] = [groups.at(-1), groups.at(-2)]; last && previous && topOf(last) - bottomOf(previous) < APART_PX; [last, previous] = [groups.at(-1), groups.at(-2)])
      groups.splice(-2, 2, { sum: previous.sum + last.sum, of: [...previous.of, ...last.of] });
  }
  const moved = /** @type {(number|null)[]} */ (heights.map(() => null));
  for (const group of groups) group.of.forEach((i, place) => (moved[i] = topOf(group) + place * APART_PX));
  return moved;
}

/** @param {{sum: number, of: number[]}} group */
const topOf = (group) => group.sum / group.of.length - ((group.of.length - 1) / 2) * APART_PX;
/** @param {{sum: number, of: number[]}} group */
const bottomOf = (group) => topOf(group) + (group.of.length - 1) * APART_PX;

/**
 * Return the positions of the labels below a chart: as many as fit without touching.
 * @param {number[]} places  in pixels, ascending @param {number} apart @returns {number[]}  indexes
 */
export function labelled(places, apart) {
  let last = -Infinity;
  return places.flatMap((x, i) => (x - last >= apart ? ((last = x), [i]) : []));
}

/** Return the index of the place that is closest to `x`. @param {number[]} places  ascending @param {number} x */
export function closest(places, x) {
  let best = 0;
  for (let i = 1; i < places.length; i++) if (Math.abs((places[i] ?? 0) - x) < Math.abs((places[best] ?? 0) - x)) best = i;
  return best;
}

const r = 3.5;
/** Markers around a centre, as path data. @type {Record<string, (point: Point) => string>} */
const MARKERS = {
  circle: ({ x, y }) => `M${x - r} ${y}a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0Z`,
  square: ({ x, y }) => `M${x - r} ${y - r}h${2 * r}v${2 * r}h${-2 * r}Z`,
  diamond: ({ x, y }) => `M${x} ${y - r - 1}l${r + 1} ${r + 1}l${-r - 1} ${r + 1}l${-r - 1} ${-r - 1}Z`,
};
/** How the series look besides their colours. The last is that of earlier figures. */
export const LOOKS = [
  { dash: undefined, marker: "circle", hollow: false },
  { dash: "8 5", marker: "square", hollow: true },
  { dash: "10 4 2 4", marker: "diamond", hollow: false },
  { dash: "2 4", marker: "diamond", hollow: true },
];

/** @param {string} marker @param {Point[]} points */
export const markersPath = (marker, points) => points.map((each) => MARKERS[marker]?.(each)).join("");
/** @param {Point[][]} parts */
export const linePath = (parts) => parts.map((part) => (part.length > 1 ? `M${part.map(({ x, y }) => `${x} ${y}`).join("L")}` : "")).join("");
