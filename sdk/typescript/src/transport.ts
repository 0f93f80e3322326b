/** Sends the calls: credentials, retries, timeouts. */

import { APIError, ArgumentError, ConnectionError, DeskwireError, TimeoutError } from "./errors.js";
import { Export, lines } from "./exports.js";
import { PagePromise } from "./pagination.js";
import { environment, inBrowser, pause, randomId } from "./platform.js";
import { serverSentEvents, type ServerSentEvent } from "./sse.js";
import { VERSION } from "./version.js";

export type MaybePromise<T> = T | Promise<T>;

export interface DeskwireOptions {
  /**
   * A server key (`sk_…`), a machine credential (`mk_…`) or a user's access token; a function is called for each request.
   * Default: the variable `DESKWIRE_API_KEY`.
   */
  apiKey?: string | (() => MaybePromise<string>) | undefined;
  /** The address of the service, such as `https://support.example.com`. Default: the variable `DESKWIRE_URL`. */
  baseUrl?: string | undefined;
  /** The project (`prj_…`) of the calls that need one: all calls with an access token or a machine credential. */
  project?: string | undefined;
  /** Time for each attempt in milliseconds. Default 60,000. Exports, downloads and streams: up to the first byte. */
  timeoutMs?: number | undefined;
  /** Number of retries after the first attempt. Default 4. */
  maxRetries?: number | undefined;
  /** A replacement of the global `fetch`. */
  fetch?: typeof globalThis.fetch | undefined;
}

export interface RequestOptions {
  signal?: AbortSignal | undefined;
  timeoutMs?: number | undefined;
  maxRetries?: number | undefined;
  /** Overrides the client's project. */
  project?: string | undefined;
  /** Your own key for calls that take one: the same key never acts twice. Default: a new key for each call. */
  idempotencyKey?: string | undefined;
  /** Further headers, such as `If-Match`. */
  headers?: Record<string, string> | undefined;
  /** Is called with status and headers of the response, for an `ETag` or a request id. */
  onResponse?: ((response: { status: number; headers: Headers; requestId: string | null }) => void) | undefined;
}

export type Query = object;

/** Lines of NDJSON: objects, or text or bytes that have the lines already. */
export type LinesInput<T> = Iterable<T> | AsyncIterable<T> | string | Uint8Array | Blob;

/** A file to upload: a `File`, or its content with a name. */
export type FileInput = (Blob & { readonly name: string }) | { content: Blob | Uint8Array | ArrayBuffer | string; name: string; type?: string };

/** A call, as the generated methods describe it. */
export interface Call {
  /** The name of the method, for messages. */
  name: string;
  method: string;
  path: string;
  query?: Query | undefined;
  body?: unknown;
  lines?: LinesInput<unknown> | undefined;
  form?: { readonly [field: string]: FileInput } | undefined;
  /** True if the call takes an `Idempotency-Key`. */
  idempotent?: boolean;
  /** True if the call takes a credential. */
  credential?: boolean;
  /** True if the call takes the header `project`. */
  project?: boolean;
  headers?: { readonly [name: string]: string | undefined };
}

const TIMEOUT_MS = 60_000;
const RETRIES_MAX = 4;
const RETRY_DELAY_MS = 500; // before the first retry, doubled for each further one
const RETRY_DELAY_MAX_MS = 8_000;
const RETRY_AFTER_MAX_S = 60; // a longer `Retry-After` is for the caller to decide about

/** Return an id as one segment of a path. */
export function segment(name: string, value: string | number): string {
  const text = String(value ?? "");
  // URLs remove dot segments, even encoded ones, so such a call would reach another path.
  if (text === "" || text === "." || text === "..") throw new ArgumentError(`${name} must not be "${text}".`);
  return encodeURIComponent(text);
}

export class Transport {
  readonly baseUrl: string;
  readonly project: string | undefined;
  readonly #options: DeskwireOptions;
  readonly #apiKey: DeskwireOptions["apiKey"];

  constructor(options: DeskwireOptions) {
    this.#options = options;
    this.#apiKey = options.apiKey ?? environment("DESKWIRE_API_KEY");
    this.project = options.project;
    this.baseUrl = base(options.baseUrl ?? environment("DESKWIRE_URL") ?? "");
    if (inBrowser() && typeof this.#apiKey === "string" && /^\s*(sk|mk)_/.test(this.#apiKey)) {
      throw new ArgumentError("A server key or machine credential must not reach a browser: anyone can read it there. Use a user's access token.");
    }
  }

