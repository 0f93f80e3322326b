// @ts-check
/**
 * One event stream, read by `fetch`: in a worker for all tabs, or in a page.
 *
 * It requests a heartbeat each second. After 2.5 s without data it is `silent`, and the page says so until the next byte. After 12 s it is closed and
 * reopened, with exponential, random delays, and resumes after the newest event. It ends for good only if the server says so.
 */
/** @import { Connection } from "./types.js" */

/** The requested heartbeat (RFC 7240). A server that ignores it sends one every 15 s, as `hello` says. */
const PREFER = "heartbeat=1";
const HEARTBEAT_MS = 15_000;
/** The number of missed heartbeats after which the stream counts as silent. */
const SILENT_AFTER_BEATS = 2.5;
const DEAD_AFTER_MS = 12_000;
const SILENCE_CHECK_INTERVAL_MS = 250;
/** Longer than the other limits, so that a server under load is not asked again because of its load. */
const FIRST_BYTE_TIMEOUT_MS = 40_000;
const RETRY_DELAY_MIN_MS = 500;
const RETRY_DELAY_MAX_MS = 15_000;
const STABLE_AFTER_MS = 10_000;
const TOO_MANY_STREAMS_DELAY_MS = 30_000;

/** The state of a parser of server-sent events; see `parse`. @typedef {{rest: string, id: string, event: string, data: string[]}} Parsing */

/** @returns {Parsing} */
export const parsing = () => ({ rest: "", id: "", event: "", data: [] });

/**
 * Parse a chunk, and return the events it completes. Comments only show that the connection is alive.
 * @param {Parsing} at @param {string} text @returns {{at: Parsing, found: {id: string, event: string, data: string}[]}}
 */
export function parse(at, text) {
  const lines = (at.rest + text).split("\n");
  const next = { ...at, data: [...at.data], rest: lines.pop() ?? "" };
  const found = [];
  for (const raw of lines) {
    const line = raw.endsWith("\r") ? raw.slice(0, -1) : raw;
    if (line === "") {
      if (next.data.length) found.push({ id: next.id, event: next.event || "message", data: next.data.join("\n") });
      Object.assign(next, { id: "", event: "", data: [] });
    } else if (line.startsWith("data:")) next.data.push(line.slice(line[5] === " " ? 6 : 5));
    else if (line.startsWith("id:")) next.id = line.slice(3).trim();
    else if (line.startsWith("event:")) next.event = line.slice(6).trim();
  }
  return { at: next, found };
}

/** Return the delay before the next attempt, in ms. @param {number} failures  consecutive failures, from 1 @param {number} random  0 to 1 */
export function retryDelay(failures, random) {
  const most = Math.min(RETRY_DELAY_MAX_MS, RETRY_DELAY_MIN_MS * 2 ** (failures - 1));
  return most / 2 + (random * most) / 2;
}

/** Return whether a `bye` ends the stream, and the delay before reopening it. @param {{reason: string, retryAfterMs?: number|null}} bye */
export function afterBye({ reason, retryAfterMs }) {
  if (reason === "shutdown") return { ended: false, afterMs: retryAfterMs ?? RETRY_DELAY_MIN_MS };
  if (reason === "too_many_streams") return { ended: false, afterMs: Math.max(retryAfterMs ?? 0, TOO_MANY_STREAMS_DELAY_MS) };
  return { ended: true, afterMs: 0 };
}

/** Watches for silence on the stream. */
class SilenceMonitor {
  /** @param {(since: number|null) => void} changed  gets the time of the last byte; null when data arrives again @param {() => void} dead */
  constructor(changed, dead) {
    this.changed = changed;
    this.dead = dead;
    this.lastAt = this.lookedAt = Date.now();
    this.silent = false;
    this.opened = false;
    this.beatMs = HEARTBEAT_MS;
    this.timer = setInterval(() => this.check(Date.now()), SILENCE_CHECK_INTERVAL_MS);
  }

  /** Note that data has arrived. */
  received() {
    this.lastAt = Date.now();
    this.opened = true;
    if (this.silent) this.changed(null);
    this.silent = false;
  }

  /** @param {number} now */
  check(now) {
    const late = now - this.lookedAt > 4 * SILENCE_CHECK_INTERVAL_MS; // the timer was late, so this side has slept: read buffered data first
    this.lookedAt = now;
    if (late) return;
    const quiet = now - this.lastAt;
    if (quiet > (this.opened ? Math.max(DEAD_AFTER_MS, this.beatMs * SILENT_AFTER_BEATS) : FIRST_BYTE_TIMEOUT_MS)) this.dead();
    else if (this.opened && !this.silent && quiet > this.beatMs * SILENT_AFTER_BEATS) {
      this.silent = true;
      this.changed(this.lastAt);
    }
  }

  end() {
    clearInterval(this.timer);
  }
}

/** Return why a refused stream has ended; null to retry. @param {number} status @param {string} code */
function endReason(status, code) {
  if (status === 429 || status === 408 || status >= 500) return null;
  return status === 401 ? "session_ended" : status === 403 ? "permission_lost" : code;
}

/**
 * @typedef {object} StreamListener
 * @property {(state: Connection) => void} state
 * @property {(hello: any) => void} hello
 * @property {(batch: any[]) => void} events
 * @property {(event: any) => void} ephemeral
 */

