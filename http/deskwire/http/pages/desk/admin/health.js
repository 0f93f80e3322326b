// @ts-check
/** The health of the project: webhook endpoints, stream consumers, the longest wait and the upload quota. */
import { locale, number } from "../core/texts.js";
import { html, useEffect } from "../vendor/preact.js";
import { t } from "./texts.js";
import { Ago, Button, Name, cx } from "../ui/parts.js";
import { project } from "../core/session.js";
import { Frame, Pairs, Section } from "../ui/frame.js";
import { Table } from "../ui/table.js";
import { States, useCall } from "../ui/loading.js";
import { Link } from "../ui/link.js";
import { Health, healthOf } from "../ui/endpoint-health.js";

const POLL_INTERVAL_MS = 15_000;
const UNITS = ["byte", "kilobyte", "megabyte", "gigabyte", "terabyte"];

/** Format a size. @param {number} bytes */
function sizeText(bytes) {
  const power = Math.min(UNITS.length - 1, bytes > 0 ? Math.floor(Math.log10(bytes) / 3) : 0);
  return new Intl.NumberFormat(locale, { style: "unit", unit: UNITS[power], unitDisplay: "short", maximumFractionDigits: 1 }).format(bytes / 1000 ** power);
}

/** @param {{of: any}} props */
function State({ of }) {
  const { why } = healthOf(of);
  return html`<${Health} of=${of} /> ${why && html`<span class="muted">${why}</span>`}`;
}

export function Page() {
  const of = useCall(`projects/${project.value?.id}/health`);
  useEffect(() => {
    const timer = setInterval(() => document.visibilityState === "visible" && of.reload(), POLL_INTERVAL_MS);
    return () => clearInterval(timer);
  }, [of.reload]);
  return html`<${Frame} title=${t.pages.health} actions=${html`<${Button} icon="reopen" label=${t.health.refresh} press=${of.reload} />`} calls=${[of.call]}><${States} of=${of}>${(/** @type {any} */ now) => html`
    <p class=${cx("lead", now.healthy ? "good" : "warn")} role="status">${now.healthy ? t.health.well : t.health.unwell}</p>
    <${Pairs} of=${[
      [t.health.oldestWaiting, now.oldestWaiting ? html`<${Ago} at=${now.oldestWaiting.waitingSince} /> · <${Link} to=${`c/${now.oldestWaiting.conversationId}`}>${t.health.open}<//>` : t.health.noneWaiting],
      [t.health.outstanding, t.health.deliveries(now.outstanding)],
      [t.health.uploads, html`${t.health.used(sizeText(now.uploads.usedBytes), sizeText(now.uploads.quotaBytes))} <meter class="share" min="0" max="1" high="0.9" value=${now.uploads.quotaBytes ? Math.min(1, now.uploads.usedBytes / now.uploads.quotaBytes) : 1} aria-hidden="true"></meter>`],
    ]} />
    <${Section} title=${t.health.endpoints}>${now.endpoints.length ? html`<${Table} caption=${t.health.endpoints} rows=${now.endpoints} columns=${[
      { label: t.health.endpoint, cell: (/** @type {any} */ row) => html`<${Name} name=${row.name} />` },
      { label: t.health.state, cell: (/** @type {any} */ row) => html`<${State} of=${row} />` },
      { label: t.health.outstanding, num: true, cell: (/** @type {any} */ row) => number(row.outstanding) },
      { label: t.health.lastDelivery, cell: (/** @type {any} */ row) => (row.lastDeliveryAt ? html`<${Ago} at=${row.lastDeliveryAt} />` : t.never) },
    ]} />` : html`<p class="muted">${t.health.noEndpoints}</p>`}<//>
    <${Section} title=${t.health.consumers}>${now.consumers.length ? html`<${Table} quiet caption=${t.health.consumers} rows=${now.consumers} keyOf=${(/** @type {any} */ row) => row.channel + row.consumerId} columns=${[
      { label: t.health.consumer, cell: (/** @type {any} */ row) => html`<code class="mono">${row.consumerId}</code>` },
      { label: t.health.channel, cell: (/** @type {any} */ row) => html`<code class="mono">${row.channel}</code>` },
      { label: t.health.state, cell: (/** @type {any} */ row) => html`<span class=${cx("chip", row.connected ? "good" : "waits")}>${row.connected ? t.health.connected : t.health.away}</span>` },
      { label: t.health.lag, num: true, cell: (/** @type {any} */ row) => number(row.lag) },
    ]} />` : html`<p class="muted">${t.health.noConsumers}</p>`}<//>`}<//><//>`;
}
