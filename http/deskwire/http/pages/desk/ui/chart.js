// @ts-check
/** Time series as a chart or a table. Pointer and arrow keys read the points of the chart. */
import { locale } from "../core/texts.js";
import { html, useLayoutEffect, useRef, useState } from "../vendor/preact.js";
import { t } from "./texts.js";
import { Button, cx } from "./parts.js";
import { LOOKS, closest, labelled, linePath, markersPath, movedApart, partsOf, ticksOf } from "./chart-layout.js";
/** @import { Point } from "./chart-layout.js" */

/**
 * @typedef {object} Series
 * @property {string} label
 * @property {(number|null)[]} values  null where there is no figure: it is a gap, not a zero
 * @property {string} [colour]  a custom property, e.g. `--good`
 * @property {string} [unit]
 * @property {boolean} [bars]
 * @property {boolean} [earlier]  true for figures of an earlier time, which are drawn muted
 */
/** @typedef {{at: string, label: string, note?: string|null}} ChartTime  label: in words. note: more about this time, for the reader */

const HEIGHT = 208;
const [TOP, BOTTOM, RIGHT] = [22, 26, 12];
const CHARACTER_PX = 6.5;
const MARKERS_MAX = 62; // more of them would cover the line
const WIDTH_MIN = 240;
const COLOURS = ["accent", "bad", "good"];

const lookOf = (/** @type {Series[]} */ all, /** @type {Series} */ one) => LOOKS[one.earlier ? LOOKS.length - 1 : all.filter((each) => !each.bars).indexOf(one) % (LOOKS.length - 1)] ?? LOOKS[0];
const toneOf = (/** @type {Series[]} */ all, /** @type {Series} */ one) => (one.earlier ? "earlier" : (one.colour?.slice(2) ?? COLOURS[all.indexOf(one) % COLOURS.length]));
const textOf = (/** @type {number|null|undefined} */ value) => value?.toLocaleString(locale, { maximumFractionDigits: 2 }) ?? t.empty;
const nameOf = (/** @type {Series} */ one) => (one.unit ? `${one.label}, ${one.unit}` : one.label);
/** A figure with its unit, as 4.2 hours or 80 %. @param {Series} one @param {number} i */
const figureOf = (one, i) => `${textOf(one.values[i])}${one.unit && typeof one.values[i] === "number" ? ` ${one.unit}` : ""}`;

/** Format a time for the axis. @param {string[]} at */
function axisFormat(at) {
  const span = Date.parse(at.at(-1) ?? "") - Date.parse(at[0] ?? "");
  return new Intl.DateTimeFormat(locale, span > 0 && span < 2 * 86_400_000 ? { hour: "2-digit", minute: "2-digit" } : { day: "numeric", month: "short" });
}

/** Return where everything of a chart is drawn. @param {string[]} at @param {Series[]} series @param {number} width */
function layoutOf(at, series, width) {
  const bars = series.filter((each) => each.bars);
  const lines = series.filter((each) => !each.bars);
  const all = series.flatMap((each) => each.values);
  const ticks = ticksOf(all, all.every((each) => each === null || Number.isInteger(each)));
  const left = Math.max(...ticks.map((each) => textOf(each).length)) * CHARACTER_PX + 12;
  const times = at.map((each) => Date.parse(each));
  const [first, last] = [times[0] ?? 0, times.at(-1) ?? 0];
  const room = width - left - RIGHT;
  const inset = bars.length ? Math.min(24, room / at.length / 2) : 6;
  const xs = times.map((each) => left + (last > first ? inset + ((each - first) / (last - first)) * (room - 2 * inset) : room / 2));
  const [low, high] = [ticks[0] ?? 0, ticks.at(-1) ?? 1];
  const yOf = (/** @type {number} */ value) => TOP + (1 - (value - low) / (high - low)) * (HEIGHT - TOP - BOTTOM);
  const thick = (Math.min(40, ...xs.slice(1).map((x, i) => x - (xs[i] ?? 0))) * 0.7) / Math.max(1, bars.length);
  const apart = at.map((_, i) => movedApart(lines.map((each) => (typeof each.values[i] === "number" ? yOf(each.values[i]) : null))));
  const pointsOf = (/** @type {number} */ line) => apart.map((ys, i) => (typeof ys[line] === "number" ? { x: xs[i] ?? 0, y: ys[line] } : null));
  return { left, xs, ticks, yOf, thick, bars, lines, pointsOf };
}

const round = (/** @type {number} */ n) => Math.round(n * 10) / 10;
const rounded = (/** @type {Point} */ { x, y }) => ({ x: round(x), y: round(y) });

