// @ts-check
/** Stream consumers: the channel, state and lag of each. */
import { number } from "../core/texts.js";
import { html, useEffect, useState } from "../vendor/preact.js";
import { t } from "./texts.js";
import { Ago, Button, Empty, notify } from "../ui/parts.js";
import { call } from "../core/api.js";
import { Frame } from "../ui/frame.js";
import { Table } from "../ui/table.js";
import { States, useCall } from "../ui/loading.js";
import { Link } from "../ui/link.js";
import { ConfirmDialog } from "../ui/confirm-dialog.js";
import { useAutoRefresh } from "../ui/auto-refresh.js";

const POLL_INTERVAL_MS = 5_000;
const LAG_SHOWN_MAX = 10_000;

/** The content of a channel. @param {{name: string}} props */
function Channel({ name }) {
  const [, kind = "", subject = ""] = /^private-(project|conversation|contact)-(.*)$/.exec(name) ?? [];
  if (kind === "conversation") return html`${t.consumers.ofConversation} <${Link} to=${`c/${subject}`} class="mono">${subject}<//>`;
  if (kind === "contact") return html`${t.consumers.ofContact} <bdi class="mono">${subject}</bdi>`;
  return html`${kind === "project" ? t.consumers.ofProject : name}`;
}

export function Page() {
  const of = useCall("stream/consumers");
  const [ends, setEnds] = useState(/** @type {any} */ (null));
  useAutoRefresh(of.reload, false);
  useEffect(() => {
    const every = setInterval(() => !document.hidden && of.reload(), POLL_INTERVAL_MS); // no event reports that a consumer has left
    return () => clearInterval(every);
  }, [of.reload]);
  const end = async () => {
    await call("DELETE", `stream/consumers/${encodeURIComponent(ends.consumerId)}`, { query: { channel: ends.channel } });
    notify(t.consumers.ended(ends.consumerId));
    await of.reload();
  };
  const state = (/** @type {any} */ row) => (!row.connected ? ["bad", t.consumers.away] : row.lag ? ["waits", t.consumers.behind] : ["good", t.consumers.upToDate]);
  const columns = [
    { label: t.consumers.consumer, cell: (/** @type {any} */ row) => html`<bdi class="mono">${row.consumerId}</bdi>` },
    { label: t.consumers.state, cell: (/** @type {any} */ row) => html`<span class=${`chip ${state(row)[0]}`}>${state(row)[1]}</span>` },
    { label: t.consumers.lag, num: true, cell: (/** @type {any} */ row) => (row.lag >= LAG_SHOWN_MAX ? `${number(LAG_SHOWN_MAX)}+` : number(row.lag)) },
    { label: t.consumers.channel, cell: (/** @type {any} */ row) => html`<${Channel} name=${row.channel} />` },
    { label: t.consumers.confirmed, less: true, cell: (/** @type {any} */ row) => (row.confirmedEventId ? html`<${Link} to=${`events?event=${row.confirmedEventId}`} class="mono">${row.confirmedEventId}<//>` : t.none) },
    { label: t.consumers.since, less: true, cell: (/** @type {any} */ row) => html`<${Ago} at=${row.since} />` },
    { label: t.log.actions, silent: true, cell: (/** @type {any} */ row) => row.connected && html`<${Button} class="small" label=${t.consumers.end} press=${() => setEnds(row)} />` },
  ];
  return html`<${Frame} title=${t.pages.consumers} calls=${[of.call]}>
    <${States} of=${of}>${(/** @type {any} */ data) => (data.items.length ? html`<${Table} caption=${t.pages.consumers} columns=${columns} rows=${data.items} keyOf=${(/** @type {any} */ row) => row.channel} />` : html`<${Empty} icon="wire" title=${t.consumers.none} text=${t.consumers.noneText} />`)}<//>
    ${ends && html`<${ConfirmDialog} deletes=${false} title=${t.consumers.endTitle(ends.consumerId)} loses=${[t.consumers.loses]} stays=${[t.consumers.stays]} label=${t.consumers.end} run=${end} close=${() => setEnds(null)} />`}
  <//>`;
}
