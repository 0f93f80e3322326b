// @ts-check
/** Shows notifications by the desk's service worker, so that a click opens the desk even if its page is gone; and plays the sound. */
import { ROOT } from "./api.js";
import { project, onSignOut } from "./session.js";

/** The worker's address as a trusted script URL: the policy allows this address only (Trusted Types). */
const WORKER = `${ROOT}desk/notification-worker.js`;
const policy = /** @type {any} */ (globalThis).trustedTypes?.createPolicy("deskwire-notifications", { createScriptURL: () => WORKER });

/** Why this browser can't show notifications: `insecure` for a page without https, `unsupported`, or `denied` by the user; null if it can. */
export function obstacle() {
  if (!isSecureContext) return "insecure";
  if (!("Notification" in globalThis) || !navigator.serviceWorker) return "unsupported";
  return Notification.permission === "denied" ? "denied" : null;
}

/** Return whether the user has permitted notifications. */
export const permitted = () => obstacle() === null && Notification.permission === "granted";

/** Start the service worker, or update it, and return its registration once it runs. @returns {Promise<ServiceWorkerRegistration>} */
export async function startWorker() {
  const made = await navigator.serviceWorker.register(policy ? policy.createScriptURL("") : WORKER);
  const first = made.installing ?? made.waiting;
  if (!made.active && first) await new Promise((done) => first.addEventListener("statechange", () => first.state === "activated" && done(null)));
  return made;
}

/** Return the worker's registration; undefined without one. @returns {Promise<ServiceWorkerRegistration|undefined>} */
export const worker = async () => (navigator.serviceWorker && isSecureContext ? navigator.serviceWorker.getRegistration(`${ROOT}desk/`) : undefined);

/** Return the tag of a conversation's notification, which replaces an earlier one, also one by push. @param {string|null} conversationId */
const tagOf = (conversationId) => `${project.peek()?.id} ${conversationId ?? ""}`;

/**
 * Show a notification. A click on it opens the conversation, or the inbox.
 * @param {{title: string, body: string, conversationId: string|null, eventId: string|null}} content
 */
export async function show({ title, body, conversationId, eventId }) {
  const registration = (await worker()) ?? (await startWorker());
  const data = { projectId: project.peek()?.id, conversationId, eventId };
  // The desk plays its own sound.
  const options = { body, tag: tagOf(conversationId), renotify: true, silent: true, data };
  await registration.showNotification(title, /** @type {NotificationOptions} */ (options));
}

/** Close the notification of a conversation. @param {string} conversationId */
export async function closeFor(conversationId) {
  for (const each of (await (await worker())?.getNotifications({ tag: tagOf(conversationId) })) ?? []) each.close();
}

/** Two short tones: frequency in Hz, start in s. @type {[number, number][]} */
const TONES = [[660, 0], [880, 0.12]];
const TONE_S = 0.35;
const VOLUME = 0.12;

/** Play the sound. A page in which the user has not acted yet must stay silent. */
export function playSound() {
  if (!navigator.userActivation?.hasBeenActive) return;
  const audio = new AudioContext();
  const last = TONES.map(([frequency, delay]) => {
    const [tone, volume, at] = [audio.createOscillator(), audio.createGain(), audio.currentTime + delay];
    tone.frequency.value = frequency;
    volume.gain.setValueAtTime(0, at);
    volume.gain.linearRampToValueAtTime(VOLUME, at + 0.01);
    volume.gain.exponentialRampToValueAtTime(0.0001, at + TONE_S);
    tone.connect(volume).connect(audio.destination);
    tone.start(at);
    tone.stop(at + TONE_S);
    return tone;
  }).at(-1);
  last?.addEventListener("ended", () => void audio.close());
}

// Notifications name customers, so they leave the screen with the session.
onSignOut(async () => {
  for (const each of (await (await worker())?.getNotifications()) ?? []) each.close();
});
