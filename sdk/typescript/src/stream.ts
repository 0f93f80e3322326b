/**
 * Follows a channel of the realtime stream over the standard WebSocket.
 *
 * The protocol is that of Pusher Channels 7 (docs/stream-protocol.md). The service keeps the position of the consumer:
 * it continues after the last event that arrived here. Close codes decide about the return: 4000 to 4099 end the stream,
 * 4200 to 4299 reconnect at once, all others after a growing delay.
 */

import type { Deskwire } from "./client.js";
import { APIError, ArgumentError, ConnectionError, DeskwireError, isOutage } from "./errors.js";
import { pause, randomId } from "./platform.js";
import type { MaybePromise } from "./transport.js";
import type { DeskwireEvent } from "./types.js";

/** Events were missed that the stream does not send: read the feed after your last event, or rebuild your copy. */
export interface StreamGap {
  type: "stream.gap";
  /** The event after which the stream continues, or null. */
  resumedAfter: string | null;
}

export type StreamItem = DeskwireEvent | StreamGap;

/** `standby`: another consumer has the channel; this one takes it when it is free. */
export type StreamState = "connecting" | "subscribed" | "standby" | "closed";

/** The stream ended and does not reconnect: a takeover, a revoked key, a removed project, or a refused subscription. */
export class StreamEndedError extends DeskwireError {
  /** The close code, such as 4009, or the status of the refused subscription. */
  readonly code: number;

  constructor(code: number, reason: string) {
    super(`The stream ended with ${code}: ${reason || "no reason given"}`);
    this.code = code;
  }
}

/** The request for an authorization, as `POST /v3/s2s/stream/auth` takes it. */
export interface SubscriptionRequest {
  socket_id: string;
  channel_name: string;
  consumerId: string;
  resume: string;
  typingEvents: boolean;
}

export type Authorizer = (request: SubscriptionRequest) => Promise<{ auth: string }>;

/** Keeps the id of the last event that was processed, so that a restarted process continues after it. */
export interface StreamCursor {
  load(): MaybePromise<string | null>;
  save(eventId: string): MaybePromise<void>;
}

/** The part of the standard WebSocket that the stream uses; the class of the package `ws` has it, too. */
export interface WebSocketLike {
  send(data: string): void;
  close(code?: number, reason?: string): void;
  onmessage: ((event: any) => void) | null;
  onclose: ((event: any) => void) | null;
  onerror: ((event: any) => void) | null;
}

export interface EventStreamOptions {
  /** A client with a server key: it finds the stream's key and authorizes. Only on a server. */
  client?: Deskwire | undefined;
  /** In a browser: the address of a page of your backend that authorizes, or a function. */
  authorize?: string | URL | Authorizer | undefined;
  /** The address of the service. Default: that of the client. */
  baseUrl?: string | undefined;
  /** The stream's key, from `project.get()`. Default: that of the client's project. */
  streamKey?: string | undefined;
  /** `private-project-…`, `private-conversation-…` or `private-contact-…`. Default: the client's project. */
  channel?: string | undefined;
  /** The name of this consumer. Default: a new one for each stream. A known one takes over from its namesake. */
  consumerId?: string | undefined;
  /** Where to start: `auto` (default), `live`, or the id of an event. */
  resume?: string | undefined;
  /** Keeps the last processed event over restarts; goes before `resume`. */
  cursor?: StreamCursor | undefined;
  /** Whether typing events are sent. Default false. */
  typingEvents?: boolean | undefined;
  /** Number of unread events at which the connection is closed until they are read. Default 1,000. */
  bufferMax?: number | undefined;
  /** The WebSocket class. Default: the global one, which Node has from version 22. */
  webSocket?: (new (url: string) => WebSocketLike) | undefined;
  signal?: AbortSignal | undefined;
  /** Is called when the state changes; `reason` is that of the service, where it gave one. */
  onState?: ((state: StreamState, reason: string | null) => void) | undefined;
}

const BUFFER_MAX = 1000;
const RECENT_MAX = 10_000; // ids of events, to skip those that come twice after a reconnect
const RETRY_DELAY_MS = 1000;
const RETRY_DELAY_MAX_MS = 30_000;
const CONNECT_TIMEOUT_MS = 30_000;
const PONG_TIMEOUT_MS = 30_000;
const ACTIVITY_TIMEOUT_S = 30; // of the server; its first message has the value in force

/** The end of a connection. */
interface End {
  code: number;
  reason: string;
  /** True if the channel was subscribed. */
  subscribed: boolean;
  /** True if this side left: events that arrived afterwards were not taken. */
  left: boolean;
}

