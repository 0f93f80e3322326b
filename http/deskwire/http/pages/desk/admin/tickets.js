// @ts-check
/** Tickets: the list with its filters, bulk changes, and the dialog for a new one. */
import { html, useEffect, useState } from "../vendor/preact.js";
import { t } from "./texts.js";
import { t as ticketTexts } from "../ui/ticket-texts.js";
import { Ago, Button, Empty, Name, notify, futureTime } from "../ui/parts.js";
import { Dialog } from "../ui/dialog.js";
import { call, newKey } from "../core/api.js";
import { go, may } from "../core/session.js";
import { Frame } from "../ui/frame.js";
import { ListTable } from "../ui/table.js";
import { HoldOrder, useLiveList } from "../ui/auto-refresh.js";
import { Field, Form } from "../ui/form.js";
import { Link, setQuery, query } from "../ui/link.js";
import { choices, nameOf, teamChoices, userChoices } from "../ui/names.js";
import { Priority, TicketFields, ticketFromForm } from "../ui/ticket-fields.js";
import { TicketPage } from "./ticket.js";
/** @import { Values } from "../ui/form.js" */

/** @param {{id: string|null}} props */
export const Page = ({ id }) => (id ? html`<${TicketPage} id=${id} />` : html`<${List} />`);

const FILTERS = ["status", "priority", "assignee", "tag", "q", "sort"];

/** Return the change of a ticket by an event. @param {any} event */
const rowChange = ({ type, data }) => (type.startsWith("ticket.") ? { id: data.ticket.id, row: type === "ticket.deleted" ? null : data.ticket } : null);

function List() {
  const asked = query.value;
  const filter = Object.fromEntries(FILTERS.flatMap((name) => (asked.get(name) ? [[name, asked.get(name)]] : [])));
  const [picked, setChosen] = useState(/** @type {ReadonlySet<string>} */ (new Set()));
  // A message in the ticket's conversation is its last activity.
  const moves = (/** @type {any} */ { type, data }) => filter.sort === "lastActivity" && type === "message.created" && Boolean(data.conversation.ticketId);
  const of = useLiveList("tickets", filter, { changeOf: rowChange, moves, held: picked.size > 0 });
  const chosen = new Set(of.items.flatMap((row) => (picked.has(row.id) ? [row.id] : [])));
  useEffect(() => void (chosen.size < picked.size && setChosen(chosen))); // a ticket that is no longer shown must not be changed
  const [making, setMaking] = useState(false);
  const manages = may("tickets.manage");
  const columns = [
    { label: ticketTexts.title, cell: (/** @type {any} */ row) => html`<${Link} to=${`tickets/${row.id}`}><${Name} name=${row.title} /><//>${row.tags.map((/** @type {string} */ tag) => html` <span key=${tag} class="chip tag"><bdi class="ellipsis">${tag}</bdi></span>`)}` },
    { label: ticketTexts.status, cell: (/** @type {any} */ row) => html`${/** @type {any} */ (ticketTexts.statuses)[row.status]}${row.snoozedUntil && html` <span class="chip">${ticketTexts.until(futureTime(row.snoozedUntil))}</span>`}` },
    { label: ticketTexts.priority, cell: (/** @type {any} */ row) => html`<${Priority} of=${row.priority} />` },
    { label: ticketTexts.assignee, cell: (/** @type {any} */ row) => [nameOf(row.processingUser), nameOf(row.processingTeam)].filter(Boolean).join(", ") || ticketTexts.unassigned },
    { label: ticketTexts.updated, cell: (/** @type {any} */ row) => html`<${Ago} at=${row.updatedAt} />`, less: true },
  ];
  const actions = manages && html`<${Button} icon="plus" kind="primary" label=${ticketTexts.create} press=${() => setMaking(true)} />`;
  const any = Object.keys(filter).length > 0;
  const empty = any
    ? html`<${Empty} icon="filter" title=${ticketTexts.filtered} action=${html`<${Button} label=${t.clearFilters} press=${() => go("tickets", { replace: true })} />`} />`
    : html`<${Empty} icon="tag" title=${ticketTexts.none} text=${ticketTexts.noneText} />`;
  return html`<${Frame} title=${t.pages.tickets} actions=${actions} calls=${[of.call]} tools=${html`<${Filters} />`}>
    ${chosen.size > 0 && html`<${Bulk} ids=${[...chosen]} done=${() => (setChosen(new Set()), of.reload())} />`}
    <${HoldOrder} of=${of}><${ListTable} of=${of} caption=${t.pages.tickets} columns=${columns} empty=${empty} chosen=${manages ? { ids: chosen, set: setChosen, name: (/** @type {any} */ row) => row.title } : undefined} /><//>
    ${making && html`<${Create} close=${() => setMaking(false)} />`}
  <//>`;
}

