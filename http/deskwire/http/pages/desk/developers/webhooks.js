// @ts-check
/** Webhook endpoints: the list with their health, and one endpoint with its figures, log and actions. */
import { html, useState } from "../vendor/preact.js";
import { locale } from "../core/texts.js";
import { t } from "./texts.js";
import { Ago, Button, Empty, Menu, notify } from "../ui/parts.js";
import { Frame, Pairs, Section } from "../ui/frame.js";
import { Table } from "../ui/table.js";
import { States, useCall } from "../ui/loading.js";
import { Link, setQuery, query } from "../ui/link.js";
import { Secret } from "../ui/secret.js";
import { Edit, Recover, Replay } from "./endpoint-forms.js";
import { Health, healthOf } from "../ui/endpoint-health.js";
import { endpointName, exact, errorText } from "./format.js";
import { useAutoRefresh } from "../ui/auto-refresh.js";
import { Dialog } from "../ui/dialog.js";
import { call } from "../core/api.js";
import { go } from "../core/session.js";
import { ConfirmDialog } from "../ui/confirm-dialog.js";
import { Chart } from "../ui/chart.js";
import { Log } from "./deliveries.js";

/** Return a share in percent, rounded down so that 100 % means all. @param {number} share */
const shareText = (share) => t.percent(share === 1 ? "100" : (Math.floor(share * 1000) / 10).toLocaleString(locale, { minimumFractionDigits: 1 }));

/** @param {{id: string|null}} props */
export const Page = ({ id }) => (id ? html`<${Endpoint} id=${id} />` : html`<${List} />`);

/** The share of the last 24 hours' deliveries that succeeded. @param {{id: string}} props */
function Share({ id }) {
  const { data } = useCall(`webhooks/${id}/figures`);
  if (!data) return html`<span class="muted">…</span>`;
  const sum = (/** @type {string} */ name) => data.items.reduce((/** @type {number} */ n, /** @type {any} */ each) => n + each[name], 0);
  const [arrived, lost] = [sum("delivered"), sum("dropped")]; // skipped deliveries were not meant to arrive
  return arrived + lost ? html`<span class="num" title=${t.webhooks.arrivedOf(arrived, arrived + lost)}>${shareText(arrived / (arrived + lost))}</span>` : t.none;
}

/** Return the backlog of an endpoint in words. @param {any} row */
const backlogText = (row) => [row.held && t.webhooks.held(row.held.count), row.missed && t.webhooks.missed(row.missed.count)].filter(Boolean).join(", ") || t.none;

function List() {
  const of = useCall("webhooks");
  const [registers, setRegisters] = useState(false);
  const [secret, setSecret] = useState(/** @type {string|null} */ (null));
  const items = of.data?.items ?? [];
  useAutoRefresh(of.reload, items.some((/** @type {any} */ each) => healthOf(each).kind !== "good"), registers);
  const columns = [
    { label: t.webhooks.endpoint, cell: (/** @type {any} */ row) => html`<${Link} to=${`webhooks/${row.id}`}><bdi>${endpointName(row)}</bdi><//><br /><span class="muted mono"><bdi>${row.url}</bdi></span>` },
    { label: t.webhooks.health, cell: (/** @type {any} */ row) => html`<${Health} of=${row} />${healthOf(row).why && html`<br /><span class="muted">${healthOf(row).why}</span>`}` },
    { label: t.webhooks.share, num: true, cell: (/** @type {any} */ row) => html`<${Share} id=${row.id} />` },
    { label: t.webhooks.waits, cell: backlogText },
    { label: t.webhooks.lastDelivery, less: true, cell: (/** @type {any} */ row) => (row.lastDelivery ? html`${t.status[/** @type {"pending"} */ (row.lastDelivery.status)]}, <${Ago} at=${row.lastDelivery.at} />` : t.none) },
  ];
  const register = html`<${Button} kind="primary" icon="plus" label=${t.webhooks.register} press=${() => setRegisters(true)} />`;
  const made = (/** @type {any} */ endpoint) => (setSecret(endpoint.secret), void of.reload());
  return html`<${Frame} title=${t.pages.webhooks} calls=${[of.call]} actions=${items.length > 0 && register}>
    <${States} of=${of}>${() => (items.length ? html`<${Table} caption=${t.pages.webhooks} columns=${columns} rows=${items} />` : html`<${Empty} icon="send" title=${t.webhooks.empty} text=${t.webhooks.emptyText} action=${register} />`)}<//>
    ${registers && html`<${Edit} done=${made} close=${() => setRegisters(false)} />`}
    ${secret && html`<${Secret} title=${t.webhooks.registered} secret=${secret} text=${t.webhooks.secretText} close=${() => setSecret(null)} />`}
  <//>`;
}

