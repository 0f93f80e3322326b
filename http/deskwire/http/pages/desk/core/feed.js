// @ts-check
/** The event stream: one for all tabs in a shared worker, or one for each tab where the browser has no shared workers. */
import { computed, signal } from "../vendor/preact.js";
import { ROOT, loadModule } from "./api.js";
/** @import { Connection, Envelope } from "./types.js" */

const HEARTBEAT_INTERVAL_MS = 20_000;
const WORKER_TIMEOUT_MS = 10_000;
/** @type {Connection} */
const CONNECTING = { state: "connecting", since: Date.now(), cursor: null, lastEventAt: null, caughtUp: 0, retryAt: null, streamId: null, reason: null, silentSince: null };

/** The state of the connection. */
export const connection = signal(CONNECTING);
/** True if the service is reachable, as far as the stream shows. */
export const reachable = computed(() => (connection.value.state === "live" || connection.value.state === "gap") && connection.value.silentSince === null);

/** @typedef {{events: (batch: Envelope[]) => void, ephemeral: (event: any) => void, hello: (hello: any) => void}} FeedListener */

/** The open connection to the stream; null if none is open. @type {{send: (message: any) => void, close: () => void}|null} */
let transport = null;
/** @type {{conversationIds: string[], composing: string|null}} */
let shown = { conversationIds: [], composing: null };
/** @type {(() => void)|null} Reopens the stream after the page was in the back-forward cache. */
let reopen = null;
let reloadPending = false;

/**
 * Open the stream of a project, and close the previous one.
 * @param {string} userId @param {string} projectId
 * @param {FeedListener} to  hello: with `gap`, events are missing: reload everything, then call `gapClosed()`.
 */
export function open(userId, projectId, to) {
  close();
  connection.value = { ...CONNECTING, since: Date.now() };
  const receive = (/** @type {any} */ { state, hello, events, ephemeral }) => {
    if (state) connection.value = reloadPending && state.state === "live" ? { ...state, state: "gap" } : state;
    if (hello) {
      reloadPending = Boolean(hello.gap);
      to.hello(hello);
    }
    if (events) to.events(events);
    if (ephemeral) to.ephemeral(ephemeral);
  };
  reopen = () => {
    const alone = () => {
      transport?.close();
      transport = ownStream(projectId, receive);
    };
    transport = sharedStream(userId, projectId, receive, alone) ?? ownStream(projectId, receive);
    transport.send({ do: "view", ...shown });
  };
  reopen();
}

/** Note that everything was reloaded after a gap. */
export function gapClosed() {
  reloadPending = false;
  if (connection.value.state === "gap") connection.value = { ...connection.value, state: "live" };
}

/** Close the stream. */
export function close() {
  transport?.close();
  transport = reopen = null;
  reloadPending = false;
}

/** Reconnect at once. */
export const retry = () => transport?.send({ do: "retry" });

/** Report to colleagues which conversations this tab shows, and where its user types. @param {string[]} conversationIds @param {string|null} composing */
export function reportView(conversationIds, composing) {
  shown = { conversationIds, composing };
  transport?.send({ do: "view", ...shown });
}

/** The worker's address as a trusted script URL: the policy allows this address only (Trusted Types). */
const workerUrl = (() => {
  const url = new URL("./feed-worker.js", import.meta.url).href;
  const types = /** @type {any} */ (globalThis).trustedTypes;
  const policy = types?.createPolicy("deskwire-worker", { createScriptURL: () => url });
  return policy ? policy.createScriptURL("") : url;
})();

/** @param {string} userId @param {string} projectId @param {(message: any) => void} receive @param {() => void} otherwise  called if the worker does not start */
function sharedStream(userId, projectId, receive, otherwise) {
  if (typeof SharedWorker !== "function") return null;
  const made = new SharedWorker(workerUrl, { type: "module", name: JSON.stringify([ROOT, projectId, userId]) });
  const { port } = made;
  const silent = setTimeout(otherwise, WORKER_TIMEOUT_MS);
  made.onerror = otherwise;
  port.onmessage = ({ data }) => {
    clearTimeout(silent);
    receive(data);
  };
  const timer = setInterval(() => port.postMessage({ do: "here" }), HEARTBEAT_INTERVAL_MS);
  const close = () => {
    clearInterval(timer);
    clearTimeout(silent);
    made.onerror = null;
    port.postMessage({ do: "leave" });
    port.onmessage = null;
  };
  return { send: (/** @type {any} */ message) => port.postMessage(message), close };
}

/** Open a stream for this tab alone. It does not report the tab's view. @param {string} projectId @param {(message: any) => void} receive */
function ownStream(projectId, receive) {
  const made = loadModule(() => import("./stream.js")).then(({ Stream }) => {
    const url = `${ROOT}v3/stream?project=${encodeURIComponent(projectId)}`;
    const forward = (/** @type {string} */ name) => (/** @type {any} */ what) => receive({ [name]: what });
    const stream = new Stream(url, { state: forward("state"), hello: forward("hello"), events: forward("events"), ephemeral: forward("ephemeral") });
    void stream.run();
    return stream;
  });
  return {
    send: (/** @type {any} */ message) => message.do === "retry" && void made.then((stream) => stream.retry()),
    close: () => void made.then((stream) => stream.close()),
  };
}

if (typeof addEventListener === "function") {
  addEventListener("online", retry);
  addEventListener("pagehide", () => {
    transport?.close();
    transport = null;
  });
  addEventListener("pageshow", (event) => event.persisted && !transport && reopen?.());
}
