// @ts-check
/** Reports: by day as a chart, by agent, team and tag as a table, and all as CSV. */
import { html } from "../vendor/preact.js";
import { t } from "./texts.js";
import { Button, Empty } from "../ui/parts.js";
import { Chart } from "../ui/chart.js";
import { Frame } from "../ui/frame.js";
import { Link, setQuery, query } from "../ui/link.js";
import { States, useCall } from "../ui/loading.js";
import { Bar, Table } from "../ui/table.js";
import { Choose, dayName, daysAgo, download, figureText, timezone } from "./page-parts.js";

/** @typedef {{name: string, unit?: "time"|"percent"}} Figure */
/** The figures of each report. The first is drawn, together with those in `drawn`. @type {Record<string, {figures: Figure[], drawn: string[]}>} */
const REPORTS = {
  "first-response": { figures: [{ name: "median", unit: "time" }, { name: "mean", unit: "time" }, { name: "p90", unit: "time" }, { name: "count" }], drawn: ["median", "p90"] },
  "time-to-close": { figures: [{ name: "median", unit: "time" }, { name: "mean", unit: "time" }, { name: "p90", unit: "time" }, { name: "count" }], drawn: ["median", "p90"] },
  csat: { figures: [{ name: "csat", unit: "percent" }, { name: "average" }, { name: "count" }], drawn: ["csat"] },
  volume: { figures: ["conversationsCreated", "conversationsClosed", "conversationsReopened", "messages", "contactMessages", "agentMessages", "botMessages"].map((name) => ({ name })), drawn: ["conversationsCreated", "conversationsClosed"] },
  backlog: { figures: [{ name: "open" }, { name: "waiting" }], drawn: ["open"] },
};

/** Format a number of seconds. @param {number} seconds */
function durationText(seconds) {
  if (seconds < 60) return t.reports.s(Math.round(seconds));
  if (seconds < 3600) return t.reports.min(seconds / 60);
  return seconds < 2 * 86_400 ? t.reports.h(seconds / 3600) : t.reports.d(seconds / 86_400);
}

/** @param {Figure} of @param {number|null|undefined} value */
const shown = (of, value) => (value === null || value === undefined ? "–" : of.unit === "time" ? durationText(value) : of.unit === "percent" ? `${figureText(value)} %` : figureText(value));

/** Return the name of a figure. @param {Figure} of */
const figureName = (of) => t.reports.figures[/** @type {"median"} */ (of.name)];

/** @param {{of: any, figures: Figure[], drawn: string[], title: string}} props */
function Days({ of, figures, drawn, title }) {
  const lines = figures.filter((each) => drawn.includes(each.name));
  const scale = (/** @type {Figure} */ each, /** @type {number|null} */ value) => (value === null || value === undefined ? null : each.unit === "time" ? Math.round(value / 6) / 10 : value);
  const rows = of.rows.toSorted((/** @type {any} */ a, /** @type {any} */ b) => (a.key < b.key ? -1 : 1));
  const series = lines.map((each) => ({ label: figureName(each), unit: each.unit === "time" ? t.reports.minutes : each.unit === "percent" ? "%" : undefined, values: rows.map((/** @type {any} */ row) => scale(each, row[each.name])) }));
  const last = lines[0];
  return html`<${Chart} title=${title} at=${rows.map((/** @type {any} */ row) => `${row.key}T12:00:00`)} label=${(/** @type {string} */ at) => dayName(at.slice(0, 10))} series=${series} summary=${last && t.reports.summary(title, figureName(last), shown(last, of.total[last.name]))} />`;
}

export function Page() {
  const metric = REPORTS[query.value.get("metric") ?? ""] ? /** @type {string} */ (query.value.get("metric")) : "first-response";
  const days = query.value.get("days") ?? "30";
  const by = query.value.get("by") ?? "day";
  const { figures, drawn } = /** @type {{figures: Figure[], drawn: string[]}} */ (REPORTS[metric]);
  const dated = metric !== "backlog" || by === "day";
  const wanted = { by, ...(dated ? { from: daysAgo(Number(days)), timezone } : {}) };
  const of = useCall(`reports/${metric}`, wanted);
  const title = t.reports.names[/** @type {"csat"} */ (metric)];
  const place = (/** @type {string} */ name) => `reports?metric=${name}${query.value.get("by") ? `&by=${by}` : ""}${query.value.get("days") ? `&days=${days}` : ""}`;
  const tools = html`<nav class="tabs" aria-label=${t.pages.reports}>${Object.keys(REPORTS).map((name) => html`<${Link} key=${name} to=${place(name)} aria-current=${name === metric ? "page" : undefined}>${t.reports.names[/** @type {"csat"} */ (name)]}<//>`)}</nav>
    <${Choose} label=${t.reports.by} value=${by} set=${(/** @type {string} */ value) => setQuery({ by: value === "day" ? null : value })} of=${Object.entries(t.reports.groups)} />
    ${dated && html`<${Choose} label=${t.period} value=${days} set=${(/** @type {string} */ value) => setQuery({ days: value === "30" ? null : value })} of=${t.periods} />`}`;
  const csv = html`<${Button} icon="file" label=${t.csv} press=${() => download(`reports/${metric}.csv`, wanted, `${metric}.csv`)} />`;
  const name = (/** @type {any} */ row) => (by === "day" ? dayName(row.key) : html`<bdi>${row.key === null ? t.reports.unassigned : (row.name ?? (by === "tag" ? row.key : t.reports.deleted))}</bdi>`);
  const column = (/** @type {Figure} */ each, /** @type {number} */ i, /** @type {any[]} */ rows) => {
    const most = Math.max(1e-9, ...rows.map((row) => row[each.name] ?? 0));
    return { label: figureName(each), num: true, less: i > 2, cell: (/** @type {any} */ row) => html`${shown(each, row[each.name])}${i === 0 && by !== "day" && html` <${Bar} share=${(row[each.name] ?? 0) / most} />`}` };
  };
  return html`<${Frame} title=${title} calls=${[of.call]} actions=${csv} tools=${tools}>
    <p class="muted">${t.reports.texts[/** @type {"csat"} */ (metric)]}</p>
    <${States} of=${of}>${(/** @type {any} */ data) => html`
      <dl class="facts">${figures.map((each) => html`<div key=${each.name}><dt>${figureName(each)}</dt><dd class="big">${shown(each, data.total[each.name])}</dd></div>`)}</dl>
      ${by === "day" && html`<div class="part"><${Days} of=${data} figures=${figures} drawn=${drawn} title=${title} /></div>`}
      ${by !== "day" && (data.rows.length ? html`<div class="part"><${Table} caption=${title} rows=${data.rows} keyOf=${(/** @type {any} */ row) => row.key ?? ""} columns=${[{ label: t.reports.groups[/** @type {"tag"} */ (by)], cell: name }, ...figures.map((each, i) => column(each, i, data.rows))]} />${data.omitted > 0 && html`<p class="muted">${t.reports.omitted(data.omitted)}</p>`}</div>` : html`<${Empty} icon="sort" title=${t.reports.nothing} />`)}`}<//>
  <//>`;
}
