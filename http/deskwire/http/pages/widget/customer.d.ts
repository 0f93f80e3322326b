/**
 * Customer support in a browser, without a user interface: session, outbox, live events. See `docs/guide/customer-js.md`.
 */

/** An id of a conversation: `cnv_…`, or `client:…` until the service has stored it. */
export type ConversationId = string;

export interface Options {
  /** The address of the service, such as `https://support.shop.example`. */
  baseUrl: string;
  /** The channel, `chn_…`. */
  channelId: string;
  /** Returns a new token (JWT) of the signed-in customer from your backend; null for a visitor. */
  identity?: IdentityFunction | null;
  /** A storage of your own, where there is no IndexedDB. */
  storage?: Storage;
  /** The site that the stored data belongs to; by default the origin of the top page. */
  site?: string;
  /** Asks the host page for a port to its storage. Used in a frame to which the browser gives no storage. */
  hostPort?: (() => MessagePort | Promise<MessagePort>) | null;
  /** Called with the state after each change. */
  onState?: Listener;
}

export type IdentityFunction = () => Promise<string | null> | string | null;
export type Listener = (state: State) => void;

/** The state. It is never changed in place: compare with `===` to find a change. */
export interface State {
  /** The contact of the session; null before the session is known. */
  readonly me: Contact | null;
  /** The channel's public settings; null until loaded. */
  readonly channel: Channel | null;
  /** By id, newest activity first. */
  readonly conversations: ReadonlyMap<ConversationId, Conversation>;
  /** The loaded messages of each conversation, oldest first. */
  readonly messages: ReadonlyMap<ConversationId, readonly Message[]>;
  /** The conversations whose newest messages are loaded. */
  readonly loaded: ReadonlySet<ConversationId>;
  /** The workflow step of a conversation that waits for the customer. */
  readonly steps: ReadonlyMap<ConversationId, Step | null>;
  /** The name of the agent who types in a conversation. */
  readonly typing: ReadonlyMap<ConversationId, string>;
  /** Messages that the service has not stored yet, oldest first. */
  readonly outbox: readonly Outgoing[];
  /** True once the list of conversations has been loaded, for this contact. */
  readonly listed: boolean;
  /** The number of unread conversations. */
  readonly unread: number;
  /** The open conversation. Changes from `client:…` to `cnv_…` when the service has stored it. */
  readonly open: ConversationId | null;
  readonly connection: "online" | "connecting" | "offline";
  /** Where the outbox is stored: in this origin, by the host page, or only as long as this page is open. */
  readonly storage: "kept" | "host" | "page";
  /** The reason why nothing can be sent or loaded at present. */
  readonly problem: { readonly code: string; readonly detail: string } | null;
}

export interface Contact {
  /** Null before a visitor's first message. */
  id: string | null;
  userId: string;
  name: string | null;
  email: string | null;
  phone?: string | null;
  avatar?: string | null;
  /** The fields that your backend has signed. They can't be changed here. */
  signed?: string[];
  /** True if your backend has signed who this is. */
  verified: boolean;
}

export interface Channel {
  id: string;
  enabled: boolean;
  name: string;
  identity: { mode: "optional" | "required" | "none" };
  visitors: { allowed: boolean; ask: string[] };
  look: { colour: string; position: "left" | "right"; texts: Record<string, ChannelTexts> };
  survey: string | null;
  hours: null;
  expectedWaitS: number | null;
  surveyDefinition?: unknown;
}

export interface ChannelTexts {
  title: string;
  greeting: string;
  placeholder?: string;
  offline?: string;
}

export interface Conversation {
  id: ConversationId;
  clientId?: string;
  title: string | null;
  status: string;
  closed: boolean;
  closedBy: string | null;
  unread: boolean;
  assignee: { type: "user" | "team"; name: string } | null;
  rating: number | null;
  ratingComment?: string;
  lastMessageAt: string | null;
  lastMessage?: Message | null;
  createdAt: string;
  updatedAt: string;
  closedAt: string | null;
  sequence: number;
  channelId?: string;
  /** The conversation with which it shares its first messages: an agent started it with them. */
  splitFrom?: ConversationId;
}

export interface Message {
  id: string;
  clientId?: string;
  conversationId: ConversationId;
  index: number;
  author: { type: "contact" | "agent" | "bot" | "system"; name: string | null; self: boolean };
  text: string;
  /** `markdown` if the text is Markdown that you may render; absent for plain text. The text itself is as it was sent. */
  format?: "markdown";
  attachments: Attachment[];
  createdAt: string;
  redactedAt: string | null;
}

export interface Attachment {
  id: string;
  name: string;
  type: string;
  size: number;
  url: string;
}

