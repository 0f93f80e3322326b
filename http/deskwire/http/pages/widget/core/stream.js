// @ts-check
/**
 * The live events of a session: server-sent events read by `fetch`, which can send the token. If a proxy holds them back, so that no `hello` comes
 * in time, long polls take their place. Both continue after the newest event.
 */
import { Problem, retryDelay } from "./api.js";

const HELLO_TIMEOUT_MS = 8_000;
const HEARTBEAT_MS = 15_000;
const SILENT_AFTER_BEATS = 2.5;
const POLL_WAIT_S = 25;
const STREAM_AGAIN_AFTER_MS = 600_000;

/** The state of a parser of server-sent events. @typedef {{rest: string, id: string, event: string, data: string}} Parsing */
/** @returns {Parsing} */
export const parsing = () => ({ rest: "", id: "", event: "", data: "" });

/** Parse a chunk; change the state, and return the events it completes. An event without data only has an id. @param {Parsing} at @param {string} text @returns {{id: string, event: string, data: any}[]} */
export function parse(at, text) {
  const lines = (at.rest + text).split(/\r?\n/);
  at.rest = lines.pop() ?? "";
  const found = [];
  for (const line of lines) {
    const colon = line.indexOf(":");
    const value = line.slice(colon + 1).trimStart();
    if (line === "") {
      if (at.data || at.id) found.push({ id: at.id, event: at.event, data: at.data ? JSON.parse(at.data) : null });
      Object.assign(at, { id: "", event: "", data: "" });
    } else if (line.startsWith("data:")) at.data += value;
    else if (line.startsWith("id:")) at.id = value;
    else if (line.startsWith("event:")) at.event = value;
  }
  return found;
}

/**
 * Follow the events until `abort`.
 * @param {object} io
 * @param {(path: string, options: import("./api.js").CallOptions) => Promise<any>} io.call
 * @param {() => string|null} io.cursor  the newest event received
 * @param {(at: string, resumed: boolean) => void} io.hello  unless `resumed`, events are missing: load the lists, and continue after `at`
 * @param {(events: any[], cursor: string) => void} io.events
 * @param {(event: any) => void} io.passing
 * @param {(state: "online"|"connecting"|"offline") => void} io.state
 * @param {(hurry: () => void) => void} io.hurried  gets a function that reconnects at once
 * @param {AbortSignal} abort
 */
export async function follow(io, abort) {
  let failures = 0;
  let pollUntil = 0;
  const opened = () => {
    failures = 0;
    io.state("online");
  };
  while (!abort.aborted) {
    const attempt = new AbortController();
    const end = () => attempt.abort();
    abort.addEventListener("abort", end);
    io.hurried(end);
    const polls = pollUntil > performance.now();
    let silent = false;
    let waitMs = null;
    try {
      if (polls) await poll(io, attempt.signal, opened);
      else waitMs = await stream(io, attempt, opened, () => (silent = true));
    } catch (error) {
      if (error instanceof Problem) waitMs = error.retryAfterMs;
      else if (!attempt.signal.aborted) pollUntil = 0;
      failures += 1;
    }
    abort.removeEventListener("abort", end);
    const hurried = attempt.signal.aborted && !silent;
    end();
    if (silent) pollUntil = performance.now() + STREAM_AGAIN_AFTER_MS;
    if (abort.aborted) return;
    if (hurried || silent || (polls && !failures)) continue;
    io.state(failures > 1 || globalThis.navigator?.onLine === false ? "offline" : "connecting");
    await new Promise((/** @type {(value?: any) => void} */ done) => {
      const timer = setTimeout(done, waitMs === null ? retryDelay(failures) : waitMs + Math.random() * 500);
      const wake = () => (clearTimeout(timer), done());
      abort.addEventListener("abort", wake, { once: true });
      io.hurried(wake);
    });
  }
}

/**
 * Read one stream until it ends. Aborts `attempt` if it falls silent.
 * @param {Parameters<typeof follow>[0]} io @param {AbortController} attempt @param {() => void} opened @param {() => void} silent  called if no hello came in time
 * @returns {Promise<number|null>} The server's delay in ms, if any.
 */
async function stream(io, attempt, opened, silent) {
  const after = io.cursor();
  let beatMs = HEARTBEAT_MS;
  let greeted = false;
  let timer = setTimeout(() => (silent(), attempt.abort()), HELLO_TIMEOUT_MS);
  try {
    /** @type {Response} */
    const response = await io.call(`stream${after ? `?after=${after}` : ""}`, { raw: true, abort: attempt.signal });
    if (!response.body) {
      silent(); // this fetch can't read a response in parts
      return null;
    }
    const reader = response.body.getReader();
    const decoder = new TextDecoder();
    const at = parsing();
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return null;
      for (const { id, event, data } of parse(at, decoder.decode(value, { stream: true }))) {
        if (event === "hello") {
          greeted = true;
          beatMs = (data.heartbeatS ?? 15) * 1000;
          io.hello(data.at, Boolean(after) && !data.gap);
          opened();
        } else if (event === "passing") io.passing(data);
        else if (event === "bye") return data.reason === "session_ended" ? 0 : (data.retryAfterMs ?? 0);
        else if (id) io.events(data ? [data] : [], id);
      }
      if (!greeted) continue;
      clearTimeout(timer);
      timer = setTimeout(() => attempt.abort(), beatMs * SILENT_AFTER_BEATS);
    }
  } finally {
    clearTimeout(timer);
  }
}

/** @param {Parameters<typeof follow>[0]} io @param {AbortSignal} abort @param {() => void} answered */
async function poll(io, abort, answered) {
  const after = io.cursor();
  const query = after ? `?after=${after}&wait=${POLL_WAIT_S}` : "?wait=0";
  const { events, cursor, gap } = await io.call(`events${query}`, { abort, timeoutMs: (POLL_WAIT_S + 15) * 1000 });
  if (!after || gap) io.hello(cursor, false);
  answered();
  io.events(events, cursor);
}
