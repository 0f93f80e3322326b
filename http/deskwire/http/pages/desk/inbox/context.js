// @ts-check
/** The panel beside the thread: contact, its browsers, memory, other conversations, tickets, network log, timeline, and why the list shows the conversation. */
import { html, useState } from "../vendor/preact.js";
import { t } from "../core/texts-lazy.js";
import { Ago, Avatar, Button, Icon, clockTime, contactName, contextShown, cx, lazy, notify, setting } from "../ui/parts.js";
import { dayOf, tookText } from "../ui/format.js";
import { call, get } from "../core/api.js";
import { row } from "../core/store.js";
import { context } from "./conversation.js";
import { go, may, people, user } from "../core/session.js";
import { runCommand } from "../core/keys.js";
import { listReasons } from "./list-reason.js";
import { t as texts } from "./list-reason-texts.js";
import { filter, shownList, view, viewName } from "./list.js";
import { Link } from "../ui/link.js";
import { BlockLine } from "../ui/blocking.js";
import { BrowserContext, ChannelName, CustomerBadges, useCustomer } from "../ui/customer.js";

const TicketPanel = lazy(() => import("./ticket-panel.js"), "TicketPanel");
const ContactSessions = lazy(() => import("../ui/contact-sessions.js"), "ContactSessions");
const folded = setting("folded", /** @type {Record<string, boolean>} */ ({}));

/** @param {{name: string, title: string, count?: number, id?: string, children?: any}} props */
function Section({ name, title, count, id, children }) {
  const toggled = (/** @type {any} */ event) => {
    if (Boolean(folded.value[name]) === event.target.open) folded.value = { ...folded.value, [name]: !event.target.open };
  };
  return html`<details class="section" id=${id} open=${!folded.value[name]} onToggle=${toggled}>
    <summary>${title}${count ? html` <span class="count">${count}</span>` : null}<${Icon} name="right" /></summary><div class="in">${children}</div>
  </details>`;
}

/** @param {unknown} value */
const displayValue = (value) => (value === null || value === undefined || value === "" ? "–" : typeof value === "object" ? JSON.stringify(value) : String(value));

/** @param {{of: [string, unknown][]}} props */
const Pairs = ({ of }) => html`<dl class="pairs">${of.map(([name, value]) => html`<dt key=${name}><bdi>${name}</bdi></dt><dd><bdi>${displayValue(value)}</bdi></dd>`)}</dl>`;

/** @param {{contact: any, done: () => void}} props */
function Edit({ contact, done }) {
  const [wrong, setWrong] = useState("");
  const submit = async (/** @type {any} */ event) => {
    event.preventDefault();
    const given = new FormData(event.target);
    const changes = Object.fromEntries(["name", "email", "phone"].map((each) => [each, String(given.get(each) ?? "").trim() || null]).filter(([each, value]) => value !== (contact[String(each)] ?? null)));
    try {
      if (Object.keys(changes).length) await call("PATCH", `contacts/${contact.id}`, { body: changes });
      notify(t.context.saved);
      done();
    } catch (error) {
      setWrong(t.context.saveFailed(/** @type {Error} */ (error).message));
    }
  };
  return html`<form class="in edit" onSubmit=${submit}>
    <label class="label">${t.context.name}<input class="field" name="name" value=${contact.name ?? ""} maxlength="200" autofocus autocomplete="off" dir="auto" /></label>
    <label class="label">${t.context.email}<input class="field" name="email" type="email" value=${contact.email ?? ""} autocomplete="off" /></label>
    <label class="label">${t.context.phone}<input class="field" name="phone" type="tel" value=${contact.phone ?? ""} maxlength="100" autocomplete="off" /></label>
    ${wrong && html`<p class="wrong" role="alert">${wrong}</p>`}
    <div class="actions"><${Button} class="small" kind="quiet" label=${t.cancel} press=${done} /><button type="submit" class="button primary small">${t.save}</button></div>
  </form>`;
}

/** @param {{known: any, id: string, customer: any}} props */
function Contact({ known, id, customer }) {
  const [editing, setEditing] = useState(false);
  const contact = { ...row(id)?.contact, ...known?.contact };
  const name = contactName(contact);
  const extra = Object.entries(contact.attributes ?? contact.customAttributes ?? {});
  return html`<div class="context-head"><${Avatar} name=${name} id=${contact.id} size="l" /><div class="grow"><h2><bdi>${name}</bdi></h2>${contact.email && contact.email !== name && html`<p class="muted ellipsis">${contact.email}</p>`}<div class="badges"><${CustomerBadges} contact=${contact} of=${customer} /></div></div>
    ${may("contacts.manage") && known?.contact && !editing && html`<${Button} label=${t.context.edit} icon="pencil" only kind="quiet" press=${() => setEditing(true)} />`}
    <${Button} label=${t.close} icon="close" only kind="quiet" class="only-middle" press=${() => (contextShown.value = false)} /></div>
  <${BlockLine} contact=${contact} changed=${() => {}} />
  ${editing ? html`<${Edit} contact=${contact} done=${() => setEditing(false)} />` : html`<div class="in about"><${Pairs} of=${/** @type {[string, unknown][]} */ ([[t.context.id, contact.userId], ...(contact.phone ? [[t.context.phone, contact.phone]] : []), ...(contact.locale ? [[t.context.locale, contact.locale]] : []), ...extra])} /></div>`}`;
}

