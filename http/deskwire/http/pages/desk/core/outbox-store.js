// @ts-check
/**
 * Everything the user writes that this browser stores, encrypted for the user. The outbox and its files are in IndexedDB, on disk before a call
 * resolves. Drafts are in localStorage, because a page that is closing can still write it. No other module reads or writes them.
 */
import { canSeal, isSealed, noteUnopenable, open, openFile, seal, sealFile, unopenable } from "./seal.js";
/** @import { Draft, Outgoing } from "./types.js" */

const STORED_MAX_AGE_MS = 60_000;
const FILE_MAX_AGE_MS = 30 * 86_400_000;

/** `entry` is the unencrypted form of older versions. @typedef {{sealed?: string, entry?: Outgoing, key: string, scope: string}} KeptEntry */
/** @typedef {{key: string, scope: string, sealed?: Uint8Array, type?: string, blob?: Blob, uploadId: string|null, at: number}} KeptFile */

/** @param {Outgoing} entry @param {string} scope @returns {KeptEntry} */
const sealedEntry = (entry, scope) => ({ key: entry.key, scope, sealed: seal(entry, scope) });
/** Return the entry; null if none of the user's keys decrypts it. @param {KeptEntry} one @returns {Outgoing|null} */
function entryOf({ sealed, entry, scope }) {
  try {
    return sealed ? open(sealed, scope) : (entry ?? null);
  } catch {
    return null; // the record stays, and `unopenable` reports it
  }
}
/** @param {KeptEntry[]} all @returns {Outgoing[]} */
const openedEntries = (all) => all.map(entryOf).filter((each) => each !== null);

/** @type {Promise<IDBDatabase|null>|undefined} */
let connected;
const memory = { outbox: new Map(), files: new Map() };

/** @returns {Promise<IDBDatabase|null>} */
function database() {
  connected ??= new Promise((done) => {
    const refuse = () => done(null);
    try {
      const request = indexedDB.open("deskwire", 1);
      request.onupgradeneeded = () => {
        for (const name of ["outbox", "files"]) request.result.createObjectStore(name, { keyPath: "key" }).createIndex("scope", "scope");
      };
      request.onsuccess = () => {
        request.result.onversionchange = () => request.result.close();
        done(request.result);
      };
      request.onerror = refuse;
    } catch {
      refuse();
    }
  });
  return connected;
}

/** Return whether the browser stores data beyond this page. @returns {Promise<boolean>} */
export const durable = async () => (await database()) !== null;

/**
 * Run a function in one transaction; resolves once it is on disk.
 * @template T @param {"outbox"|"files"} name
 * @param {(store: IDBObjectStore, result: (value: T) => void) => void} work @param {(map: Map<string, any>) => T} otherwise  does the same in memory
 * @returns {Promise<T>}
 */
async function transact(name, work, otherwise) {
  const db = await database();
  if (!db) return otherwise(memory[name]);
  return new Promise((done, fail) => {
    const transaction = db.transaction(name, "readwrite", { durability: "strict" });
    /** @type {any} */
    let result = null;
    transaction.oncomplete = () => done(result);
    transaction.onabort = () => fail(transaction.error ?? new Error("This browser has no room left."));
    work(transaction.objectStore(name), (value) => (result = value));
  });
}

const channel = typeof BroadcastChannel === "function" ? new BroadcastChannel("deskwire outbox") : null;
/** Notify the other tabs of a change. */
export const notifyTabs = () => channel?.postMessage("changed");
/** Register a listener for changes by other tabs. @param {() => void} listener */
export const onChange = (listener) => channel?.addEventListener("message", listener);

/** Return all entries of a user in a project. @param {string} scope @returns {Promise<Outgoing[]>} */
export const entriesOf = (scope) =>
  transact(
    "outbox",
    (store, result) => {
      const request = store.index("scope").getAll(scope);
      request.onsuccess = () => result(openedEntries(request.result));
    },
    (map) => openedEntries([...map.values()].filter((each) => each.scope === scope)),
  );

/** @param {Outgoing} entry @param {string} scope */
export async function add(entry, scope) {
  const one = sealedEntry(entry, scope);
  await transact("outbox", (store) => void store.put(one), (map) => void map.set(one.key, one));
  notifyTabs();
}

