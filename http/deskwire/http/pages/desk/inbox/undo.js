// @ts-check
/** Changes made in this tab: their progress, and their undo in order. */
import { effect, signal, untracked } from "../vendor/preact.js";
import { t } from "../core/texts-lazy.js";
import { shortName, notify } from "../ui/parts.js";
import { call, get } from "../core/api.js";
import { row } from "../core/store.js";
import { project, user } from "../core/session.js";
import { act, entries, withdraw } from "../core/outbox.js";
import { matchesGuard } from "../core/state.js";
import { reachable } from "../core/feed.js";
import { returnToDraft, sentAt, undoSending, undoable } from "./held-messages.js";
/** @import { Guard, Outgoing, Row } from "../core/types.js" */
/** @import { Action } from "../core/outbox.js" */

/**
 * One conversation's part of a change.
 * @typedef {object} Step
 * @property {string} id
 * @property {string} key  of the outbox entry
 * @property {(now: Row) => Action[]} back  the actions that undo it
 * @property {Guard} left  the fields after the change; if they differ later, someone else has changed them
 *
 * @typedef {{who: string, what: string, steps: Step[], at?: number, reply?: boolean, ends?: () => void, back?: () => Promise<unknown>, shown?: boolean}} Change
 * back: the undo of a change outside the outbox; shown: whether the page shows its progress elsewhere.
 */
const CHANGES_MAX = 100;
/** A faster change shows no progress, only its result. */
const PROGRESS_DELAY_MS = 400;

/** The changes that can be undone, newest last. @type {Change[]} */
let changes = [];
effect(() => {
  void [user.value?.id, project.value?.id];
  changes = [];
});

/** Return when the newest change was made that can be undone; 0 for none. */
export const changedAt = () => changes.at(-1)?.at ?? 0;

/** Return conversations in words: by contact, or by number. @param {string[]} ids */
export const namesOf = (ids) => (ids.length === 1 ? shortName(row(ids[0] ?? "")?.contact) || t.actions.thisOne : t.actions.several(ids.length));

/** Return the fields after an action, as a guard for its undo. @param {Action} action @returns {Guard} */
export function guardAfter(action) {
  switch (action.do) {
    case "assign":
      return { assignee: action.assignee };
    case "close":
      return { status: "CLOSED" };
    case "reopen":
    case "open":
      return { status: "OPEN" };
    case "pending":
      return { status: "PENDING" };
    case "snooze":
      return { snoozedUntil: action.until };
    case "noAnswer":
      return { noAnswerNeededSince: action.since };
    case "waitAgain":
      return { noAnswerNeededSince: null };
    case "title":
      return { title: action.title };
    case "archive":
      return { archived: action.archived };
    default:
      return {};
  }
}

/** @param {Change} change */
function pushChange(change) {
  change.at = Date.now();
  changes = [...changes.slice(1 - CHANGES_MAX), change];
}

/** @param {Change} change @param {string} done  the notice once the service has stored everything */
export function recordChange(change, done) {
  pushChange(change);
  change.ends = notifyProgress(change.steps, { what: change.what, done }, { action: t.actions.undo, run: () => void revert(change), ms: 6000 });
}

/** Record a bulk job for `u`. The bar of the job shows its progress and result. @param {string} what @param {() => Promise<unknown>} back */
export const recordUndo = (what, back) => pushChange({ who: "", what, steps: [], back, shown: true });

/** Record a sent reply, and the action sent with it. @param {Outgoing} out @param {Row|undefined} before */
export function recordReply(out, before) {
  const back = (/** @type {Row} */ now) => (before && out.body.then ? restoringActions(before, now) : []);
  const left = /** @type {Guard} */ (out.body.then ? { status: out.expect?.status ?? before?.status } : {});
  pushChange({ who: namesOf([out.conversationId ?? ""]), what: "", steps: [{ id: out.conversationId ?? "", key: out.key, back, left }], reply: true });
}

/** Return the actions that restore the status and the snooze of a conversation. @param {Row} before @param {Row} now @returns {Action[]} */
export function restoringActions(before, now) {
  const asleep = before.snoozedUntil && Date.parse(before.snoozedUntil) > Date.now() ? before.snoozedUntil : null;
  if (before.status === "CLOSED") return now.status === "CLOSED" ? [] : [{ do: "close" }];
  /** @type {Action[]} */
  const found = [];
  if (now.status === "CLOSED") found.push({ do: "reopen", waitingSince: before.waitingSince });
  if (before.status === "PENDING" && now.status !== "PENDING") found.push({ do: "pending" });
  if (before.status === "OPEN" && now.status === "PENDING") found.push({ do: "open" });
  if (asleep !== now.snoozedUntil || now.status === "CLOSED") if (asleep || now.status !== "CLOSED") found.push({ do: "snooze", until: asleep });
  return found;
}

/**
 * Show the progress of changes: done when the service has stored them, otherwise waiting or busy.
 * @param {Step[]} steps @param {{what: string, done: string}} words @param {Parameters<typeof notify>[1]} [options]
 * @returns {() => void} Stops it.
 */
