// @ts-check
/** One ticket: its fields, whose change is refused if a colleague was faster; snooze, what it belongs to, and its log. */
import { html, useRef, useState } from "../vendor/preact.js";
import { t } from "./texts.js";
import { Ago, Avatar, Button, Menu, Name, say, soon } from "../parts.js";
import { Problem, call } from "../api.js";
import { go, may } from "../session.js";
import { Frame, Pairs, Section } from "../parts/frame.js";
import { States, useList } from "../parts/loading.js";
import { Form, Values } from "../parts/form.js";
import { Gone, Meanwhile } from "../parts/gone.js";
import { More } from "../parts/table.js";
import { Link } from "../parts/link.js";
import { times } from "../actions.js";
import { useTicket } from "./followed-ticket.js";
import { nameOf } from "./names.js";
import { Priority, TicketFields, ticketOf } from "./tickets.js";
/** @import { Listed } from "../parts/loading.js" */

const LABELS = /** @type {Record<string, string>} */ ({
  title: t.tickets.title, description: t.tickets.description, status: t.tickets.status, priority: t.tickets.priority, type: t.tickets.type,
  processingUser: t.tickets.user, processingTeam: t.tickets.team, tags: t.tickets.tags, snoozedUntil: t.tickets.snoozed, conversationId: t.tickets.conversation, contactId: t.tickets.contact,
});

/** A field's value in words. @param {string} name @param {any} value @returns {string|null} */
function worded(name, value) {
  if (value === null || value === undefined || value === "") return null;
  if (name === "processingUser" || name === "processingTeam") return nameOf(value);
  if (name === "status") return /** @type {any} */ (t.tickets.statuses)[value] ?? value;
  if (name === "priority") return /** @type {any} */ (t.tickets.priorities)[value] ?? value;
  if (name === "snoozedUntil") return new Date(value).toLocaleString();
  return Array.isArray(value) ? value.join(", ") : String(value);
}

/** What a form says that the ticket does not. @param {HTMLFormElement|null|undefined} form @param {any} ticket */
const written = (form, ticket) => (form && ticket ? Object.fromEntries(Object.entries(ticketOf(new Values(form))).filter(([name, value]) => JSON.stringify(value) !== JSON.stringify(ticket[name]))) : {});