/** A line with its markers. @param {{all: Series[], one: Series, points: (Point|null)[]}} props */
function Line({ all, one, points }) {
  const look = /** @type {typeof LOOKS[0]} */ (lookOf(all, one));
  const parts = partsOf(points.map((each) => each && rounded(each)));
  const marked = points.length > MARKERS_MAX ? parts.filter((each) => each.length === 1) : parts;
  return html`<g class=${cx("series", toneOf(all, one))}><path class="line" d=${linePath(parts)} stroke-dasharray=${look.dash} /><path class=${cx("marker", look.hollow && "hollow")} d=${markersPath(look.marker, marked.flat())} /></g>`;
}

/** The pattern of a series, for the legend and the figures of a point. @param {{all: Series[], one: Series}} props */
function Key({ all, one }) {
  const look = /** @type {typeof LOOKS[0]} */ (lookOf(all, one));
  return html`<svg class=${cx("key", "series", toneOf(all, one))} width="34" height="12" aria-hidden="true">${one.bars ? html`<rect class="bar" x="11" y="1" width="12" height="11" />` : html`<path class="line" d="M0 6H34" stroke-dasharray=${look.dash} /><path class=${cx("marker", look.hollow && "hollow")} d=${markersPath(look.marker, [{ x: 17, y: 6 }])} />`}</svg>`;
}

/** The drawing without the point that is read. @param {{at: string[], series: Series[], width: number, layout: ReturnType<typeof layoutOf>, summary: string}} props */
function Drawing({ at, series, width, layout, summary }) {
  const { left, xs, ticks, yOf, thick, bars, lines, pointsOf } = layout;
  const format = axisFormat(at);
  const units = [...new Set(series.map((each) => each.unit))];
  return html`<svg class="drawing" width=${width} height=${HEIGHT} role="img" aria-label=${summary}>
    ${units.length === 1 && units[0] && html`<text x="0" y="10">${units[0]}</text>`}
    ${ticks.map((each) => html`<g key=${each}><path class=${cx("grid", each === 0 && "zero")} d=${`M${round(left)} ${round(yOf(each))}H${width}`} /><text x=${round(left) - 6} y=${round(yOf(each)) + 4} text-anchor="end">${textOf(each)}</text></g>`)}
    ${labelled(xs, 64).map((i) => html`<text key=${i} x=${round(xs[i] ?? 0)} y=${HEIGHT - 6} text-anchor=${(xs[i] ?? 0) > width - 30 ? "end" : "middle"}>${format.format(new Date(at[i] ?? 0))}</text>`)}
    ${bars.map((one, place) => html`<g key=${one.label} class=${cx("series", toneOf(series, one))}>${one.values.map((value, i) => value !== null && html`<rect key=${i} class="bar" x=${round((xs[i] ?? 0) + (place - bars.length / 2) * thick)} y=${round(Math.min(yOf(value), yOf(0)))} width=${round(thick)} height=${round(Math.abs(yOf(value) - yOf(0)))} />`)}</g>`)}
    ${lines.map((one, line) => ({ one, line })).sort((a, b) => Number(b.one.earlier ?? false) - Number(a.one.earlier ?? false)).map(({ one, line }) => html`<${Line} key=${one.label} all=${series} one=${one} points=${pointsOf(line)} />`)}
  </svg>`;
}

/** The figures of one time beside its point. @param {{time: ChartTime, i: number, series: Series[], x: number, width: number}} props */
function Tip({ time, i, series, x, width }) {
  const box = useRef(/** @type {HTMLElement|null} */ (null));
  useLayoutEffect(() => {
    const own = box.current?.offsetWidth ?? 0;
    const beside = x + 10 + own > width ? x - 10 - own : x + 10;
    box.current?.style.setProperty("left", `${Math.max(0, Math.min(width - own, beside))}px`);
  });
  return html`<div ref=${box} class="tip" aria-hidden="true"><strong>${time.label}</strong>
    ${series.map((one) => html`<span key=${one.label}><${Key} all=${series} one=${one} /> ${one.label} <b>${figureOf(one, i)}</b></span>`)}${time.note && html`<em>${time.note}</em>`}</div>`;
}

