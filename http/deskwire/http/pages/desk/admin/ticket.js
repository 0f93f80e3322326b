// @ts-check
/** One ticket: its fields, snooze, links and log. Changes by colleagues are shown without overwriting unsaved fields. */
import { html, useRef, useState } from "../vendor/preact.js";
import { t } from "./texts.js";
import { Ago, Avatar, Button, Menu, Name, cx, notify, futureTime } from "../ui/parts.js";
import { Problem, call } from "../core/api.js";
import { go, may } from "../core/session.js";
import { ConflictDialog } from "../ui/conflict.js";
import { Frame, Pairs, Section } from "../ui/frame.js";
import { States, useCall, useList } from "../ui/loading.js";
import { Field, Form, Values } from "../ui/form.js";
import { ConfirmDialog } from "../ui/confirm-dialog.js";
import { More } from "../ui/table.js";
import { Link } from "../ui/link.js";
import { snoozeTimes } from "../ui/format.js";
import { choices, nameOf, teamChoices, userChoices, splitWords } from "./names.js";
import { useRefreshOnEvents } from "../ui/auto-refresh.js";
/** @import { Listed, Loaded } from "../ui/loading.js" */

const LABELS = /** @type {Record<string, string>} */ ({
  title: t.tickets.title, description: t.tickets.description, status: t.tickets.status, priority: t.tickets.priority, type: t.tickets.type,
  processingUser: t.tickets.user, processingTeam: t.tickets.team, tags: t.tickets.tags, snoozedUntil: t.tickets.snoozed, conversationId: t.tickets.conversation, contactId: t.tickets.contact,
});

/** Return the value of a field in words. @param {string} name @param {any} value @returns {string|null} */
function fieldText(name, value) {
  if (value === null || value === undefined || value === "") return null;
  if (name === "processingUser" || name === "processingTeam") return nameOf(value);
  if (name === "status") return /** @type {any} */ (t.tickets.statuses)[value] ?? value;
  if (name === "priority") return /** @type {any} */ (t.tickets.priorities)[value] ?? value;
  if (name === "snoozedUntil") return new Date(value).toLocaleString();
  return Array.isArray(value) ? value.join(", ") : String(value);
}

/** A priority as a coloured chip. @param {{of: string}} props */
export const Priority = ({ of }) => html`<span class=${cx("chip", { URGENT: "bad", HIGH: "waits" }[of])}>${/** @type {any} */ (t.tickets.priorities)[of]}</span>`;

/** The fields of a new or existing ticket. @param {{of?: any}} props */
export const TicketFields = ({ of }) => html`
  <${Field} name="title" label=${t.tickets.title} initial=${of?.title} required maxlength="200" />
  <${Field} name="description" label=${t.tickets.description} initial=${of?.description} rows=${6} maxlength="20000" />
  <div class="field-row">
    <${Field} name="status" label=${t.tickets.status} initial=${of?.status ?? "OPEN"} options=${choices(t.tickets.statuses)} />
    <${Field} name="priority" label=${t.tickets.priority} initial=${of?.priority ?? "MEDIUM"} options=${choices(t.tickets.priorities)} />
    <${Field} name="type" label=${t.tickets.type} initial=${of?.type} maxlength="50" />
  </div>
  <div class="field-row">
    <${Field} name="processingUser" label=${t.tickets.user} initial=${of?.processingUser} options=${userChoices(t.tickets.nobody)} />
    <${Field} name="processingTeam" label=${t.tickets.team} initial=${of?.processingTeam} options=${teamChoices(t.tickets.noTeam)} />
  </div>
  <${Field} name="tags" label=${t.tickets.tags} hint=${t.commas} initial=${of?.tags.join(", ")} />`;

