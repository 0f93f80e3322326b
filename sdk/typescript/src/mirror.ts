/**
 * Keeps a copy of all conversations and messages of a project.
 *
 * The first run lists everything; later ones read the feed of events after the stored position. The position is
 * saved after the changes that it stands for, so a process that ends at any time continues without a loss.
 */

import type { Deskwire } from "./client.js";
import { APIError, NotFoundError, isOutage } from "./errors.js";
import { pause } from "./platform.js";
import type { MaybePromise } from "./transport.js";
import type { Conversation, DeskwireEvent, Message } from "./types.js";

/** The fields of a contact that its conversations show. */
export interface MirroredContact {
  id: string;
  userId: string | null;
  name: string | null;
  email: string | null;
}

/** Where a mirror keeps its copy, such as tables of your database. Each operation may be repeated. */
export interface MirrorStore {
  /** Return the saved position, null before the first snapshot is complete. */
  loadCursor(): MaybePromise<string | null>;
  saveCursor(eventId: string): MaybePromise<void>;
  /** Return the `sequence` of the stored conversation, null if it is not stored. */
  sequence(conversationId: string): MaybePromise<number | null>;
  /** Insert or replace a conversation. */
  putConversation(conversation: Conversation): MaybePromise<void>;
  /** Insert or replace a message, by its id. */
  putMessage(message: Message): MaybePromise<void>;
  /** Replace all messages of a conversation. */
  replaceMessages(conversationId: string, messages: Message[]): MaybePromise<void>;
  /** Delete a conversation with its messages. */
  deleteConversation(conversationId: string): MaybePromise<void>;
  /** Show a contact's new name and address in its conversations. */
  putContact(contact: MirroredContact): MaybePromise<void>;
  /** Return the ids of all stored conversations. */
  conversationIds(): MaybePromise<Iterable<string>> | AsyncIterable<string>;
  /** Run `work` in a transaction, with the cursor that `work` saves. Default: no transaction. */
  transaction?(work: () => Promise<void>): Promise<void>;
}

export interface MirrorOptions {
  /** Number of events for each call, and for each transaction. Default and maximum 200. */
  batchSize?: number | undefined;
  /** Seconds for which a call waits for the next event. Default and maximum 30. */
  waitS?: number | undefined;
}

export interface RunOptions {
  /** Ends `run`, which then returns. */
  signal?: AbortSignal | undefined;
  /** Is called for each event after it was stored. */
  onEvent?: ((event: DeskwireEvent) => MaybePromise<void>) | undefined;
  /** Is called before a retry after an error. Without it, errors are retried silently. */
  onError?: ((error: unknown) => void) | undefined;
}

const BATCH_SIZE = 200;
const WAIT_S = 30;
const RETRY_DELAY_MS = 10_000;

export class Mirror {
  readonly #client: Deskwire;
  readonly #store: MirrorStore;
  readonly #batchSize: number;
  readonly #waitS: number;

  constructor(client: Deskwire, store: MirrorStore, options: MirrorOptions = {}) {
    this.#client = client;
    this.#store = store;
    this.#batchSize = options.batchSize ?? BATCH_SIZE;
    this.#waitS = options.waitS ?? WAIT_S;
  }

