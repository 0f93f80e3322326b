// @ts-check
/** Actions on conversations, by key, menu and palette. Each shows its effect at once, and a notice if it is refused. */
import { locale } from "../core/texts.js";
import { html, useEffect, useLayoutEffect } from "../vendor/preact.js";
import { t } from "../core/texts-lazy.js";
import { contextShown, dialog, notify, setting, withModule } from "../ui/parts.js";
import { row, applyOrder } from "../core/store.js";
import { context, thread } from "./conversation.js";
import { go, hrefOf, may, open, user } from "../core/session.js";
import { unopenable } from "../core/seal.js";
import { CHANGED, act, entries, withdraw } from "../core/outbox.js";
import { EDITOR, handle, runCommand, startTypeAhead } from "../core/keys.js";
import { targetsOrNotify, filter, focusList, selection, shownList } from "./list.js";
import { conditionsOf, isWholeView } from "./whole-view.js";
import { namesOf, changedAt, lastChangedBy, guardAfter, recordChange, readAll, restoringActions, undoLast } from "./undo.js";
/** @import { Row, Assignee, Outgoing } from "../core/types.js" */
/** @import { Action } from "../core/outbox.js" */

/** Return whether the user may change conversations. */
export const mayAct = () => may("conversations.manage");

/** Settled once all changes under way can be undone. */
let recorded = Promise.resolve();

/** Perform an action on conversations; see `performNow`. @param {Parameters<typeof performNow>} given */
function perform(...given) {
  const done = performNow(...given);
  recorded = Promise.allSettled([recorded, done]).then(() => {});
  return done;
}

/**
 * Perform an action on conversations, and show its outcome.
 * @param {string[]} ids @param {(one: Row) => Action | null} action @param {{what: (who: string) => string, done: string}} words  done: follows the name
 * @param {(one: Row) => (now: Row) => Action[]} back  the actions that undo it @param {boolean} [allowed]
 */
async function performNow(ids, action, words, back, allowed = mayAct()) {
  if (!allowed) return void notify(t.actions.notAllowed, { bad: true });
  if (isWholeView(ids)) return void withModule(() => import("./bulk-texts.js"), ({ t }) => notify(t.notForAll, { icon: "info" }));
  const rows = ids.map((id) => row(id)).filter((each) => each !== undefined);
  /** @type {import("./undo.js").Step[]} */
  const steps = [];
  for (const one of rows) {
    const wanted = action(one);
    if (wanted) steps.push({ id: one.id, key: (await act(one.id, wanted)).key, back: back(one), left: guardAfter(wanted) });
  }
  if (!steps.length) return void notify(rows.length ? t.actions.already(namesOf(ids)) : t.actions.notHere, { icon: "info" });
  selection.value = new Set();
  const changed = steps.map((each) => each.id);
  const who = namesOf(changed);
  recordChange({ who, what: words.what(who), steps }, t.actions.did(who, words.done, changed.length));
}

/** Start a job if the action is about all of the view; return whether it is. @param {string[]} ids @param {import("./bulk-jobs.js").BulkAction} action @param {boolean} [allowed] */
function startedJob(ids, action, allowed = mayAct()) {
  if (!isWholeView(ids) || !allowed) return false;
  const conditions = conditionsOf(filter.peek());
  const done = withModule(() => import("./bulk-jobs.js"), ({ startJob }) => startJob(conditions, action).then((started) => void (started && (selection.value = new Set()))));
  recorded = Promise.allSettled([recorded, done]).then(() => {});
  return true;
}

/** True to open the next conversation when one is closed. */
export const advance = setting("advance", false);

/** Return the next conversation of the list, if the open one is among these. @param {string[]} ids */
function nextConversation(ids) {
  const { ids: all } = shownList();
  const at = all.indexOf(ids[0] ?? "");
  const next = all.slice(at + 1).find((each) => !ids.includes(each)) ?? all.slice(0, Math.max(0, at)).findLast((each) => !ids.includes(each));
  return open.value && ids.includes(open.value) && at >= 0 ? next : undefined;
}

/** @param {Row} one @returns {(now: Row) => Action[]} */
const restoreStatus = (one) => (now) => restoringActions(one, now);