function Filters() {
  const now = query.value;
  const [q, setQ] = useState(now.get("q") ?? "");
  const select = (/** @type {string} */ name, /** @type {string} */ label, /** @type {{value: string, label: string}[]} */ options) =>
    html`<label class="label"><span class="sr">${label}</span><select class="field" value=${now.get(name) ?? ""} onChange=${(/** @type {any} */ event) => setQuery({ [name]: event.target.value })}>${options.map((each) => html`<option key=${each.value} value=${each.value} selected=${each.value === (now.get(name) ?? "")}>${each.label}</option>`)}</select></label>`;
  const search = (/** @type {Event} */ event) => (event.preventDefault(), setQuery({ q: q.trim() || null }));
  return html`<form role="search" onSubmit=${search}><label class="label"><span class="sr">${t.search}</span><input class="field" type="search" placeholder=${ticketTexts.find} value=${q} onInput=${(/** @type {any} */ event) => setQ(event.target.value)} onChange=${search} /></label></form>
    ${select("status", ticketTexts.status, [{ value: "", label: ticketTexts.anyStatus }, ...choices(ticketTexts.statuses)])}
    ${select("priority", ticketTexts.priority, [{ value: "", label: ticketTexts.anyPriority }, ...choices(ticketTexts.priorities)])}
    ${select("assignee", ticketTexts.assignee, [{ value: "", label: ticketTexts.anyAssignee }, { value: "none", label: ticketTexts.unassigned }, ...userChoices("").slice(1), ...teamChoices("").slice(1)])}
    ${select("sort", ticketTexts.sort, choices(ticketTexts.sorts))}
    ${now.get("tag") && html`<span class="chip tag">${now.get("tag")}<button type="button" aria-label=${ticketTexts.anyTag} onClick=${() => setQuery({ tag: null })}>×</button></span>`}`;
}

/** @param {{ids: string[], done: () => void}} props */
function Bulk({ ids, done }) {
  const change = async (/** @type {any} */ payload) => {
    try {
      const outcome = await call("PUT", "tickets/bulk", { body: { selection: { ids }, payload } });
      const parts = [ticketTexts.bulkDone(outcome.updated), outcome.unchanged && ticketTexts.bulkSame(outcome.unchanged), outcome.notFound.length && ticketTexts.bulkGone(outcome.notFound.length)];
      notify(`${parts.filter(Boolean).join(", ")}.`, { bad: outcome.notFound.length > 0 });
      done();
    } catch (error) {
      notify(ticketTexts.bulkFailed(/** @type {Error} */ (error).message), { bad: true });
    }
  };
  const pick = (/** @type {string} */ label, /** @type {{value: string, label: string}[]} */ options, /** @type {(value: string) => any} */ payload) =>
    html`<label class="label"><span class="sr">${label}</span><select class="field" value="" onChange=${(/** @type {any} */ event) => event.target.value && change(payload(event.target.value === "none" ? null : event.target.value))}><option value="">${label}</option>${options.map((each) => html`<option key=${each.value} value=${each.value}>${each.label}</option>`)}</select></label>`;
  const none = { value: "none", label: ticketTexts.unassigned };
  return html`<div class="bulk-bar" role="group" aria-label=${ticketTexts.selected(ids.length)}><strong>${ticketTexts.selected(ids.length)}</strong>
    ${pick(ticketTexts.giveUser, [none, ...userChoices("").slice(1)], (id) => ({ processingUser: id }))}
    ${pick(ticketTexts.giveTeam, [none, ...teamChoices("").slice(1)], (id) => ({ processingTeam: id }))}
    ${pick(ticketTexts.setPriority, choices(ticketTexts.priorities), (value) => ({ priority: value }))}
    ${pick(ticketTexts.snooze, choices(ticketTexts.durations), (value) => ({ duration: Number(value) }))}
  </div>`;
}

/** @param {{close: () => void}} props */
function Create({ close }) {
  const [key] = useState(newKey);
  const save = async (/** @type {Values} */ form) => {
    const given = Object.fromEntries(Object.entries(ticketFromForm(form)).filter(([, value]) => value !== null));
    const made = await call("POST", "tickets", { key, body: { ...given, conversationId: form.text("conversationId") } });
    close();
    go(`tickets/${made.id}`);
  };
  return html`<${Dialog} title=${ticketTexts.create} class="wide" close=${close}><div class="body"><${Form} save=${save} label=${ticketTexts.createIt} cancel=${close}>
    <${TicketFields} /><${Field} name="conversationId" label=${ticketTexts.conversation} hint=${ticketTexts.conversationHint} mono spellcheck="false" />
  <//></div><//>`;
}