interface Target {
  url: string;
  channel: string;
  authorize: Authorizer;
}

export class EventStream implements AsyncIterable<StreamItem> {
  readonly #options: EventStreamOptions;
  readonly #abort = new AbortController();
  readonly #queue = new ItemQueue();
  readonly #recent = new Set<string>();
  #consumerId: string;
  #resume = "auto";
  #lastId: string | null = null;
  #state: StreamState = "connecting";
  #started = false;
  #connection: Connection | null = null;
  #channel = "";

  /** Throws `ArgumentError` if an option is missing. */
  constructor(options: EventStreamOptions) {
    if (!options.client && !(options.authorize && options.baseUrl && options.streamKey && options.channel)) {
      throw new ArgumentError("EventStream needs a `client`, or `authorize`, `baseUrl`, `streamKey` and `channel`.");
    }
    if (!options.webSocket && typeof WebSocket === "undefined") {
      throw new ArgumentError("This platform has no WebSocket: give one as `webSocket`, such as that of the package ws.");
    }
    this.#options = options;
    this.#consumerId = options.consumerId ?? "";
  }

  get state(): StreamState {
    return this.#state;
  }

  /** The name of this consumer; empty before the first connection if none was given. */
  get consumerId(): string {
    return this.#consumerId;
  }

  /** End the stream; its iteration ends without an error. */
  close(): void {
    const connection = this.#connection;
    // Frees the channel at once; a connection that only ends keeps it for its consumer for a minute.
    if (connection?.subscribed) connection.send("pusher:unsubscribe", { channel: this.#channel });
    connection?.leave("closed");
    this.#abort.abort();
    this.#queue.end();
    this.#change("closed");
  }

  /**
   * Yield the events as they come; the stream is closed when the iteration ends.
   *
   * Throws `StreamEndedError` if the service ended the stream, or an `APIError` if it refused the authorization.
   */
  async *[Symbol.asyncIterator](): AsyncGenerator<StreamItem, void, undefined> {
    if (this.#started) throw new ArgumentError("A stream can be iterated once.");
    this.#started = true;
    const stop = (): void => this.close();
    this.#options.signal?.addEventListener("abort", stop, { once: true });
    if (this.#options.signal?.aborted) stop();
    void this.#run().catch((error: unknown) => this.#queue.end(error));
    try {
      for (;;) {
        const item = await this.#queue.next();
        if (item === null) return;
        yield item;
        // The caller asks for the next item: it has processed this one.
        if (isStored(item)) await this.#options.cursor?.save(item.id);
      }
    } finally {
      this.#options.signal?.removeEventListener("abort", stop);
      this.close();
    }
  }

  /** Connect again and again until the stream is closed, or until it may not come back. */
  async #run(): Promise<void> {
    this.#consumerId ||= `sdk-${await randomId()}`;
    this.#resume = (await this.#options.cursor?.load()) ?? this.#options.resume ?? "auto";
    let target: Target | null = null;
    for (let failures = 0; !this.#abort.signal.aborted; failures++) {
      this.#change("connecting");
      let end: End;
      try {
        target ??= await this.#target();
        if (this.#abort.signal.aborted) return;
        end = await this.#connect(target);
      } catch (error) {
        if (this.#abort.signal.aborted) return;
        if (!isOutage(error)) throw error;
        end = { code: 0, reason: (error as Error).message, subscribed: false, left: true };
      }
      if (this.#abort.signal.aborted) return;
      if ((end.code >= 4000 && end.code <= 4099) || end.code >= 4300) throw new StreamEndedError(end.code, end.reason);
      if (end.subscribed) failures = 0;
      this.#change("connecting", end.reason || null);
      // The service counts events as arrived that came after this side had left, so the position is named.
      if (end.left && this.#lastId !== null) this.#resume = this.#lastId;
      await this.#queue.drained(this.#bufferMax / 2);
      const atOnce = end.code >= 4200 && end.code <= 4299 && failures === 0;
      if (!atOnce) await pause(retryDelay(failures), this.#abort.signal).catch(() => undefined);
    }
  }

  get #bufferMax(): number {
    return this.#options.bufferMax ?? BUFFER_MAX;
  }

  #change(state: StreamState, reason: string | null = null): void {
    if (this.#state === "closed" || (state === this.#state && reason === null)) return;
    this.#state = state;
    this.#options.onState?.(state, reason);
  }

  async #target(): Promise<Target> {
    const { client, channel, streamKey } = this.#options;
    const project = channel && streamKey ? null : await client?.project.get({ signal: this.#abort.signal });
    const address = new URL(this.#options.baseUrl ?? client?.baseUrl ?? "");
    address.protocol = address.protocol === "https:" ? "wss:" : "ws:";
    const path = address.pathname.replace(/\/+$/, "").replace(/\/v3$/, "");
    const key = encodeURIComponent(streamKey ?? project?.streamKey ?? "");
    return {
      url: `${address.origin}${path}/app/${key}?protocol=7&client=deskwire-sdk`,
      channel: channel ?? `private-project-${project?.id}`,
      authorize: this.#authorizer(),
    };
  }

  #authorizer(): Authorizer {
    const { authorize, client } = this.#options;
    const { signal } = this.#abort;
    if (typeof authorize === "function") return authorize;
    if (authorize !== undefined) return (request) => authorizeAt(authorize, request, signal);
    return (request) => (client as Deskwire).stream.authorize(request, { signal });
  }

  /** Hold one connection until it ends. Throws if the subscription is refused for good. */
  #connect(target: Target): Promise<End> {
    return new Promise((resolve, reject) => {
      const connection: Connection = new Connection(new (this.#options.webSocket ?? WebSocket)(target.url), {
        established: async (socketId) => {
          const { auth } = await target.authorize(this.#request(target, socketId));
          connection.send("pusher:subscribe", { channel: target.channel, auth });
        },
        message: (event, data) => this.#take(connection, event, data),
        ended: resolve,
        failed: reject,
      });
      this.#connection = connection;
      this.#channel = target.channel;
    });
  }

  #request({ channel }: Target, socketId: string): SubscriptionRequest {
    return {
      socket_id: socketId,
      channel_name: channel,
      consumerId: this.#consumerId,
      resume: this.#resume,
      typingEvents: this.#options.typingEvents ?? false,
    };
  }

  #take(connection: Connection, event: string, data: unknown): void {
    if (event === "pusher_internal:subscription_succeeded") return this.#subscribed(connection, data as { resumedAfter?: string | null; gap?: boolean });
    if (event === "pusher:subscription_error") return this.#refused(connection, data as { status?: number; error?: string });
    if (event.startsWith("pusher")) return;
    const item = data as DeskwireEvent;
    if (isStored(item)) {
      if (this.#recent.has(item.id)) return;
      this.#lastId = item.id;
      if (this.#recent.add(item.id).size > RECENT_MAX) this.#recent.delete(this.#recent.values().next().value as string);
    }
    this.#queue.push(item);
    if (this.#queue.size >= this.#bufferMax) connection.leave(`${this.#queue.size} events are unread`);
  }

  #subscribed(connection: Connection, { resumedAfter = null, gap = false }: { resumedAfter?: string | null; gap?: boolean }): void {
    connection.subscribed = true;
    this.#resume = "auto"; // from now on the service knows the position
    if (gap) this.#queue.push({ type: "stream.gap", resumedAfter });
    this.#change("subscribed");
  }

  #refused(connection: Connection, { status = 0, error = "" }: { status?: number; error?: string }): void {
    if (status === 409) return this.#change("standby", error); // the service closes with 4100 when the channel is free
    if (status === 429 || status >= 500) return connection.leave(error);
    connection.fail(new StreamEndedError(status, error));
  }
}

interface Handlers {
  established(socketId: string): Promise<void>;
  message(event: string, data: unknown): void;
  ended(end: End): void;
  failed(error: unknown): void;
}

/** A connection: its messages, its heartbeat and its end. */
class Connection {
  subscribed = false;
  readonly #socket: WebSocketLike;
  readonly #handlers: Handlers;
  #timer: ReturnType<typeof setTimeout>;
  #activityTimeoutMs = ACTIVITY_TIMEOUT_S * 1000;
  #error: { code: number; message: string } | null = null;
  #over = false;

  constructor(socket: WebSocketLike, handlers: Handlers) {
    this.#socket = socket;
    this.#handlers = handlers;
    this.#timer = setTimeout(() => this.leave("no connection in time"), CONNECT_TIMEOUT_MS);
    socket.onmessage = ({ data }: { data: unknown }) => this.#tryToReceive(String(data));
    socket.onerror = () => undefined; // a close follows
    socket.onclose = ({ code, reason }: { code: number; reason: string }) => {
      this.#end({ code: this.#error?.code ?? code, reason: this.#error?.message || String(reason ?? ""), left: false });
    };
  }

  send(event: string, data: unknown): void {
    if (!this.#over) this.#socket.send(JSON.stringify({ event, data }));
  }

  /** Leave the connection; the stream connects again. */
  leave(reason: string): void {
    this.#end({ code: 0, reason, left: true });
    this.#socket.close(1000);
  }

  /** Leave the connection; the stream ends with an error. */
  fail(error: unknown): void {
    if (this.#over) return;
    this.#stop();
    this.#socket.close(1000);
    this.#handlers.failed(error);
  }

  #end(end: Omit<End, "subscribed">): void {
    if (this.#over) return;
    this.#stop();
    this.#handlers.ended({ ...end, subscribed: this.subscribed });
  }

  #stop(): void {
    this.#over = true;
    clearTimeout(this.#timer);
  }

  #tryToReceive(text: string): void {
    try {
      if (!this.#over) this.#receive(text);
    } catch (error) {
      // Thrown here, it would end the process instead of the iteration.
      if (error instanceof SyntaxError) this.leave("a message is not JSON");
      else this.fail(error);
    }
  }

  #receive(text: string): void {
    this.#watch();
    const { event, data } = JSON.parse(text) as { event: string; data?: unknown };
    const content: unknown = typeof data === "string" ? JSON.parse(data || "{}") : data;
    if (event === "pusher:connection_established") return this.#establish(content as { socket_id: string; activity_timeout?: number });
    if (event === "pusher:ping") return this.send("pusher:pong", {});
    if (event === "pusher:error") {
      const { code, message } = content as { code?: number | null; message?: string };
      if (code) this.#error = { code, message: message ?? "" }; // the close follows; some platforms lose its code
      return;
    }
    this.#handlers.message(event, content);
  }

  #establish({ socket_id, activity_timeout }: { socket_id: string; activity_timeout?: number }): void {
    if (activity_timeout) this.#activityTimeoutMs = activity_timeout * 1000;
    this.#watch();
    this.#handlers.established(socket_id).catch((error: unknown) => {
      if (isOutage(error)) this.leave((error as Error).message);
      else this.fail(error);
    });
  }

  /** Ask for a sign of life after a silence, and leave without an answer. */
  #watch(): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      this.send("pusher:ping", {});
      this.#timer = setTimeout(() => this.leave("no answer to a ping"), PONG_TIMEOUT_MS);
    }, this.#activityTimeoutMs);
  }
}

/** Items in their order, for one reader. */
class ItemQueue {
  #items: StreamItem[] = [];
  #ended = false;
  #error: unknown;
  #wake: (() => void) | null = null;
  #drained: (() => void) | null = null;
  #drainedAt = 0;

  get size(): number {
    return this.#items.length;
  }

  push(item: StreamItem): void {
    if (this.#ended) return;
    this.#items.push(item);
    this.#wake?.();
  }

  /** End the queue; items that are in it are still read, then the error is thrown. */
  end(error?: unknown): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#error = error;
    this.#wake?.();
    this.#drained?.();
  }

  /** Return the next item, null after the end. */
  async next(): Promise<StreamItem | null> {
    while (!this.#items.length && !this.#ended) await new Promise<void>((resolve) => (this.#wake = resolve));
    const item = this.#items.shift();
    if (this.#items.length <= this.#drainedAt) this.#drained?.();
    if (item !== undefined) return item;
    if (this.#error !== undefined) throw this.#error;
    return null;
  }

  /** Wait until at most `count` items are unread, or until the end. */
  drained(count: number): Promise<void> {
    if (this.#items.length <= count || this.#ended) return Promise.resolve();
    this.#drainedAt = count;
    return new Promise((resolve) => (this.#drained = resolve));
  }
}

/** True for events that the service stores, which can be resumed after and which may come twice. */
function isStored(item: StreamItem): item is DeskwireEvent {
  return item.type !== "stream.gap" && !item.type.startsWith("agent.typing.");
}

function retryDelay(failures: number): number {
  return Math.min(RETRY_DELAY_MS * 2 ** failures, RETRY_DELAY_MAX_MS) * (0.5 + Math.random() / 2);
}

/** Ask a page of the user's backend, which calls `stream.authorize` after its own checks. */
async function authorizeAt(url: string | URL, request: SubscriptionRequest, signal: AbortSignal): Promise<{ auth: string }> {
  let response: Response;
  try {
    const headers = { "Content-Type": "application/json" };
    response = await fetch(url, { method: "POST", headers, body: JSON.stringify(request), signal });
  } catch (cause) {
    throw new ConnectionError(`${url} did not answer: ${(cause as Error).message}`, { cause });
  }
  const text = await response.text();
  if (!response.ok) throw APIError.of(response.status, response.headers, text);
  try {
    return JSON.parse(text) as { auth: string };
  } catch (cause) {
    throw new DeskwireError(`${url} must answer with the JSON of stream.authorize, not ${text.slice(0, 80)}`, { cause });
  }
}
