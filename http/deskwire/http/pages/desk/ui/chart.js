// @ts-check
/** A time series as a chart or a table. uPlot is fetched with the first chart. */
import { html, signal, useEffect, useRef, useState } from "../vendor/preact.js";
import { t } from "./texts.js";
import { Button, theme } from "./parts.js";

/** @typedef {{label: string, values: (number|null)[], colour?: string, unit?: string, bars?: boolean}} Series  colour: a custom property, e.g. `--good` */

const HEIGHT = 200;
const COLOURS = ["--accent", "--good", "--bad", "--warn"];
/** uPlot and its style, once they are requested. @type {Promise<any> | null} */
let fetched = null;

/** @returns {Promise<any>} */
function loadPlotter() {
  if (!fetched) {
    const style = document.createElement("link");
    style.rel = "stylesheet";
    style.href = new URL("../vendor/uplot.css", import.meta.url).href;
    const styled = new Promise((done) => (style.onload = style.onerror = done));
    document.head.append(style);
    fetched = Promise.all([import("../vendor/uplot.js"), styled]).then(([module]) => module.default, (error) => ((fetched = null), Promise.reject(error)));
  }
  return fetched;
}

/** Return the current colour of a custom property. An element resolves `light-dark()` in it. @param {HTMLElement} box @param {string} name */
function resolvedColour(box, name) {
  const probe = document.createElement("span");
  probe.style.setProperty("color", `var(${name})`);
  box.append(probe);
  const found = getComputedStyle(probe).color;
  probe.remove();
  return found;
}

const scheme = matchMedia("(prefers-color-scheme: dark)");
const dark = signal(scheme.matches);
scheme.addEventListener("change", () => void (dark.value = scheme.matches));

/** @param {HTMLElement} box @param {any} Plot @param {string[]} at @param {Series[]} series */
function drawChart(box, Plot, at, series) {
  const [ink, line] = [resolvedColour(box, "--text-2"), resolvedColour(box, "--line")];
  const axis = { stroke: ink, grid: { stroke: line, width: 1 }, ticks: { stroke: line, width: 1 }, font: "11px Inter Desk, sans-serif" };
  const lines = series.map((each, i) => {
    const stroke = resolvedColour(box, each.colour ?? COLOURS[i % COLOURS.length] ?? "--accent");
    return { label: each.label, stroke, width: 2, points: { show: at.length < 40, size: 5 }, ...(each.bars ? { fill: stroke, paths: Plot.paths.bars({ size: [0.7, 40] }), points: { show: false } } : {}) };
  });
  // A single point has no time span, and uPlot would show years.
  const only = Date.parse(at[0] ?? "") / 1000;
  const scales = at.length === 1 ? { x: { range: () => [only - 43_200, only + 43_200] } } : {};
  const options = { width: Math.max(240, box.clientWidth), height: HEIGHT, scales, legend: { show: false }, cursor: { drag: { x: false, y: false } }, series: [{}, ...lines], axes: [axis, { ...axis, size: 48 }] };
  return new Plot(options, [at.map((each) => Date.parse(each) / 1000), ...series.map((each) => each.values)], box);
}

/**
 * @param {{title: string, at: string[], series: Series[], summary?: string, label?: (at: string) => string}} props
 *   at: the time of each figure, as in the API. summary: a description for screen readers. label: formats a time in the table
 */
export function Chart({ title, at, series, summary, label = (each) => new Date(each).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" }) }) {
  const box = useRef(/** @type {HTMLElement|null} */ (null));
  const [table, setTable] = useState(false);
  const [failed, setFailed] = useState(false);
  useEffect(() => {
    const here = box.current;
    if (!here || !at.length) return;
    let plot = /** @type {any} */ (null);
    let left = false;
    loadPlotter().then((Plot) => !left && (plot = drawChart(here, Plot, at, series)), () => setFailed(true));
    const watched = new ResizeObserver(() => plot?.setSize({ width: Math.max(240, here.clientWidth), height: HEIGHT }));
    watched.observe(here);
    return () => ((left = true), watched.disconnect(), plot?.destroy());
  }, [table, JSON.stringify([at, series]), theme.value, dark.value]);
  if (!at.length) return html`<p class="muted">${t.noFigures}</p>`;
  const unit = (/** @type {Series} */ each) => (each.unit ? `${each.label}, ${each.unit}` : each.label);
  return html`<figure class="chart"><figcaption><span>${title}</span>
      <span class="legend">${series.map((each, i) => html`<span key=${each.label} class=${`key ${(each.colour ?? COLOURS[i % COLOURS.length] ?? "").slice(2)}`}>${unit(each)}</span>`)}</span>
      <${Button} class="small" label=${table || failed ? t.asChart : t.asTable} press=${() => (setFailed(false), setTable(!table && !failed))} /></figcaption>
    ${table || failed
      ? html`<div class="table-box" role="region" aria-label=${title} tabindex="0"><table class="table"><caption class="sr">${title}</caption><thead><tr><th scope="col">${t.time}</th>${series.map((each) => html`<th key=${each.label} scope="col" class="num">${unit(each)}</th>`)}</tr></thead>
          <tbody>${at.map((each, i) => html`<tr key=${each}><th scope="row">${label(each)}</th>${series.map((one) => html`<td key=${one.label} class="num">${one.values[i]?.toLocaleString() ?? t.empty}</td>`)}</tr>`)}</tbody></table></div>`
      : html`<div ref=${box} class="plot" role="img" aria-label=${summary ?? title}></div>`}
  </figure>`;
}