/** @param {{id: string}} props */
export function One({ id }) {
  const box = useRef(/** @type {HTMLElement|null} */ (null));
  const mine = () => written(box.current?.querySelector("form"), of.data);
  const log = useList(`tickets/${id}/activity`);
  const { of, theirs, edits, put, own } = useTicket(id, () => Object.keys(mine()).length > 0, log.renew);
  const [deletes, setDeletes] = useState(false);
  const [clash, setClash] = useState(/** @type {{theirs: any, tag: string|null, mine: any}|null} */ (null));
  const manages = may("tickets.manage");
  const path = `tickets/${id}`;
  const change = (/** @type {any} */ body, /** @type {string|null} */ ifMatch, anew = true) => own(async () => {
    /** @type {string|null} */
    let tag = null;
    const made = await call("PATCH", path, { body, ifMatch, answered: (headers) => (tag = headers.get("etag")) });
    put(made, tag, anew);
    say(t.tickets.saved);
    await log.reload();
  });
  const save = async () => {
    const body = mine();
    if (!Object.keys(body).length) return say(t.tickets.unchanged);
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
  // What is written in the fields stays: only a ticket that is as it is shown is snoozed from here.
  const snooze = (/** @type {string|null} */ until) => change({ snoozedUntil: until }, theirs?.tag ?? of.tag, false).catch((error) => say(error.message, { bad: true }));
  const remove = async () => {
    await call("DELETE", path);
    say(t.tickets.deleted);
    go("tickets");
  };
  const now = theirs?.ticket ?? of.data;
  const sleep = () => [...times().map((each) => ({ label: each.label, hint: each.hint, pick: () => void snooze(each.at.toISOString()) })), ...(now?.snoozedUntil ? [{ label: t.tickets.wake, icon: "sun", pick: () => void snooze(null) }] : [])];
  const actions = manages && of.data && html`<${Menu} label=${t.tickets.snooze} icon="moon" caret entries=${sleep} /><${Button} icon="close" label=${t.delete} press=${() => setDeletes(true)} />`;
  return html`<${Frame} title=${now?.title ?? t.tickets.one} up=${{ to: "tickets", label: t.pages.tickets }} actions=${actions} calls=${[of.call, log.call]}>
    <${States} of=${of}>${(/** @type {any} */ made) => html`<div class="columns">
      <${Section} title=${t.tickets.fields}>${manages ? html`<div ref=${box}>${theirs && html`<${Meantime} of=${theirs} compare=${compare} />`}<${Form} key=${edits} save=${save} label=${t.saveChanges}><${TicketFields} of=${made} /><//></div>` : html`<${Read} of=${made} />`}<//>
      <${About} of=${now} log=${log} />
    </div>`}<//>
    ${deletes && html`<${Gone} title=${t.tickets.deleteOne} loses=${[t.tickets.losesTicket(of.data.title), t.tickets.losesLog]} stays=${[t.tickets.staysConversation]} label=${t.delete} run=${remove} close=${() => setDeletes(false)} />`}
    ${clash && html`<${Meanwhile} fields=${Object.keys(clash.mine).map((name) => ({ label: LABELS[name] ?? name, theirs: worded(name, clash.theirs[name]), mine: worded(name, clash.mine[name]) }))}
      keep=${() => put(clash.theirs, clash.tag)} save=${() => change(clash.mine, clash.tag)} close=${() => setClash(null)} />`}
  <//>`;
}

/** What came while something is written in the fields. @param {{of: import("./followed-ticket.js").Theirs, compare: () => void}} props */
const Meantime = ({ of, compare }) => html`<p class="stale" role="status">${of.ticket ? t.tickets.meantime(of.by ?? t.system) : t.tickets.goneMeantime(of.by ?? t.system)} ${of.ticket && html`<${Button} class="small" label=${t.tickets.compare} press=${compare} />`}</p>`;

/** What the ticket belongs to, and its log. @param {{of: any, log: Listed}} props */
const About = ({ of: ticket, log }) => html`<div>
    <${Section} title=${t.tickets.about}><${Pairs} of=${[
      [t.tickets.conversation, ticket.conversationId && html`<${Link} to=${`c/${ticket.conversationId}`}>${t.tickets.openConversation}<//>`],
      [t.tickets.contact, ticket.contactId && html`<${Link} to=${`contacts/${ticket.contactId}`}>${t.tickets.openContact}<//>`],
      [t.tickets.snoozed, ticket.snoozedUntil && soon(ticket.snoozedUntil)],
      [t.tickets.createdAt, html`<${Ago} at=${ticket.createdAt} />`],
      [t.tickets.lastActivity, html`<${Ago} at=${ticket.lastActivityAt} />`],
      [t.tickets.id, html`<code class="mono">${ticket.id}</code>`],
    ]} /><//>
    <${Section} title=${t.tickets.activity}><${States} of=${log} empty=${html`<p class="muted">${t.tickets.noActivity}</p>`}>${(/** @type {any[]} */ entries) => html`<ol class="log-list">${entries.map((each) => html`<${Entry} key=${each.id} of=${each} />`)}</ol>${log.more && html`<${More} of=${log} />`}`}<//><//>
  </div>`;

/** @param {{of: any}} props */
const Read = ({ of }) => html`<${Pairs} of=${["title", "description", "status", "priority", "type", "processingUser", "processingTeam", "tags"].map((name) => [LABELS[name], name === "priority" ? html`<${Priority} of=${of[name]} />` : html`<span dir="auto">${worded(name, of[name]) ?? t.none}</span>`])} />`;

/** @param {{of: any}} props */
function Entry({ of }) {
  const who = of.actor?.name ?? t.system;
  return html`<li><${Avatar} name=${who} id=${of.actor?.id} size="s" bot=${of.actor?.type === "system"} /><div><p><${Name} name=${who} /> ${of.action === "created" ? t.tickets.didCreate : t.tickets.didChange} <${Ago} at=${of.at} /></p>
    ${of.action !== "created" && html`<ul>${of.changes.map((/** @type {any} */ each) => html`<li key=${each.field}>${LABELS[each.field] ?? each.field}: <span dir="auto">${worded(each.field, each.from) ?? t.none}</span> → <span dir="auto">${worded(each.field, each.to) ?? t.none}</span></li>`)}</ul>`}</div></li>`;
}
