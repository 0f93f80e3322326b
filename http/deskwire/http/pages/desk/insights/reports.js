// @ts-check
/** Reports: by day as a chart, by group as a table, compared with the period before, and all as CSV. */
import { locale } from "../core/texts.js";
import { html, useMemo } from "../vendor/preact.js";
import { t } from "./texts.js";
import { Button, Empty, cx } from "../ui/parts.js";
import { Chart } from "../ui/chart.js";
import { Frame } from "../ui/frame.js";
import { Link, query } from "../ui/link.js";
import { States, useCall } from "../ui/loading.js";
import { Bar, Table } from "../ui/table.js";
import { go, place } from "../core/session.js";
import { Choose, dayName, daysAgo, download, timezone } from "./page-parts.js";
import { REPORTS, changeText, chartUnit, daysEarlier, drawn, earlier, figureName, isFew, shown, sizeOf, sizeText } from "./report-figures.js";
/** @import { Figure, Metric } from "./report-figures.js" */

/** Settings with these values are not in the address. @type {Record<string, string>} */
const DEFAULTS = { metric: "first-response", by: "day", days: "30", compare: "before" };
const setting = (/** @type {string} */ name) => query.value.get(name) || (DEFAULTS[name] ?? "");

/** Return the address of the page with some changes; defaults are left out. @param {Record<string, string>} changes */
function withChanges(changes) {
  const next = new URLSearchParams(query.value);
  for (const [name, value] of Object.entries(changes)) value && value !== DEFAULTS[name] ? next.set(name, value) : next.delete(name);
  const text = next.toString();
  return `reports${text && `?${text}`}`;
}

/** Change the address; Back returns to the report before. @param {Record<string, string>} changes */
const change = (changes) => withChanges(changes) !== place.peek() && go(withChanges(changes));

const inOrder = (/** @type {any[]} */ rows) => rows.toSorted((a, b) => (a.key < b.key ? -1 : 1));
const weekday = (/** @type {string} */ day) => new Date(`${day}T00:00:00`).toLocaleDateString(locale, { weekday: "short", day: "numeric", month: "short", year: "numeric" });

/** The figures of each day. @param {{metric: Metric, of: any, before: any, title: string}} props */
function Days({ metric, of, before, title }) {
  const { figures, drawn: names } = REPORTS[metric];
  const lines = figures.filter((each) => names.includes(each.name));
  const first = /** @type {Figure} */ (lines[0]);
  const [rows, past] = [inOrder(of.rows), before ? inOrder(before.rows) : []];
  const longest = Math.max(0, ...[...rows, ...past].flatMap((row) => lines.map((each) => row[each.name] ?? 0)));
  const series = [
    ...lines.map((each) => ({ label: figureName(each), unit: chartUnit(each, longest), values: drawn(each, rows, longest) })),
    ...(before ? [{ label: t.reports.before(figureName(first)), unit: chartUnit(first, longest), values: drawn(first, rows.map((_, i) => past[i]), longest), earlier: true }] : []),
  ];
  const note = (/** @type {number} */ i) => [sizeText(metric, rows[i]), past[i] && t.reports.beforeDay(weekday(past[i].key))].filter(Boolean).join(" · ") || null;
  return html`<${Chart} title=${title} at=${rows.map((row) => `${row.key}T12:00:00`)} label=${(/** @type {string} */ at) => weekday(at.slice(0, 10))} series=${series} note=${note} summary=${t.reports.summary(title, figureName(first), shown(first, of.total[first.name]))} />`;
}

/** The figures of the whole period, each with its change. @param {{metric: Metric, total: any, before: any}} props */
const Totals = ({ metric, total, before }) => html`<dl class="facts">${REPORTS[metric].figures.map((each) => {
  const changed = before && changeText(metric, each, total, before);
  return html`<div key=${each.name}><dt>${figureName(each)}</dt><dd class="big">${shown(each, total[each.name])}</dd>${changed && html`<dd class="change">${changed}</dd>`}</div>`;
})}</dl>${isFew(sizeOf(total)) && html`<p class="few">${sizeText(metric, total)}</p>`}`;

/** The figures of each group. @param {{metric: Metric, by: string, of: any, before: any, title: string}} props */
function Groups({ metric, by, of, before, title }) {
  const { figures } = REPORTS[metric];
  if (!of.rows.length) return html`<${Empty} icon="sort" title=${t.reports.nothing} />`;
  const first = /** @type {Figure} */ (figures[0]);
  const most = Math.max(1e-9, ...of.rows.map((/** @type {any} */ row) => row[first.name] ?? 0));
  const past = new Map(before?.rows.map((/** @type {any} */ row) => [row.key, row]));
  const words = (/** @type {any} */ row) => html`<bdi>${row.key === null ? t.reports.without[/** @type {"tag"} */ (by)] : (row.name ?? (by === "tag" ? row.key : t.reports.deleted))}</bdi>`;
  /** @type {(row: any) => Record<string, string>|null} The changes that show only the conversations of a row. */
  const filter = (row) => (by === "channel" ? { channel: row.key ?? "none", by: "day" } : by === "tag" && row.key !== null && !row.key.includes(",") ? { tag: row.key, by: "day" } : null);
  const name = (/** @type {any} */ row) => (filter(row) ? html`<${Link} to=${withChanges(filter(row) ?? {})}>${words(row)}<//>` : words(row));
  const columns = [
    { label: t.reports.groups[/** @type {"tag"} */ (by)], cell: name },
    ...figures.map((each, i) => ({ label: figureName(each), num: true, less: i > 2, cell: (/** @type {any} */ row) => html`${each.name === "count" && isFew(sizeOf(row)) && html`<span class="few">${t.reports.fewOfRow}</span> `}${shown(each, row[each.name])}${i === 0 && html` <${Bar} share=${(row[each.name] ?? 0) / most} />`}` })),
    ...(before ? [{ label: `${t.reports.change}: ${figureName(first)}`, cell: (/** @type {any} */ row) => changeText(metric, first, row, past.get(row.key) ?? {}) ?? "–" }] : []),
  ];
  return html`<div class="part"><${Table} caption=${title} rows=${of.rows} keyOf=${(/** @type {any} */ row) => row.key ?? ""} columns=${columns} />${by === "tag" && html`<p class="muted">${t.reports.severalTags}</p>`}${of.omitted > 0 && html`<p class="muted">${t.reports.omitted(of.omitted)}</p>`}</div>`;
}

