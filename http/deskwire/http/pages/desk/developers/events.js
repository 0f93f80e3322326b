// @ts-check
/** The live log: all events of the project, with filters and the outcome of each at the endpoints. */
import { html, useEffect, useState } from "../vendor/preact.js";
import { t } from "./texts.js";
import { Button, Empty, Icon } from "../ui/parts.js";
import { Dialog } from "../ui/dialog.js";
import { may } from "../core/session.js";
import { connection } from "../core/feed.js";
import { Frame, Pairs } from "../ui/frame.js";
import { More, Table } from "../ui/table.js";
import { States, useCall, useList } from "../ui/loading.js";
import { Link, setQuery, query } from "../ui/link.js";
import { Copied, copy } from "../ui/secret.js";
import { CONTRACT, EXTENSIONS } from "./event-types.js";
import { conversationIn } from "./endpoint-forms.js";
import { Exact, Outcome, duration } from "./format.js";
import { call } from "../core/api.js";
import { useEvents } from "../ui/auto-refresh.js";

const PAGE = 50;
const ROWS_MAX = 500;
const LISTED = new Set([...CONTRACT, ...EXTENSIONS]);

/** Return the conversation of an event. @param {any} event @returns {any} */
const conversationOf = (event) => event.data?.conversation ?? null;

/** The subject of an event in words. @param {any} event */
function subject(event) {
  const { data } = event;
  const conversation = conversationOf(event);
  if (conversation) return html`<${Link} to=${`c/${conversation.id}`}><bdi>${conversation.contact?.name || conversation.contact?.userId || conversation.id}</bdi><//>${event.sequence !== null && html` <span class="num muted">#${event.sequence}</span>`}${data.message?.text && html` <bdi class="muted words">${data.message.text.slice(0, 120)}</bdi>`}`;
  if (data?.ticket) return html`<bdi>${data.ticket.title ?? data.ticket.id}</bdi>`;
  if (data?.contact) return html`<bdi>${data.contact.name || data.contact.userId || data.contact.id}</bdi>`;
  if (data?.endpoint) return html`<bdi>${data.endpoint.description ?? data.endpoint.id}</bdi>`;
  return t.none;
}

export function Page() {
  const [types, conversation] = [query.value.get("types"), query.value.get("conversation")];
  const of = useList("events", { types, conversation }, PAGE);
  const [paused, pause] = useState(false);
  const [held, hold] = useState(/** @type {any[]} */ ([]));
  const fits = (/** @type {any} */ each) => LISTED.has(each.type) && (!types || types.split(",").includes(each.type)) && (!conversation || conversationOf(each)?.id === conversation);
  useEffect(() => hold([]), [types, conversation]);
  const put = (/** @type {any[]} */ fresh) => of.edit((items) => [...fresh.filter((each) => !items.some((one) => one.id === each.id)), ...items].sort((a, b) => (a.id < b.id ? 1 : -1)).slice(0, ROWS_MAX));
  const onEvents = (/** @type {any[]} */ events) => {
    const fresh = events.filter((each) => fits(each) && ![...of.items, ...held].some((one) => one.id === each.id));
    if (!fresh.length) return;
    if (paused) hold((before) => [...fresh, ...before].slice(0, ROWS_MAX));
    else put(fresh);
  };
  // Events between the first page and the stream's start are in neither.
  const missed = () => call("GET", of.call.path, { query: of.call.query }).then(({ items }) => onEvents(items), () => {});
  useEvents(onEvents, () => void missed());
  useEffect(() => {
    if (!paused && held.length) (put(held), hold([]));
  }, [paused]);
  const live = connection.value.state === "live" && !paused;
  const open = query.value.get("event");
  const columns = [
    { label: t.log.when, cell: (/** @type {any} */ row) => html`<button type="button" class="link" onClick=${() => setQuery({ event: row.id })}><${Exact} at=${row.createdAt} /></button>` },
    { label: t.log.event, cell: (/** @type {any} */ row) => html`<span class="mono">${row.type}</span>` },
    { label: t.events.about, cell: subject },
  ];
  const tools = html`<label class="label">${t.log.event}<select class="field" onChange=${(/** @type {any} */ event) => setQuery({ types: event.target.value || null })}><option value="" selected=${!types}>${t.log.any}</option>${[...LISTED].map((each) => html`<option key=${each} value=${each} selected=${types === each}>${each}</option>`)}</select></label>
    <label class="label">${t.log.conversation}<input class="field mono" type="search" placeholder="cnv_…" value=${conversation ?? ""} spellcheck="false" autocomplete="off" onChange=${(/** @type {any} */ event) => setQuery({ conversation: conversationIn(event.target.value) || null })} /></label>
    <span class="grow"></span><span class=${`chip ${live ? "good" : "waits"}`} role="status">${live ? t.events.live : paused ? t.events.paused(held.length) : t.events.waits}</span>
    <${Button} label=${paused ? t.events.resume : t.events.pause} icon=${paused ? "right" : "pause"} press=${() => pause(!paused)} />`;
  const cursor = of.items[0]?.id;
  return html`<${Frame} title=${t.pages.events} calls=${[of.call]} tools=${tools} actions=${cursor && html`<${Button} kind="quiet" icon="copy" label=${t.events.copyCursor} press=${() => copy(cursor)} />`}>
    <${States} of=${of} empty=${html`<${Empty} icon="bolt" title=${t.events.none} text=${t.events.noneText} />`}>${(/** @type {any[]} */ rows) => html`<${Table} caption=${t.pages.events} columns=${columns} rows=${rows} /><${More} of=${of} />`}<//>
    ${open && html`<${Event} key=${open} id=${open} known=${of.items.find((/** @type {any} */ each) => each.id === open)} close=${() => setQuery({ event: null })} />`}
  <//>`;
}

/** @param {{id: string, known: any, close: () => void}} props */
function Event({ id, known, close }) {
  const of = useCall(known ? null : `events/${id}`);
  const event = known ?? of.data;
  return html`<${Dialog} title=${event?.type ?? t.log.event} class="wide" close=${close}><div class="body">${event ? html`<${Reached} event=${event} /><${Copied} text=${JSON.stringify(event, null, 2)} label=${t.delivery.event} />` : html`<${States} of=${of}>${() => null}<//>`}</div><//>`;
}

/** The outcome of an event at each endpoint. @param {{event: any}} props */
function Reached({ event }) {
  const conversation = event.sequence === null ? null : conversationOf(event)?.id;
  const of = useCall(conversation ? `conversations/${conversation}/deliveries` : null, { sequence: event.sequence });
  if (!conversation || !of.data?.items.length) return null;
  return html`<h3>${t.events.reached}</h3><${Pairs} of=${of.data.items.map((/** @type {any} */ each) => [
    each.endpoint,
    html`<${Outcome} status=${each.status} /> ${each.afterMs !== null ? duration(each.afterMs) : html`<bdi>${each.reason}</bdi>`}${may("webhooks.manage") && html` · <${Link} to=${`webhooks/${each.endpointId}?conversation=${conversation}`}><${Icon} name="right" />${t.events.log}<//>`}`,
  ])} />`;
}
