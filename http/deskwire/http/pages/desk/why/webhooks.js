// @ts-check
/** The webhook endpoints of the project with their health, and the way to register one. */
import { html, useState } from "../vendor/preact.js";
import { t } from "./texts.js";
import { Ago, Button, Empty } from "../parts.js";
import { Frame } from "../parts/frame.js";
import { Table } from "../parts/table.js";
import { States, useCall } from "../parts/loading.js";
import { Link } from "../parts/link.js";
import { Secret } from "../parts/secret.js";
import { Endpoint } from "./endpoint.js";
import { Edit } from "./endpoint-forms.js";
import { Health, healthOf } from "../parts/endpoint-health.js";
import { endpointName } from "./words.js";
import { useFresh } from "../parts/fresh.js";

/** @param {{id: string|null}} props */
export const Page = ({ id }) => (id ? html`<${Endpoint} id=${id} />` : html`<${List} />`);

/** The share of the deliveries of the last 24 hours that arrived. @param {{id: string}} props */
function Share({ id }) {
  const { data } = useCall(`webhooks/${id}/figures`);
  if (!data) return html`<span class="muted">…</span>`;
  const sum = (/** @type {string} */ name) => data.items.reduce((/** @type {number} */ n, /** @type {any} */ each) => n + each[name], 0);
  const [arrived, lost] = [sum("delivered"), sum("dropped")]; // skipped deliveries were not meant to arrive
  return arrived + lost ? html`<span class="num" title=${t.webhooks.arrivedOf(arrived, arrived + lost)}>${t.percent(arrived / (arrived + lost))}</span>` : t.none;
}

/** What waits for an endpoint, in words. @param {any} row */
const waiting = (row) => [row.held && t.webhooks.held(row.held.count), row.missed && t.webhooks.missed(row.missed.count)].filter(Boolean).join(", ") || t.none;

function List() {
  const of = useCall("webhooks");
  const [registers, setRegisters] = useState(false);
  const [secret, setSecret] = useState(/** @type {string|null} */ (null));
  const items = of.data?.items ?? [];
  useFresh(of.reload, items.some((/** @type {any} */ each) => healthOf(each).kind !== "good"), registers);
  const columns = [
    { label: t.webhooks.endpoint, cell: (/** @type {any} */ row) => html`<${Link} to=${`webhooks/${row.id}`}><bdi>${endpointName(row)}</bdi><//><br /><span class="muted mono"><bdi>${row.url}</bdi></span>` },
    { label: t.webhooks.health, cell: (/** @type {any} */ row) => html`<${Health} of=${row} />${healthOf(row).why && html`<br /><span class="muted">${healthOf(row).why}</span>`}` },
    { label: t.webhooks.share, num: true, cell: (/** @type {any} */ row) => html`<${Share} id=${row.id} />` },
    { label: t.webhooks.waits, cell: waiting },
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
