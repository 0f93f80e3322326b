// @ts-check
/** The thread of a conversation: header, messages, typing indicators and composer. */
import { html, signal, useEffect, useLayoutEffect, useRef, useState } from "../vendor/preact.js";
import { t } from "../core/texts-lazy.js";
import { Button, Empty, Failed, Icon, Menu, announce, clockTime, contactName, contextShown, cx, dialog, futureTime, notify } from "../ui/parts.js";
import { gone, row, viewers } from "../core/store.js";
import { channelName } from "../core/customers.js";
import { context, deliveries, loadOlder, reloadThread as reload, reportMentionsSeen, reportSeen, thread, typing } from "./conversation.js";
import { go, linkedMessage, may, people, user } from "../core/session.js";
import { outgoing } from "../core/outbox.js";
import { reachable } from "../core/feed.js";
import { draft, removeDraft } from "./drafts.js";
import { heldIn, waitsForUndo } from "./held-messages.js";
import { handle, runCommand as command } from "../core/keys.js";
import { dayOf } from "../ui/format.js";
import { Link } from "../ui/link.js";
import { Viewers, filter } from "./list.js";
import { FAILED, Run, rememberStoreTime } from "./message.js";
import { Chunk, chunks, keyOf } from "./thread-window.js";
import { Composer } from "./composer.js";
import { LinkedMessage } from "./linked-message.js";
import { MergedBanner, MergedHere } from "./merging.js";
import { StartedFrom } from "./splitting.js";
import { isSettled, menuEntries as moreActions } from "./actions.js";
/** @import { AgentMessage, Delivery, Outgoing } from "../core/types.js" */

const RUN_GAP_MAX_MS = 5 * 60_000;
/** Runs end at multiples of this index, so that they stay the same when older messages are loaded. */
const RUN_BOUNDARY = 25;

/** @import { Part } from "./thread-window.js" */

/** Return the failures of a message by endpoint. Times and numbers in the reason are ignored. @param {Delivery[]} of @returns {Map<string, Delivery>} */
const failures = (of) => new Map(of.filter((each) => FAILED.has(each.status)).map((each) => [`${each.endpointId} ${(each.reason ?? "").replace(/\d{4}-\d\d-\d\dT[\d:.]+Z?|\d+/g, "#")}`, each]));

/** Group messages by day and into runs of one author. @param {AgentMessage[]} messages @param {boolean} [troubles]  true for a line for each series of equal failures @returns {Part[]} */
export function parts(messages, troubles = true) {
  /** @type {Part[]} */
  const found = [];
  let day = "";
  /** @type {AgentMessage | undefined} */
  let before;
  /** @type {Map<string, {of: Delivery, n: number}>} */
  let failing = new Map();
  for (const each of messages) {
    const known = troubles && each.sequence ? deliveries(each.conversationId, each.sequence) : [];
    const now = failures(known);
    /** @type {typeof failing} */
    const still = new Map();
    for (const [key, of] of now) still.set(key, { of, n: (failing.get(key)?.n ?? 0) + 1 });
    if (known.length) {
      for (const [key, { of, n }] of failing) if (!still.has(key)) (found.push({ kind: "trouble", key: `${key} ${before?.id}`, of, n }), (before = undefined));
      failing = still;
    }
    const date = new Date(each.createdAt).toDateString();
    if (date !== day) (found.push({ kind: "day", key: `day ${date}`, at: each.createdAt }), (before = undefined));
    day = date;
    const last = found.at(-1);
    const joins = before && before.author.type === each.author.type && before.author.id === each.author.id && before.internal === each.internal && before.conversationId === each.conversationId && Date.parse(each.createdAt) - Date.parse(before.createdAt) < RUN_GAP_MAX_MS;
    if (joins && last?.kind === "run" && (each.index === null || each.index % RUN_BOUNDARY)) last.messages.push(each);
    else found.push({ kind: "run", key: each.id, messages: [each] });
    before = each;
  }
  for (const [key, { of, n }] of failing) found.push({ kind: "trouble", key: `${key} end`, of, n });
  return found;
}

/** Return the names of the users who follow a conversation. @param {import("../core/types.js").Row} one */
const followerNames = (one) => one.followers.map((id) => (id === user.value?.id ? t.you : people().users.find((each) => each.id === id)?.name)).filter(Boolean).join(", ");