export class Stream {
  /** @param {string} url  the stream's, with the project @param {StreamListener} listener @param {string|null} [cursor] */
  constructor(url, listener, cursor = null) {
    this.url = url;
    this.listener = listener;
    /** @type {Connection} */
    this.state = { state: "connecting", since: Date.now(), cursor, lastEventAt: null, caughtUp: 0, retryAt: null, streamId: null, reason: null, silentSince: null };
    this.failures = 0;
    this.closed = false;
    /** @type {() => void} */
    this.wake = () => {};
    /** @type {AbortController|null} */
    this.open = null;
    /** @type {SilenceMonitor|null} */
    this.silence = null;
    /** @type {string|null} The newest event when the stream was opened, until it arrives. */
    this.until = null;
  }

  /** @param {Partial<Connection>} changes */
  set(changes) {
    const since = changes.state && changes.state !== this.state.state ? Date.now() : this.state.since;
    this.state = { ...this.state, since, ...changes };
    this.listener.state(this.state);
  }

  /** Run until `close`, or until the server ends the stream for good. */
  async run() {
    while (!this.closed) {
      const began = Date.now();
      const after = await this.readOnce().catch(() => null);
      if (this.closed || this.state.state === "ended") return;
      this.failures = Date.now() - began > STABLE_AFTER_MS ? 1 : this.failures + 1;
      const wait = after === null ? retryDelay(this.failures, Math.random()) : after + Math.random() * 500;
      const state = navigator.onLine === false ? "offline" : this.state.cursor || this.failures > 1 ? "reconnecting" : "connecting";
      this.set({ state, retryAt: Date.now() + wait, streamId: null, silentSince: null });
      await this.sleep(wait);
    }
  }

  /** @param {number} ms */
  sleep(ms) {
    return new Promise((done) => {
      const timer = setTimeout(done, ms);
      this.wake = () => (clearTimeout(timer), done(undefined));
    });
  }

  /** Reconnect at once, even if the stream seems to be live but silent. */
  retry() {
    this.failures = 0;
    if (this.state.state === "ended" && !this.closed) {
      this.set({ state: "reconnecting", reason: null });
      void this.run();
    } else if (this.state.state !== "live" || this.state.silentSince) {
      this.open?.abort();
      this.wake();
    }
  }

  close() {
    this.closed = true;
    this.open?.abort();
    this.wake();
  }

  /** Open the stream once, and read until it ends. @returns {Promise<number|null>} The server's delay in ms, if any. */
  async readOnce() {
    const open = new AbortController();
    this.open = open;
    this.silence = new SilenceMonitor((silentSince) => this.set({ silentSince }), () => open.abort());
    try {
      const after = this.state.cursor ? `&after=${encodeURIComponent(this.state.cursor)}` : "";
      const response = await fetch(this.url + after, { signal: open.signal, cache: "no-store", headers: { accept: "text/event-stream", prefer: PREFER } });
      if (!response.ok || !response.body) return await this.onRefusal(response);
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      let at = parsing();
      for (;;) {
        const { done, value } = await reader.read();
        if (done) return null;
        this.silence.received();
        const step = parse(at, value);
        at = step.at;
        const after = this.take(step.found);
        if (after !== null) return after;
      }
    } finally {
      this.silence.end();
      open.abort();
    }
  }

  /** @param {Response} response */
  async onRefusal(response) {
    const problem = await response.json().catch(() => null);
    const reason = endReason(response.status, problem?.code ?? "unknown");
    if (reason) this.set({ state: "ended", reason, retryAt: null, streamId: null, silentSince: null });
    const after = Number(response.headers.get("retry-after"));
    return after > 0 ? after * 1000 : null;
  }

  /** @param {{id: string, event: string, data: string}[]} found @returns {number|null} As `readOnce`. */
  take(found) {
    const batch = [];
    for (const { id, event, data } of found) {
      const content = JSON.parse(data);
      if (event === "hello") this.onHello(content);
      else if (event === "passing") this.listener.ephemeral(content);
      else if (event === "bye") {
        this.deliver(batch);
        const { ended, afterMs } = afterBye(content);
        if (ended) this.set({ state: "ended", reason: content.reason, retryAt: null, streamId: null, silentSince: null });
        return afterMs;
      } else if (id) batch.push(content);
    }
    this.deliver(batch);
    return null;
  }

  /** @param {any} hello */
  onHello(hello) {
    const resumed = Boolean(this.state.cursor) && !hello.gap;
    const cursor = resumed ? this.state.cursor : hello.at;
    this.until = resumed && hello.at > (cursor ?? "") ? hello.at : null;
    if (this.silence && hello.heartbeatS) this.silence.beatMs = hello.heartbeatS * 1000;
    this.listener.hello(hello);
    this.set({ state: "live", cursor, streamId: hello.streamId, retryAt: null, reason: null, caughtUp: 0 });
  }

  /** @param {any[]} batch */
  deliver(batch) {
    if (!batch.length) return;
    const newest = batch[batch.length - 1].id;
    this.listener.events(batch);
    const missed = this.until ? batch.filter((each) => each.id <= (this.until ?? "")).length : 0;
    if (newest >= (this.until ?? "")) this.until = null;
    this.set({ cursor: newest, lastEventAt: Date.now(), caughtUp: this.state.caughtUp + missed });
  }
}
