// @ts-check
/**
 * All that this browser keeps of what is written: the outbox and its files in IndexedDB, on the disk before a call resolves, and drafts in
 * localStorage, which a page can still write as it goes. Nothing else reads or writes them.
 */
/** @import { Draft, Outgoing } from "./types.js" */

const STORED_MS = 60_000;
const FILE_MS = 30 * 86_400_000;

/** @typedef {{entry: Outgoing, key: string, scope: string}} KeptEntry */
/** @typedef {{key: string, scope: string, blob: Blob, uploadId: string|null, at: number}} KeptFile */

/** @type {Promise<IDBDatabase|null>|undefined} */
let opened;
const memory = { outbox: new Map(), files: new Map() };

/** @returns {Promise<IDBDatabase|null>} */
function database() {
  opened ??= new Promise((done) => {
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
  return opened;
}

/** Whether this browser keeps anything beyond this page. @returns {Promise<boolean>} */
export const durable = async () => (await database()) !== null;

/**
 * Does something in one transaction, and resolves when that is on the disk.
 * @template T @param {"outbox"|"files"} name
 * @param {(store: IDBObjectStore, result: (value: T) => void) => void} work @param {(map: Map<string, any>) => T} otherwise  the same in memory
 * @returns {Promise<T>}
 */
async function within(name, work, otherwise) {
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
/** Tells other tabs to look. */
export const changed = () => channel?.postMessage("changed");
/** Registers who hears of changes by other tabs. @param {() => void} listener */
export const onChange = (listener) => channel?.addEventListener("message", listener);

/** All entries of a user in a project. @param {string} scope @returns {Promise<Outgoing[]>} */
export const all = (scope) =>
  within(
    "outbox",
    (store, result) => {
      const request = store.index("scope").getAll(scope);
      request.onsuccess = () => result(request.result.map((/** @type {KeptEntry} */ each) => each.entry));
    },
    (map) => [...map.values()].filter((each) => each.scope === scope).map((each) => each.entry),
  );

/** @param {Outgoing} entry @param {string} scope */
export async function add(entry, scope) {
  const one = { key: entry.key, scope, entry };
  await within("outbox", (store) => void store.put(one), (map) => void map.set(one.key, one));
  changed();
}

/** Changes an entry as it is now; nobody changes it between. @param {string} key @param {(entry: Outgoing) => Outgoing} to @param {string} [as]  its new key @returns {Promise<Outgoing|null>} null if it is not there. */
export async function change(key, to, as = key) {
  const made = await within(
    "outbox",
    (store, result) => {
      const request = store.get(key);
      request.onsuccess = () => {
        if (!request.result) return;
        const entry = to(request.result.entry);
        if (as !== key) store.delete(key);
        store.put({ ...request.result, key: as, entry });
        result(entry);
      };
    },
    (map) => {
      const before = map.get(key);
      if (!before) return null;
      const entry = to(before.entry);
      if (as !== key) map.delete(key);
      map.set(as, { ...before, key: as, entry });
      return entry;
    },
  );
  changed();
  return made;
}

/** Removes an entry, if it may be. @param {string} key @param {(entry: Outgoing) => boolean} [may] @returns {Promise<Outgoing|null>} */
export async function remove(key, may = () => true) {
  const gone = await within(
    "outbox",
    (store, result) => {
      const request = store.get(key);
      request.onsuccess = () => {
        if (!request.result || !may(request.result.entry)) return;
        store.delete(key);
        result(request.result.entry);
      };
    },
    (map) => {
      const before = map.get(key);
      if (!before || !may(before.entry)) return null;
      map.delete(key);
      return before.entry;
    },
  );
  changed();
  return gone;
}

/** @param {string} key @param {Blob} blob @param {string} scope */
export function addFile(key, blob, scope) {
  const one = { key, scope, blob, uploadId: null, at: Date.now() };
  return within("files", (store) => void store.put(one), (map) => void map.set(key, one));
}

/** @param {string} key @returns {Promise<KeptFile|null>} */
export const file = (key) =>
  within(
    "files",
    (store, result) => {
      const request = store.get(key);
      request.onsuccess = () => result(request.result ?? null);
    },
    (map) => map.get(key) ?? null,
  );

/** @param {string} key @param {string} uploadId */
export async function fileUploaded(key, uploadId) {
  const one = await file(key);
  if (one) await within("files", (store) => void store.put({ ...one, uploadId }), (map) => void map.set(key, { ...one, uploadId }));
}

/** @param {string} key */
export const dropFile = (key) => within("files", (store) => void store.delete(key), (map) => void map.delete(key));

/** Removes what has served: entries that were stored a while ago, and files that no one sent. @param {string} scope */
export async function tidy(scope) {
  const now = Date.now();
  for (const each of await all(scope)) if (each.state === "stored" && now - (each.storedAt ?? 0) > STORED_MS) await remove(each.key);
  await sweep("files", (/** @type {KeptFile} */ each) => each.scope === scope && now - each.at > FILE_MS);
}

/** Removes everything of a user in a project. @param {string} scope */
export async function forget(scope) {
  const user = `${scope.split(" ")[0]} `;
  for (const name of /** @type {const} */ (["outbox", "files"])) await sweep(name, (/** @type {{scope: string}} */ each) => each.scope.startsWith(user));
  changed();
}

/** @param {"outbox"|"files"} name @param {(one: any) => boolean} which */
const sweep = (name, which) =>
  within(
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


// Drafts. The keys begin with the user and the project. A write is done when the function returns; the promise says whether there was room.

/** @type {Map<string, Draft>} What there was no room for. */
const unwritten = new Map();

/** Return the drafts whose keys begin so. @param {string} prefix @returns {Promise<[key: string, draft: Draft][]>} */
export async function texts(prefix) {
  /** @type {Map<string, Draft>} */
  const found = new Map();
  try {
    for (const key of Object.keys(localStorage)) if (key.startsWith(prefix)) found.set(key, JSON.parse(localStorage.getItem(key) ?? "null"));
  } catch {
    // what can't be read is not there
  }
  for (const [key, one] of unwritten) if (key.startsWith(prefix)) found.set(key, one);
  return [...found].filter(([, one]) => one);
}

/** Keep a draft. @param {string} key @param {Draft} draft @returns {Promise<boolean>} False if this browser can't keep it beyond this page. */
export async function putText(key, draft) {
  try {
    localStorage.setItem(key, JSON.stringify(draft));
    unwritten.delete(key);
    return true;
  } catch {
    unwritten.set(key, draft);
    return false;
  }
}

/** Remove a draft. @param {string} key */
export async function removeText(key) {
  unwritten.delete(key);
  try {
    localStorage.removeItem(key);
  } catch {
    // then it was not kept either
  }
}

/** Remove the drafts whose keys begin so. @param {string} prefix */
export async function removeTexts(prefix) {
  for (const [key] of await texts(prefix)) await removeText(key);
}