/** @param {{title: string, times: ChartTime[], series: Series[], summary: string}} props */
function Plot({ title, times, series, summary }) {
  const box = useRef(/** @type {HTMLElement|null} */ (null));
  const reader = useRef(/** @type {HTMLInputElement|null} */ (null));
  const [width, setWidth] = useState(0);
  const [point, setPoint] = useState(/** @type {number|null} */ (null));
  const kept = useRef(times.length - 1);
  useLayoutEffect(() => {
    const here = /** @type {HTMLElement} */ (box.current);
    const measure = () => setWidth(Math.max(WIDTH_MIN, here.clientWidth));
    const watched = new ResizeObserver(measure);
    watched.observe(here);
    measure();
    return () => watched.disconnect();
  }, []);
  const at = times.map((each) => each.at);
  const layout = width ? layoutOf(at, series, width) : null;
  const read = (/** @type {number|null} */ i) => (i !== null && (kept.current = i), setPoint(i));
  const move = (/** @type {MouseEvent} */ event) => layout && read(closest(layout.xs, event.clientX - /** @type {HTMLElement} */ (box.current).getBoundingClientRect().left));
  const press = (/** @type {MouseEvent} */ event) => (event.preventDefault(), reader.current?.focus({ preventScroll: true }), move(event));
  const leave = () => document.activeElement !== reader.current && read(null);
  const escape = (/** @type {KeyboardEvent} */ event) => event.key === "Escape" && point !== null && (event.preventDefault(), read(null));
  const now = Math.min(point ?? kept.current, times.length - 1);
  const time = /** @type {ChartTime} */ (times[now]);
  const words = [`${time.label}:`, series.map((one) => `${one.label} ${figureOf(one, now)}`).join(", "), time.note && `. ${time.note}`].filter(Boolean).join(" ").replace(" .", ".");
  return html`<div ref=${box} class="plot" onPointerMove=${move} onMouseDown=${press} onPointerLeave=${leave}>
    ${layout && html`<${Drawing} at=${at} series=${series} width=${width} layout=${layout} summary=${summary} />`}
    ${layout && point !== null && html`<svg class="reading" width=${width} height=${HEIGHT} aria-hidden="true"><path d=${`M${round(layout.xs[now] ?? 0)} ${TOP - 6}V${HEIGHT - BOTTOM}`} /></svg>`}
    <input ref=${reader} type="range" min="0" max=${times.length - 1} step="1" value=${now} aria-label=${t.readPoints(title)} aria-valuetext=${words} onInput=${(/** @type {any} */ event) => read(Number(event.target.value))} onFocus=${() => read(now)} onBlur=${() => read(null)} onKeyDown=${escape} />
    ${layout && point !== null && html`<${Tip} time=${time} i=${now} series=${series} x=${layout.xs[now] ?? 0} width=${width} />`}
  </div>`;
}

/** The same figures as a table. @param {{title: string, times: ChartTime[], series: Series[]}} props */
const Figures = ({ title, times, series }) => html`<div class="table-box" role="region" aria-label=${title} tabindex="0"><table class="table"><caption class="sr">${title}</caption>
  <thead><tr><th scope="col">${t.time}</th>${series.map((one) => html`<th key=${one.label} scope="col" class="num">${nameOf(one)}</th>`)}</tr></thead>
  <tbody>${times.map((time, i) => html`<tr key=${time.at}><th scope="row">${time.label}</th>${series.map((one) => html`<td key=${one.label} class="num">${textOf(one.values[i])}</td>`)}</tr>`)}</tbody></table></div>`;

/**
 * @param {{title: string, at: string[], series: Series[], summary?: string, label?: (at: string, i: number) => string, note?: (i: number) => string|null}} props
 *   at: the time of each figure, as in the API, in order. summary: a description for screen readers. label: formats a time.
 *   note: more about the figures of a time
 */
export function Chart({ title, at, series, summary = title, label = (each) => new Date(each).toLocaleString(locale, { dateStyle: "medium", timeStyle: "short" }), note = () => null }) {
  const [table, setTable] = useState(false);
  if (!series.some((one) => one.values.some((each) => each !== null))) return html`<p class="muted">${t.noFigures}</p>`;
  const times = at.map((each, i) => ({ at: each, label: label(each, i), note: note(i) }));
  return html`<figure class="chart"><figcaption><span>${title}</span>
      <span class="legend">${series.map((one) => html`<span key=${one.label}><${Key} all=${series} one=${one} /> ${nameOf(one)}</span>`)}</span>
      <${Button} class="small" label=${table ? t.asChart : t.asTable} press=${() => setTable(!table)} /></figcaption>
    ${table ? html`<${Figures} title=${title} times=${times} series=${series} />` : html`<${Plot} title=${title} times=${times} series=${series} summary=${summary} />`}
  </figure>`;
}
