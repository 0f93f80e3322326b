// @ts-check
/** The service worker of the desk. It shows notifications, and opens the desk when one is clicked. It handles no requests, and imports nothing. */
(() => {
  const worker = /** @type {any} */ (self);
  worker.addEventListener("install", () => worker.skipWaiting());

  /** Return the address of a conversation, or of a project's inbox. @param {{projectId?: string, conversationId?: string|null}} data */
  const addressOf = ({ projectId, conversationId }) => new URL([projectId, conversationId && `c/${conversationId}`].filter(Boolean).join("/"), worker.registration.scope).href;

  /** Return the open windows of the desk, the focused one first. @returns {Promise<any[]>} */
  async function windows() {
    const desk = worker.registration.scope.replace(/\/$/, "");
    const all = await worker.clients.matchAll({ type: "window", includeUncontrolled: true });
    const ours = all.filter((/** @type {any} */ each) => each.url.split(/[?#]/)[0] === desk || each.url.startsWith(`${desk}/`));
    return ours.sort((/** @type {any} */ a, /** @type {any} */ b) => Number(b.focused) - Number(a.focused));
  }

  /** Show a conversation in an open window of the desk, or in a new one. @param {any} data */
  async function openAt(data) {
    const address = addressOf(data ?? {});
    const [first] = await windows();
    if (!first) return worker.clients.openWindow(address);
    first.postMessage({ deskwire: "open", path: new URL(address).pathname });
    return first.focus();
  }

  worker.addEventListener("notificationclick", (/** @type {any} */ event) => {
    event.notification.close();
    event.waitUntil(openAt(event.notification.data));
  });
})();