/** Return the fields of a ticket's form for the API. @param {Values} form */
export const ticketFromForm = (form) => ({
  title: form.raw("title").trim(), description: form.text("description") ?? null, status: form.raw("status"), priority: form.raw("priority"), type: form.text("type") ?? null,
  processingUser: form.text("processingUser") ?? null, processingTeam: form.text("processingTeam") ?? null, tags: splitWords(form.raw("tags")),
});

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
    notify(t.tickets.saved);
    await log.reload();
  });
  const save = async () => {
    const body = mine();
    if (!Object.keys(body).length) return notify(t.tickets.unchanged);
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
  const remove = async () => {
    await call("DELETE", path);
    notify(t.tickets.deleted);
    go("tickets");
  };
  const now = theirs?.ticket ?? of.data;
  const sleep = () => [...snoozeTimes().map((each) => ({ label: each.label, hint: each.hint, pick: () => void snooze(each.at.toISOString()) })), ...(now?.snoozedUntil ? [{ label: t.tickets.wake, icon: "sun", pick: () => void snooze(null) }] : [])];
  const actions = manages && of.data && html`<${Menu} label=${t.tickets.snooze} icon="moon" caret entries=${sleep} /><${Button} icon="close" label=${t.delete} press=${() => setDeletes(true)} />`;
  return html`<${Frame} title=${now?.title ?? t.tickets.one} up=${{ to: "tickets", label: t.pages.tickets }} actions=${actions} calls=${[of.call, log.call]}>
    <${States} of=${of}>${(/** @type {any} */ made) => html`<div class="columns">
      <${Section} title=${t.tickets.fields}>${manages ? html`<div ref=${box}>${theirs && html`<${ChangeNotice} of=${theirs} compare=${compare} />`}<${Form} key=${edits} save=${save} label=${t.saveChanges}><${TicketFields} of=${made} /><//></div>` : html`<${Read} of=${made} />`}<//>
      <${About} of=${now} log=${log} />
    </div>`}<//>
    ${deletes && html`<${ConfirmDialog} title=${t.tickets.deleteOne} loses=${[t.tickets.losesTicket(of.data.title), t.tickets.losesLog]} stays=${[t.tickets.staysConversation]} label=${t.delete} run=${remove} close=${() => setDeletes(false)} />`}
    ${clash && html`<${ConflictDialog} fields=${Object.keys(clash.mine).map((name) => ({ label: LABELS[name] ?? name, theirs: fieldText(name, clash.theirs[name]), mine: fieldText(name, clash.mine[name]) }))}
      keep=${() => put(clash.theirs, clash.tag)} save=${() => change(clash.mine, clash.tag)} close=${() => setClash(null)} />`}
  <//>`;
}

/** The notice of a change by a colleague while fields are unsaved. @param {{of: Theirs, compare: () => void}} props */
const ChangeNotice = ({ of, compare }) => html`<p class="stale" role="status">${of.ticket ? t.tickets.meantime(of.by ?? t.system) : t.tickets.goneMeantime(of.by ?? t.system)} ${of.ticket && html`<${Button} class="small" label=${t.tickets.compare} press=${compare} />`}</p>`;