/** @param {{id: string}} props */
export function Endpoint({ id }) {
  const of = useCall(`webhooks/${id}`);
  const [shown, show] = useState(/** @type {string|null} */ (null));
  const [secret, setSecret] = useState(/** @type {string|null} */ (null));
  const endpoint = of.data;
  useAutoRefresh(of.reload, Boolean(endpoint && healthOf(endpoint).kind !== "good"), shown !== null);
  const days = Number(query.value.get("days")) || 1;
  const [since] = [new Date(Math.floor(Date.now() / 3_600_000) * 3_600_000 - (days * 24 - 1) * 3_600_000).toISOString()];
  const figures = useCall(`webhooks/${id}/figures`, { since, bucket: days > 7 ? "day" : "hour" });
  const close = () => show(null);
  const [round, next] = useState(0);
  const sent = () => (next(round + 1), void of.reload());
  return html`<${Frame} title=${endpoint ? endpointName(endpoint) : t.pages.webhooks} up=${{ to: "webhooks", label: t.pages.webhooks }} calls=${[of.call, figures.call, { method: "GET", path: `webhooks/${id}/deliveries` }]}
      face=${endpoint && html`<bdi>${endpointName(endpoint)}</bdi> <${Health} of=${endpoint} />`} actions=${endpoint && html`<${Actions} endpoint=${endpoint} show=${show} />`}>
    <${States} of=${of}>${() => html`<${About} of=${endpoint} /><${Figures} of=${figures} days=${days} /><${Log} endpoint=${endpoint} round=${round} />`}<//>
    ${shown === "edit" && html`<${Edit} endpoint=${endpoint} done=${(/** @type {any} */ next) => (of.put(next), notify(t.saved))} close=${close} />`}
    ${shown === "recover" && html`<${Recover} endpoint=${endpoint} done=${sent} close=${close} />`}
    ${shown === "replay" && html`<${Replay} endpoint=${endpoint} conversation=${query.value.get("conversation") ?? ""} done=${sent} close=${close} />`}
    ${shown === "rotate" && html`<${Rotate} endpoint=${endpoint} done=${(/** @type {any} */ next) => (setSecret(next.secret), of.put({ ...next, secret: endpoint.secret }), void of.reload())} close=${close} />`}
    ${shown === "disable" && html`<${ConfirmDialog} deletes=${false} title=${t.endpoint.disable} loses=${[t.endpoint.disableLoses]} stays=${[t.endpoint.disableStays]} label=${t.endpoint.disable} run=${async () => of.put(await setStatus(id, "disabled"))} close=${close} />`}
    ${shown === "delete" && html`<${ConfirmDialog} title=${t.endpoint.delete} loses=${[t.endpoint.deleteLoses, t.endpoint.deleteLog]} stays=${[t.endpoint.deleteStays]} word=${endpointName(endpoint)} label=${t.endpoint.delete} run=${() => deleteEndpoint(id)} close=${close} />`}
    ${secret && html`<${Secret} title=${t.endpoint.rotate} secret=${secret} text=${t.endpoint.rotated} close=${() => setSecret(null)} />`}
  <//>`;
}

/** @param {string} id @param {"enabled"|"disabled"} status */
const setStatus = (id, status) => call("PATCH", `webhooks/${id}`, { body: { status } });

/** @param {string} id */
async function deleteEndpoint(id) {
  await call("DELETE", `webhooks/${id}`);
  notify(t.endpoint.deleted);
  queueMicrotask(() => go("webhooks"));
}

/** @param {{endpoint: any, show: (what: string) => void}} props */
function Actions({ endpoint, show }) {
  const [busy, setBusy] = useState(false);
  const off = endpoint.status === "disabled";
  const test = async () => {
    setBusy(true);
    try {
      const delivery = await call("POST", `webhooks/${endpoint.id}/test`);
      setQuery({ delivery: delivery.id });
    } catch (error) {
      notify(errorText(error), { bad: true });
    }
    setBusy(false);
  };
  const enable = () => setStatus(endpoint.id, "enabled").then(() => notify(t.endpoint.enabled), (error) => notify(errorText(error), { bad: true }));
  const entries = () => [
    { label: t.form.change, icon: "pencil", pick: () => show("edit") },
    { label: t.endpoint.rotate, icon: "lock", pick: () => show("rotate") },
    off ? { label: t.endpoint.enable, icon: "reopen", pick: enable } : { label: t.endpoint.disable, icon: "pause", pick: () => show("disable") },
    /** @type {"line"} */ ("line"),
    { label: t.endpoint.delete, icon: "close", danger: true, pick: () => show("delete") },
  ];
  return html`<${Button} icon="bolt" label=${busy ? t.endpoint.testing : t.endpoint.test} disabled=${busy || off} why=${off ? t.again.disabled : undefined} press=${test} />
    <${Button} icon="reopen" label=${t.again.recoverShort} press=${() => show("recover")} /><${Button} icon="send" label=${t.again.replayShort} press=${() => show("replay")} />
    <${Menu} label=${t.endpoint.more} kind="quiet" caret entries=${entries} />`;
}