  /** Return the JSON of the response, undefined for 204. */
  async json<T>(call: Call, options?: RequestOptions): Promise<T> {
    return this.#retried(call, options, async (response) => {
      const text = await response.text();
      if (text === "") return undefined as T;
      try {
        return JSON.parse(text) as T;
      } catch (cause) {
        throw new DeskwireError(`The response to ${call.name} is not JSON: ${text.slice(0, 80)}`, { cause });
      }
    });
  }

  /** Return a list, whose pages are fetched as they are read. */
  pages<Body extends { items: readonly unknown[]; nextCursor: string | null }>(
    call: Call,
    options?: RequestOptions,
  ): PagePromise<Body> {
    const fetchPage = (cursor: string | null): Promise<Body> =>
      this.json<Body>(cursor === null ? call : { ...call, query: { ...call.query, after: undefined, before: undefined, cursor } }, options);
    return new PagePromise(fetchPage);
  }

  /** Return an export, whose lines are fetched as they are read. */
  export<T>(call: Call, options?: RequestOptions): Export<T> {
    return new Export<T>(() => this.#body(call, options));
  }

  /** Return the lines of an NDJSON response that has no last line of its own. */
  async *lines<T>(call: Call, options?: RequestOptions): AsyncGenerator<T, void, undefined> {
    yield* lines(await this.#body(call, options)) as AsyncGenerator<T, void, undefined>;
  }

  /** Return the events of a `text/event-stream`. */
  async *serverSentEvents(call: Call, options?: RequestOptions): AsyncGenerator<ServerSentEvent, void, undefined> {
    yield* serverSentEvents(await this.#body(call, options));
  }

  /** Return the response itself, for files and CSV. */
  raw(call: Call, options?: RequestOptions): Promise<Response> {
    return this.#retried(call, options, (response) => Promise.resolve(response));
  }

  async #body(call: Call, options?: RequestOptions): Promise<ReadableStream<Uint8Array>> {
    const { body } = await this.raw(call, options);
    if (body === null) throw new DeskwireError(`The response to ${call.name} has no body.`);
    return body;
  }

  async #retried<T>(call: Call, options: RequestOptions = {}, read: (response: Response) => Promise<T>): Promise<T> {
    const retriesMax = options.maxRetries ?? this.#options.maxRetries ?? RETRIES_MAX;
    const url = this.#url(call);
    const key = call.idempotent ? (options.idempotencyKey ?? (await randomId())) : undefined;
    for (let retries = 0; ; retries++) {
      const body = requestBody(call);
      try {
        return await this.#attempt(url, call, options, key, body, read);
      } catch (error) {
        const delay = retryDelay(error, retries);
        if (delay === null || retries >= retriesMax || !body.repeatable) throw error;
        await pause(delay, options.signal);
      }
    }
  }

  async #attempt<T>(
    url: string,
    call: Call,
    options: RequestOptions,
    key: string | undefined,
    body: RequestBody,
    read: (response: Response) => Promise<T>,
  ): Promise<T> {
    const headers = await this.#headers(call, options, key, body);
    options.signal?.throwIfAborted();
    const timeoutMs = (options.timeoutMs ?? this.#options.timeoutMs ?? TIMEOUT_MS) + waitMs(call);
    const abort = new AbortController();
    const forward = (): void => abort.abort(options.signal?.reason);
    options.signal?.addEventListener("abort", forward, { once: true });
    const timer = setTimeout(() => abort.abort(new TimeoutError(`${call.name}: no response within ${timeoutMs} ms`)), timeoutMs);
    let kept = false;
    try {
      const send = this.#options.fetch ?? globalThis.fetch;
      const response = await send(url, { ...body.init, method: call.method, headers, signal: abort.signal });
      if (!response.ok) throw APIError.of(response.status, response.headers, await response.text());
      options.onResponse?.({ status: response.status, headers: response.headers, requestId: response.headers.get("X-Request-Id") });
      const result = await read(response);
      kept = (result as unknown) === response; // its body is still to be read, so the caller's signal stays connected
      return result;
    } catch (error) {
      if (options.signal?.aborted) throw options.signal.reason;
      if (abort.signal.aborted) throw abort.signal.reason;
      if (error instanceof DeskwireError) throw error;
      throw new ConnectionError(`${call.name}: ${reason(error)}`, { cause: error });
    } finally {
      clearTimeout(timer);
      if (!kept) options.signal?.removeEventListener("abort", forward);
    }
  }

  #url(call: Call): string {
    const query = new URLSearchParams();
    for (const [name, value] of Object.entries(call.query ?? {})) {
      if (value === undefined || value === null) continue;
      query.append(name, value instanceof Date ? value.toISOString() : Array.isArray(value) ? value.join(",") : String(value));
    }
    const text = query.toString();
    return `${this.baseUrl}${call.path}${text && `?${text}`}`;
  }

  /** Return the credential; null in a browser without one, whose calls may have the cookie of a session. */
  async #key(call: Call): Promise<string | null> {
    const given = typeof this.#apiKey === "function" ? await this.#apiKey() : this.#apiKey;
    const key = given?.trim() ?? "";
    if (key === "" && inBrowser()) return null;
    if (key === "") throw new ArgumentError(`${call.name} needs a credential: give \`apiKey\`, or set DESKWIRE_API_KEY.`);
    // The platform's own error would show the credential.
    if (!/^[\x21-\x7e]+$/.test(key)) throw new ArgumentError("The credential has a character that no credential has.");
    return key;
  }

  async #headers(call: Call, options: RequestOptions, key: string | undefined, body: RequestBody): Promise<Headers> {
    const headers = new Headers(options.headers);
    if (call.credential) {
      const key = await this.#key(call);
      if (key !== null) headers.set("Authorization", `Bearer ${key}`);
    }
    const project = options.project ?? this.project;
    if (call.project && project !== undefined) headers.set("project", project);
    for (const [name, value] of Object.entries(call.headers ?? {})) if (value !== undefined) headers.set(name, value);
    if (body.contentType !== undefined) headers.set("Content-Type", body.contentType);
    if (key !== undefined) headers.set("Idempotency-Key", key);
    if (!inBrowser()) headers.set("User-Agent", `deskwire-sdk-typescript/${VERSION}`);
    return headers;
  }
}

