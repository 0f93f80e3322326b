// @ts-check
/**
 * Notifies the user of events: a notification of the system, a sound, a dot on the tab's icon, and a number in its title.
 *
 * All tabs of a project receive all events. The one that holds the lock of the project shows notifications and plays the sound, and the browser
 * passes the lock on when that tab closes or crashes. A tab that the user looks at holds a lock of the conversation that it shows.
 */
import { effect, html, useEffect } from "../vendor/preact.js";
import { t } from "../core/texts-lazy.js";
import { signedOut } from "../core/api.js";
import { onSignOut, open, people, project, user, visit } from "../core/session.js";
import { arrivals, registerPart, row, runGuard } from "../core/store.js";
import { isQuiet, reasonToNotify } from "../core/notification-rules.js";
import { load, settings } from "../core/notification-settings.js";
import { closeFor, permitted, playSound, show, startWorker, worker } from "../core/notifier.js";
import { contactName, notificationsWanted } from "../ui/parts.js";
/** @import { Envelope } from "../core/types.js" */

/** Events that are older, as after a night offline, are counted, but no longer shown. */
const AGE_MAX_MS = 10 * 60_000;
/** Maximum notifications for events that arrive together; more become one. */
const TOGETHER_MAX = 3;
const SOUND_INTERVAL_MS = 3_000;

const looking = () => document.visibilityState === "visible" && document.hasFocus();
/** @param {string} conversationId */
const shownLock = (conversationId) => `deskwire shown ${conversationId}`;

/** A lock that this tab holds or waits for. */
class HeldLock {
  /** @param {LockMode} mode */
  constructor(mode) {
    this.mode = mode;
    this.name = /** @type {string|null} */ (null);
    this.held = false;
    this.release = () => {};
  }

  /** Hold the lock of this name instead, or none. @param {string|null} name */
  move(name) {
    if (name === this.name || !navigator.locks) return;
    this.release();
    this.name = name;
    this.held = false;
    if (name === null) return;
    const { promise, resolve } = Promise.withResolvers();
    const waiting = new AbortController();
    this.release = () => (waiting.abort(), resolve(null));
    const granted = () => {
      this.held = this.name === name;
      return promise;
    };
    navigator.locks.request(name, { mode: this.mode, signal: waiting.signal }, granted).catch(() => {}); // it was released before it was granted
  }
}
const leader = new HeldLock("exclusive");
const shown = new HeldLock("shared");

/** Without locks, on a page without https, each visible tab acts for itself. */
const leads = () => (navigator.locks ? leader.held : looking());

/** Return the conversations that any tab of this browser shows to the user. @returns {Promise<(conversationId: string) => boolean>} */
async function shownAnywhere() {
  if (!navigator.locks) return (id) => looking() && open.peek() === id;
  const { held } = await navigator.locks.query();
  const names = new Set(held?.map((each) => each.name));
  return (id) => names.has(shownLock(id));
}

function noteShown() {
  const id = looking() ? open.peek() : null;
  shown.move(id && shownLock(id));
  if (looking()) arrivals.value = 0;
  if (id && permitted()) void closeFor(id);
}

let soundAt = 0;

/** Notify the user of those of these events that concern the user. @param {Envelope[]} events */
async function receive(events) {
  const still = runGuard();
  const chosen = settings.peek() ?? (await load().catch(() => null)); // without an answer, the next events ask again
  const [me, of] = [user.peek(), project.peek()];
  if (!still() || !chosen || !me || !of) return;
  const teams = new Set(people().teams.filter((each) => each.memberIds?.includes(me.id)).map((each) => each.id));
  const follows = (/** @type {string} */ id) => Boolean(row(id)?.followers.includes(me.id));
  const found = events.filter((each) => reasonToNotify(each, { id: me.id, teams, follows }, chosen));
  if (!found.length) return;
  const isShown = await shownAnywhere();
  const unseen = found.filter((each) => !isShown(each.data.conversation.id));
  if (!still() || !unseen.length) return;
  if (!looking()) arrivals.value += unseen.length;
  const now = Date.now();
  const recent = unseen.filter((each) => now - Date.parse(each.createdAt) < AGE_MAX_MS);
  if (!leads() || !recent.length || isQuiet(chosen.quietHours, now)) return;
  if (chosen.sound && now - soundAt > SOUND_INTERVAL_MS) {
    soundAt = now;
    playSound();
  }
  if (!notificationsWanted.value || !permitted()) return;
  await Promise.all(contents(recent, chosen.preview).map(show));
}

