// @ts-check
/** What can be done with conversations: by key, menu and palette; each looks done at once, and says so if it is taken back. */
import { html, useEffect } from "./vendor/preact.js";
import { t } from "./later-texts.js";
import { clockTime, dialog, say, setting } from "./parts.js";
import { row, settle } from "./store.js";
import { thread } from "./conversation.js";
import { go, may, open, user } from "./session.js";
import { act, entries, undo } from "./outbox.js";
import { handle, run } from "./keys.js";
import { filter, focusList, selection, shown, targets } from "./list.js";
import { contextShown } from "./app.js";
import { undoSending, undoable } from "./held.js";
/** @import { Row, Assignee } from "./types.js" */

/** Whether this user may change conversations. */
export const mayAct = () => may("conversations.manage");

/**
 * Do something with conversations, with a word about it and the way back.
 * @param {string[]} ids @param {(one: Row) => any} action @param {(n: number) => string} words @param {(one: Row) => any} [back]
 */
async function perform(ids, action, words, back) {
  if (!mayAct()) return void say(t.actions.notAllowed, { bad: true });
  const rows = ids.map((id) => row(id)).filter((each) => each !== undefined);
  const steps = rows.map((one) => ({ id: one.id, action: action(one), back: back?.(one) })).filter((each) => each.action);
  if (!steps.length) return void say(rows.length ? t.actions.already : t.actions.notHere);
  for (const each of steps) await act(each.id, each.action);
  selection.value = new Set();
  const undoAll = () => steps.forEach((each) => each.back && act(each.id, each.back));
  say(words(steps.length), steps.some((each) => each.back) ? { action: t.actions.undo, run: undoAll, ms: 6000 } : {});
}

/** Whether the next conversation opens when one is closed. */
export const advance = setting("advance", false);

/** Where one goes when the open conversation is done: the next of the list. @param {string[]} ids */
function moveOn(ids) {
  const { ids: all } = shown();
  const at = all.indexOf(ids[0] ?? "");
  const next = all.slice(at + 1).find((each) => !ids.includes(each)) ?? all.slice(0, Math.max(0, at)).findLast((each) => !ids.includes(each));
  return open.value && ids.includes(open.value) && at >= 0 ? next : undefined;
}

/** @param {Row} one */
const assigned = (one) => ({ do: "assign", assignee: one.assignee });
/** @param {Row} one */
const before = (one) => (one.status === "CLOSED" ? { do: "close" } : one.status === "PENDING" ? { do: "pending" } : { do: "reopen" });

/** @param {string[]} ids @param {Assignee | null} assignee */
export const assign = (ids, assignee) => perform(ids, () => ({ do: "assign", assignee }), (n) => (assignee ? t.actions.done.assign(assignee.id === user.value?.id ? t.you.toLowerCase() : assignee.name, n) : t.actions.done.unassign(n)), assigned);