  /**
   * Keep the copy current until the signal aborts.
   *
   * Outages of the service and of the network are waited for. Refusals of the call (401, 403) and errors of the store
   * are thrown.
   */
  async run({ signal, onEvent, onError }: RunOptions = {}): Promise<void> {
    while (!signal?.aborted) {
      try {
        for (const event of await this.catchUp({ waitS: this.#waitS, signal })) await onEvent?.(event);
      } catch (error) {
        if (signal?.aborted) return;
        if (!isOutage(error)) throw error;
        onError?.(error);
        await pause(RETRY_DELAY_MS, signal).catch(() => undefined); // the loop ends if the signal aborted
      }
    }
  }

  /** Store the next batch of events and return it; without a position, take a snapshot first. An empty batch: nothing is missing. */
  async catchUp(options: { waitS?: number | undefined; signal?: AbortSignal | undefined } = {}): Promise<DeskwireEvent[]> {
    const after = await this.#store.loadCursor();
    if (after === null) {
      await this.snapshot(options);
      return [];
    }
    try {
      const params = { after, limit: this.#batchSize, wait: options.waitS ?? 0 };
      const { items } = await this.#client.events.list(params, { signal: options.signal });
      await this.#applyAll(items, options.signal);
      return items;
    } catch (error) {
      if (!isUnknownPosition(error)) throw error;
      await this.snapshot(options);
      return [];
    }
  }

  /** Copy all conversations and messages, delete those that no longer exist, and save the position to continue from. */
  async snapshot({ signal }: { signal?: AbortSignal | undefined } = {}): Promise<void> {
    const seen = new Set<string>();
    let asOf = "";
    const list = this.#client.conversations.list({ sort: "updated", order: "asc", limit: BATCH_SIZE }, { signal });
    for await (const page of list.pages()) {
      asOf = page.asOf; // the same on each page
      for (const conversation of page.items) {
        seen.add(conversation.id);
        await this.#copy(conversation, signal);
      }
    }
    await this.#commit([() => this.#deleteOthers(seen), () => this.#store.saveCursor(asOf)]);
  }

  /** Fetch a conversation with its messages, for one that an import named or that you doubt. */
  async refresh(conversationId: string, signal?: AbortSignal): Promise<void> {
    await this.#commit(this.#writesOf(conversationId, await this.#fetch(conversationId, signal)));
  }

  async #copy(conversation: Conversation, signal: AbortSignal | undefined): Promise<void> {
    const { id } = conversation;
    try {
      const messages = await this.#messages(id, signal);
      // After a restore from a backup the sequence may be smaller than the stored one.
      await this.#commit([() => this.#store.replaceMessages(id, messages), () => this.#store.putConversation(conversation)]);
    } catch (error) {
      if (!(error instanceof NotFoundError)) throw error;
      await this.#commit([() => this.#store.deleteConversation(id)]); // it was deleted in the meantime
    }
  }

  async #deleteOthers(seen: ReadonlySet<string>): Promise<void> {
    const others: string[] = [];
    for await (const id of await this.#store.conversationIds()) if (!seen.has(id)) others.push(id);
    for (const id of others) await this.#store.deleteConversation(id);
  }

  /** Store an event that came by webhook or stream. The position in the feed stays, so nothing is skipped. */
  async apply(event: DeskwireEvent, signal?: AbortSignal): Promise<void> {
    const writes = await this.#plan(event, new Map(), signal);
    await this.#commit(writes);
  }

  async #applyAll(events: readonly DeskwireEvent[], signal: AbortSignal | undefined): Promise<void> {
    const last = events.at(-1);
    if (last === undefined) return;
    const planned = new Map<string, number>();
    const writes: Write[] = [];
    for (const event of events) writes.push(...(await this.#plan(event, planned, signal)));
    await this.#commit([...writes, () => this.#store.saveCursor(last.id)]);
  }

  /**
   * Return the writes that an event causes. Calls of the API happen here, so that no transaction waits for the network.
   *
   * @param planned the sequences of conversations after the writes that were planned before.
   */
  async #plan(event: DeskwireEvent, planned: Map<string, number>, signal: AbortSignal | undefined): Promise<Write[]> {
    if (event.type === "contact.updated") {
      const { contact } = event.data;
      return [() => this.#store.putContact(contact)];
    }
    if (event.type === "conversation.deleted") {
      const { id } = event.data.conversation;
      planned.delete(id);
      return [() => this.#store.deleteConversation(id)];
    }
    if (event.sequence === null || !("conversation" in event.data)) return []; // typing, and types beyond the contract
    const conversation = event.data.conversation as Conversation;
    const known = planned.get(conversation.id) ?? (await this.#store.sequence(conversation.id));
    if (known !== null && event.sequence <= known) return []; // a duplicate, or older than the copy
    if (isGap(known, event.sequence) || changedMessages(event)) {
      const fetched = await this.#fetch(conversation.id, signal);
      if (fetched !== null) planned.set(conversation.id, fetched.conversation.sequence);
      return this.#writesOf(conversation.id, fetched);
    }
    planned.set(conversation.id, conversation.sequence);
    const writes: Write[] = [() => this.#putNewer(conversation)];
    if ("message" in event.data) {
      const message = event.data.message as Message;
      // The message goes first: without transactions, the sequence must not say more than the store has.
      writes.unshift(() => this.#store.putMessage(message));
    }
    return writes;
  }

  /** Return the present state of a conversation, null if it does not exist. */
  async #fetch(conversationId: string, signal: AbortSignal | undefined): Promise<Copy | null> {
    try {
      const conversation = await this.#client.conversations.get(conversationId, {}, { signal });
      return { conversation, messages: await this.#messages(conversationId, signal) };
    } catch (error) {
      if (error instanceof NotFoundError) return null;
      throw error;
    }
  }

  async #messages(conversationId: string, signal: AbortSignal | undefined): Promise<Message[]> {
    const messages: Message[] = [];
    const all = this.#client.messages.list(conversationId, { limit: BATCH_SIZE }, { signal });
    for await (const message of all) messages.push(message);
    return messages;
  }

  #writesOf(conversationId: string, copy: Copy | null): Write[] {
    if (copy === null) return [() => this.#store.deleteConversation(conversationId)];
    return [() => this.#store.replaceMessages(conversationId, copy.messages), () => this.#putNewer(copy.conversation)];
  }

  async #putNewer(conversation: Conversation): Promise<void> {
    const stored = await this.#store.sequence(conversation.id);
    if (stored === null || conversation.sequence >= stored) await this.#store.putConversation(conversation);
  }

  #last: Promise<unknown> = Promise.resolve();

  /** Run the writes in a transaction of the store, one transaction at a time. */
  #commit(writes: readonly Write[]): Promise<void> {
    const work = async (): Promise<void> => {
      for (const write of writes) await write();
    };
    const committed = this.#last.then(() => (this.#store.transaction ? this.#store.transaction(work) : work()));
    this.#last = committed.catch(() => undefined); // its caller gets the error
    return committed;
  }
}

type Write = () => MaybePromise<void>;

interface Copy {
  conversation: Conversation;
  messages: Message[];
}

/** True if events between the stored state and this event are missing. */
function isGap(stored: number | null, sequence: number): boolean {
  // An unknown conversation begins with 1, except one that was imported or hidden.
  return stored === null ? sequence > 1 : sequence > stored + 1;
}

/** True if messages were redacted or deleted, which no event carries. */
function changedMessages(event: DeskwireEvent): boolean {
  return "changed" in event.data && Array.isArray(event.data.changed) && event.data.changed.includes("messages");
}

/** True if the position is no longer stored, or not known since a restore from a backup. */
function isUnknownPosition(error: unknown): boolean {
  return error instanceof APIError && (error.code === "window_passed" || error.code === "event_not_found");
}

/** A mirror in memory, for tests and small projects. It is empty at each start. */
export class MemoryMirrorStore implements MirrorStore {
  readonly conversations = new Map<string, Conversation>();
  readonly messages = new Map<string, Message>();
  cursor: string | null = null;

  loadCursor(): string | null {
    return this.cursor;
  }

  saveCursor(eventId: string): void {
    this.cursor = eventId;
  }

  sequence(conversationId: string): number | null {
    return this.conversations.get(conversationId)?.sequence ?? null;
  }

  putConversation(conversation: Conversation): void {
    this.conversations.set(conversation.id, conversation);
  }

  putMessage(message: Message): void {
    this.messages.set(message.id, message);
  }

  replaceMessages(conversationId: string, messages: Message[]): void {
    this.#deleteMessages(conversationId);
    for (const message of messages) this.putMessage(message);
  }

  deleteConversation(conversationId: string): void {
    this.conversations.delete(conversationId);
    this.#deleteMessages(conversationId);
  }

  putContact({ id, userId, name, email }: MirroredContact): void {
    for (const conversation of this.conversations.values()) {
      if (conversation.contact.id !== id) continue;
      this.putConversation({ ...conversation, contact: { ...conversation.contact, userId, name, email } as Conversation["contact"] });
    }
  }

  conversationIds(): Iterable<string> {
    return [...this.conversations.keys()];
  }

  #deleteMessages(conversationId: string): void {
    for (const message of this.messages.values()) if (message.conversationId === conversationId) this.messages.delete(message.id);
  }
}
