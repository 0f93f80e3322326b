// @ts-check
/**
 * One stream of events, read by `fetch` for as long as it is wanted: in a worker for all tabs, or in a page.
 *
 * It is dead after 40 s without a byte (the server sends one every 15), tries again with growing and random pauses, and goes
 * on after the newest event that came. It ends for good only if the server says so.
 */
/** @import { Connection } from "./types.js" */

const SILENCE_MS = 40_000;
const PAUSE_MS = 500;
const PAUSE_MAX_MS = 15_000;
const STEADY_MS = 10_000;
const CROWDED_MS = 30_000;

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
export function pause(failures, random) {
  const most = Math.min(PAUSE_MAX_MS, PAUSE_MS * 2 ** (failures - 1));
  return most / 2 + (random * most) / 2;
}

/** What the end of a stream means: whether to go on, and when. @param {{reason: string, retryAfterMs?: number|null}} bye */
export function farewell({ reason, retryAfterMs }) {
  if (reason === "shutdown") return { ended: false, afterMs: retryAfterMs ?? PAUSE_MS };
  if (reason === "too_many_streams") return { ended: false, afterMs: Math.max(retryAfterMs ?? 0, CROWDED_MS) };
  return { ended: true, afterMs: 0 };
}

/** What the server says when it opens no stream: whether to ask again. @param {number} status @param {string} code */
function refused(status, code) {
  if (status === 429 || status === 408 || status >= 500) return null;
  return status === 401 ? "session_ended" : status === 403 ? "permission_lost" : code;
}

/**
 * @typedef {object} Ears
 * @property {(state: Connection) => void} state
 * @property {(hello: any) => void} hello
 * @property {(batch: any[]) => void} events
 * @property {(event: any) => void} passing
 */

export class Stream {
  /** @param {string} url  of the stream, with the project @param {Ears} ears @param {string|null} [cursor] */
  constructor(url, ears, cursor = null) {
    this.url = url;
    this.ears = ears;
    /** @type {Connection} */
    this.state = { state: "connecting", since: Date.now(), cursor, lastEventAt: null, caughtUp: 0, retryAt: null, streamId: null, reason: null };
    this.failures = 0;
    this.closed = false;
    /** @type {() => void} */
    this.wake = () => {};
    /** @type {AbortController|null} */
    this.open = null;
    /** @type {string|null} The event that was the newest when the stream was opened, until it has come. */
    this.until = null;
  }

  /** @param {Partial<Connection>} changes */
  set(changes) {
    const since = changes.state && changes.state !== this.state.state ? Date.now() : this.state.since;
    this.state = { ...this.state, since, ...changes };
    this.ears.state(this.state);
  }

  /** Runs until `close`, or until the server ends it for good. */
  async run() {
    while (!this.closed) {
      const began = Date.now();
      const after = await this.once().catch(() => null);
      if (this.closed || this.state.state === "ended") return;
      this.failures = Date.now() - began > STEADY_MS ? 1 : this.failures + 1;
      const wait = after === null ? pause(this.failures, Math.random()) : after + Math.random() * 500;
      const state = navigator.onLine === false ? "offline" : this.state.cursor || this.failures > 1 ? "reconnecting" : "connecting";
      this.set({ state, retryAt: Date.now() + wait, streamId: null });
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
    } else if (this.state.state !== "live") {
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
  async once() {
    const open = new AbortController();
    this.open = open;
    let timer = setTimeout(() => open.abort(), SILENCE_MS);
    try {
      const after = this.state.cursor ? `&after=${encodeURIComponent(this.state.cursor)}` : "";
      const response = await fetch(this.url + after, { signal: open.signal, cache: "no-store", headers: { accept: "text/event-stream" } });
      if (!response.ok || !response.body) return await this.turnedAway(response);
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      let at = parsing();
      for (;;) {
        const { done, value } = await reader.read();
        if (done) return null;
        clearTimeout(timer);
        timer = setTimeout(() => open.abort(), SILENCE_MS);
        const step = parse(at, value);
        at = step.at;
        const after = this.take(step.found);
        if (after !== null) return after;
      }
    } finally {
      clearTimeout(timer);
      open.abort();
    }
  }

  /** @param {Response} response */
  async turnedAway(response) {
    const problem = await response.json().catch(() => null);
    const reason = refused(response.status, problem?.code ?? "unknown");
    if (reason) this.set({ state: "ended", reason, retryAt: null, streamId: null });
    const after = Number(response.headers.get("retry-after"));
    return after > 0 ? after * 1000 : null;
  }

  /** @param {{id: string, event: string, data: string}[]} found @returns {number|null} As `once`. */
  take(found) {
    const batch = [];
    for (const { id, event, data } of found) {
      const content = JSON.parse(data);
      if (event === "hello") this.greeted(content);
      else if (event === "passing") this.ears.passing(content);
      else if (event === "bye") {
        this.heard(batch);
        const { ended, afterMs } = farewell(content);
        if (ended) this.set({ state: "ended", reason: content.reason, retryAt: null, streamId: null });
        return afterMs;
      } else if (id) batch.push(content);
    }
    this.heard(batch);
    return null;
  }

  /** @param {any} hello */
  greeted(hello) {
    const resumed = Boolean(this.state.cursor) && !hello.gap;
    const cursor = resumed ? this.state.cursor : hello.at;
    this.until = resumed && hello.at > (cursor ?? "") ? hello.at : null;
    this.ears.hello(hello);
    this.set({ state: "live", cursor, streamId: hello.streamId, retryAt: null, reason: null, caughtUp: 0 });
  }

  /** @param {any[]} batch */
  heard(batch) {
    if (!batch.length) return;
    const newest = batch[batch.length - 1].id;
    this.ears.events(batch);
    const missed = this.until ? batch.filter((each) => each.id <= (this.until ?? "")).length : 0;
    if (newest >= (this.until ?? "")) this.until = null;
    this.set({ cursor: newest, lastEventAt: Date.now(), caughtUp: this.state.caughtUp + missed });
  }
}