/** The ticket's links and its log. @param {{of: any, log: Listed}} props */
const About = ({ of: ticket, log }) => html`<div>
    <${Section} title=${t.tickets.about}><${Pairs} of=${[
      [t.tickets.conversation, ticket.conversationId && html`<${Link} to=${`c/${ticket.conversationId}`}>${t.tickets.openConversation}<//>`],
      [t.tickets.contact, ticket.contactId && html`<${Link} to=${`contacts/${ticket.contactId}`}>${t.tickets.openContact}<//>`],
      [t.tickets.snoozed, ticket.snoozedUntil && futureTime(ticket.snoozedUntil)],
      [t.tickets.createdAt, html`<${Ago} at=${ticket.createdAt} />`],
      [t.tickets.lastActivity, html`<${Ago} at=${ticket.lastActivityAt} />`],
      [t.tickets.id, html`<code class="mono">${ticket.id}</code>`],
    ]} /><//>
    <${Section} title=${t.tickets.activity}><${States} of=${log} empty=${html`<p class="muted">${t.tickets.noActivity}</p>`}>${(/** @type {any[]} */ entries) => html`<ol class="log-list">${entries.map((each) => html`<${Entry} key=${each.id} of=${each} />`)}</ol>${log.more && html`<${More} of=${log} />`}`}<//><//>
  </div>`;

/** @param {{of: any}} props */
const Read = ({ of }) => html`<${Pairs} of=${["title", "description", "status", "priority", "type", "processingUser", "processingTeam", "tags"].map((name) => [LABELS[name], name === "priority" ? html`<${Priority} of=${of[name]} />` : html`<span dir="auto">${fieldText(name, of[name]) ?? t.none}</span>`])} />`;

/** @param {{of: any}} props */
function Entry({ of }) {
  const who = of.actor?.name ?? t.system;
  return html`<li><${Avatar} name=${who} id=${of.actor?.id} size="s" bot=${of.actor?.type === "system"} /><div><p><${Name} name=${who} /> ${of.action === "created" ? t.tickets.didCreate : t.tickets.didChange} <${Ago} at=${of.at} /></p>
    ${of.action !== "created" && html`<ul>${of.changes.map((/** @type {any} */ each) => html`<li key=${each.field}>${LABELS[each.field] ?? each.field}: <span dir="auto">${fieldText(each.field, each.from) ?? t.none}</span> → <span dir="auto">${fieldText(each.field, each.to) ?? t.none}</span></li>`)}</ul>`}</div></li>`;
}

/** @typedef {{ticket: any, tag: string|null, by: string|null}} Theirs  ticket: null if it was deleted; by: the name of its last editor */
/**
 * @typedef {object} Followed
 * @property {Loaded} of  the version in the fields
 * @property {Theirs|null} theirs  the newer version, while fields are unsaved
 * @property {number} edits  changes when the fields must be reset
 * @property {(ticket: any, tag: string|null, fromServer?: boolean) => void} put  takes a response; fromServer: true to reset the fields to it
 * @property {<T>(work: () => Promise<T>) => Promise<T>} own  runs an own change, so that its event is not shown as a colleague's
 */

/**
 * Load a ticket and follow its changes. A newer version never replaces unsaved fields.
 * @param {string} id @param {() => boolean} written  returns true while fields are unsaved @param {() => unknown} changed  called after a change
 * @returns {Followed}
 */
export function useTicket(id, written, changed) {
  const path = `tickets/${id}`;
  const of = useCall(path);
  const [theirs, setTheirs] = useState(/** @type {Theirs|null} */ (null));
  const [edits, setEdits] = useState(0);
  const known = useRef({ by: /** @type {string|null} */ (null), own: /** @type {Promise<unknown>} */ (Promise.resolve()), of, theirs }).current;
  Object.assign(known, { of, theirs });
  const put = (/** @type {any} */ ticket, /** @type {string|null} */ tag, fromServer = true) => {
    if (!fromServer && known.theirs) return setTheirs({ ticket, tag, by: known.theirs.by });
    known.of.put(ticket, tag);
    setTheirs(null);
    if (fromServer) setEdits((n) => n + 1);
  };
  const look = async () => {
    await known.own;
    /** @type {string|null} */
    let tag = null;
    try {
      const ticket = await call("GET", path, { answered: (headers) => (tag = headers.get("etag")) });
      if (tag === known.of.tag) put(ticket, tag, false);
      else if (written()) setTheirs({ ticket, tag, by: known.by });
      else put(ticket, tag);
    } catch (error) {
      if (!(error instanceof Problem) || error.status !== 404) return; // the next event or reconnection checks again
      if (written()) setTheirs({ ticket: null, tag: null, by: known.by });
      else await known.of.reload();
    }
    changed();
  };
  useRefreshOnEvents(({ type, data }) => {
    const about = type.startsWith("ticket.") && data.ticket.id === id;
    if (about) known.by = data.actor.name;
    return about;
  }, look);
  const own = (/** @type {() => Promise<any>} */ work) => {
    const done = work();
    known.own = done.catch(() => {});
    return done;
  };
  return { of, theirs, edits, put, own };
}
