// @ts-check
/** The stream of events: one for all tabs of this browser, in a worker, or this tab's own where there are no shared ones. */
import { computed, signal } from "../vendor/preact.js";
import { ROOT } from "./api.js";
/** @import { Connection, Envelope } from "./types.js" */

const HERE_MS = 20_000;
const SILENT_MS = 10_000;
/** @type {Connection} */
const NOT_YET = { state: "connecting", since: Date.now(), cursor: null, lastEventAt: null, caughtUp: 0, retryAt: null, streamId: null, reason: null, silentSince: null };

/** The state of the connection. */
export const connection = signal(NOT_YET);
/** Whether the service answers, as far as one knows. */
export const reachable = computed(() => (connection.value.state === "live" || connection.value.state === "gap") && connection.value.silentSince === null);

/** @typedef {{events: (batch: Envelope[]) => void, passing: (event: any) => void, hello: (hello: any) => void}} Ears */

/** What carries messages to the stream; null if none is open. @type {{send: (message: any) => void, close: () => void}|null} */
let line = null;
/** @type {{conversationIds: string[], composing: string|null}} */
let shown = { conversationIds: [], composing: null };
/** @type {(() => void)|null} Opens again what was closed when the page was put aside. */
let again = null;
let missing = false;

/**
 * Opens the stream of a project, and closes the one before.
 * @param {string} userId @param {string} projectId
 * @param {Ears} to  hello: with `gap`, events are missing, and everything has to be loaded anew; say `healed()` then.
 */
export function open(userId, projectId, to) {
  close();
  connection.value = { ...NOT_YET, since: Date.now() };
  const hear = (/** @type {any} */ { state, hello, events, passing }) => {
    if (state) connection.value = missing && state.state === "live" ? { ...state, state: "gap" } : state;
    if (hello) {
      missing = Boolean(hello.gap);
      to.hello(hello);
    }
    if (events) to.events(events);
    if (passing) to.passing(passing);
  };
  again = () => {
    const alone = () => {
      line?.close();
      line = own(projectId, hear);
    };
    line = shared(userId, projectId, hear, alone) ?? own(projectId, hear);
    line.send({ do: "view", ...shown });
  };
  again();
}

/** Says that what was missing has been loaded. */
export function healed() {
  missing = false;
  if (connection.value.state === "gap") connection.value = { ...connection.value, state: "live" };
}

/** Closes the stream. */
export function close() {
  line?.close();
  line = again = null;
  missing = false;
}

/** Tries at once. */
export const retry = () => line?.send({ do: "retry" });

/** Tells colleagues what this tab shows and where it writes. @param {string[]} conversationIds @param {string|null} composing */
export function view(conversationIds, composing) {
  shown = { conversationIds, composing };
  line?.send({ do: "view", ...shown });
}

/** The address of the worker, as the browser takes it: one policy, for this one address (Trusted Types). */
const worker = (() => {
  const url = new URL("./feed-worker.js", import.meta.url).href;
  const types = /** @type {any} */ (globalThis).trustedTypes;
  const policy = types?.createPolicy("deskwire-worker", { createScriptURL: () => url });
  return policy ? policy.createScriptURL("") : url;
})();

/** @param {string} userId @param {string} projectId @param {(message: any) => void} hear @param {() => void} otherwise  if it does not run */
function shared(userId, projectId, hear, otherwise) {
  if (typeof SharedWorker !== "function") return null;
  const made = new SharedWorker(worker, { type: "module", name: JSON.stringify([ROOT, projectId, userId]) });
  const { port } = made;
  const silent = setTimeout(otherwise, SILENT_MS);
  made.onerror = otherwise;
  port.onmessage = ({ data }) => {
    clearTimeout(silent);
    hear(data);
  };
  const timer = setInterval(() => port.postMessage({ do: "here" }), HERE_MS);
  const close = () => {
    clearInterval(timer);
    clearTimeout(silent);
    made.onerror = null;
    port.postMessage({ do: "leave" });
    port.onmessage = null;
  };
  return { send: (/** @type {any} */ message) => port.postMessage(message), close };
}

/** A stream of this tab's own, without telling colleagues what it shows. @param {string} projectId @param {(message: any) => void} hear */
function own(projectId, hear) {
  const made = import("./stream.js").then(({ Stream }) => {
    const url = `${ROOT}v3/stream?project=${encodeURIComponent(projectId)}`;
    const tell = (/** @type {string} */ name) => (/** @type {any} */ what) => hear({ [name]: what });
    const stream = new Stream(url, { state: tell("state"), hello: tell("hello"), events: tell("events"), passing: tell("passing") });
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
    line?.close();
    line = null;
  });
  addEventListener("pageshow", (event) => event.persisted && !line && again?.());
}
