// @ts-check
/** Calls of the customer API. The token is sent in `Authorization`, never in an address, and never with cookies. */

/** The service refused; `code` is that of the problem document. */
export class Problem extends Error {
  /** @param {number} status @param {any} document @param {number|null} retryAfterMs */
  constructor(status, document, retryAfterMs = null) {
    super(document?.detail ?? document?.title ?? `Answered ${status}.`);
    this.status = status;
    /** @type {string} */
    this.code = document?.code ?? "unknown";
    /** @type {{pointer: string, code: string, message: string}[]} */
    this.errors = document?.errors ?? [];
    this.document = document;
    this.retryAfterMs = retryAfterMs;
  }
}

/** No response: no network, or no server. */
export class Offline extends Error {}

const CALL_TIMEOUT_MS = 30_000;

/** Return 22 random characters. */
export const randomId = () => btoa(String.fromCharCode(...crypto.getRandomValues(new Uint8Array(16)))).replace(/[+/=]/g, (each) => ({ "+": "-", "/": "_" })[each] ?? "");

/** Return the delay before the next attempt, in ms: exponential, at most 30 s, with jitter. @param {number} failures  from 1 */
export const retryDelay = (failures, random = Math.random()) => Math.min(30_000, 500 * 2 ** failures) * (0.5 + random / 2);

/** @param {Response} response @param {string} text */
function problemOf(response, text) {
  const after = response.headers.get("retry-after");
  let document = null;
  try {
    document = JSON.parse(text);
  } catch {
    // an intermediary answered
  }
  return new Problem(response.status, document, after && Number(after) >= 0 ? Number(after) * 1000 : null);
}

/**
 * @typedef {object} CallOptions
 * @property {unknown} [body]  JSON, or a form
 * @property {string|null} [etag]  for `If-None-Match`; a 304 returns null
 * @property {number} [timeoutMs]
 * @property {AbortSignal} [abort]
 * @property {(response: Response) => unknown} [answered]
 * @property {boolean} [raw]  return the response itself, unread
 */

/**
 * Call the API. Throws Problem or Offline. Solves the challenge of a 429 that has one.
 * @param {string} url @param {string} method @param {string|null} token @param {CallOptions} [options] @returns {Promise<any>}
 */
export async function call(url, method, token, options = {}) {
  try {
    return await callOnce(url, method, token, options);
  } catch (error) {
    const challenge = error instanceof Problem && error.status === 429 && error.document?.challenge;
    if (!challenge) throw error;
    const { solve } = await import("./proof.js");
    const proof = await solve(challenge);
    if (!proof) throw error;
    return callOnce(url, method, token, { ...options, body: { .../** @type {object} */ (options.body), proof } });
  }
}

/** @param {string} url @param {string} method @param {string|null} token @param {CallOptions} options */
async function callOnce(url, method, token, { body, etag, timeoutMs = CALL_TIMEOUT_MS, abort, answered, raw }) {
  /** @type {Record<string, string>} */
  const headers = {};
  const form = body instanceof FormData;
  if (token) headers["authorization"] = `Bearer ${token}`;
  if (body !== undefined && !form) headers["content-type"] = "application/json";
  if (etag) headers["if-none-match"] = etag;
  if (raw) headers["accept"] = "text/event-stream";
  const stop = new AbortController();
  const onAbort = () => stop.abort();
  abort?.addEventListener("abort", onAbort);
  const timer = setTimeout(onAbort, timeoutMs);
  try {
    if (abort?.aborted) onAbort();
    const content = form ? body : body === undefined ? undefined : JSON.stringify(body);
    const response = await fetch(url, { method, headers, body: content, signal: raw ? abort : stop.signal, credentials: "omit", cache: token ? "no-store" : "no-cache" });
    if (raw && response.ok) return response;
    const text = await response.text();
    if (!response.ok && response.status !== 304) throw problemOf(response, text);
    answered?.(response);
    return text ? JSON.parse(text) : null;
  } catch (error) {
    if (error instanceof Problem) throw error;
    throw new Offline("No response.", { cause: error });
  } finally {
    clearTimeout(timer);
    abort?.removeEventListener("abort", onAbort);
  }
}
