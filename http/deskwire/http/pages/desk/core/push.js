// @ts-check
/** Web push: the subscription of this browser, by which the service notifies the user while the desk is closed. */
import { call, get } from "./api.js";
import { obstacle as noNotifications, startWorker, worker } from "./notifier.js";
import { user } from "./session.js";
/** @import { PushState } from "./types.js" */

const PATH = "users/me/push-subscription";
/** The user who turned push on in this browser. After another user has signed in, it is off until that user turns it on. */
const OWNER = "deskwire push";

/** Why this browser can't be notified while the desk is closed: a reason of notifications, or `noPush`; null if it can. */
export const obstacle = () => noNotifications() ?? ("PushManager" in globalThis ? null : "noPush");

/** Return the browser's subscription; null without one. @returns {Promise<PushSubscription|null>} */
const current = async () => (await (await worker())?.pushManager?.getSubscription()) ?? null;

/** Return whether the user is notified by push in this browser, as far as the browser knows. */
export const isOn = async () => Boolean(localStorage.getItem(OWNER) === user.peek()?.id && (await current()));

/** Subscribe this browser, also again after the service's key has changed. Throws Offline or Problem, and DOMException if the browser refuses. */
export async function turnOn() {
  const { publicKey } = /** @type {PushState} */ (await get(PATH));
  const { pushManager } = await startWorker();
  const earlier = await pushManager.getSubscription();
  const key = bytesOf(publicKey);
  if (earlier && !same(earlier.options.applicationServerKey, key)) await earlier.unsubscribe();
  await store(await pushManager.subscribe({ userVisibleOnly: true, applicationServerKey: key }));
  localStorage.setItem(OWNER, user.peek()?.id ?? "");
}

/** End the subscription, at the service first, so that it sends nothing to an address that has ended. Throws Offline or Problem. */
export async function turnOff() {
  await call("DELETE", PATH);
  await forget();
}

/** End the subscription in this browser alone, as after a sign-out, which ends it at the service. */
export async function forget() {
  localStorage.removeItem(OWNER);
  await (await current())?.unsubscribe();
}

/** Have the service know the browser's subscription: the session, the browser's endpoint or the service's key may be new. */
export async function renew() {
  const found = await current();
  if (localStorage.getItem(OWNER) === user.peek()?.id) await turnOn();
  else if (found) await forget();
}

/** @param {PushSubscription} subscription */
async function store(subscription) {
  const { endpoint, keys } = subscription.toJSON();
  await call("PUT", PATH, { body: { endpoint, keys } });
}

/** Return the bytes of a text in base64url. @param {string} text */
const bytesOf = (text) => Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (each) => each.charCodeAt(0));

/** @param {ArrayBuffer|null} stored @param {Uint8Array} key */
const same = (stored, key) => stored?.byteLength === key.length && new Uint8Array(stored).every((byte, at) => byte === key[at]);