/** The header: subject, viewers and tools. @param {{id: string}} props */
function Head({ id }) {
  const one = row(id);
  const others = viewers(id);
  const name = one && contactName(one.contact);
  const closed = one?.status === "CLOSED";
  const writing = others.filter((each) => each.composing === id).map((each) => each.name);
  const looking = others.filter((each) => each.composing !== id).map((each) => each.name);
  const words = [writing.length && (writing.length > 1 ? t.thread.writeMany : t.thread.write)(writing.join(", ")), looking.length && (looking.length > 1 ? t.thread.viewMany : t.thread.view)(looking.join(", "))].filter(Boolean).join(" · ");
  const tool = (/** @type {string} */ what, /** @type {string} */ icon, /** @type {string} */ label, /** @type {string} */ keys, only = true) => html`<${Button} label=${label} icon=${icon} only=${only} kind="quiet" class=${what === "close" || what === "reopen" ? "" : "wide"} keys=${keys} press=${() => command(what)} />`;
  const tools = may("conversations.manage") || may("conversations.reply");
  return html`<header class="thread-head">
    <${Button} label=${t.back} icon="left" only kind="quiet" class="only-narrow" press=${() => go("")} />
    <div class="grow"><h1 class="ellipsis" title=${one?.title}><bdi>${one?.title ?? name ?? ""}</bdi></h1>
      <div class="sub">${one && html`<span class=${cx("chip", one.status === "OPEN" && "good", one.status === "PENDING" && "waits")}>${/** @type {any} */ (t.thread.status)[one.status]}</span>
        ${one.snoozedUntil && html`<span class="chip"><${Icon} name="moon" />${t.thread.snoozed(futureTime(one.snoozedUntil))}</span>`}
        ${outgoing(id).some((each) => each.kind === "action" && (each.waitsFor || (each.state !== "stored" && !reachable.value))) && html`<span class="chip waits" title=${t.actions.notSavedHint}><${Icon} name="clock" />${t.actions.notSaved}</span>`}
        ${one.channelId && html`<span class="chip"><${Icon} name="chat" /><bdi class="ellipsis">${channelName(one.channelId) ?? t.context.channel}</bdi></span>`}
        ${one.ticketId && may("tickets.read") && html`<${Link} to=${`tickets/${one.ticketId}`} class="chip" title=${t.commands.openTicket}><${Icon} name="tag" />${t.context.ticket}<//>`}
        ${one.merged && one.merged.length > 0 && html`<${MergedHere} ids=${one.merged} />`}
        ${!one.visible && html`<span class="chip note" title=${t.thread.hiddenHint}>${t.thread.hidden}</span>`}
        <span class="ellipsis">${one.assignee ? html`<bdi>${one.assignee.name}</bdi>` : t.context.unassigned}</span>
        ${one.followers.length > 0 && html`<span class="chip followers" title=${t.followers.by(followerNames(one))}><${Icon} name="eye" /><span aria-hidden="true">${one.followers.length}</span><span class="sr">${t.followers.by(followerNames(one))}</span></span>`}`}
        ${others.length > 0 && html`<span class=${cx("chip accent", writing.length > 0 && "writes")} title=${words}><${Viewers} of=${others} id="" /><span class="ellipsis">${words}</span></span>`}
      </div></div>
    <div class="tools">
      ${tools && one && html`${tool("assignMe", "person", t.actions.assignMe, "a")}${tool("snooze", "moon", t.actions.snooze, "z")}${closed ? tool("reopen", "reopen", t.actions.reopen, "o", false) : tool("close", "done", t.actions.close, "e", false)}`}
      ${one && html`<${Button} label=${one.followers.includes(user.value?.id ?? "") ? t.commands.unfollow : t.commands.follow} icon="eye" only kind="quiet" class="wide" keys="shift+f" pressed=${one.followers.includes(user.value?.id ?? "")} press=${() => command("follow")} />`}
      <${Menu} label=${t.actions.more} icon="more" only kind="quiet" entries=${() => moreActions(id)} />
      <${Button} label=${t.actions.context} icon="info" only kind="quiet" keys="i" pressed=${Boolean(contextShown.value ?? innerWidth >= 1180)} press=${() => command("context")} />
    </div>
  </header>`;
}

/** Return whether a message is the stored form of an outgoing one: its event may arrive before the response. @param {AgentMessage} message @param {Outgoing} out */
const isAnswerTo = (message, out) =>
  message.id === out.answer?.id || message.clientKey === out.key || (out.state === "sending" && message.author.id === out.userId && message.internal === out.internal && message.text === out.text && Date.parse(message.createdAt) > (out.sentAt ?? Infinity) - 2000);

