// @ts-check
/**
 * Messages that the server holds before it sends them. Their author can cancel them on every computer until then, also after the page is closed. A
 * message that could not be sent stays, with the reason.
 */
import { effect, signal, untracked, useEffect, useState } from "../vendor/preact.js";
import { t } from "../core/texts-lazy.js";
import { announce, notify, setting } from "../ui/parts.js";
import { Problem, call } from "../core/api.js";
import { hooks, entries, withdraw } from "../core/outbox.js";
import { connection } from "../core/feed.js";
import { prepend, applyServerDraft } from "./drafts.js";
import { go, may, open } from "../core/session.js";
import { registerPart, row } from "../core/store.js";
/** @import { HeldMessage, Mode, Outgoing } from "../core/types.js" */

const LONG_REPLY_MIN = 200;
const RETRY_DELAY_MS = 2_000;
const OVERDUE_MS = 2_000;
/** Actions that change the status wait for held messages: a reply sent after a later close would reopen the conversation. */
const STATUS_ACTIONS = new Set(["close", "reopen", "pending", "snooze"]);

/** How long a reply can be cancelled, in seconds; `auto`: five for long replies. */
export const undoSend = setting("undoSend", /** @type {string} */ ("5"));
/** Return how long a reply is held, in seconds. @param {string} text */
export const holdSeconds = (text) => (undoSend.value === "auto" ? (text.length > LONG_REPLY_MIN ? 5 : 0) : Number(undoSend.value));

/** The held messages of this user and project, oldest first. */
const held = signal(/** @type {readonly HeldMessage[]} */ ([]));
/** Return the scheduled messages of this user and project, the earliest first. Reads a signal. */
export const scheduledMessages = () => held.value.filter((each) => each.scheduled).sort((a, b) => (a.sendAt < b.sendAt ? -1 : 1));
/** True if a message waits for its undo. @param {HeldMessage} one */
export const waitsForUndo = (one) => one.status === "held" && !one.scheduled;
/** @type {Set<string>} */
const endedIds = new Set();
/** Return the held messages of a conversation. Reads a signal. @param {string} id */
export const heldIn = (id) => held.value.filter((each) => each.conversationId === id);
/** The draft that a cancelled message was returned to, for the editor to show. @type {import("../vendor/preact.js").Signal<{id: string, mode: Mode} | null>} */
export const restoredDraft = signal(null);

/** @param {{internal: boolean}} of @returns {Mode} */
const modeOf = ({ internal }) => (internal ? "note" : "reply");

/** @param {any} one @param {number} [now]  the server's time */
function addHeld(one, now = Date.parse(one.createdAt)) {
  if (endedIds.has(one.id)) return;
  const known = held.peek().find((each) => each.id === one.id);
  if (known?.status === one.status) return;
  const endsAt = Date.now() + Date.parse(one.sendAt) - now;
  held.value = [...held.peek().filter((each) => each.id !== one.id), { ...one, endsAt }].sort((a, b) => (a.createdAt < b.createdAt ? -1 : 1));
  if (one.status === "refused") notifyRefused(one);
}

/** @param {string} id */
function removeHeld(id) {
  endedIds.add(id);
  held.value = held.peek().filter((each) => each.id !== id);
}

/** Notify the user that a message was not sent. @param {HeldMessage} one */
function notifyRefused({ conversationId: id, problem }) {
  if (open.peek() === id) return;
  const name = untracked(() => row(id))?.contact.name ?? null;
  notify(t.composer.heldRefused(name, problem?.detail ?? ""), { bad: true, action: t.show, run: () => go(`c/${id}`) });
}

/** Load the held messages. */
export async function reload() {
  if (!untracked(() => may("conversations.reply"))) return;
  let now = Date.now();
  const asked = new Set(held.peek().map((each) => each.id));
  const { items } = await call("GET", "held-messages", { answered: (headers) => (now = Date.parse(headers.get("date") ?? "") || now) });
  const there = new Set(items.map((/** @type {HeldMessage} */ each) => each.id));
  for (const id of asked) if (!there.has(id)) removeHeld(id);
  for (const each of items) addHeld(each, now);
}

/** @param {any} event */
function onEphemeral({ type, data }) {
  if (type === "message.held") addHeld(data.heldMessage);
  else if (type === "message.held_ended" && data.outcome === "refused") addHeld(data.heldMessage);
  else if (type === "message.held_ended") removeHeld(data.id);
}

// For views.

/** Return the seconds until a held message is sent; 0 while it is being sent. @param {HeldMessage} one */
export function useSecondsLeft({ id, endsAt }) {
  const [left, setLeft] = useState(0);
  useEffect(() => {
    const tick = () => {
      setLeft(Math.max(0, Math.ceil((endsAt - Date.now()) / 1000)));
      if (Date.now() > endsAt + OVERDUE_MS) (clearInterval(timer), void reload().catch(() => {})); // the event of its end was missed
    };
    const timer = setInterval(tick, 250);
    tick();
    return () => clearInterval(timer);
  }, [id, endsAt]);
  return left;
}