/** @param {string[]} ids @param {Assignee | null} assignee */
export function assign(ids, assignee) {
  if (startedJob(ids, { type: "assign", assignee: assignee && { type: assignee.type, id: assignee.id } })) return;
  const to = assignee && (assignee.id === user.value?.id ? t.you.toLowerCase() : assignee.name);
  const words = to ? { what: (/** @type {string} */ who) => t.actions.what.assign(who, to), done: t.actions.done.assign(to) } : { what: t.actions.what.unassign, done: t.actions.done.unassign };
  return perform(ids, (one) => (one.assignee?.id === assignee?.id ? null : { do: "assign", assignee }), words, (one) => () => [{ do: "assign", assignee: one.assignee }]);
}

/** @param {string[]} ids @param {Date | null} until */
export function snooze(ids, until) {
  if (startedJob(ids, { type: "snooze", until: until?.toISOString() ?? null })) return;
  const at = until?.toLocaleString(locale, { weekday: "short", day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" });
  const words = at ? { what: (/** @type {string} */ who) => t.actions.what.snooze(who, at), done: t.actions.done.snooze(at) } : { what: t.actions.what.wake, done: t.actions.done.wake };
  const back = (/** @type {Row} */ one) => () => [/** @type {Action} */ ({ do: "snooze", until: one.snoozedUntil && Date.parse(one.snoozedUntil) > Date.now() ? one.snoozedUntil : null })];
  return perform(ids, (one) => (one.snoozedUntil || until ? { do: "snooze", until: until?.toISOString() ?? null } : null), words, back);
}

/** Return whether an agent may say that an open conversation needs no answer, or that it does after all. @param {Row | undefined} one */
export const noAnswerApplies = (one) => Boolean(may("conversations.reply") && one && one.status !== "CLOSED" && (one.waitingSince ?? one.noAnswerNeededSince));

/** Return whether the contact would wait, had no agent said that no answer is needed. @param {Row | undefined} one */
export const isSettled = (one) => Boolean(one && !one.waitingSince && one.noAnswerNeededSince && one.status !== "CLOSED");

/** @param {Row} one @returns {Action | null} */
const noAnswerAction = (one) => (one.waitingSince && one.status !== "CLOSED" ? { do: "noAnswer", index: one.messages - 1, since: one.waitingSince } : null);

/** @param {Row} one @returns {Action | null} */
const waitAction = (one) => (isSettled(one) && one.noAnswerNeededSince ? { do: "waitAgain", since: one.noAnswerNeededSince } : null);

/** Return whether to mark that the contacts need no answer: one of them waits, or none has the mark. @param {string[]} ids */
function marksNoAnswer(ids) {
  const rows = ids.map((id) => row(id)).filter((each) => each !== undefined);
  return rows.some(noAnswerAction) || !rows.some(isSettled);
}

/** Mark that the contacts who wait need no answer; if none of them waits, take the marks back. @param {string[]} ids @param {boolean} [marks] */
function noAnswer(ids, marks = marksNoAnswer(ids)) {
  const words = marks ? { what: t.actions.what.noAnswer, done: t.actions.done.noAnswer } : { what: t.actions.what.waitAgain, done: t.actions.done.waitAgain };
  const back = (/** @type {Row} */ one) => (/** @type {Row} */ now) => [marks ? waitAction(now) : noAnswerAction({ ...now, messages: one.messages })].filter((each) => each !== null);
  const allowed = may("conversations.reply");
  return startedJob(ids, { type: marks ? "noAnswerNeeded" : "waitAgain" }, allowed) || perform(ids, marks ? noAnswerAction : waitAction, words, back, allowed);
}

/** @param {string[]} ids @param {(one: Row) => string[]} tags @param {{add: string[], remove: string[]}} change  the same, for all of the view */
export const tag = (ids, tags, change) =>
  startedJob(ids, { type: "tag", ...change }) ||
  perform(ids, (one) => (tags(one).join("\n") === one.tags.join("\n") ? null : { do: "tags", tags: tags(one) }), { what: t.actions.what.tags, done: t.actions.done.tags }, (one) => {
    const after = tags(one);
    return (now) => { // undo only this change, so that later tags of colleagues stay
      const kept = now.tags.filter((each) => one.tags.includes(each) || !after.includes(each));
      const next = [...kept, ...one.tags.filter((each) => !after.includes(each) && !kept.includes(each))];
      return next.join("\n") === now.tags.join("\n") ? [] : [{ do: "tags", tags: next }];
    };
  });

/** Change the subject of a conversation. @param {string} id @param {string | null} title */
export const rename = (id, title) =>
  perform([id], (one) => (one.title === title ? null : { do: "title", title }), { what: t.actions.what.rename, done: t.actions.done.rename }, (one) => () => [{ do: "title", title: one.title }]);

/** @param {string[]} ids @param {boolean} archived */
const archive = (ids, archived) =>
  startedJob(ids, { type: archived ? "archive" : "unarchive" }) ||
  perform(ids, (one) => (one.archived === archived ? null : { do: "archive", archived }), archived ? { what: t.actions.what.archive, done: t.actions.done.archive } : { what: t.actions.what.unarchive, done: t.actions.done.unarchive }, (one) => () => [{ do: "archive", archived: one.archived }]);

/** Return the action that lets the user follow a conversation or not. @param {Row} one @param {boolean} follows @returns {Action} */
function followAction(one, follows) {
  const me = user.value?.id ?? "";
  const others = one.followers.filter((each) => each !== me);
  return { do: "follow", follows, followers: follows ? [...others, me] : others };
}

/** Return whether the user follows a conversation. @param {Row | undefined} one */
const isFollowed = (one) => Boolean(one?.followers.includes(user.value?.id ?? ""));

/** Follow conversations, or no longer if the user follows all of them. Readers may, too. @param {string[]} ids @param {boolean} [follows] */
const follow = (ids, follows = !ids.every((id) => isFollowed(row(id)))) => {
  const words = follows ? { what: t.actions.what.follow, done: t.actions.done.follow } : { what: t.actions.what.unfollow, done: t.actions.done.unfollow };
  return startedJob(ids, { type: follows ? "follow" : "unfollow" }, true) || perform(ids, (one) => (isFollowed(one) === follows ? null : followAction(one, follows)), words, () => (now) => (isFollowed(now) === follows ? [followAction(now, !follows)] : []), true);
};

/** Copy the address of a conversation's page. @param {string} id */
const copyLink = (id) => navigator.clipboard?.writeText(location.origin + hrefOf(`c/${id}`)).then(() => notify(t.copied));

/** Open the ticket of a conversation, or the dialog for a new one. @param {string} id */
function ticket(id) {
  const known = row(id)?.ticketId;
  if (known && may("tickets.read")) go(`tickets/${known}`);
  else if (!known && may("tickets.manage")) (dialog.value = { name: "ticket", id }), startTypeAhead("dialog");
  else notify(t.actions.notAllowed, { bad: true });
}

/** Return whether a conversation can be merged into another one, or separated from it. @param {Row | undefined} one */
export const mergeApplies = (one) => Boolean(one?.visible && !one.merged?.length);

/** Choose the messages of the open conversation that a new one starts with. @param {string} id */
function split(id) {
  if (!mayAct()) notify(t.actions.notAllowed, { bad: true });
  else if (open.peek() === id) void withModule(() => import("./splitting.js"), ({ askForSplit }) => askForSplit(id));
}

/** Choose the conversation to merge into, or undo the merge. @param {string} id */
function merge(id) {
  const one = row(id);
  if (!mayAct()) notify(t.actions.notAllowed, { bad: true });
  else if (one?.mergedInto) void withModule(() => import("./merging.js"), ({ unmerge }) => unmerge(id));
  else if (mergeApplies(one)) (dialog.value = { name: "merge", id }), startTypeAhead("dialog");
}

/** Return the commands about the ticket of a conversation that apply. @param {Row} one @returns {string[]} */
export function ticketCommands(one) {
  if (one.ticketId) return [...(may("tickets.read") ? ["ticket"] : []), ...(may("tickets.manage") ? ["unlinkTicket"] : [])];
  return may("tickets.manage") ? ["ticket", "linkTicket"] : [];
}

/** Return whether to offer the opposite of a key for several conversations, because they differ. @param {string} id @param {string[]} ids */
export const oppositeApplies = (id, ids) => ids.length > 1 && (id === "unfollow" ? isWholeView(ids) || ids.some((each) => isFollowed(row(each))) : may("conversations.reply") && (isWholeView(ids) || ids.some((each) => isSettled(row(each)))));

/** Return the name of a command in a conversation. @param {string} id @param {Row|undefined} one @returns {string} */
export const commandName = (id, one) => (id === "ticket" && one?.ticketId ? t.commands.openTicket : id === "noAnswer" && isSettled(one) ? t.commands.waitAgain : id === "merge" && one?.mergedInto ? t.commands.unmerge : /** @type {any} */ (t.commands)[id] ?? id);

/** Close conversations, and open the next one if the setting says so. @param {string[]} ids */
async function close(ids) {
  if (startedJob(ids, { type: "close" })) return;
  const next = nextConversation(ids);
  await perform(ids, (one) => (one.status === "CLOSED" ? null : { do: "close" }), { what: t.actions.what.close, done: t.actions.done.close }, restoreStatus);
  if (advance.value && next && ids.length === 1) (go(`c/${next}`), applyOrder(filter.value));
}

/** Close a conversation before it is marked unread, because viewing it would mark it read again. @param {string[]} ids */
const closeIfOpen = (ids) => void (open.value && ids.includes(open.value) && (go(""), queueMicrotask(focusList)));

/** @param {string[]} ids */
const unread = (ids) => closeIfOpen(ids) ?? (startedJob(ids, { type: "unread" }) || perform(ids, (one) => {
  const last = thread(one.id).messages.findLast((each) => each.conversationId === one.id && each.author.type === "contact" && each.index !== null)?.index ?? null;
  return { do: "unread", index: last === null ? Math.max(-1, one.messages - 2) : last - 1 };
}, { what: t.actions.what.unread, done: t.actions.done.unread }, (one) => (now) => [{ do: "unread", index: one.mine.seenIndex ?? -1, unread: now.messages === one.messages ? one.mine.unread : undefined }]));

/** Call a function with the conversations that a key applies to. @param {(ids: string[]) => void} what */
const withTargets = (what) => () => {
  const ids = targetsOrNotify();
  if (ids) what(ids);
};

/** Return whether `Ctrl Z` belongs to a text field: it has text, or its last input is newer than the last change. @param {KeyboardEvent | null} event */
function undoBelongsToField(event) {
  const field = /** @type {HTMLInputElement | null} */ (event?.target ?? null);
  return Boolean(event?.key.toLowerCase() === "z" && field?.matches("input, textarea, [contenteditable]") && (field.value !== "" || !field.matches(EDITOR) || lastInputAt > changedAt()));
}
let lastInputAt = 0;
document.addEventListener("input", (event) => void (event.isTrusted && (lastInputAt = Date.now())), true);

const HANDLERS = {
  assignMe: withTargets((ids) => user.value && assign(ids, { type: "user", id: user.value.id, name: user.value.name })),
  close: withTargets(close),
  noAnswer: withTargets((ids) => void noAnswer(ids)),
  waitAgain: withTargets((ids) => void noAnswer(ids, false)),
  reopen: withTargets((ids) => startedJob(ids, { type: "reopen" }) || perform(ids, (one) => (one.status === "OPEN" ? null : { do: one.status === "CLOSED" ? "reopen" : "open" }), { what: t.actions.what.reopen, done: t.actions.done.reopen }, restoreStatus)),
  pending: withTargets((ids) => startedJob(ids, { type: "pending" }) || perform(ids, (one) => (one.status === "PENDING" ? null : { do: "pending" }), { what: t.actions.what.pending, done: t.actions.done.pending }, restoreStatus)),
  unread: withTargets(unread),
  follow: withTargets((ids) => void follow(ids)),
  unfollow: withTargets((ids) => void follow(ids, false)),
  rename: withTargets(([id]) => void (mayAct() ? (dialog.value = { name: "rename", id }) : notify(t.actions.notAllowed, { bad: true }))),
  archive: withTargets((ids) => void archive(ids, true)),
  unarchive: withTargets((ids) => void archive(ids, false)),
  copyLink: withTargets(([id]) => void (id && copyLink(id))),
  block: withTargets(([id]) => void (may("contacts.manage") ? (dialog.value = { name: "block", id }) : notify(t.actions.notAllowed, { bad: true }))),
  remove: withTargets(([id]) => void (may("conversations.delete") ? (dialog.value = { name: "remove", id }) : notify(t.actions.notAllowed, { bad: true }))),
  merge: withTargets(([id]) => void (id && merge(id))),
  split: withTargets(([id]) => void (id && split(id))),
  ticket: withTargets(([id]) => void (id && ticket(id))),
  linkTicket: withTargets(([id]) => void (may("tickets.manage") ? !row(id ?? "")?.ticketId && (dialog.value = { name: "linkTicket", id }) : notify(t.actions.notAllowed, { bad: true }))),
  unlinkTicket: withTargets(([id]) => void (may("tickets.manage") ? id && withModule(() => import("./tickets.js"), ({ unlink }) => unlink(id)) : notify(t.actions.notAllowed, { bad: true }))),
  readAll: () => void readAll(),
  context: () => void (contextShown.value = !(contextShown.value ?? innerWidth >= 1180)),
  timeline: () => {
    contextShown.value = true;
    setTimeout(() => {
      const found = /** @type {HTMLDetailsElement | null} */ (document.getElementById("timeline"));
      if (found) ((found.open = true), found.querySelector("summary")?.focus(), found.scrollIntoView({ block: "start" }));
    }, 60);
  },
  undo: (/** @type {KeyboardEvent | null} */ event) => {
    if (undoBelongsToField(event)) return false;
    void recorded.then(undoLast); // else an undo right after a change would take the change before it
    return true;
  },
};

/** Return the menu of a conversation. @param {string} id @returns {import("../ui/parts.js").Entry[]} */
export function menuEntries(id) {
  const one = row(id);
  const item = (/** @type {string} */ what, /** @type {string} */ icon, /** @type {string} */ hint, label = /** @type {any} */ (t.commands)[what]) => ({ label, icon, hint, pick: () => void runCommand(what) });
  const copy = [...(one ? [item("follow", "eye", "⇧F", isFollowed(one) ? t.commands.unfollow : t.commands.follow)] : []), item("copyLink", "copy", ""), { label: t.context.copyId, icon: "copy", pick: () => void navigator.clipboard?.writeText(id).then(() => notify(t.copied)) }];
  const block = one && may("contacts.manage") ? [item("block", "lock", "", context(id)?.contact?.blocked ? t.actions.unblock : t.actions.block)] : [];
  const remove = [...block, ...(may("conversations.delete") ? [item("remove", "close", "")] : [])];
  if (remove.length) remove.unshift(/** @type {any} */ ("line"));
  const tickets = !one ? [] : ticketCommands(one).map((each) => item(each, "tag", each === "ticket" ? "⇧T" : "", commandName(each, one)));
  const waits = noAnswerApplies(one) ? [item("noAnswer", isSettled(one) ? "clock" : "check", "W", commandName("noAnswer", one))] : [];
  if (one?.mergedInto) return [...(mayAct() ? [item("merge", "reopen", "", t.commands.unmerge)] : []), ...copy, ...remove];
  const merge = mergeApplies(one) ? [item("merge", "right", "")] : [];
  if (!mayAct() || !one) return [...waits, ...tickets, ...copy, ...remove];
  return [item("assignMe", "person", "A"), item("assign", "people", "⇧A"), item("pending", "pause", "P"), one.status === "CLOSED" ? item("reopen", "reopen", "O") : item("close", "done", "E"), ...waits, "line", item("tag", "tag", "T"), one.snoozedUntil ? { label: t.actions.wake, icon: "sun", pick: () => void snooze([id], null) } : item("snooze", "moon", "Z"), item("unread", "mail", "M"), "line", ...tickets, item("rename", "pencil", ""), ...merge, item(one.archived ? "unarchive" : "archive", "inbox", ""), ...copy, ...remove];
}

/** Show a notice for each refused action, and drop it. */
function useRefusals() {
  const refused = entries.value.filter((each) => each.kind === "action" && each.state === "refused");
  useEffect(() => {
    for (const each of refused) void notifyRefusal(each);
  }, [refused.map((each) => each.key).join()]);
}

/** @param {Outgoing} out */
async function notifyRefusal(out) {
  if (!(await withdraw(out.key))) return; // another tab has shown it
  const who = namesOf([out.conversationId ?? ""]);
  const what = /** @type {Record<string, (who: string) => string>} */ (t.actions.names)[out.label]?.(who) ?? who;
  if (out.problem?.code === CHANGED) notify(t.actions.cantUndo(what, await lastChangedBy(out.conversationId ?? "", out.guard ?? {})), { bad: true });
  else notify(t.actions.refused(what, out.problem?.detail ?? ""), { bad: true });
}

/** Report drafts and messages that can't be decrypted because the service's secret was replaced. */
function useUndecryptable() {
  const { size } = unopenable.value;
  useEffect(() => {
    if (size) notify(t.actions.unopenable(size), { bad: true, ms: 20_000, as: "unopenable", action: t.unopened.show, run: () => void (dialog.value = { name: "unopened" }) });
  }, [size]);
}

/** Registers the actions while the desk is shown. */
export function Actions() {
  useRefusals();
  useUndecryptable();
  useLayoutEffect(() => handle(HANDLERS), []);
  return html``;
}
