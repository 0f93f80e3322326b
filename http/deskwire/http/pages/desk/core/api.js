// @ts-check
/**
 * API calls from the page's own origin, with the session's cookie.
 *
 * A call returns the JSON of the response, or throws a `Problem` (the server refused) or `Offline` (no response). A 401 also sets `signedOut`. A 429
 * is thrown at once, with the server's delay in `retryAfterMs`.
 */
import { t } from "./texts.js";
import { signal } from "../vendor/preact.js";

/** The prefix of all addresses: the folder above `/web/…` and `/desk`. */
export const ROOT = new URL("../../../", import.meta.url).pathname;

/** The server refused; `code` is that of the problem document, e.g. `conversation_moved_on`. */
export class Problem extends Error {
  /** @param {number} status @param {any} document @param {string|null} requestId @param {number|null} retryAfterMs */
  constructor(status, document, requestId, retryAfterMs) {
    super(document?.detail ?? document?.title ?? `Answered ${status}.`);
    this.status = status;
    /** @type {string} */
    this.code = document?.code ?? "unknown";
    /** @type {{pointer: string, code: string, message: string}[]} */
    this.errors = document?.errors ?? [];
    this.document = document;
    this.requestId = requestId;
    this.retryAfterMs = retryAfterMs;
  }
}

/** No response: no network, or no server. */
export class Offline extends Error {}

/** True if a call was refused because the session has ended. The page then asks for the password in a dialog. */
export const signedOut = signal(false);

/** The number of calls that were refused because the user's rights have changed. */
export const denied = signal(0);

/** Waits for a new proof of the user's identity: the ways to prove it, and the end. @type {import("../vendor/preact.js").Signal<{methods: string[], done: (proved: boolean) => void}|null>} */
export const proof = signal(null);

/** @type {Promise<boolean>|null} */
let proving = null;
/** Ask the user for a new proof, once for all calls that wait for it. @param {string[]} methods */
export const prove = (methods) => (proving ??= new Promise((done) => (proof.value = { methods, done })).finally(() => (proof.value = proving = null)));

/** The project sent with every call. @type {{project: string|null}} */
export const credentials = { project: null };