/** Return the notifications for events, one for each conversation, or one for all of them. @param {Envelope[]} events @param {boolean} preview */
function contents(events, preview) {
  const newest = new Map(events.map((each) => [each.data.conversation.id, each]));
  if (newest.size > TOGETHER_MAX) return [{ title: t.name, body: t.notifications.several(events.length, newest.size), conversationId: null, eventId: events.at(-1)?.id ?? null }];
  return [...newest].map(([conversationId, { id, type, data }]) => {
    const { contact, assignee } = data.conversation;
    const to = assignee?.id === user.peek()?.id ? t.notifications.you : assignee?.name;
    const body = type === "note.created" ? t.notifications.note(data.message.author.name ?? t.name, preview ? data.message.text : "") : type === "message.created" ? (preview && data.message.text) || t.notifications.message : t.notifications.assigned(data.actor.name ?? t.name, to);
    return { title: contactName(contact) || t.name, body, conversationId, eventId: id };
  });
}

registerPart({
  events: (events) => void receive(events),
  end: () => void (settings.value = null),
});

/** Start the worker if notifications are wanted, and renew the push subscription of this browser if there is one. @param {boolean} wanted */
async function withWorker(wanted) {
  try {
    const registration = await (wanted ? startWorker() : worker());
    if (await registration?.pushManager?.getSubscription()) await (await import("../core/push.js")).renew();
  } catch {
    // The worker starts with the first notification, and the next opening of the desk renews the subscription.
  }
}

// A push after the session would name customers, too.
onSignOut(async () => {
  if (await worker()) await (await import("../core/push.js")).forget();
});

/** Follow the session and the window, until the returned function is called. */
function begin() {
  const icon = /** @type {HTMLLinkElement|null} */ (document.querySelector("link[rel=icon]"));
  const plain = icon?.href ?? "";
  const lead = () => {
    const key = user.value && project.value && !signedOut.value ? `deskwire notify ${user.value.id} ${project.value.id}` : null;
    leader.move(key);
    return key;
  };
  const stops = [
    effect(() => {
      if (!lead()) return;
      load().catch(() => {}); // the next event asks again
      if (permitted()) void withWorker(notificationsWanted.value);
    }),
    effect(() => {
      void open.value;
      noteShown();
    }),
    effect(() => {
      if (icon) icon.href = arrivals.value ? plain.replace("icon.svg", "icon-new.svg") : plain;
    }),
  ];
  const leave = () => (leader.move(null), shown.move(null)); // a page that holds locks can't enter the back-forward cache
  const returned = () => (lead(), noteShown());
  const clicked = (/** @type {MessageEvent} */ { data }) => data?.deskwire === "open" && visit(new URL(data.path, location.href).pathname);
  const listeners = /** @type {[EventTarget | undefined, string, (event: any) => void][]} */ ([[globalThis, "focus", noteShown], [globalThis, "blur", noteShown], [document, "visibilitychange", noteShown], [globalThis, "pagehide", leave], [globalThis, "pageshow", returned], [navigator.serviceWorker, "message", clicked]]);
  for (const [target, name, listener] of listeners) target?.addEventListener(name, listener);
  navigator.serviceWorker?.startMessages();
  return () => {
    for (const stop of stops) stop();
    for (const [target, name, listener] of listeners) target?.removeEventListener(name, listener);
    leave();
  };
}

/** Part of the page while a user is signed in; renders nothing. */
export function Notifications() {
  useEffect(begin, []);
  return html``;
}
