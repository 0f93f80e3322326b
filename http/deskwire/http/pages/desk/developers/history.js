// @ts-check
/** Time travel: the events of a conversation with actors and reasons, and the conversation as of each event. */
import { html, useEffect, useState } from "../vendor/preact.js";
import { t } from "./texts.js";
import { Button, Empty, contactName, cx } from "../ui/parts.js";
import { Text } from "../ui/format.js";
import { go, may } from "../core/session.js";
import { all } from "../core/api.js";
import { Frame, Pairs, Section } from "../ui/frame.js";
import { States, useCall, useList } from "../ui/loading.js";
import { Link, setQuery, query } from "../ui/link.js";
import { Field, Form } from "../ui/form.js";
import { Table } from "../ui/table.js";
import { conversationAt, changedFields, moments, messagesAt } from "./replay.js";
import { eventText } from "./event-text.js";
import { conversationIn } from "./endpoint-forms.js";
import { Exact, exact } from "./format.js";
import { useEvents } from "../ui/auto-refresh.js";
/** @import { Values } from "../ui/form.js" */

const PAGE = 200;
const FIELDS = ["status", "assignee", "title", "tags", "snoozedUntil", "archived", "visible", "ticketId", "rating", "attributes"];

/** @param {{id: string|null}} props */
export const Page = ({ id }) => (id ? html`<${History} id=${id} />` : html`<${ChooseConversation} />`);

/** The choice of a conversation. */
function ChooseConversation() {
  const of = useCall("conversations", { view: "agent", limit: 20 });
  const save = async (/** @type {Values} */ form) => go(`history/${conversationIn(form.raw("conversation"))}`);
  const columns = [
    { label: t.log.conversation, cell: (/** @type {any} */ row) => html`<${Link} to=${`history/${row.id}`}><bdi>${contactName(row.contact)}</bdi><//>` },
    { label: t.history.subject, cell: (/** @type {any} */ row) => html`<bdi>${row.title ?? row.lastMessage?.text ?? t.none}</bdi>` },
    { label: t.history.fields.status, cell: (/** @type {any} */ row) => value("status", row.status) },
  ];
  return html`<${Frame} title=${t.pages.history} calls=${[of.call]}>
    <${Form} save=${save} label=${t.history.show}><${Field} name="conversation" label=${t.again.conversation} hint=${t.again.conversationHint} mono spellcheck="false" required autofocus /><//>
    <${Section} title=${t.history.recent}><${States} of=${of}>${(/** @type {any} */ data) => (data.items.length ? html`<${Table} caption=${t.history.recent} columns=${columns} rows=${data.items} />` : html`<${Empty} icon="chat" title=${t.history.none} />`)}<//><//>
  <//>`;
}

/** Load all messages, activity and deliveries of a conversation. @param {string} id */
function useSurroundings(id) {
  const [known, set] = useState(/** @type {{messages: any[], activity: any[], deliveries: any[]} | null} */ (null));
  const [round, again] = useState(0);
  useEffect(() => {
    let left = false;
    const optional = (/** @type {Promise<any[]>} */ asked) => asked.catch(() => []);
    Promise.all([optional(all(`conversations/${id}/messages`)), optional(all(`conversations/${id}/activity`)), optional(all(`conversations/${id}/deliveries`))]).then(
      ([messages, activity, deliveries]) => !left && set({ messages: messages ?? [], activity: activity ?? [], deliveries: deliveries ?? [] }),
    );
    return () => void (left = true);
  }, [id, round]);
  return { known, again: () => again((n) => n + 1) };
}

/** @param {{id: string}} props */
function History({ id }) {
  const now = useCall(`conversations/${id}`, { view: "agent" });
  const events = useList("events", { conversation: id }, PAGE);
  const workflows = useCall(may("conversations.read") ? "workflows" : null, { limit: 200 });
  const { known, again } = useSurroundings(id);
  useEvents((fresh) => {
    if (!fresh.some((each) => each.data?.conversation?.id === id)) return;
    if (events.items.length <= PAGE) void events.reload();
    void now.reload();
    again();
  });
  const numbers = events.items.filter((each) => each.sequence !== null).map((each) => each.sequence);
  const [first, last] = [numbers.at(-1) ?? 0, numbers[0] ?? 0];
  const asked = Number(query.value.get("at"));
  const at = asked ? Math.max(first, Math.min(last, asked)) : last;
  const name = now.data ? contactName(now.data.contact) : t.pages.history;
  const names = new Map((workflows.data?.items ?? []).map((/** @type {any} */ each) => [each.id, each.name]));
  return html`<${Frame} title=${t.history.of(name)} up=${{ to: `c/${id}`, label: t.history.toConversation }} calls=${[now.call, events.call, { method: "GET", path: `conversations/${id}/activity` }, { method: "GET", path: `conversations/${id}/deliveries` }, { method: "GET", path: `conversations/${id}/messages` }]}>
    <${States} of=${now}>${() => html`<${States} of=${events} empty=${html`<${Empty} icon="clock" title=${t.history.noEvents} text=${t.history.noEventsText} />`}>${() => html`
      <${Slider} first=${first} last=${last} at=${at} event=${events.items.find((each) => each.sequence === at)} />
      ${known && html`<div class="columns"><${PastConversation} id=${id} at=${at} last=${last} now=${now.data} events=${events.items} known=${known} /><${Timeline} at=${at} events=${events} known=${known} names=${names} /></div>`}`}<//>`}<//>
  <//>`;
}