/** @returns {string} A new `Idempotency-Key`: random, and ordered by time. */
export function newKey() {
  const random = crypto.getRandomValues(new Uint8Array(12));
  return Date.now().toString(36).padStart(9, "0") + "-" + Array.from(random, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

const MODULE_RETRY_DELAY_MS = 2_000;
/** A busy page loads its modules after this time. */
const IDLE_TIMEOUT_MS = 300;
const idle = () => new Promise((done) => (typeof requestIdleCallback === "function" ? requestIdleCallback(done, { timeout: IDLE_TIMEOUT_MS }) : setTimeout(done)));
/**
 * Load a module once the page is idle, and try again until that succeeds: the first list does not wait for a connection that modules take, and the network
 * may be lost while the page starts.
 * @template T @param {() => Promise<T>} load @returns {Promise<T>}
 */
export const loadModule = (load) => idle().then(load).catch(() => new Promise((done) => setTimeout(done, MODULE_RETRY_DELAY_MS)).then(() => loadModule(load)));

/** Calls fail as `Offline` after this time. */
const CALL_TIMEOUT_MS = 30_000;

/** Return the address of a call, without its host. @param {string} path @param {Record<string, unknown>} [query] */
export function address(path, query) {
  const given = Object.entries(query ?? {}).filter(([, value]) => value !== undefined && value !== null);
  const search = new URLSearchParams(given.map(([name, value]) => [name, String(value)]));
  return ROOT + "v3/" + path + (given.length ? `?${search}` : "");
}

/** @returns {Record<string, string>} */
function projectHeader() {
  return credentials.project ? { project: credentials.project } : {};
}

/** Parse a response as JSON; null if it is empty or no JSON. @param {string} text */
function parseJson(text) {
  try {
    return text ? JSON.parse(text) : null;
  } catch {
    return null;
  }
}

/**
 * Return the `Problem` for an unsuccessful response; a 401 sets `signedOut`.
 * @param {number} status @param {string} text @param {(name: string) => string|null} header @param {string} path
 */
export function problemOf(status, text, header, path) {
  const after = header("retry-after");
  const document = parseJson(text);
  if (status === 401 && !path.startsWith("auth/") && !["invalid_code", "invalid_passkey"].includes(document?.code)) signedOut.value = true;
  if (status === 403) denied.value++;
  const wait = after === null || Number.isNaN(Number(after)) ? null : Number(after) * 1000;
  return new Problem(status, document, header("x-request-id"), wait);
}

/**
 * Call the API. Repeat a call after `Offline` only if it is safe or has a key.
 * @param {string} method
 * @param {string} path  below `/v3/`, e.g. `conversations`
 * @param {{query?: Record<string, unknown>, body?: unknown, key?: string, signal?: AbortSignal, ifMatch?: string|null, ifNoneMatch?: string|null, keepalive?: boolean, proved?: boolean, answered?: (headers: Headers) => void}} [options]
 *   query: undefined and null are left out, arrays are joined with commas. ifMatch: the `ETag` of the last read. ifNoneMatch: `*` if the resource must not exist yet. keepalive: the request outlives the page. answered: gets the headers of the response. proved: set when a call is repeated after a new proof.
 * @returns {Promise<any>}
 */
export async function call(method, path, options = {}) {
  const headers = projectHeader();
  if (options.body !== undefined) headers["content-type"] = "application/json";
  if (options.key) headers["idempotency-key"] = options.key;
  if (options.ifMatch) headers["if-match"] = options.ifMatch;
  if (options.ifNoneMatch) headers["if-none-match"] = options.ifNoneMatch;
  const limit = AbortSignal.timeout(CALL_TIMEOUT_MS);
  const body = options.body === undefined ? undefined : JSON.stringify(options.body);
  let response, text;
  try {
    const stop = options.signal ? AbortSignal.any([options.signal, limit]) : limit;
    response = await fetch(address(path, options.query), { method, headers, body, signal: stop, cache: "no-store", keepalive: options.keepalive });
    text = await response.text();
  } catch (error) {
    options.signal?.throwIfAborted();
    throw new Offline(t.unanswered, { cause: error });
  }
  if (!response.ok) {
    const problem = problemOf(response.status, text, (name) => response.headers.get(name), path);
    if (problem.code === "fresh_proof_required" && !options.proved && (await prove(problem.document.methods))) return call(method, path, { ...options, proved: true });
    throw problem;
  }
  options.answered?.(response.headers);
  return parseJson(text);
}

/** @param {string} path @param {Record<string, unknown>} [query] @param {AbortSignal} [abort] */
export const get = (path, query, abort) => call("GET", path, { query, signal: abort });

/** Repeat a call after each 429, once the delay it names has passed. @template T @param {() => Promise<T>} ask @returns {Promise<T>} */
export async function retryRateLimited(ask) {
  for (;;) {
    try {
      return await ask();
    } catch (error) {
      if (!(error instanceof Problem) || error.status !== 429) throw error;
      await new Promise((done) => setTimeout(done, error.retryAfterMs ?? 1000));
    }
  }
}

/** Return all items of a list, page by page. @param {string} path @param {Record<string, unknown>} [query] @param {number} [most] @returns {Promise<any[]>} */
export async function all(path, query, most = 1000) {
  const items = [];
  /** @type {string|null} */
  let cursor = null;
  do {
    /** @type {{items: any[], nextCursor: string|null}} */
    const page = await retryRateLimited(() => get(path, { ...query, limit: 100, cursor }));
    items.push(...page.items);
    cursor = page.nextCursor;
  } while (cursor && items.length < most);
  return items;
}

/** A value that is loaded on first read, and again when it may have changed. @template T */
export class Resource {
  /** @param {() => Promise<T>} ask @param {T} first  the value until the first load */
  constructor(ask, first) {
    this.ask = ask;
    this.first = first;
    this.content = signal(first);
    this.failed = false;
    this.asked = 0;
  }

  /** The last known value. Reads a signal. */
  get value() {
    if (!this.asked) {
      this.asked = 1;
      queueMicrotask(() => this.load());
    }
    return this.content.value;
  }

  /** Drop the value; the next read loads it again. @param {T} [first] */
  forget(first = this.first) {
    this.asked = 0;
    this.content.value = first;
  }

  /** Load the value again, if it was ever read. Until then, the old value stays. */
  async load() {
    if (!this.asked) return;
    const asked = ++this.asked;
    try {
      const content = await retryRateLimited(this.ask);
      if (asked === this.asked) this.content.value = content;
      this.failed = false;
    } catch {
      this.failed = asked === this.asked;
    }
  }
}