/** The messages, pinned to the newest one. @param {{id: string}} props */
function Log({ id }) {
  const it = thread(id);
  const box = useRef(/** @type {HTMLElement | null} */ (null));
  const atEnd = useRef(signal(true)).current;
  const seenUpTo = useRef(it.messages.at(-1)?.id);
  const newestFew = it.messages.slice(-30);
  const waiting = outgoing(id).filter((each) => each.kind === "message" && each.state !== "conflict" && each.answer?.status !== "held" && !newestFew.some((message) => isAnswerTo(message, each)));
  const held = heldIn(id).filter((each) => waitsForUndo(each) && !newestFew.some((message) => message.id === each.id));
  const arrived = outgoing(id).filter((each) => each.state === "stored" && each.answer && each.answer.status !== "held");
  useEffect(() => arrived.forEach((each) => rememberStoreTime(each.answer.id, each.tookMs)), [arrived.length]);
  const all = chunks(parts(it.messages, may("webhooks.manage")));
  const newest = it.messages.at(-1);
  if (atEnd.value) seenUpTo.current = newest?.id;
  const below = atEnd.value ? 0 : it.messages.length - 1 - it.messages.findLastIndex((each) => each.id === seenUpTo.current);
  const scrolled = () => {
    const el = box.current;
    if (!el) return;
    atEnd.value = el.scrollTop > -60;
    const nearTop = it.older && el.scrollHeight + el.scrollTop - el.clientHeight < 900;
    // Older messages must not move the view: its distance from the end stays, while the browser's anchor would go up with the first day.
    el.style.setProperty("overflow-anchor", nearTop ? "none" : "auto");
    if (nearTop && !it.loadingOlder) loadOlder(id).catch(() => {});
  };
  useEffect(scrolled, [it.messages.length, it.older, it.loadingOlder]);
  const own = it.messages.filter((each) => each.conversationId === id); // the others are of merged conversations
  const index = own.findLast((each) => each.index !== null)?.index ?? null;
  const newestOwn = own.at(-1);
  useEffect(() => {
    const look = () => document.visibilityState === "visible" && atEnd.value && index !== null && reportSeen(id, index);
    look();
    document.addEventListener("visibilitychange", look);
    return () => document.removeEventListener("visibilitychange", look);
  }, [index, atEnd.value]);
  const unseenMentions = row(id)?.mine.unseenMentions ?? 0;
  useEffect(() => {
    const look = () => document.visibilityState === "visible" && it.state === "ready" && atEnd.value && unseenMentions > 0 && newestOwn && reportMentionsSeen(id, newestOwn.id);
    look();
    document.addEventListener("visibilitychange", look);
    return () => document.removeEventListener("visibilitychange", look);
  }, [newestOwn?.id, atEnd.value, unseenMentions, it.state]);
  const announced = useRef(newest?.id);
  useEffect(() => {
    if (announced.current && newest && newest.id !== announced.current && newest.author.type === "contact") announce(`${newest.author.name ?? ""}: ${newest.text.slice(0, 200)}`);
    announced.current = newest?.id;
  }, [newest?.id]);
  const toEnd = () => box.current?.scrollTo({ top: 0 });
  if (it.state === "failed" && !it.messages.length) return html`<${Failed} error=${it.error} title=${t.thread.failed} again=${() => reload(id)} />`;
  return html`<div class="log-box">
    <${LinkedMessage} id=${id} ready=${it.state === "ready"} />
    <div ref=${box} class="log" role="log" aria-live="off" aria-label=${t.thread.label} aria-busy=${it.state === "loading"} tabindex="0" onScroll=${scrolled}>
      <div class="log-in">
        ${it.older ? html`<div class="older">${it.loadingOlder && html`<${Icon} name="spin" class="spin" /><span class="sr">${t.thread.older}</span>`}</div>` : it.state === "ready" && html`<div class="older">${it.messages.length ? t.thread.begin : !waiting.length && t.thread.empty}</div>`}
        <${StartedFrom} id=${id} first=${it.messages[0]} shown=${!it.older && it.state === "ready"} />
        ${it.state === "loading" && !it.messages.length && html`<${Loading} />`}
        ${all.map((each, i) => html`<${Chunk} key=${keyOf(each)} of=${each} last=${i === all.length - 1} />`)}
        <${NoAnswerNeeded} id=${id} />
        ${held.map((each) => html`<${Run} key=${each.id} held=${each} />`)}${waiting.map((each) => html`<${Run} key=${each.key} out=${each} />`)}
      </div>
    </div>
    ${!atEnd.value && html`<div class="to-end"><${Button} label=${below > 0 ? t.thread.newBelow(below) : t.thread.toEnd} icon="end" only=${!below} kind=${below ? "primary" : ""} press=${toEnd} /></div>`}
  </div>`;
}

