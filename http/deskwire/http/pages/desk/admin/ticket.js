// @ts-check
/** One ticket: its fields, snooze, links and log. Changes by colleagues are shown without overwriting unsaved fields. */
import { html, useRef, useState } from "../vendor/preact.js";
import { t } from "./texts.js";
import { t as ticketTexts } from "../ui/ticket-texts.js";
import { Ago, Avatar, Button, Menu, Name, notify, futureTime } from "../ui/parts.js";
import { Problem, call } from "../core/api.js";
import { go, may } from "../core/session.js";
import { ConflictDialog } from "../ui/conflict.js";
import { Frame, Pairs, Section } from "../ui/frame.js";
import { States, useList } from "../ui/loading.js";
import { Form, Values } from "../ui/form.js";
import { ConfirmDialog } from "../ui/confirm-dialog.js";
import { More } from "../ui/table.js";
import { Link } from "../ui/link.js";
import { snoozeTimes } from "../ui/format.js";
import { LABELS, Priority, TicketFields, fieldText, ticketFromForm, useTicket } from "../ui/ticket-fields.js";
import { TicketConversation } from "./ticket-conversation.js";
/** @import { Listed } from "../ui/loading.js" */
/** @import { Theirs } from "../ui/ticket-fields.js" */

/** Return the fields of the form that differ from the ticket. @param {HTMLFormElement|null|undefined} form @param {any} ticket */
const changedFields = (form, ticket) => (form && ticket ? Object.fromEntries(Object.entries(ticketFromForm(new Values(form))).filter(([name, value]) => JSON.stringify(value) !== JSON.stringify(ticket[name]))) : {});

/** @param {{id: string}} props */
export function TicketPage({ id }) {
  const box = useRef(/** @type {HTMLElement|null} */ (null));
  const mine = () => changedFields(box.current?.querySelector("form"), of.data);
  const log = useList(`tickets/${id}/activity`);
  const { of, theirs, edits, put, own } = useTicket(id, () => Object.keys(mine()).length > 0, log.renew);
  const [deletes, setDeletes] = useState(false);
  const [clash, setClash] = useState(/** @type {{theirs: any, tag: string|null, mine: any}|null} */ (null));
  const manages = may("tickets.manage");
  const path = `tickets/${id}`;
  const change = (/** @type {any} */ body, /** @type {string|null} */ ifMatch, fromServer = true) => own(async () => {
    /** @type {string|null} */
    let tag = null;
    const made = await call("PATCH", path, { body, ifMatch, answered: (headers) => (tag = headers.get("etag")) });
    put(made, tag, fromServer);
    notify(ticketTexts.saved);
    await log.reload();
  });
  const save = async () => {
    const body = mine();
    if (!Object.keys(body).length) return notify(ticketTexts.unchanged);
    try {
      await change(body, of.tag);
    } catch (error) {
      if (!(error instanceof Problem) || error.code !== "changed_meanwhile") throw error;
      /** @type {string|null} */
      let tag = null;
      const now = await call("GET", path, { answered: (headers) => (tag = headers.get("etag")) });
      setClash({ theirs: now, tag, mine: body });
    }
  };
  const compare = () => theirs && setClash({ theirs: theirs.ticket, tag: theirs.tag, mine: mine() });
  // A snooze keeps unsaved fields: it applies only to the version that is shown.
  const snooze = (/** @type {string|null} */ until) => change({ snoozedUntil: until }, theirs?.tag ?? of.tag, false).catch((error) => notify(error.message, { bad: true }));
  const relink = (/** @type {string|null} */ to) => change({ conversationId: to }, theirs?.tag ?? of.tag, false);
  const remove = async () => {
    await call("DELETE", path);
    notify(ticketTexts.deleted);
    go("tickets");
  };
  const now = theirs?.ticket ?? of.data;
  const sleep = () => [...snoozeTimes().map((each) => ({ label: each.label, hint: each.hint, pick: () => void snooze(each.at.toISOString()) })), ...(now?.snoozedUntil ? [{ label: ticketTexts.wake, icon: "sun", pick: () => void snooze(null) }] : [])];
  const actions = manages && of.data && html`<${Menu} label=${ticketTexts.snooze} icon="moon" caret entries=${sleep} /><${Button} icon="close" label=${t.delete} press=${() => setDeletes(true)} />`;
  return html`<${Frame} title=${now?.title ?? ticketTexts.one} up=${{ to: "tickets", label: t.pages.tickets }} actions=${actions} calls=${[of.call, log.call]}>
    <${States} of=${of}>${(/** @type {any} */ made) => html`<div class="columns">
      <${Section} title=${ticketTexts.fields}>${manages ? html`<div ref=${box}>${theirs && html`<${ChangeNotice} of=${theirs} compare=${compare} />`}<${Form} key=${edits} save=${save} label=${t.saveChanges}><${TicketFields} of=${made} /><//></div>` : html`<${Read} of=${made} />`}<//>
      <${About} of=${now} log=${log} relink=${manages && relink} />
    </div>`}<//>
    ${deletes && html`<${ConfirmDialog} title=${ticketTexts.deleteOne} loses=${[ticketTexts.losesTicket(of.data.title), ticketTexts.losesLog]} stays=${[ticketTexts.staysConversation]} label=${t.delete} run=${remove} close=${() => setDeletes(false)} />`}
    ${clash && html`<${ConflictDialog} fields=${Object.keys(clash.mine).map((name) => ({ label: LABELS[name] ?? name, theirs: fieldText(name, clash.theirs[name]), mine: fieldText(name, clash.mine[name]) }))}
      keep=${() => put(clash.theirs, clash.tag)} save=${() => change(clash.mine, clash.tag)} close=${() => setClash(null)} />`}
  <//>`;
}