/** @param {{id: string}} props */
function About({ id }) {
  const one = row(id);
  if (!one) return null;
  return html`<${Section} name="about" title=${t.context.about}>
    ${one.channelId && html`<p class="by-channel"><${Icon} name="chat" /><span class="muted">${t.context.channel}</span> <${ChannelName} id=${one.channelId} /></p>`}
    <${Pairs} of=${/** @type {[string, unknown][]} */ ([[t.context.assignee, one.assignee?.name ?? t.context.unassigned], [t.context.created, fullShort(one.createdAt)], ...(one.rating == null ? [] : [[t.context.rating, `${one.rating}/10${one.ratingComment ? `: ${one.ratingComment}` : ""}`]]), ...(one.contactSeenAt ? [[t.context.seen, fullShort(one.contactSeenAt)]] : []), ...Object.entries(one.attributes ?? {})])} />
    <div class="chosen">${one.tags.map((each) => html`<span key=${each} class="chip tag"><bdi class="ellipsis">${each}</bdi></span>`)}${may("conversations.manage") && html`<${Button} class="small" kind="quiet" icon="tag" label=${t.actions.tag} press=${() => runCommand("tag")} />`}</div>
  <//>`;
}

/** The users who follow a conversation, and the button to follow it. @param {{id: string}} props */
function Followers({ id }) {
  const one = row(id);
  if (!one) return null;
  const me = user.value?.id ?? "";
  const known = people().users.filter((each) => one.followers.includes(each.id));
  return html`<${Section} name="followers" title=${t.followers.title} count=${one.followers.length}>
    ${known.length ? html`<ul class="followers">${known.map((each) => html`<li key=${each.id}><${Avatar} name=${each.name} id=${each.id} size="s" /><bdi class="ellipsis">${each.id === me ? t.you : each.name}</bdi></li>`)}</ul>` : html`<p class="muted">${t.followers.none}</p>`}
    <div><${Button} class="small" kind="quiet" icon="eye" label=${one.followers.includes(me) ? t.commands.unfollow : t.commands.follow} press=${() => runCommand("follow")} /></div>
  <//>`;
}

/** @param {string} at */
const fullShort = (at) => `${dayOf(at)}, ${clockTime(at)}`;

/** The text for each changed field. @type {Record<string, (to: any, from: any, actor: any) => string>} */
const CHANGE_TEXTS = {
  tags: (to, from) => [...to.filter((/** @type {string} */ each) => !from?.includes(each)).map(t.activity.tagged), ...(from ?? []).filter((/** @type {string} */ each) => !to.includes(each)).map(t.activity.untagged)].join(", "),
  snoozedUntil: (to) => (to ? t.activity.snoozed(fullShort(to)) : t.activity.woke),
  noAnswerNeededSince: (to) => (to ? t.activity.unneeded : t.activity.needed),
  assignee: (to, _, actor) => (to ? (to.id === actor?.id ? t.activity.took : t.activity.assigned(to.name)) : t.activity.unassigned),
  status: (to) => t.activity.status[/** @type {"OPEN"} */ (to)] ?? String(to),
  title: (to) => t.activity.named(to ?? ""),
  archived: (to) => (to ? t.activity.archived : t.activity.unarchived),
  visible: () => t.activity.shown,
  ticketId: (to) => (to ? t.activity.linked : t.activity.unlinked),
  mergedInto: (to) => (to ? t.activity.merged : t.activity.unmerged),
  merged: (to, from) => ((to ?? []).length > (from ?? []).length ? t.activity.absorbed : t.activity.released),
  splitFrom: (to) => (to ? t.activity.splitOff : ""),
  splitInto: (to, from) => ((to ?? []).length > (from ?? []).length ? t.activity.split : ""),
};

/** An activity in words. @param {any} each */
function activityText({ actor, action, changes }) {
  const words = (changes ?? []).map((/** @type {any} */ one) => CHANGE_TEXTS[one.field]?.(one.to, one.from, actor)).filter(Boolean);
  const who = actor?.name ?? (actor?.type === "key" ? t.activity.key : actor?.type === "bot" ? t.activity.bot : t.activity.system);
  return html`<bdi><b>${who}</b></bdi> <bdi>${words.length ? words.join(", ") : action === "started" ? t.activity.started : action}</bdi>`;
}

/** A request from the customer's network log. @param {{of: any}} props */
function NetworkRequest({ of }) {
  const failed = of.success === false;
  return html`<details class="sent"><summary><span class=${failed ? "bad" : "good"}>${failed ? "✗" : "✓"}</span> <bdi>${of.url}</bdi>${of.duration != null && html` <span class="muted num">${tookText(Math.round(of.duration))}</span>`}</summary><pre class="code" tabindex="0">${JSON.stringify(of, null, 2)}</pre></details>`;
}

