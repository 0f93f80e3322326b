// @ts-check
/**
 * One stream of events, read by `fetch` for as long as it is wanted: in a worker for all tabs, or in a page.
 *
 * It asks for a heartbeat each second. Without a byte for two and a half of those it is `silent`: whoever shows the connection
 * says so, and takes that back with the next byte. After twelve it is given up and opened again, with growing and random
 * pauses, and goes on after the newest event that came. It ends for good only if the server says so.
 */
/** @import { Connection } from "./types.js" */

/** The heartbeat to ask for (RFC 7240); a server that knows none sends one every 15 s, and says so in `hello`. */
const PREFER = "heartbeat=1";
const HEARTBEAT_MS = 15_000;
/** How many heartbeats may be missed before the stream counts as silent, and before it is given up. */
const SILENT_AFTER_BEATS = 2.5;
const DEAD_AFTER_MS = 12_000;
const SILENCE_CHECK_INTERVAL_MS = 250;
/** How long the first byte of an answer may take: a server under load is not asked again because of that load. */
const FIRST_BYTE_TIMEOUT_MS = 40_000;
const RETRY_DELAY_MIN_MS = 500;
const RETRY_DELAY_MAX_MS = 15_000;
const STABLE_AFTER_MS = 10_000;
const TOO_MANY_STREAMS_DELAY_MS = 30_000;

/** Where a parser of server-sent events is; see `parse`. @typedef {{rest: string, id: string, event: string, data: string[]}} Parsing */

/** @returns {Parsing} */
export const parsing = () => ({ rest: "", id: "", event: "", data: [] });

/**
 * What a piece of a stream completes. Comments tell nothing but that somebody is there.
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

/** How long to wait before another attempt, in milliseconds. @param {number} failures  one after the other, from 1 @param {number} random  0 to 1 */
export function retryDelay(failures, random) {
  const most = Math.min(RETRY_DELAY_MAX_MS, RETRY_DELAY_MIN_MS * 2 ** (failures - 1));
  return most / 2 + (random * most) / 2;
}

/** What the end of a stream means: whether to go on, and when. @param {{reason: string, retryAfterMs?: number|null}} bye */
export function afterBye({ reason, retryAfterMs }) {
  if (reason === "shutdown") return { ended: false, afterMs: retryAfterMs ?? RETRY_DELAY_MIN_MS };
  if (reason === "too_many_streams") return { ended: false, afterMs: Math.max(retryAfterMs ?? 0, TOO_MANY_STREAMS_DELAY_MS) };
  return { ended: true, afterMs: 0 };
}

/** Looks whether anything has come, and says when nothing has. */
class SilenceMonitor {
  /** @param {(since: number|null) => void} changed  gets the time of the last byte, null when one has come @param {() => void} dead */
  constructor(changed, dead) {
    this.changed = changed;
    this.dead = dead;
    this.lastAt = this.lookedAt = Date.now();
    this.silent = false;
    this.opened = false;
    this.beatMs = HEARTBEAT_MS;
    this.timer = setInterval(() => this.check(Date.now()), SILENCE_CHECK_INTERVAL_MS);
  }

  /** Something has come. */
  received() {
    this.lastAt = Date.now();
    this.opened = true;
    if (this.silent) this.changed(null);
    this.silent = false;
  }

  /** @param {number} now */
  check(now) {
    const late = now - this.lookedAt > 4 * SILENCE_CHECK_INTERVAL_MS; // this side has slept: what came meanwhile is read first
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

/** What the server says when it opens no stream: whether to ask again. @param {number} status @param {string} code */
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
  /** @param {string} url  of the stream, with the project @param {StreamListener} listener @param {string|null} [cursor] */
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
    /** @type {string|null} The event that was the newest when the stream was opened, until it has come. */
    this.until = null;
  }

  /** @param {Partial<Connection>} changes */
  set(changes) {
    const since = changes.state && changes.state !== this.state.state ? Date.now() : this.state.since;
    this.state = { ...this.state, since, ...changes };
    this.listener.state(this.state);
  }

  /** Runs until `close`, or until the server ends it for good. */
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

  /** Tries at once. A stream that seems to live is opened anew: whoever asks has a reason. */
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

  /** Opens it once, and reads until it ends. @returns {Promise<number|null>} How long to wait if the server said so, in ms. */
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

  /** @param {{id: string, event: string, data: string}[]} found @returns {number|null} As `once`. */
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