/** @param {string[]} ids @param {Date | null} until */
export const snooze = (ids, until) =>
  perform(ids, () => ({ do: "snooze", until: until?.toISOString() ?? null }), (n) => (until ? t.actions.done.snooze(until.toLocaleString(undefined, { weekday: "short", day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" }), n) : t.actions.done.wake()), (one) => ({ do: "snooze", until: one.snoozedUntil }));

/** @param {string[]} ids @param {(one: Row) => string[]} tags */
export const tag = (ids, tags) => perform(ids, (one) => ({ do: "tags", tags: tags(one) }), (n) => t.actions.done.tags(n), (one) => ({ do: "tags", tags: one.tags }));

/** Tomorrow at nine. */
export function tomorrow() {
  const at = new Date();
  at.setDate(at.getDate() + 1);
  at.setHours(9, 0, 0, 0);
  return at;
}

/** The times that a conversation may come back at. @returns {{label: string, at: Date, hint: string}[]} */
export function times() {
  const later = new Date(Math.ceil(Date.now() / 3_600_000) * 3_600_000 + 2 * 3_600_000);
  const week = tomorrow();
  week.setDate(week.getDate() + ((8 - week.getDay()) % 7 || 7) % 7);
  if (week.getTime() <= tomorrow().getTime()) week.setDate(week.getDate() + 7);
  const day = (/** @type {Date} */ at) => at.toLocaleDateString(undefined, { weekday: "short" });
  const all = [
    { label: t.dialogs.laterToday, at: later, hint: clockTime(later.getTime()) },
    { label: t.dialogs.tomorrow, at: tomorrow(), hint: `${day(tomorrow())} ${clockTime(tomorrow().getTime())}` },
    { label: t.dialogs.nextWeek, at: week, hint: `${day(week)} ${clockTime(week.getTime())}` },
  ];
  return later.getDate() === new Date().getDate() ? all : all.slice(1);
}

/** Close, and show the next of the list. @param {string[]} ids */
async function close(ids) {
  const next = moveOn(ids);
  await perform(ids, (one) => (one.status === "CLOSED" ? null : { do: "close" }), (n) => t.actions.done.close(n), before);
  if (advance.value && next && ids.length === 1) (go(`c/${next}`), settle(filter.value));
}

/** Leave what is marked unread, for looking at it would mark it read again. @param {string[]} ids */
const leave = (ids) => void (open.value && ids.includes(open.value) && (go(""), requestAnimationFrame(focusList)));

/** @param {string[]} ids */
const unread = (ids) => leave(ids) ?? perform(ids, (one) => {
  const last = thread(one.id).messages.findLast((each) => each.author.type === "contact" && each.index !== null)?.index ?? null;
  return { do: "unread", index: last === null ? Math.max(-1, one.messages - 2) : last - 1 };
}, () => t.actions.done.unread());

/** With conversations to do it with, or a word that there are none. @param {(ids: string[]) => void} what */
const on = (what) => () => {
  const ids = targets();
  if (ids.length) what(ids);
  else say(t.actions.notHere);
};
/** @param {string} name */
const ask = (name) => on((ids) => void (mayAct() ? (dialog.value = { name, ids }) : say(t.actions.notAllowed, { bad: true })));

const HANDLERS = {
  assignMe: on((ids) => user.value && assign(ids, { type: "user", id: user.value.id, name: user.value.name })),
  assign: ask("assign"),
  close: on(close),
  reopen: on((ids) => perform(ids, (one) => (one.status === "OPEN" ? null : { do: "reopen" }), (n) => t.actions.done.reopen(n), before)),
  pending: on((ids) => perform(ids, () => ({ do: "pending" }), (n) => t.actions.done.pending(n), before)),
  snooze: ask("snooze"),
  tag: ask("tags"),
  unread: on(unread),
  context: () => void (contextShown.value = !(contextShown.value ?? innerWidth >= 1180)),
  timeline: () => {
    contextShown.value = true;
    setTimeout(() => {
      const found = /** @type {HTMLDetailsElement | null} */ (document.getElementById("timeline"));
      if (found) ((found.open = true), found.querySelector("summary")?.focus(), found.scrollIntoView({ block: "start" }));
    }, 60);
  },
  undo: () => {
    const held = undoable();
    if (!held) return false;
    void undoSending(held);
    return true;
  },
};

/** The menu of a conversation. @param {string} id @returns {import("./parts.js").Entry[]} */
export function more(id) {
  const one = row(id);
  const item = (/** @type {string} */ what, /** @type {string} */ icon, /** @type {string} */ hint, label = /** @type {any} */ (t.commands)[what]) => ({ label, icon, hint, pick: () => void run(what) });
  const copy = { label: t.context.copyId, icon: "copy", pick: () => void navigator.clipboard?.writeText(id).then(() => say(t.copied)) };
  if (!mayAct() || !one) return [copy];
  return [item("assignMe", "person", "A"), item("assign", "people", "⇧A"), item("pending", "pause", "P"), one.status === "CLOSED" ? item("reopen", "reopen", "O") : item("close", "done", "E"), "line", item("tag", "tag", "T"), one.snoozedUntil ? { label: t.actions.wake, icon: "sun", pick: () => void snooze([id], null) } : item("snooze", "moon", "Z"), item("unread", "mail", "M"), "line", copy];
}

/** Say what was taken back, and why. */
function useRefusals() {
  const refused = entries.value.filter((each) => each.kind === "action" && each.state === "refused");
  useEffect(() => {
    for (const each of refused) {
      say(t.actions.rolledBack(/** @type {Record<string, string>} */ (t.actions.names)[each.label] ?? each.label, each.problem?.detail ?? ""), { bad: true });
      undo(each.key);
    }
  }, [refused.map((each) => each.key).join()]);
}

/** The actions, as long as the desk is there. */
export function Actions() {
  useRefusals();
  useEffect(() => handle(HANDLERS), []);
  return html``;
}