/** @param {{id: string, logs: {at: string, requests: number}}} props */
function Network({ id, logs }) {
  const [all, setAll] = useState(/** @type {any[] | null} */ (null));
  const [wrong, setWrong] = useState("");
  const load = () => get(`conversations/${id}/network-logs`).then((answer) => setAll(answer.requests ?? []), (error) => setWrong(error.message));
  return html`<p class="muted"><${Ago} at=${logs.at} /></p>${wrong && html`<p class="wrong" role="alert">${wrong}</p>`}
    ${all ? html`<div>${all.map((each, i) => html`<${NetworkRequest} key=${i} of=${each} />`)}</div>` : html`<div><${Button} class="small" label=${t.context.loadNetwork(logs.requests)} press=${load} /></div>`}`;
}

/** @param {{one: any}} props */
const Other = ({ one }) => html`<a class="other" href=${`c/${one.id}`} onClick=${(/** @type {MouseEvent} */ event) => !event.metaKey && !event.ctrlKey && (event.preventDefault(), go(`c/${one.id}`))}><bdi class="ellipsis">${one.title ?? one.lastMessage?.text ?? t.noTitle}</bdi><span class=${cx("chip", one.status === "OPEN" && "good")}>${/** @type {any} */ (t.thread.status)[one.status]}</span><${Ago} at=${one.lastMessageAt ?? one.createdAt} /></a>`;

/** @param {{id: string}} props */
export function Context({ id }) {
  const known = context(id);
  const contactId = row(id)?.contact.id;
  const customer = useCustomer(contactId);
  const failed = known?.failed;
  const list = (/** @type {any} */ part) => part?.items ?? part ?? [];
  const memory = known?.memory && list(known.memory).map((/** @type {any} */ each) => [each.name, each.content]);
  const others = list(known?.conversations).filter((/** @type {any} */ each) => each.id !== id);
  return html`<aside class="context" aria-label=${t.context.label}>
    <${Contact} known=${known} id=${id} customer=${customer} />
    ${failed && html`<p class="in wrong">${t.context.failed}</p>`}
    <${About} id=${id} />
    ${may("tickets.read") && html`<${Section} name="ticket" title=${t.context.ticket}><${TicketPanel} id=${id} others=${list(known?.tickets)} /><//>`}
    <${Followers} id=${id} />
    ${contactId && customer && customer.sessions.length > 0 && html`<${Section} name="browser" title=${t.context.browser} count=${customer.sessions.length}><${BrowserContext} of=${customer} /><${ContactSessions} contactId=${contactId} of=${customer} brief /><//>`}
    ${known && !failed && html`
      ${known.workflow && html`<${Section} name="workflow" title=${t.context.workflow}><p><bdi>${known.workflow.name}</bdi> <span class="muted">${known.workflow.waiting ? t.context.waitsForAnswer : t.context.runs}</span></p><//>`}
      <${Section} name="memory" title=${t.context.memory} count=${memory?.length}>${memory === null ? html`<p class="muted">${t.context.notAllowed}</p>` : memory?.length ? html`<${Pairs} of=${memory} />` : html`<p class="muted">${t.context.nothingRemembered}</p>`}<//>
      <${Section} name="others" title=${t.context.others} count=${others.length}>${others.length ? html`<div>${others.map((/** @type {any} */ each) => html`<${Other} key=${each.id} one=${each} />`)}</div>` : html`<p class="muted">${t.context.noOthers}</p>`}<//>
      ${known.networkLogs && html`<${Section} name="network" title=${t.context.network}><${Network} id=${id} logs=${known.networkLogs} /><//>`}
      <${Section} name="timeline" id="timeline" title=${t.context.timeline}>${list(known.activity).length ? html`<ol class="timeline">${list(known.activity).map((/** @type {any} */ each) => html`<li key=${each.eventId ?? each.at}><span>${activityText(each)}</span><${Ago} at=${each.at} /></li>`)}</ol>` : html`<p class="muted">${t.context.noTimeline}</p>`}<${ListReason} id=${id} /><//>`}
  </aside>`;
}

const dayAndTime = (/** @type {string} */ at) => `${dayOf(at)}, ${clockTime(at)}`;

/** @param {{id: string}} props */
export function ListReason({ id }) {
  const one = row(id);
  if (!one) return null;
  const team = people().teams.find((each) => each.id === view.value.id)?.name;
  const found = listReasons(one, filter.value, user.value?.id ?? "", { team, listed: shownList().ids.includes(id), time: dayAndTime });
  const name = viewName();
  const holds = found.every((each) => each.holds);
  return html`<div class="listed"><h3>${holds ? texts.in(name) : texts.notIn(name)}</h3>
    ${found.length ? html`<ul>${found.filter((each) => each.holds === holds).map((each) => html`<li key=${each.text}><${Icon} name=${holds ? "check" : "close"} /><bdi>${each.text}</bdi></li>`)}</ul>` : html`<p class="muted">${texts.all}</p>`}
    ${may("webhooks.manage") && html`<p><${Link} to=${`history/${id}`} class="button small"><${Icon} name="clock" /><span>${texts.travel}</span><//></p>`}</div>`;
}
