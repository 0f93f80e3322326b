// @ts-check
/**
 * Calls of the API, from the page's own origin with the session's cookie.
 *
 * A call answers with the JSON of the response, or throws a `Problem` (the server refused) or `Offline` (nobody
 * answered). A 401 besides tells `signedOut`; a 429 waits nowhere: its `retryAfterMs` says how long.
 */
import { signal } from "./vendor/preact.js";

/** The prefix of all addresses: the folder above `/web/…` and `/desk`. */
export const ROOT = new URL("../../", import.meta.url).pathname;

/** The server refused: `code` is that of the problem document, e.g. `conversation_moved_on`. */
export class Problem extends Error {
  /** @param {number} status @param {any} document @param {string|null} requestId @param {number|null} retryAfterMs */
  constructor(status, document, requestId, retryAfterMs) {
    super(document?.detail ?? document?.title ?? `Answered ${status}.`);
    this.status = status;
    /** @type {string} */
    this.code = document?.code ?? "unknown";
    /** @type {{path: string, code: string, message: string}[]} */
    this.errors = document?.errors ?? [];
    this.document = document;
    this.requestId = requestId;
    this.retryAfterMs = retryAfterMs;
  }
}

/** Nobody answered: no network, or no server. */
export class Offline extends Error {}

/** Whether a call was refused because nobody is signed in. The page then asks for the password above itself. */
export const signedOut = signal(false);

/** @type {{project: string|null, token: string|null}} */
export const credentials = { project: null, token: null };

/** @returns {string} A new key for `Idempotency-Key`; random, and ordered by time. */
export function newKey() {
  const random = crypto.getRandomValues(new Uint8Array(12));
  return Date.now().toString(36).padStart(9, "0") + "-" + Array.from(random, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/**
 * Calls the API. Only safe or keyed calls may be made again after `Offline`.
 *
 * @param {string} method
 * @param {string} path  from `/v3/` on
 * @param {{query?: Record<string, unknown>, body?: unknown, key?: string, signal?: AbortSignal}} [options]
 *   query: undefined and null are left out, arrays are joined with commas.
 * @returns {Promise<any>}
 */
export async function call(method, path, options = {}) {
  throw new Error(`not yet: ${method} ${path} ${options}`);
}

/** @param {string} path @param {Record<string, unknown>} [query] @param {AbortSignal} [abort] */
export const get = (path, query, abort) => call("GET", path, { query, signal: abort });

/**
 * Uploads a file. `progress` is called with 0 to 1.
 *
 * @param {Blob} file @param {string} name @param {(progress: number) => void} [progress] @param {AbortSignal} [abort]
 * @returns {Promise<{id: string, name: string, type: string, size: number, url: string}>}
 */
export async function upload(file, name, progress, abort) {
  throw new Error(`not yet: ${file} ${name} ${progress} ${abort}`);
}
