// @ts-check
/**
 * The outbox: each message is on disk before `add` resolves, and stays there until the service has stored it.
 *
 * Messages of a conversation are sent in order. The service knows a message by its `clientId` as long as the message lives, so a message whose
 * response was lost is sent again and stored once. One tab sends at a time, under the lock `send`; if it closes, the next tab continues.
 */
import { Offline, Problem, randomId, retryDelay } from "./api.js";
import { isLocal } from "./state.js";
/** @import { KeptFile, Outgoing, Refusal } from "../customer.js" */
/** @import { Records } from "./storage.js" */

const UPLOAD_TIMEOUT_MS = 600_000;
const FLUSH_TIMEOUT_MS = 10_000;
const FILE_MAX_BYTES = 10 * 1024 * 1024;
const FILE_MAX_AGE_MS = 7 * 86_400_000;
const SESSION_RETRY_DELAY_MS = 60_000; // after a refusal that a change of settings can end
const SESSION = "session"; // the key of delays that concern all conversations

/**
 * A stored message. `owner`: the `userId` of its contact, or `page …` as long as its page does not know who that is; it is sent in a session of that
 * contact alone. `starts`: it is sent as the first message of its conversation. `uploads`: ids of uploaded files by key.
 * @typedef {Outgoing & {owner: string, order: number, starts: boolean, uploads: Record<string, string>}} Entry
 */

/** Return the answer to a failure: when to try again, or why it never will. @param {unknown} error @param {number} failures  from 1 @param {number} [random] @returns {{retryMs: number, pause?: boolean, signIn?: boolean}|{refused: Refusal}} */
export function afterFailure(error, failures, random = Math.random()) {
  const retryMs = retryDelay(failures, random);
  if (!(error instanceof Problem)) return { retryMs };
  const { status, code, message, errors, retryAfterMs } = error;
  if (status === 401) return { retryMs, signIn: true };
  if (status === 429) return { retryMs: retryAfterMs ?? retryMs, pause: true };
  const waits = status >= 500 || status === 408 || status === 425 || ["channel_disabled", "origin_not_allowed", "idempotency_in_progress"].includes(code);
  if (waits) return { retryMs: retryAfterMs ?? retryMs };
  return { refused: { status, code, detail: message, errors } };
}

/** Return the first message of each conversation that waits, except those of `busy` conversations. @param {readonly Entry[]} entries @param {ReadonlySet<string>} busy @returns {Entry[]} */
export function heads(entries, busy) {
  const seen = new Set(busy);
  return entries.filter(({ state, conversation }) => state !== "refused" && !seen.has(conversation) && seen.add(conversation));
}

/** Return the messages oldest first. @param {Entry[]} entries */
export const inOrder = (entries) => entries.sort((a, b) => a.order - b.order || (a.clientId < b.clientId ? -1 : 1));

/**
 * @param {object} io
 * @param {Records} io.records
 * @param {(method: string, path: string, options: import("./api.js").CallOptions, token?: string) => Promise<any>} io.call  throws a 401 as it is
 * @param {() => any} io.about  the page's context and the visitor's own fields, for a new conversation
 * @param {(change: import("./state.js").Change) => void} io.changed  for all tabs
 * @param {() => void} io.refresh  shows the stored entries
 * @param {() => Promise<unknown>} io.signIn  gets a session, and a new one after a 401
 */