/** The notice of a change by a colleague while fields are unsaved. @param {{of: Theirs, compare: () => void}} props */
const ChangeNotice = ({ of, compare }) => html`<p class="stale" role="status">${of.ticket ? ticketTexts.meantime(of.by ?? t.system) : ticketTexts.goneMeantime(of.by ?? t.system)} ${of.ticket && html`<${Button} class="small" label=${ticketTexts.compare} press=${compare} />`}</p>`;

/** The ticket's conversation, its links and its log. @param {{of: any, log: Listed, relink: ((id: string|null) => Promise<unknown>) | false}} props */
const About = ({ of: ticket, log, relink }) => html`<div>
    <${TicketConversation} key=${ticket.conversationId ?? ""} of=${ticket} relink=${relink} />
    <${Section} title=${ticketTexts.about}><${Pairs} of=${[
      [ticketTexts.contact, ticket.contactId && html`<${Link} to=${`contacts/${ticket.contactId}`}>${ticketTexts.openContact}<//>`],
      [ticketTexts.snoozed, ticket.snoozedUntil && futureTime(ticket.snoozedUntil)],
      [ticketTexts.createdAt, html`<${Ago} at=${ticket.createdAt} />`],
      [ticketTexts.lastActivity, html`<${Ago} at=${ticket.lastActivityAt} />`],
      [ticketTexts.id, html`<code class="mono">${ticket.id}</code>`],
    ]} /><//>
    <${Section} title=${ticketTexts.activity}><${States} of=${log} empty=${html`<p class="muted">${ticketTexts.noActivity}</p>`}>${(/** @type {any[]} */ entries) => html`<ol class="log-list">${entries.map((each) => html`<${Entry} key=${each.id} of=${each} />`)}</ol>${log.more && html`<${More} of=${log} />`}`}<//><//>
  </div>`;

/** @param {{of: any}} props */
const Read = ({ of }) => html`<${Pairs} of=${["title", "description", "status", "priority", "type", "processingUser", "processingTeam", "tags"].map((name) => [LABELS[name], name === "priority" ? html`<${Priority} of=${of[name]} />` : html`<span dir="auto">${fieldText(name, of[name]) ?? t.none}</span>`])} />`;

/** @param {{of: any}} props */
function Entry({ of }) {
  const who = of.actor?.name ?? t.system;
  return html`<li><${Avatar} name=${who} id=${of.actor?.id} size="s" bot=${of.actor?.type === "system"} /><div><p><${Name} name=${who} /> ${of.action === "created" ? ticketTexts.didCreate : ticketTexts.didChange} <${Ago} at=${of.at} /></p>
    ${of.action !== "created" && html`<ul>${of.changes.map((/** @type {any} */ each) => html`<li key=${each.field}>${LABELS[each.field] ?? each.field}: <span dir="auto">${fieldText(each.field, each.from) ?? t.none}</span> → <span dir="auto">${fieldText(each.field, each.to) ?? t.none}</span></li>`)}</ul>`}</div></li>`;
}
