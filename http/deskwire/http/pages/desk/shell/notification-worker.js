// @ts-check
/** The service worker of the desk. It shows pushes while the desk is closed, and opens the desk when a notification is clicked. It handles no requests, and imports nothing. */
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

  /** Show a push, unless the user looks at the desk, or the open desk has shown the same event. Browsers allow silence then. @param {any} push */
  async function show({ title, body, projectId, conversationId, eventId, silent }) {
    const [first] = await windows();
    if (first?.focused && first.visibilityState === "visible") return;
    const tag = `${projectId} ${conversationId}`; // as the open desk does, so that one replaces the other
    const shown = await worker.registration.getNotifications({ tag });
    if (shown.some((/** @type {any} */ each) => each.data?.eventId === eventId)) return;
    await worker.registration.showNotification(title, { body, tag, renotify: true, silent, data: { projectId, conversationId, eventId } });
  }

  worker.addEventListener("push", (/** @type {any} */ event) => {
    if (event.data) event.waitUntil(show(event.data.json()));
  });

  worker.addEventListener("notificationclick", (/** @type {any} */ event) => {
    event.notification.close();
    event.waitUntil(openAt(event.notification.data));
  });
})();
