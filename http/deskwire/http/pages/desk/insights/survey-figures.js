// @ts-check
/** The figures of a survey: scores over time, insights, and the count of each answer. */
import { locale, number } from "../core/texts.js";
import { html, useEffect, useState } from "../vendor/preact.js";
import { t } from "./texts.js";
import { Ago, Button, notify } from "../ui/parts.js";
import { call } from "../core/api.js";
import { may } from "../core/session.js";
import { Chart } from "../ui/chart.js";
import { Section } from "../ui/frame.js";
import { setQuery, query } from "../ui/link.js";
import { States, useCall } from "../ui/loading.js";
import { Bar, Table } from "../ui/table.js";
import { Choose, dayName, daysAgo, figureText, timezone } from "./page-parts.js";

const POLL_INTERVAL_MS = 1000;
const SCORED = ["nps", "csat", "ces", "rating", "number"];

/** @param {{survey: any}} props */
export function Figures({ survey }) {
  const [version, days] = [query.value.get("version") ?? "", query.value.get("days") ?? "90"];
  const bucket = Number(days) > 100 ? "month" : Number(days) > 31 ? "week" : "day";
  const of = useCall(`engagement/surveys/${survey.id}/figures`, { from: daysAgo(Number(days)), timezone, bucket, version: version || null });
  return html`<div class="part-tools" role="search" aria-label=${t.filters}>
      <${Choose} label=${t.period} value=${days} set=${(/** @type {string} */ value) => setQuery({ days: value === "90" ? null : value })} of=${Object.entries(t.periods)} />
      <${Choose} label=${t.surveys.version} value=${version} set=${(/** @type {string} */ value) => setQuery({ version: value })} of=${[["", t.surveys.allVersions], ...Array.from({ length: survey.version }, (_, i) => [String(i + 1), String(i + 1)])]} />
    </div>
    <${States} of=${of}>${(/** @type {any} */ data) => html`<${Scores} figures=${data} />`}<//>
    <${Insights} survey=${survey} version=${version} last=${of.data?.refresh} />
    ${of.data && html`<${Questions} figures=${of.data} />`}`;
}

/** The survey's score, chosen as in insights, and the number of responses. @param {{figures: any}} props */
function Scores({ figures }) {
  const scored = figures.questions.toSorted((/** @type {any} */ a, /** @type {any} */ b) => SCORED.indexOf(a.type) - SCORED.indexOf(b.type)).filter((/** @type {any} */ each) => SCORED.includes(each.type));
  const main = scored[0];
  const noon = (/** @type {string} */ day) => `${day}T12:00:00`;
  const label = (/** @type {string} */ at) => dayName(at.slice(0, 10));
  return html`<dl class="facts">
      <div><dt>${t.surveys.responses}</dt><dd class="big">${figureText(figures.responses)}</dd></div>
      ${scored.map((/** @type {any} */ each) => html`<div key=${each.id}><dt><bdi>${each.title}</bdi></dt><dd><span class="big">${figureText(each.score)}</span> <span class="muted">${t.surveys.scoreNames[/** @type {"nps"} */ (each.type)]}, ${t.surveys.ofAnswers(each.answered)}</span></dd></div>`)}
    </dl>
    <div class="pair-of part">
      ${main && html`<${Chart} title=${t.surveys.scoreOver(t.surveys.scoreNames[/** @type {"nps"} */ (main.type)])} at=${main.series.map((/** @type {any} */ each) => noon(each.day))} label=${label} series=${[{ label: t.surveys.scoreNames[/** @type {"nps"} */ (main.type)], values: main.series.map((/** @type {any} */ each) => each.score) }]} summary=${t.surveys.scoreSummary(figureText(main.series[0]?.score), figureText(main.series.at(-1)?.score))} />`}
      <${Chart} title=${t.surveys.responsesOver} at=${figures.series.map((/** @type {any} */ each) => noon(each.day))} label=${label} series=${[{ label: t.surveys.responses, values: figures.series.map((/** @type {any} */ each) => each.responses), bars: true, colour: "--good" }]} summary=${t.surveys.responsesSummary(figureText(figures.responses))} />
    </div>`;
}

/** The count of each answer. @param {{figures: any}} props */
const Questions = ({ figures }) => html`<${Section} title=${t.surveys.questions}><div class="pair-of">${figures.questions.map((/** @type {any} */ each) => html`<div key=${each.id}><h3><bdi>${each.title}</bdi></h3><p class="muted">${t.surveys.types[/** @type {"nps"} */ (each.type)]}, ${t.surveys.ofAnswers(each.answered)}</p>
  ${each.counts.length > 0 && html`<${Table} quiet caption=${each.title} rows=${each.counts} keyOf=${(/** @type {any} */ row) => row.value} columns=${[
    { label: t.surveys.answer, cell: (/** @type {any} */ row) => html`<bdi>${each.type === "boolean" ? (row.value === "true" ? t.yes : t.no) : row.label}</bdi>` },
    { label: t.surveys.times, num: true, cell: (/** @type {any} */ row) => number(row.count) },
    { label: t.surveys.share, num: true, cell: (/** @type {any} */ row) => html`${share(row.count, each.answered)} <${Bar} share=${each.answered ? row.count / each.answered : 0} />` },
  ]} />`}</div>`)}</div><//>`;