/** @param {{of: any}} props */
function About({ of }) {
  const { why } = healthOf(of);
  const rows = /** @type {[string, any][]} */ ([
    [t.webhooks.health, why && html`<bdi>${why}</bdi>`],
    [t.endpoint.nextProbe, of.circuitOpenUntil && exact(of.circuitOpenUntil)],
    [t.webhooks.waits, [of.held && t.webhooks.heldSince(of.held.count, exact(of.held.since)), of.missed && t.webhooks.missedSince(of.missed.count, exact(of.missed.since))].filter(Boolean).join(", ") || null],
    [t.form.url, html`<span class="mono"><bdi>${of.url}</bdi></span>`],
    [t.form.events, of.events.length ? html`<span class="mono">${of.events.join(", ")}</span>` : t.form.all],
    [t.endpoint.apiVersion, of.apiVersion],
    [t.form.catchUp, of.catchUp === "automatic" ? t.yes : t.no],
    [t.endpoint.secret, html`<span class="mono">${of.secret}</span>${of.oldSecretUntil && html` <span class="muted">${t.endpoint.oldUntil(exact(of.oldSecretUntil))}</span>`}`],
    [t.webhooks.lastDelivery, of.lastDelivery && html`${t.status[/** @type {"pending"} */ (of.lastDelivery.status)]}, <${Ago} at=${of.lastDelivery.at} />`],
  ]);
  return html`<${Pairs} of=${rows.filter(([, value]) => value !== null && value !== undefined && value !== false)} />`;
}

const DAYS = [1, 7, 30];

/** @param {{of: any, days: number}} props */
function Figures({ of, days }) {
  const choice = html`<fieldset class="choice"><legend class="sr">${t.figures.since}</legend><div class="segments">${DAYS.map((each) => html`<label key=${each}><input type="radio" name="days" checked=${each === days} onChange=${() => setQuery({ days: each === 1 ? null : String(each) })} /><span>${t.figures.days(each)}</span></label>`)}</div></fieldset>`;
  return html`<${Section} title=${days > 7 ? t.figures.byDay : t.figures.byHour} actions=${choice}><${States} of=${of}>${(/** @type {any} */ data) => {
    const values = (/** @type {string[]} */ ...names) => data.items.map((/** @type {any} */ each) => names.reduce((sum, name) => sum + each[name], 0));
    const sum = (/** @type {number[]} */ all) => all.reduce((a, b) => a + b, 0);
    const [delivered, lost, held] = [values("delivered"), values("dropped", "skipped"), values("pending")];
    const { p50Ms, p99Ms } = data.latency;
    return html`<${Chart} title=${t.figures.title(sum(delivered), sum(lost), sum(held))} at=${data.items.map((/** @type {any} */ each) => each.at)} summary=${t.figures.title(sum(delivered), sum(lost), sum(held))}
        series=${[{ label: t.status.delivered, values: delivered, colour: "--good", bars: true }, { label: t.figures.lost, values: lost, colour: "--bad" }, { label: t.status.pending, values: held, colour: "--warn" }]} />
      ${p50Ms !== null && html`<p class="muted">${t.figures.latency(data.latency.deliveries, t.ms(p50Ms), t.ms(p99Ms))}</p>`}`;
  }}<//><//>`;
}

/** @param {{endpoint: any, done: (endpoint: any) => void, close: () => void}} props */
function Rotate({ endpoint, done, close }) {
  const [wrong, setWrong] = useState("");
  const rotate = async () => {
    try {
      const next = await call("POST", `webhooks/${endpoint.id}/rotate-secret`);
      close();
      done(next);
    } catch (error) {
      setWrong(errorText(error));
    }
  };
  return html`<${Dialog} title=${t.endpoint.rotate} close=${close}><div class="body"><p>${t.endpoint.rotateText}</p>${wrong && html`<p class="wrong" role="alert">${wrong}</p>`}
    <div class="actions"><${Button} kind="primary" label=${t.endpoint.rotate} press=${rotate} /></div></div><//>`;
}