/** Change an entry within one transaction. @param {string} key @param {(entry: Outgoing) => Outgoing} to @param {string} [as]  its new key @returns {Promise<Outgoing|null>} null if there is none. */
export async function change(key, to, as = key) {
  if (!canSeal()) return null; // the session has ended: the entries stay unchanged
  const made = await transact(
    "outbox",
    (store, result) => {
      const request = store.get(key);
      request.onsuccess = () => {
        const before = request.result && entryOf(request.result);
        if (!before) return;
        const entry = to(before);
        if (as !== key) store.delete(key);
        store.put({ ...sealedEntry(entry, request.result.scope), key: as });
        result(entry);
      };
    },
    (map) => {
      const one = map.get(key);
      const before = one && entryOf(one);
      if (!before) return null;
      const entry = to(before);
      if (as !== key) map.delete(key);
      map.set(as, { ...sealedEntry(entry, one.scope), key: as });
      return entry;
    },
  );
  notifyTabs();
  return made;
}

/** Remove an entry if `may` allows it. @param {string} key @param {(entry: Outgoing) => boolean} [may] @returns {Promise<Outgoing|null>} */
export async function remove(key, may = () => true) {
  const gone = await transact(
    "outbox",
    (store, result) => {
      const request = store.get(key);
      request.onsuccess = () => {
        const entry = request.result && entryOf(request.result);
        if (!entry || !may(entry)) return;
        store.delete(key);
        result(entry);
      };
    },
    (map) => {
      const one = map.get(key);
      const entry = one && entryOf(one);
      if (!entry || !may(entry)) return null;
      map.delete(key);
      return entry;
    },
  );
  notifyTabs();
  return gone;
}

/** @param {string} key @param {Blob} blob @param {string} scope */
export async function addFile(key, blob, scope) {
  const one = { key, scope, sealed: await sealFile(blob, key), type: blob.type, uploadId: null, at: Date.now() };
  return transact("files", (store) => void store.put(one), (map) => void map.set(key, one));
}

/** @param {string} key @returns {Promise<{blob: Blob, uploadId: string|null}|null>} null if there is none, or no key decrypts it. */
export async function file(key) {
  const one = await fileRecord(key);
  try {
    const blob = one?.sealed ? openFile(one.sealed, key, one.type ?? "") : one?.blob;
    return one && blob ? { blob, uploadId: one.uploadId } : null;
  } catch {
    return null;
  }
}

/** @param {string} key @returns {Promise<KeptFile|null>} */
const fileRecord = (key) =>
  transact(
    "files",
    (store, result) => {
      const request = store.get(key);
      request.onsuccess = () => result(request.result ?? null);
    },
    (map) => map.get(key) ?? null,
  );

/** @param {string} key @param {string} uploadId */
export async function fileUploaded(key, uploadId) {
  const one = await fileRecord(key);
  if (one) await transact("files", (store) => void store.put({ ...one, uploadId }), (map) => void map.set(key, { ...one, uploadId }));
}

/** @param {string} key */
export const dropFile = (key) => transact("files", (store) => void store.delete(key), (map) => void map.delete(key));

/** Remove entries that were stored a while ago, and files that were never sent. @param {string} scope */
export async function cleanUp(scope) {
  const now = Date.now();
  await sealOld(scope);
  for (const each of await entriesOf(scope)) if (each.state === "stored" && now - (each.storedAt ?? 0) > STORED_MAX_AGE_MS) await remove(each.key);
  await sweep("files", (/** @type {KeptFile} */ each) => each.scope === scope && now - each.at > FILE_MAX_AGE_MS);
}

/** Encrypt the records of older versions. @param {string} scope */
async function sealOld(scope) {
  if (!canSeal()) return;
  const entries = await transact("outbox", listOf(scope), () => []);
  for (const each of entries) if (each.entry) await change(each.key, (entry) => entry);
  for (const each of await transact("files", listOf(scope), () => [])) {
    if (!each.blob) continue;
    const { blob, ...rest } = each;
    const one = { ...rest, sealed: await sealFile(blob, each.key), type: blob.type };
    await transact("files", (store) => void store.put(one), () => {});
  }
}

/** @param {string} scope @returns {(store: IDBObjectStore, result: (value: any[]) => void) => void} */
const listOf = (scope) => (store, result) => {
  const request = store.index("scope").getAll(scope);
  request.onsuccess = () => result(request.result);
};

/** Remove everything of a user. @param {string} scope */
export async function forget(scope) {
  const user = `${scope.split(" ")[0]} `;
  for (const name of /** @type {const} */ (["outbox", "files"])) await sweep(name, (/** @type {{scope: string}} */ each) => each.scope.startsWith(user));
  notifyTabs();
}