const share = (/** @type {number} */ part, /** @type {number} */ whole) => (whole ? (part / whole).toLocaleString(locale, { style: "percent" }) : "–");

/** The stored insights and their refresh. @param {{survey: any, version: string, last: any}} props  last: the current or last refresh, once known; null for none */
function Insights({ survey, version, last }) {
  const path = `engagement/surveys/${survey.id}/insights`;
  const of = useCall(path, { version: version || null });
  const [refresh, setRefresh] = useState(/** @type {any} */ (null));
  useEffect(() => void setRefresh((/** @type {any} */ before) => before ?? last ?? null), [last]);
  const running = refresh?.status === "running";
  useEffect(() => {
    if (!running) return;
    const look = async () => {
      try {
        const now = await call("GET", `${path}/refresh`);
        setRefresh(now);
        if (now.status === "done") await of.reload();
      } catch {
        setRefresh({ ...refresh }); // polls again
      }
    };
    const timer = setTimeout(look, POLL_INTERVAL_MS);
    return () => clearTimeout(timer);
  }, [refresh]);
  const begin = async () => {
    try {
      setRefresh(await call("POST", `${path}/refresh`));
    } catch (error) {
      notify(/** @type {Error} */ (error).message, { bad: true });
    }
  };
  const actions = html`${running && html`<label class="muted">${t.surveys.refreshing} <progress max="1" value=${refresh.progress}></progress></label>`}
    ${may("surveys.manage") && html`<${Button} icon="reopen" label=${t.surveys.refresh} disabled=${running} press=${begin} />`}`;
  return html`<${Section} title=${t.surveys.insights} actions=${actions}>
    ${refresh?.status === "failed" && html`<p class="wrong" role="alert">${t.surveys.refreshFailed(refresh.error ?? "")}</p>`}
    <${States} of=${of}>${(/** @type {any} */ data) => html`<${Known} of=${data} />`}<//><//>`;
}

/** @param {{of: any}} props */
function Known({ of }) {
  if (!of.updatedAt) return html`<p class="muted">${t.surveys.noInsights}</p>`;
  const most = (/** @type {any[]} */ all, /** @type {(each: any) => number} */ value) => Math.max(1e-9, ...all.map((each) => Math.abs(value(each))));
  const [mentions, impact] = [most(of.themes, (each) => each.count), most(of.drivers, (each) => each.impact)];
  const name = { label: t.surveys.name, cell: (/** @type {any} */ row) => html`<bdi>${row.title}</bdi>` };
  const theme = { label: t.surveys.theme, cell: (/** @type {any} */ row) => html`<bdi>${row.title}</bdi>${row.quotes.length > 0 && html`<details><summary>${t.surveys.quotes(row.quotes.length)}</summary><ul class="quotes">${row.quotes.map((/** @type {string} */ each) => html`<li><bdi>${each}</bdi></li>`)}</ul></details>`}` };
  return html`${of.alerts.map((/** @type {any} */ each) => html`<p key=${each.id} class=${`alert ${each.severity}`}><strong>${t.surveys.severities[/** @type {"info"} */ (each.severity)]}</strong> <bdi>${each.message}</bdi> <${Ago} at=${each.createdAt} class="muted" /></p>`)}
    ${of.summary && html`<p class="summary" dir="auto">${of.summary}</p>`}
    <p class="muted">${t.surveys.computed} <${Ago} at=${of.updatedAt} /></p>
    <div class="pair-of">
      ${of.themes.length > 0 && html`<div><h3>${t.surveys.themes}</h3><${Table} quiet caption=${t.surveys.themes} rows=${of.themes} columns=${[theme,
        { label: t.surveys.sentiment, cell: (/** @type {any} */ row) => html`<span class=${`chip ${row.sentiment === "negative" ? "bad" : row.sentiment === "positive" ? "good" : ""}`}>${t.surveys.sentiments[/** @type {"neutral"} */ (row.sentiment)]}</span>` },
        { label: t.surveys.mentions, num: true, cell: (/** @type {any} */ row) => html`${figureText(row.count)} <${Bar} share=${row.count / mentions} />` }]} /></div>`}
      ${of.drivers.length > 0 && html`<div><h3>${t.surveys.drivers}</h3><${Table} quiet caption=${t.surveys.drivers} rows=${of.drivers} columns=${[name,
        { label: t.surveys.answers, num: true, cell: (/** @type {any} */ row) => figureText(row.count) },
        { label: t.surveys.impact, num: true, cell: (/** @type {any} */ row) => html`${row.impact > 0 ? "+" : ""}${figureText(row.impact)} <${Bar} share=${Math.abs(row.impact) / impact} />` }]} /></div>`}
      ${of.segments.length > 0 && html`<div><h3>${t.surveys.segments}</h3><${Table} quiet caption=${t.surveys.segments} rows=${of.segments} columns=${[name,
        { label: t.surveys.size, num: true, cell: (/** @type {any} */ row) => figureText(row.size) }, { label: t.surveys.score, num: true, cell: (/** @type {any} */ row) => figureText(row.score) }]} /></div>`}
    </div>`;
}