function notifyProgress(steps, { what, done }, options = {}) {
  const as = steps[0]?.key;
  const late = signal(false);
  const timer = setTimeout(() => (late.value = true), PROGRESS_DELAY_MS);
  let said = "";
  const show = (/** @type {string} */ text, /** @type {string} */ icon) => {
    if (said !== text) untracked(() => notify((said = text), { ...options, as, icon }));
  };
  const look = () => {
    const found = steps.map((each) => entries.value.find((one) => one.key === each.key));
    const left = found.filter((each) => each && each.state !== "stored" && each.state !== "refused");
    steps.forEach((each, i) => found[i]?.state === "stored" && each.left.status === "CLOSED" && (each.left = { ...each.left, closedAt: found[i]?.answer?.closedAt }));
    if (!left.length) {
      if (found.some((each) => each?.state === "stored")) show(done, "check");
      queueMicrotask(end);
    } else if (left.some((each) => each?.waitsFor) || !reachable.value) show(t.actions.kept(what), "clock");
    else if (late.value) show(t.actions.busy(what), "spin");
  };
  const end = () => {
    clearTimeout(timer);
    stop();
  };
  const stop = effect(look);
  return end;
}

/** Undo the newest change of this tab, or cancel a held reply that is newer; otherwise show why nothing can be undone. */
export async function undoLast() {
  const change = changes.at(-1);
  const held = undoable();
  if (held && (!change || change.reply || sentAt(held) > (change.at ?? 0))) {
    if (change?.reply) changes = changes.slice(0, -1);
    return void undoSending(held);
  }
  if (change) await revert(change);
  else notify(t.actions.nothingToUndo, { icon: "info" });
}

/** @param {Change} change */
async function revert(change) {
  if (!changes.includes(change)) return;
  changes = changes.filter((each) => each !== change);
  change.ends?.();
  if (change.back) return runUndo(change);
  if (change.reply) return revertReply(change);
  /** @type {Step[]} */
  const sent = [];
  const lost = [];
  let dropped = 0;
  for (const step of change.steps) {
    if (await withdrawUnsent(step.key)) dropped += 1;
    else if (wasRefused(step.key)) continue;
    else if (!isUnchanged(step)) lost.push(step);
    else sent.push(...(await sendReversal(step)));
  }
  if (lost.length) notify(await notUndoneText(change, lost), { bad: true });
  if (sent.length) notifyProgress(sent, { what: t.actions.undoing(change.what), done: t.actions.undone(change.what) });
  else if (dropped) notify(t.actions.undone(change.what));
}

/** @param {Change} change */
async function runUndo(change) {
  try {
    await change.back?.();
    if (!change.shown) notify(t.actions.undone(change.what));
  } catch (error) {
    pushChange(change);
    notify(t.actions.refused(t.actions.undoing(change.what), /** @type {Error} */ (error).message), { bad: true });
  }
}

/** Mark all conversations as read. */
export async function readAll() {
  try {
    const { before } = await call("PUT", "inbox/seen", { body: {} });
    const change = { who: "", what: t.actions.readAll, steps: [], back: () => call("PUT", "inbox/seen", { body: { until: before } }) };
    pushChange(change);
    notify(t.actions.allRead, { action: t.actions.undo, run: () => void revert(change), ms: 6000 });
  } catch (error) {
    notify(t.actions.refused(t.actions.readAll, /** @type {Error} */ (error).message), { bad: true });
  }
}

/** @param {Change} change */
async function revertReply(change) {
  const [step] = change.steps;
  if (!step) return;
  const out = await withdrawUnsent(step.key);
  if (out) return returnToDraft(step.id, out);
  const sent = isUnchanged(step) ? await sendReversal(step) : [];
  if (sent.length) notifyProgress(sent, { what: t.actions.undoing(change.who), done: t.actions.restored(change.who) });
  else notify(t.actions.sent(change.who), { icon: "info" });
}

/** Withdraw an outbox entry that was never sent. @param {string} key @returns {Promise<Outgoing|null>} */
async function withdrawUnsent(key) {
  const one = entries.peek().find((each) => each.key === key);
  return one && (one.state === "held" || one.state === "kept") && one.sentAt === null ? withdraw(key) : null;
}

/** @param {string} key */
const wasRefused = (key) => entries.peek().some((each) => each.key === key && each.state === "refused");

/** Return the row with the tags that are stored: a colleague may have added some whose event is not here yet. @param {Row} known @returns {Promise<Row>} */
const withStoredTags = (known) => get(`conversations/${known.id}`, { view: "agent" }).then(({ tags }) => ({ ...known, tags }), () => known);

/** @param {Step} step @returns {Promise<Step[]>} */
async function sendReversal(step) {
  const known = row(step.id);
  if (!known) return [];
  const now = reachable.peek() && step.back(known).some((each) => each.do === "tags") ? await withStoredTags(known) : known;
  const found = [];
  for (const [i, action] of step.back(now).entries()) {
    const guard = i ? null : action.do === "tags" ? { ...step.left, tags: now.tags } : step.left;
    const { key } = await act(step.id, action, { guard });
    found.push({ ...step, key });
  }
  return found;
}

/** @param {Step} step */
function isUnchanged({ id, left }) {
  const now = row(id);
  return Boolean(now && matchesGuard(now, left));
}

/** @param {Change} change @param {Step[]} lost */
async function notUndoneText(change, lost) {
  const [first] = lost;
  const by = lost.length === 1 && first ? await lastChangedBy(first.id, first.left) : null;
  return lost.length === change.steps.length ? t.actions.cantUndo(change.what, by) : t.actions.cantUndoSome(change.what, lost.length, change.steps.length);
}

/** Return who last changed a field of a conversation; null if unknown. @param {string} id @param {Guard} left @returns {Promise<string|null>} */
export async function lastChangedBy(id, left) {
  const fields = Object.keys(left);
  const page = await get(`conversations/${id}/activity`, { limit: 20 }).catch(() => null);
  const found = page?.items.find((/** @type {any} */ each) => each.changes?.some((/** @type {any} */ one) => fields.includes(one.field)));
  return found?.actor?.name ?? null;
}