/** Choices of the conversations that count. Channels are those with an answered conversation in a year, and the one of the address. */
function Filters() {
  const used = useCall("reports/first-response", { by: "channel", from: daysAgo(365), timezone });
  const tags = useCall("tags");
  const channel = setting("channel");
  const known = (used.data?.rows ?? []).map((/** @type {any} */ row) => [row.key ?? "none", row.key === null ? t.reports.without.channel : (row.name ?? t.reports.deleted)]);
  const named = !channel || known.some((/** @type {string[]} */ [id]) => id === channel);
  return html`${(channel || known.some((/** @type {string[]} */ [id]) => id !== "none")) && html`<${Choose} label=${t.reports.channel} value=${channel} set=${(/** @type {string} */ value) => change({ channel: value })} of=${[["", t.reports.allChannels], ...known, ...(named ? [] : [[channel, channel]])]} />`}
    <label class="label"><span>${t.reports.tags}</span><input class="field" key=${setting("tag")} list="report-tags" placeholder=${t.reports.tagsHint} defaultValue=${setting("tag")} maxlength="400" onChange=${(/** @type {any} */ event) => change({ tag: event.target.value.trim() })} /></label>
    <datalist id="report-tags">${tags.data?.items.map((/** @type {any} */ each) => html`<option key=${each.name} value=${each.name} />`)}</datalist>`;
}

/** Load the period before, if it is wanted. @param {Metric} metric @param {string} by @param {number} days @param {Record<string, string>} filters */
function useBefore(metric, by, days, filters) {
  const wanted = setting("compare") !== "off" && (metric !== "backlog" || by === "day");
  const shift = daysEarlier(days);
  const now = useMemo(() => new Date(), [metric, by, days, JSON.stringify(filters)]);
  const of = useCall(wanted ? `reports/${metric}` : null, { by, from: daysAgo(days + shift), to: earlier(now, shift).toISOString(), timezone, ...filters });
  return { of, wanted, from: daysAgo(days + shift), to: daysAgo(shift + 1) };
}

/** Return the figures of the period before. Of a past backlog only its last day is known. @param {Metric} metric @param {any} data */
const totalBefore = (metric, data) => (metric === "backlog" ? { open: inOrder(data.rows).at(-1)?.open } : data.total);

export function Page() {
  const metric = /** @type {Metric} */ (setting("metric") in REPORTS ? setting("metric") : DEFAULTS.metric);
  const days = Number(setting("days") in t.periods ? setting("days") : DEFAULTS.days);
  const by = setting("by") in t.reports.groups ? setting("by") : "day";
  const filters = Object.fromEntries(["channel", "tag"].flatMap((name) => (setting(name) ? [[name, setting(name)]] : [])));
  const dated = metric !== "backlog" || by === "day";
  const wanted = { by, ...(dated ? { from: daysAgo(days), timezone } : {}), ...filters };
  const of = useCall(`reports/${metric}`, wanted);
  const before = useBefore(metric, by, days, filters);
  const title = t.reports.names[metric];
  const tools = html`<nav class="tabs" aria-label=${t.pages.reports}>${Object.keys(REPORTS).map((name) => html`<${Link} key=${name} to=${withChanges({ metric: name })} aria-current=${name === metric ? "page" : undefined}>${t.reports.names[/** @type {"csat"} */ (name)]}<//>`)}</nav>
    <${Choose} label=${t.reports.by} value=${by} set=${(/** @type {string} */ value) => change({ by: value })} of=${Object.entries(t.reports.groups)} />
    ${dated && html`<${Choose} label=${t.period} value=${String(days)} set=${(/** @type {string} */ value) => change({ days: value })} of=${Object.entries(t.periods)} />
    <${Choose} label=${t.reports.compare} value=${setting("compare") === "off" ? "off" : "before"} set=${(/** @type {string} */ value) => change({ compare: value })} of=${Object.entries(t.reports.compareWith)} />`}
    <${Filters} />`;
  const csv = html`<${Button} icon="file" label=${t.csv} press=${() => download(`reports/${metric}.csv`, wanted, `${metric}.csv`)} />`;
  const past = before.wanted ? before.of.data : null;
  return html`<${Frame} title=${title} calls=${[of.call, ...(before.wanted ? [before.of.call] : [])]} actions=${csv} tools=${tools}>
    <p class="muted">${t.reports.texts[metric]}</p>
    <${States} of=${of}>${(/** @type {any} */ data) => html`
      <${Totals} metric=${metric} total=${data.total} before=${past && totalBefore(metric, past)} />
      ${before.wanted && html`<p class=${cx("muted", !past && !before.of.error && "awaited")}>${before.of.error ? t.reports.beforeFailed(before.of.error.message) : t.reports.compared(dayName(before.from), dayName(before.to))}</p>`}
      ${by === "day" ? html`<div class="part"><${Days} metric=${metric} of=${data} before=${past} title=${title} /></div>` : html`<${Groups} metric=${metric} by=${by} of=${data} before=${past} title=${title} />`}`}<//>
  <//>`;
}