/** A workflow step that waits for the customer: buttons or a form. */
export interface Step {
  stepType: "buttons" | "form";
  actionId: number;
  /** The text with its options or fields. */
  action: any;
}

/** A message on its way. `refused`: the service did not accept it for the reason in `problem`. */
export interface Outgoing {
  readonly clientId: string;
  readonly conversation: ConversationId;
  readonly text: string;
  readonly files: readonly KeptFile[];
  readonly createdAt: string;
  readonly state: "kept" | "sending" | "refused";
  readonly problem: Refusal | null;
}

export interface Refusal {
  status: number;
  code: string;
  detail: string;
  errors: { pointer: string; code: string; message: string }[];
}

/** A file that is stored in the browser until a message with it has been sent. */
export interface KeptFile {
  readonly key: string;
  readonly name: string;
  readonly type: string;
  readonly size: number;
}

export interface NewMessage {
  /** Null starts a conversation. */
  conversation: ConversationId | null;
  text?: string;
  /** Files, or results of `upload`. At most 10 MiB each. */
  attachments?: readonly (Blob | KeptFile)[];
}

export interface PageContext {
  url?: string;
  title?: string;
  referrer?: string;
  language?: string;
  timezone?: string;
  custom?: Record<string, unknown>;
}

export interface Customer {
  readonly state: State;
  /** Opens the session, sends kept messages, and loads the list. `passive`: only the unread count, without a connection. */
  start(options?: { passive?: boolean }): Promise<void>;
  /** Ends the connection. Kept messages stay stored. */
  stop(): void;
  /** Returns a function that removes the listener. */
  subscribe(listener: Listener): () => void;
  /** Resolves once the message is stored in this browser. Throws if the browser can't store it. */
  send(message: NewMessage): Promise<{ clientId: string; conversation: ConversationId }>;
  /** Stores a file for a message. */
  upload(file: Blob): Promise<KeptFile>;
  /** Shows a conversation: loads its messages, and marks them as seen while the page is visible. */
  open(conversation: ConversationId): Promise<void>;
  close(): void;
  /** Loads older messages; false if there are no more. */
  older(conversation: ConversationId): Promise<boolean>;
  /** Loads older conversations; false if there are no more. */
  more(): Promise<boolean>;
  typing(conversation: ConversationId, on: boolean): void;
  rate(conversation: ConversationId, rating: number, comment?: string): Promise<void>;
  /** Answers a workflow step. */
  reply(conversation: ConversationId, actionId: number, value: unknown): Promise<void>;
  updateMe(fields: { name?: string; email?: string; phone?: string }): Promise<void>;
  /** Describes the page for agents. Unverified. */
  context(context: PageContext): void;
  /** Sets the identity function, and signs in with it. */
  identify(identity: IdentityFunction): Promise<void>;
  /** Ends the session and deletes everything stored here; `givenUp` messages could not be sent before. */
  signOut(): Promise<{ givenUp: number }>;
  /** Sends a refused message again. */
  retry(clientId: string): Promise<void>;
  /** Removes a message that was not sent; false if it is being sent. */
  discard(clientId: string): Promise<boolean>;
  /** Calls `/v3/customer/…` with the session. Throws `Problem` or `Offline`. */
  request(method: string, path: string, body?: unknown): Promise<any>;
}

export declare function createCustomer(options: Options): Customer;

/** The service refused a call. */
export declare class Problem extends Error {
  status: number;
  code: string;
  errors: { pointer: string; code: string; message: string }[];
  document: any;
  retryAfterMs: number | null;
}

/** No response: no network, or the service is down. */
export declare class Offline extends Error {}

/** A stored record; `rev` grows by one with each change. */
export interface StoredRecord {
  key: string;
  rev: number;
  /** Null removes the record. Can contain a `Blob`. */
  value: any;
}

/**
 * A storage for one channel and site. Its calls must not overlap with those of another process, unless `lock` excludes them.
 */
export interface Storage {
  /** Returns all records. */
  all(): Promise<StoredRecord[]>;
  /**
   * Writes all records or none, and resolves once they are on disk. Returns false and writes nothing if the stored revision of one of them
   * is not `rev - 1`; a missing record has revision 0.
   */
  write(records: StoredRecord[]): Promise<boolean>;
  /** Runs the work while no other page with this storage runs work under the same name. */
  lock?<T>(name: string, work: () => Promise<T>, abort?: AbortSignal): Promise<T>;
  /** Sends a message to all other pages with this storage. */
  post?(message: unknown): void;
  /** Sets the receiver of these messages. */
  listen?(receive: (message: any) => void): void;
  close?(): void;
}