/** Return the text and the files of an unsent message to its draft. @param {string} id @param {Pick<Outgoing, "text" | "internal" | "files" | "mentions"> | null} out */
export function returnToDraft(id, out) {
  if (!out) return;
  prepend(id, modeOf(out), out.text ?? "", out.files, out.mentions);
  restoredDraft.value = { id, mode: modeOf(out) };
  announce(t.composer.taken);
}

/** Cancel a held message. Its text becomes a draft again, unless `discard`. @param {HeldMessage} one @param {boolean} [discard] @returns {Promise<boolean>} False if it was not cancelled. */
export async function cancelHeld(one, discard = false) {
  try {
    const { draft } = await call("DELETE", `held-messages/${one.id}`, discard ? { query: { discard } } : {});
    removeHeld(one.id);
    if (discard) return true;
    applyServerDraft(one.conversationId, modeOf(one), draft);
    restoredDraft.value = { id: one.conversationId, mode: modeOf(one) };
    announce(t.composer.taken);
    return true;
  } catch (error) {
    const late = error instanceof Problem && (error.status === 409 || error.status === 404);
    if (late) removeHeld(one.id);
    notify(late ? t.composer.alreadySent : t.composer.notTakenBack(/** @type {Error} */ (error).message), { bad: true });
    return false;
  }
}

/** Send a held message now. @param {HeldMessage} one @param {object} [body]  `{ifSequence: null}` skips the conflict check */
export async function sendNow(one, body = {}) {
  await call("POST", `held-messages/${one.id}/send`, { body });
  removeHeld(one.id);
}

/** Send a held message now, with a notice if that fails. @param {HeldMessage} one @param {object} [body] */
export const sendNowOrNotify = (one, body) => sendNow(one, body).catch((error) => notify(t.composer.refused(error.message), { bad: true }));

/** @param {Outgoing} each */
const isHeldOnTheWay = (each) => each.kind === "message" && each.body.holdSeconds && (each.state === "kept" || each.state === "sending");
/** Return the newest message that can still be cancelled; null if there is none. @returns {HeldMessage|Outgoing|null} */
export const undoable = () => entries.peek().findLast(isHeldOnTheWay) ?? held.peek().findLast(waitsForUndo) ?? null;

/** Return when this computer sent the result of `undoable`, in ms. @param {HeldMessage|Outgoing} what */
export const sentAt = (what) => ("key" in what ? what.createdAt : what.endsAt - (Date.parse(what.sendAt) - Date.parse(what.createdAt)));

/** Cancel the result of `undoable`. @param {HeldMessage|Outgoing} what */
export async function undoSending(what) {
  if (!("key" in what)) return void (await cancelHeld(what));
  const out = await withdraw(what.key);
  if (out) return returnToDraft(out.conversationId ?? "", out);
  const answer = await answerOf(what.key); // it was being sent
  if (answer?.status === "held") await cancelHeld(answer);
  else notify(t.composer.alreadySent, { bad: true });
}

/** @param {string} key @returns {Promise<any>} The server's response to an outbox entry; null for none. */
export const answerOf = (key) =>
  new Promise((done) => {
    const stop = effect(() => {
      const one = entries.value.find((each) => each.key === key);
      if (one && (one.state === "sending" || one.state === "kept")) return;
      queueMicrotask(() => stop());
      done(one?.answer ?? null);
    });
  });

hooks.send = async ({ kind, label, conversationId }) => {
  if (kind !== "action" || !STATUS_ACTIONS.has(label)) return;
  for (const each of untracked(() => heldIn(conversationId ?? ""))) {
    if (!waitsForUndo(each)) continue;
    await sendNow(each).catch((error) => {
      if (!(error instanceof Problem) || error.status >= 500 || [401, 429].includes(error.status)) throw error;
    });
  }
};

const load = () => void reload().catch((error) => error instanceof Problem || setTimeout(() => connection.peek().state === "live" && load(), RETRY_DELAY_MS));

/** Drop the messages of deleted conversations, and notify the user of scheduled ones. @param {import("../core/state.js").State} next */
function dropDeleted({ gone }) {
  const lost = held.peek().filter((each) => gone.has(each.conversationId));
  if (!lost.length) return;
  for (const each of lost) removeHeld(each.id);
  if (lost.some((each) => each.scheduled)) notify(t.composer.scheduledGone, { bad: true });
}

registerPart({ hello: load, ephemeral: onEphemeral, changed: dropDeleted, end: () => (endedIds.clear(), void (held.value = [])) });
effect(() => {
  const answers = entries.value.flatMap((each) => (each.state === "stored" && each.answer?.status === "held" ? [each.answer] : []));
  untracked(() => answers.forEach((each) => addHeld(each)));
});
if (connection.peek().state === "live") load();