export function createOutbox({ records, call, about, changed, refresh, signIn }) {
  /** @type {Set<string>} The conversations whose message is being sent. */
  const busy = new Set();
  /** @type {Map<string, {failures: number, at: number}>} By conversation; times of `performance.now()`, because clocks are changed. */
  const delays = new Map();
  let pausedUntil = 0;
  let lastOrder = 0;
  let needsSession = false;
  /** @type {Promise<void>|null} */
  let running = null;
  let nudge = () => {};
  let halted = new AbortController();

  /** @returns {Entry[]} */
  const all = () => inOrder(records.list("message:"));
  const own = () => all().filter(({ owner }) => owner === records.get("session")?.contact.userId);
  const waiting = () => halted.signal.aborted || pausedUntil > performance.now();
  const due = () => (waiting() ? [] : heads(own(), busy).filter(({ conversation }) => (delays.get(conversation)?.at ?? 0) <= performance.now()));

  /** Change a stored message; nothing happens if it is gone. @param {string} clientId @param {(entry: Entry) => Record<string, any>} edit */
  const edit = (clientId, edit) =>
    records.change(() => {
      const entry = records.get(`message:${clientId}`);
      return entry && edit(entry);
    });
  /** @param {Entry} entry @returns {Record<string, any>} */
  const kept = (entry) => ({ [`message:${entry.clientId}`]: entry });
  /** @param {Entry} entry @returns {Record<string, any>} */
  const gone = (entry) => Object.fromEntries([`message:${entry.clientId}`, ...entry.files.map(({ key }) => `file:${key}`)].map((key) => [key, null]));

  /** Send everything that is due. Resolves when nothing is being sent. */
  function pump() {
    nudge();
    running ??= run().finally(() => {
      running = null;
      if (due().length) void pump(); // written since then
    });
    return running;
  }

  async function run() {
    if (waiting() || !all().length) return;
    try {
      await signIn(); // not under the lock, which a change of the identity needs
    } catch (error) {
      delay(SESSION, error);
      return;
    }
    delays.delete(SESSION);
    needsSession = false;
    await records.lock("send", async () => {
      await records.refresh();
      await new Promise((/** @type {(value?: any) => void} */ release) => {
        nudge = () => {
          for (const entry of needsSession ? [] : due()) void sendEntry(entry).then(nudge);
          if (!busy.size) release();
        };
        nudge();
      });
      nudge = () => {};
    });
  }

  /** Note a failure; returns the reason if it is final. @param {string} lane @param {unknown} error */
  function delay(lane, error) {
    const failures = (delays.get(lane)?.failures ?? 0) + 1;
    const next = afterFailure(error, failures);
    if ("refused" in next && lane !== SESSION) return next.refused;
    const { retryMs, pause, signIn } = "refused" in next ? { retryMs: SESSION_RETRY_DELAY_MS } : next;
    const waitMs = signIn && failures === 1 && lane !== SESSION ? 0 : retryMs;
    const at = performance.now() + waitMs;
    if (signIn) needsSession = true;
    if (pause || lane === SESSION) pausedUntil = at;
    delays.set(lane, { failures, at });
    setTimeout(pump, waitMs + 20);
  }

  /** @param {Entry} entry */
  async function sendEntry(entry) {
    const { conversation, clientId } = entry;
    busy.add(conversation);
    changed({ type: "sending", clientId, on: true });
    try {
      await deliver(entry);
      delays.delete(conversation);
    } catch (error) {
      const problem = delay(conversation, error);
      // If this write fails, too, the message is sent again, and refused again.
      if (problem) await edit(clientId, (one) => kept({ ...one, state: "refused", problem })).then(refresh, () => delay(conversation, null));
    }
    busy.delete(conversation);
    changed({ type: "sending", clientId, on: false });
  }

  /** Send a message with its files, and remove it. Throws Problem or Offline. @param {Entry} given @param {string} [token]  of a session that is about to end */
  async function deliver(given, token) {
    const entry = await withUploads(given, token);
    if (!entry) return;
    const attachments = entry.files.map(({ key }) => entry.uploads[key]);
    const message = { clientId: entry.clientId, text: entry.text, ...(attachments.length ? { attachments } : {}) };
    try {
      const stored = await post(entry, message, token);
      // First the message, so that no tab shows neither it nor the record.
      if (stored) changed({ type: "sent", clientId: entry.clientId, ...stored });
      if (stored) await edit(entry.clientId, gone);
      refresh();
    } catch (error) {
      if (error instanceof Problem && error.code === "idempotency_answer_erased") {
        await edit(entry.clientId, gone); // it was stored, and has been deleted since
        refresh();
        return;
      }
      const lost = error instanceof Problem && error.errors.some(({ pointer }) => pointer.includes("/attachments"));
      if (!lost || !Object.keys(given.uploads).length) throw error;
      await edit(entry.clientId, (one) => kept({ ...one, uploads: {} })); // the service deletes uploads that no message names in time
      throw new Offline(); // upload again
    }
  }

  /** @param {Entry} entry @param {any} message @param {string} [token] */
  async function post(entry, message, token) {
    const { conversation } = entry;
    if (!entry.starts) {
      try {
        return { message: await call("POST", `conversations/${conversation}/messages`, { body: message, abort: halted.signal }, token), conversation: null };
      } catch (error) {
        if (!(error instanceof Problem) || error.status !== 404 || !isLocal(conversation)) throw error;
        // The first message was refused or discarded, so this one starts the conversation. Stored first, so that a repetition does the same.
        if (!(await edit(entry.clientId, (one) => kept({ ...one, starts: true })))) return null;
      }
    }
    const body = { ...about(), clientId: conversation.slice(7), message };
    const stored = await call("POST", "conversations", { body, abort: halted.signal }, token);
    return { message: stored.lastMessage?.clientId === message.clientId ? { conversationId: stored.id, ...stored.lastMessage } : null, conversation: stored };
  }

  /** Upload the files that are not uploaded yet. Null if the message is gone. @param {Entry} entry @param {string} [token] @returns {Promise<Entry|null>} */
  async function withUploads(entry, token) {
    if (entry.starts && entry.files.length && !records.get("session")?.contact.id) entry = await split(entry);
    for (const { key, name } of entry.files) {
      if (entry.uploads[key]) continue;
      const blob = records.get(`file:${key}`)?.blob;
      if (!blob) throw new Problem(0, { code: "file_lost", detail: `${name} is no longer on this device.` });
      const form = new FormData();
      form.append("file", blob, name);
      const { id } = await call("POST", "uploads", { body: form, timeoutMs: UPLOAD_TIMEOUT_MS, abort: halted.signal }, token);
      if (!(await edit(entry.clientId, (one) => kept({ ...one, uploads: { ...one.uploads, [key]: id } })))) return null;
      entry = records.get(`message:${entry.clientId}`);
    }
    return entry;
  }

  /** Move the files of a visitor's first message to a second one, because a visitor can upload only after the first message. @param {Entry} entry */
  async function split(entry) {
    const second = { ...entry, clientId: randomId(), text: "", order: entry.order + 0.5, starts: false };
    const first = { ...entry, text: entry.text || entry.files.map(({ name }) => name).join(", "), files: [] };
    await edit(entry.clientId, () => ({ ...kept(first), ...kept(second) }));
    return first;
  }

  return {
    pump,
    all,
    /** Stop sending until `resume`, also what is under way. */
    halt: () => halted.abort(),
    resume: () => (halted = new AbortController()),

    /** Send the messages of the session that is about to end. Throws Offline. @param {string} token */
    async flush(token) {
      const until = performance.now() + FLUSH_TIMEOUT_MS;
      for (const { clientId, state } of own())
        for (let failures = 1; state !== "refused"; failures++)
          try {
            await deliver(records.get(`message:${clientId}`), token);
            break;
          } catch (error) {
            if (error instanceof Offline && failures > 1) throw error;
            const next = afterFailure(error, failures);
            if ("refused" in next || next.signIn || performance.now() + next.retryMs > until) break;
            await new Promise((done) => setTimeout(done, next.retryMs));
          }
    },

    /** Send waiting messages now, without the rest of their delays, but not before the end of a Retry-After. */
    retryNow() {
      if (delays.delete(SESSION)) pausedUntil = 0;
      delays.clear();
      void pump();
    },

    /** Store a file. @param {Blob} blob @returns {Promise<KeptFile>} */
    async addFile(blob) {
      const { file, value } = fileRecord(blob);
      await records.change(() => ({ [`file:${file.key}`]: value }));
      return file;
    },

    /** Store a message; resolves once it is on disk. @param {{clientId: string, owner: string, conversation: string|null, text: string, attachments: readonly (Blob|KeptFile)[]}} message */
    async add({ clientId, owner, conversation, text, attachments }) {
      const lane = conversation ?? `client:${randomId()}`;
      /** @type {Record<string, any>} */
      const values = {};
      const files = attachments.map((each) => {
        if (!(each instanceof Blob)) return each;
        const { file, value } = fileRecord(each);
        values[`file:${file.key}`] = value;
        return file;
      });
      const order = (lastOrder = Math.max(Date.now(), lastOrder + 1, ...all().map((each) => each.order + 1)));
      /** @type {Entry} */
      const entry = { clientId, owner, conversation: lane, text, files, createdAt: new Date().toISOString(), state: "kept", problem: null, order, starts: conversation === null, uploads: {} };
      await records.change(() => ({ ...values, ...kept(entry) }));
      refresh();
      void pump();
      return { clientId, conversation: lane };
    },

    /** Send a refused message again. @param {string} clientId */
    async retry(clientId) {
      await edit(clientId, (one) => {
        if (one.state !== "refused") return {};
        const next = { ...one, state: /** @type {const} */ ("kept"), problem: null, starts: false };
        const mismatch = one.problem?.code === "idempotency_mismatch";
        // The conversation is gone, so the message starts another one.
        if (one.problem?.status === 404 || (mismatch && one.starts)) Object.assign(next, { conversation: `client:${randomId()}`, starts: true });
        if (!mismatch) return kept(next);
        return { [`message:${clientId}`]: null, ...kept({ ...next, clientId: randomId() }) };
      });
      refresh();
      void pump();
    },

    /** Remove a message that is not being sent. @param {string} clientId */
    async discard(clientId) {
      const entry = records.get(`message:${clientId}`);
      if (!entry || (entry.state !== "refused" && busy.has(entry.conversation))) return false;
      const done = await edit(clientId, gone);
      refresh();
      return done;
    },

    /** Delete files that no message has used for a week. */
    async cleanUp() {
      const used = new Set(all().flatMap(({ files }) => files.map(({ key }) => key)));
      await records.change(() => Object.fromEntries(records.list("file:").filter(({ key, at }) => !used.has(key) && Date.now() - at > FILE_MAX_AGE_MS).map(({ key }) => [`file:${key}`, null])));
    },
  };
}

/** @param {Blob} blob */
function fileRecord(blob) {
  if (blob.size > FILE_MAX_BYTES) throw new Problem(413, { code: "body_too_large", detail: "A file can have at most 10 MiB." });
  const file = { key: randomId(), name: /** @type {any} */ (blob).name ?? "file", type: blob.type, size: blob.size };
  return { file, value: { key: file.key, blob, at: Date.now() } };
}