/** @param {{first: number, last: number, at: number, event: any}} props */
function Slider({ first, last, at, event }) {
  const to = (/** @type {number} */ n) => setQuery({ at: n === last ? null : String(n) });
  const words = t.history.at(at, last, event ? exact(event.createdAt) : "");
  return html`<div class="travel"><${Button} icon="left" only label=${t.history.back} disabled=${at <= first} press=${() => to(at - 1)} />
    <input type="range" min=${first} max=${last} value=${at} aria-label=${t.history.slider} aria-valuetext=${words} onInput=${(/** @type {any} */ change) => to(Number(change.target.value))} />
    <${Button} icon="right" only label=${t.history.on} disabled=${at >= last} press=${() => to(at + 1)} /><output class="num">${words}</output>
    ${at < last && html`<${Button} class="small" label=${t.history.present} press=${() => to(last)} />`}</div>`;
}

/** Return the value of a field in words. @param {string} field @param {any} content */
function value(field, content) {
  if (content === null || content === undefined || (Array.isArray(content) && !content.length)) return null;
  if (field === "status") return t.history.statuses[/** @type {"OPEN"} */ (content)] ?? content;
  if (field === "assignee") return html`<bdi>${content.name ?? content.id}</bdi>`;
  if (field === "snoozedUntil") return exact(content);
  if (typeof content === "boolean") return content ? t.yes : t.no;
  if (Array.isArray(content)) return html`<bdi>${content.join(", ")}</bdi>`;
  if (typeof content === "object") return Object.keys(content).length ? html`<code class="mono">${JSON.stringify(content)}</code>` : null;
  return html`<bdi>${String(content)}</bdi>`;
}

/** The conversation as of an event. @param {{id: string, at: number, last: number, now: any, events: any[], known: any}} props */
function PastConversation({ id, at, last, now, events, known }) {
  const then = conversationAt(events, now, known.activity, at);
  if (!then) return html`<p class="muted">${t.history.noEventsText}</p>`;
  const { event, conversation } = then;
  const differs = at < last ? changedFields(conversation, now, FIELDS) : [];
  const messages = messagesAt(known.messages, event);
  const rows = FIELDS.map((each) => [t.history.fields[/** @type {"status"} */ (each)], html`${value(each, conversation[each]) ?? t.none}${differs.includes(each) && html` <span class="chip accent">${t.history.nowIs} ${value(each, now[each]) ?? t.none}</span>`}`]);
  return html`<${Section} title=${at < last ? t.history.then(at) : t.history.asItIs}>
    <${Pairs} of=${rows.filter(([, shown], i) => shown && (value(FIELDS[i] ?? "", conversation[FIELDS[i] ?? ""]) || differs.includes(FIELDS[i] ?? "")))} />
    <ol class="past" aria-label=${t.history.messages}>${messages.map((each) => html`<li key=${each.id} class=${cx(each.internal && "note", each.author.type !== "contact" && "ours", each.sequence === event.sequence && "newest")}>
      <p><b><bdi>${each.author.name ?? t.history.authors[/** @type {"bot"} */ (each.author.type)]}</bdi></b> <${Exact} at=${each.createdAt} />${each.sequence && html` <span class="muted num">#${each.sequence}</span>`}${each.internal && html` <span class="chip note">${t.history.note}</span>`}</p>
      ${each.redactedAt && !each.text ? html`<i class="muted">${t.history.redacted}</i>` : html`<${Text} text=${each.text} />`}</li>`)}</ol>
    ${!messages.length && html`<p class="muted">${t.history.nothingSaid}</p>`}
    ${at < last && html`<p class="muted">${t.history.later(known.messages.length - messages.length)} <${Link} to=${`c/${id}`}>${t.history.toConversation}<//></p>`}
  <//>`;
}

/** @param {{at: number, events: any, known: any, names: Map<string, string>}} props */
function Timeline({ at, events, known, names }) {
  const since = events.more ? (events.items.at(-1)?.createdAt ?? null) : null;
  const reached = Map.groupBy(known.deliveries, (/** @type {any} */ each) => each.sequence);
  const list = moments(events.items, known.activity, since);
  return html`<${Section} title=${t.history.timeline}><ol class="moments">${list.map((each) => html`<li key=${each.key} class=${cx(each.sequence !== null && each.sequence > at && "ahead")} aria-current=${each.sequence === at ? "step" : undefined}>
      ${each.sequence === null ? html`<span class="num muted">–</span>` : html`<button type="button" class="link num" aria-label=${t.history.goTo(each.sequence)} onClick=${() => setQuery({ at: String(each.sequence) })}>#${each.sequence}</button>`}
      <div><span>${eventText(each, names)}</span> <${Exact} at=${each.at} />
      ${each.sequence !== null && html`<${Dots} of=${reached.get(each.sequence) ?? []} />`}</div></li>`)}</ol>
    ${events.more && html`<${Button} label=${t.history.earlier} disabled=${events.loadingMore} press=${events.next} />`}
  <//>`;
}

/** The outcome of an event, one word for each endpoint. @param {{of: any[]}} props */
const Dots = ({ of }) =>
  of.length > 0 && html`<span class="reached">${of.map((each) => html`<span key=${each.endpointId} class=${each.status === "delivered" ? "good" : each.status === "pending" ? "warn" : "bad"} title=${each.reason}>${each.status === "delivered" ? "✓" : each.status === "pending" ? "…" : "✗"} <bdi>${each.endpoint}</bdi></span>`)}</span>`;