/** @param {"outbox"|"files"} name @param {(one: any) => boolean} which */
const sweep = (name, which) =>
  transact(
    name,
    (store) => {
      const request = store.openCursor();
      request.onsuccess = () => {
        const cursor = request.result;
        if (!cursor) return;
        if (which(cursor.value)) cursor.delete();
        cursor.continue();
      };
    },
    (map) => {
      for (const [key, one] of map) if (which(one)) map.delete(key);
    },
  );

// Drafts. Keys begin with the user and the project. The write is done when the function returns; the promise resolves to false if there was no room.

/** The suffix of a draft that could not be decrypted and was replaced. */
const UNOPENED = ".unopened";

/** Encrypted drafts that the browser had no room for. @type {Map<string, string>} */
const draftsInMemory = new Map();

/** Return the draft; null if no key decrypts it. It then stays stored. @param {string} key @param {string} text @returns {Draft|null} */
function draftOf(key, text) {
  try {
    return isSealed(text) ? open(text, key) : JSON.parse(text);
  } catch {
    return null;
  }
}

/** @param {string} prefix @returns {string[]} The keys with this prefix. */
function keysOf(prefix) {
  try {
    return [...new Set([...Object.keys(localStorage), ...draftsInMemory.keys()])].filter((key) => key.startsWith(prefix));
  } catch {
    return [...draftsInMemory.keys()].filter((key) => key.startsWith(prefix));
  }
}

/** Return the drafts whose keys have this prefix, and encrypt those of older versions. @param {string} prefix @returns {Promise<[key: string, draft: Draft][]>} */
export async function readDrafts(prefix) {
  /** @type {[string, Draft][]} */
  const found = [];
  for (const key of keysOf(prefix)) {
    if (key.endsWith(UNOPENED)) {
      noteUnopenable(key);
      continue;
    }
    const text = draftsInMemory.get(key) ?? localStorage.getItem(key) ?? "";
    const one = draftOf(key, text);
    if (one) found.push([key, one]);
    if (one && !isSealed(text)) await storeDraft(key, one);
  }
  return found;
}

/** Move a draft that can't be decrypted aside before it is replaced. @param {string} key */
function setAside(key) {
  if (!unopenable.peek().has(key)) return;
  const before = localStorage.getItem(key);
  if (before && isSealed(before) && !draftOf(key, before)) localStorage.setItem(`${key}${UNOPENED}`, before);
}

/** Store a draft. @param {string} key @param {Draft} draft @returns {Promise<boolean>} False if there is no room or no session. */
export async function storeDraft(key, draft) {
  if (!canSeal()) return false;
  const sealed = seal(draft, key);
  try {
    setAside(key);
    localStorage.setItem(key, sealed);
    draftsInMemory.delete(key);
    return true;
  } catch {
    draftsInMemory.set(key, sealed);
    return false;
  }
}

/** A stored entry that none of the user's keys decrypts. `key` is its storage key. @typedef {{key: string, kind: "draft"|"message", conversationId: string|null, mode: string|null}} Unopened */

/**
 * Return the stored entries of a user in a project that can't be decrypted, drafts first.
 * @param {string} prefix  of the keys of drafts @param {string} scope  of entries of the outbox @returns {Promise<Unopened[]>}
 */
export async function unopened(prefix, scope) {
  if (!canSeal()) return [];
  const drafts = keysOf(prefix).filter((key) => key.endsWith(UNOPENED) || !draftOf(key, draftsInMemory.get(key) ?? localStorage.getItem(key) ?? ""));
  const entries = await transact("outbox", listOf(scope), (map) => [...map.values()].filter((each) => each.scope === scope));
  return [
    ...drafts.map((key) => {
      const [conversationId = null, mode = null] = key.slice(prefix.length).replace(UNOPENED, "").split(".");
      return { key, kind: /** @type {const} */ ("draft"), conversationId, mode };
    }),
    ...entries.filter((each) => !entryOf(each)).map(({ key }) => ({ key, kind: /** @type {const} */ ("message"), conversationId: null, mode: null })),
  ];
}

/** Delete an entry that can't be decrypted. @param {Unopened} one */
export async function removeUnopened({ key, kind }) {
  if (kind === "draft") await removeDraft(key);
  else await transact("outbox", (store) => void store.delete(key), (map) => void map.delete(key));
}

/** Delete a draft. @param {string} key */
export async function removeDraft(key) {
  draftsInMemory.delete(key);
  try {
    localStorage.removeItem(key);
  } catch {
    // then it was never stored
  }
}

/** Delete the drafts whose keys have this prefix. @param {string} prefix */
export async function removeDrafts(prefix) {
  for (const key of keysOf(prefix)) await removeDraft(key);
}
