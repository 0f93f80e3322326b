// @ts-check
/** The stream of events: one for all tabs of this browser, in a worker, or this tab's own where there are no shared ones. */
import { computed, signal } from "../vendor/preact.js";
import { ROOT } from "./api.js";
/** @import { Connection, Envelope } from "./types.js" */

const HEARTBEAT_INTERVAL_MS = 20_000;
const WORKER_TIMEOUT_MS = 10_000;
/** @type {Connection} */
const CONNECTING = { state: "connecting", since: Date.now(), cursor: null, lastEventAt: null, caughtUp: 0, retryAt: null, streamId: null, reason: null, silentSince: null };

/** The state of the connection. */
export const connection = signal(CONNECTING);
/** Whether the service answers, as far as one knows. */
export const reachable = computed(() => (connection.value.state === "live" || connection.value.state === "gap") && connection.value.silentSince === null);

/** @typedef {{events: (batch: Envelope[]) => void, ephemeral: (event: any) => void, hello: (hello: any) => void}} FeedListener */

/** What carries messages to the stream; null if none is open. @type {{send: (message: any) => void, close: () => void}|null} */
let transport = null;
/** @type {{conversationIds: string[], composing: string|null}} */
let shown = { conversationIds: [], composing: null };
/** @type {(() => void)|null} Opens again what was closed when the page was put aside. */
let reopen = null;
let reloadPending = false;

/**
 * Opens the stream of a project, and closes the one before.
 * @param {string} userId @param {string} projectId
 * @param {FeedListener} to  hello: with `gap`, events are missing, and everything has to be loaded anew; say `healed()` then.
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

/** Says that what was missing has been loaded. */
export function gapClosed() {
  reloadPending = false;
  if (connection.value.state === "gap") connection.value = { ...connection.value, state: "live" };
}

/** Closes the stream. */
export function close() {
  transport?.close();
  transport = reopen = null;
  reloadPending = false;
}

/** Tries at once. */
export const retry = () => transport?.send({ do: "retry" });

/** Tells colleagues what this tab shows and where it writes. @param {string[]} conversationIds @param {string|null} composing */
export function reportView(conversationIds, composing) {
  shown = { conversationIds, composing };
  transport?.send({ do: "view", ...shown });
}

/** The address of the worker, as the browser takes it: one policy, for this one address (Trusted Types). */
const workerUrl = (() => {
  const url = new URL("./feed-worker.js", import.meta.url).href;
  const types = /** @type {any} */ (globalThis).trustedTypes;
  const policy = types?.createPolicy("deskwire-worker", { createScriptURL: () => url });
  return policy ? policy.createScriptURL("") : url;
})();

/** @param {string} userId @param {string} projectId @param {(message: any) => void} receive @param {() => void} otherwise  if it does not run */
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

/** A stream of this tab's own, without telling colleagues what it shows. @param {string} projectId @param {(message: any) => void} receive */
function ownStream(projectId, receive) {
  const made = import("./stream.js").then(({ Stream }) => {
    const url = `${ROOT}v3/stream?project=${encodeURIComponent(projectId)}`;
    const tell = (/** @type {string} */ name) => (/** @type {any} */ what) => receive({ [name]: what });
    const stream = new Stream(url, { state: tell("state"), hello: tell("hello"), events: tell("events"), ephemeral: tell("ephemeral") });
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