/** Return the address without a slash at its end and without `/v3`, which all paths begin with. */
function base(given: string): string {
  let url: URL;
  try {
    url = new URL(given);
  } catch (cause) {
    const instead = given === "" ? ": give it, or set DESKWIRE_URL" : `, not "${given}"`;
    throw new ArgumentError(`baseUrl must be an address such as https://support.example.com${instead}.`, { cause });
  }
  if (!/^https?:$/.test(url.protocol)) throw new ArgumentError(`baseUrl must begin with https:// or http://, not "${given}".`);
  return `${url.origin}${url.pathname.replace(/\/+$/, "").replace(/\/v3$/, "")}`;
}

interface RequestBody {
  init: RequestInit & { duplex?: "half" };
  contentType?: string;
  /** False if the content can be read only once. */
  repeatable: boolean;
}

function requestBody(call: Call): RequestBody {
  if (call.lines !== undefined) return { contentType: "application/x-ndjson", ...linesBody(call.lines) };
  if (call.form !== undefined) return { init: { body: form(call.form) }, repeatable: true };
  if (call.body === undefined) return { init: {}, repeatable: true };
  return { init: { body: JSON.stringify(call.body) }, contentType: "application/json", repeatable: true };
}

function linesBody(input: LinesInput<unknown>): RequestBody {
  if (typeof input === "string" || input instanceof Uint8Array || input instanceof Blob) {
    return { init: { body: input as BodyInit }, repeatable: true };
  }
  if (Array.isArray(input)) {
    return { init: { body: input.map((each) => `${JSON.stringify(each)}\n`).join("") }, repeatable: true };
  }
  const source = Symbol.asyncIterator in input ? input[Symbol.asyncIterator]() : input[Symbol.iterator]();
  const encoder = new TextEncoder();
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      const { done, value } = await source.next();
      if (done) controller.close();
      else controller.enqueue(encoder.encode(`${JSON.stringify(value)}\n`));
    },
    async cancel() {
      await source.return?.();
    },
  });
  return { init: { body, duplex: "half" }, repeatable: false };
}

function form(fields: { readonly [field: string]: FileInput }): FormData {
  const data = new FormData();
  for (const [name, file] of Object.entries(fields)) {
    if (file instanceof Blob) data.append(name, file, file.name);
    else data.append(name, new Blob([file.content as BlobPart], { type: file.type ?? "application/octet-stream" }), file.name);
  }
  return data;
}

/** Return the time before the next attempt, or null if a retry cannot help. */
function retryDelay(error: unknown, retries: number): number | null {
  // The random part keeps clients from returning all at once.
  const jittered = Math.min(RETRY_DELAY_MS * 2 ** retries, RETRY_DELAY_MAX_MS) * (0.5 + Math.random() / 2);
  if (error instanceof ConnectionError) return jittered;
  if (!(error instanceof APIError)) return null;
  const { status, retryAfterS } = error;
  // 409 with Retry-After: the first request under the Idempotency-Key is in progress.
  if (status !== 429 && status < 500 && !(status === 409 && retryAfterS !== null)) return null;
  if (retryAfterS === null) return jittered;
  return retryAfterS > RETRY_AFTER_MAX_S ? null : retryAfterS * 1000 + Math.random() * RETRY_DELAY_MS;
}

/** Return the time for which the service may hold the response back. */
function waitMs(call: Call): number {
  const wait = (call.query as { wait?: unknown } | undefined)?.wait;
  return typeof wait === "number" ? wait * 1000 : 0;
}

/** Return why a request failed; Node's fetch has the reason in `cause`. */
function reason(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error ? `${error.message}: ${error.cause.message || (error.cause as { code?: string }).code}` : error.message;
}