/** The line after the last message that says who marked the conversation as needing no answer. @param {{id: string}} props */
function NoAnswerNeeded({ id }) {
  const one = row(id);
  if (!one || !isSettled(one)) return null;
  const by = (context(id)?.activity ?? []).find((/** @type {any} */ each) => each.changes.some((/** @type {any} */ change) => change.field === "noAnswerNeededSince" && change.to === one.noAnswerNeededSince));
  const who = by && (by.actor.id === user.value?.id ? t.you : (by.actor.name ?? t.activity.system));
  return html`<div class="settled"><${Icon} name="check" /><bdi>${who ? t.thread.noAnswerBy(who, `${dayOf(by.at)}, ${clockTime(by.at)}`) : t.thread.noAnswer}</bdi>
    ${may("conversations.reply") && html`<${Button} class="small" kind="quiet" label=${t.commands.waitAgain} press=${() => command("noAnswer")} />`}</div>`;
}

const Loading = () => html`<div aria-hidden="true">${[52, 70, 38, 61].map((each, i) => html`<div key=${each} class=${cx("run ghost", i % 2 === 1 && "out")}><div class=${`bar w${each}`}></div></div>`)}</div>`;

/** The user who is typing. @param {{id: string}} props */
function TypingLine({ id }) {
  const [one] = typing(id).sort((a, b) => (a.type === "agent" ? -1 : 1) - (b.type === "agent" ? -1 : 1));
  const name = one?.name ?? row(id)?.contact.name ?? null;
  const words = one && (one.type === "contact" ? t.thread.writes(name ?? "") : one.internal ? t.thread.writesNote(name ?? "") : t.thread.writesToo(name ?? ""));
  return html`<div class=${cx("typing", one?.type === "agent" && "colleague")}>${one && html`<span class="dots" aria-hidden="true"><i></i><i></i><i></i></span><bdi>${words}</bdi>`}</div>`;
}

/** The reason why a conversation is gone, with its unsent drafts. @param {{id: string, reason: string}} props */
function Gone({ id, reason }) {
  const kept = [draft(id, "reply")?.text, draft(id, "note")?.text].filter(Boolean).join("\n\n");
  const discard = () => (removeDraft(id, "reply"), removeDraft(id, "note"));
  const copy = async () => {
    await navigator.clipboard?.writeText(kept);
    notify(t.copied);
  };
  const why = /** @type {Record<string, string>} */ (t.thread.gone)[reason] ?? t.thread.gone.manual;
  return html`<div class="gone"><${Empty} icon="close" title=${t.thread.goneTitle} text=${why} />
    ${kept.trim() && html`<p>${t.thread.goneDraft}</p><pre dir="auto" tabindex="0">${kept}</pre><div><${Button} label=${t.thread.copyDraft} icon="copy" kind="primary" press=${copy} /> <${Button} label=${t.thread.dropDraft} kind="quiet" press=${discard} /></div>`}
    <div><${Button} label=${t.back} class="only-narrow" press=${() => go("")} /></div>
  </div>`;
}

/** @param {{id: string}} props */
export function Thread({ id }) {
  const away = gone(id);
  useLayoutEffect(() => handle({ back: () => (dialog.value ? false : (go(""), queueMicrotask(() => /** @type {HTMLElement | null} */ (document.querySelector(".rows"))?.focus()), true)) }), []);
  const into = row(id)?.mergedInto;
  const linked = linkedMessage.value;
  useEffect(() => {
    if (into && linked) go(`c/${into}/m/${linked}`, { replace: true }); // the thread with all messages
  }, [into, linked]);
  if (away) return html`<${Gone} id=${id} reason=${away.reason} />`;
  return html`<${Head} id=${id} /><${Log} id=${id} /><${TypingLine} id=${id} />${into ? html`<${MergedBanner} id=${id} into=${into} />` : html`<${Composer} id=${id} />`}`;
}
