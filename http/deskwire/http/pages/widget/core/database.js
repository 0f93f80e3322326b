// @ts-check
/** Records in IndexedDB. A write is on disk before its promise resolves. Used by the panel, and by the host page for a panel without storage. */
/** @import { Storage, StoredRecord } from "../customer.js" */

const OPEN_TIMEOUT_MS = 5_000; // some browsers never answer in a frame without storage

/** @param {string} name @returns {Promise<IDBDatabase>} */
const connect = (name) =>
  new Promise((done, fail) => {
    setTimeout(fail, OPEN_TIMEOUT_MS);
    const request = indexedDB.open(name, 1); // throws SecurityError, or fails with UnknownError, where a frame has no storage
    request.onupgradeneeded = () => request.result.createObjectStore("records", { keyPath: "key" });
    request.onsuccess = () => done(request.result);
    request.onerror = () => fail(request.error);
  });

/** Open the storage of this origin. Rejects if the browser refuses it. @param {string} name @returns {Promise<Storage>} */
export async function openDatabase(name) {
  /** @type {IDBDatabase|null} */
  let database = await connect(name);
  const channel = typeof BroadcastChannel === "function" ? new BroadcastChannel(name) : null;

  /**
   * @template T @param {IDBTransactionMode} mode @param {(store: IDBObjectStore, result: (value: T) => void, abort: () => void) => void} work
   * @returns {Promise<T>}
   */
  async function transact(mode, work) {
    for (let attempt = 0; ; attempt++) {
      try {
        database ??= await connect(name);
        return await run(database, mode, work);
      } catch (error) {
        if (attempt || /** @type {any} */ (error)?.name !== "InvalidStateError") throw error;
        database = null; // the browser closed it, for example because the user deleted the site's data
      }
    }
  }

  /** @type {Storage} */
  const storage = {
    all: () => transact("readonly", (store, result) => void (store.getAll().onsuccess = (event) => result(/** @type {any} */ (event.target).result))),
    write: (records) =>
      transact("readwrite", (store, result, abort) => {
        result(true);
        for (const each of records)
          store.get(each.key).onsuccess = (event) => {
            const stored = /** @type {any} */ (event.target).result;
            if ((stored?.rev ?? 0) !== each.rev - 1) {
              result(false);
              abort();
            } else if (each.value === null) store.delete(each.key);
            else store.put(each);
          };
      }),
    // Without a secure context there are no Web Locks: then every page sends, and the service stores each message once.
    lock: navigator.locks ? (lock, work, abort) => /** @type {Promise<any>} */ (navigator.locks.request(`${name} ${lock}`, { signal: abort }, work)) : pageLock(),
    post: (message) => channel?.postMessage(message),
    listen: (receive) => void channel?.addEventListener("message", ({ data }) => receive(data)),
    close: () => {
      channel?.close();
      database?.close();
    },
  };
  await storage.write([{ key: "probe", rev: 1, value: null }]); // opening can succeed where writing fails
  return storage;
}

/** @template T @param {IDBDatabase} database @param {IDBTransactionMode} mode @param {(store: IDBObjectStore, result: (value: T) => void, abort: () => void) => void} work */
const run = (database, mode, work) =>
  new Promise((/** @type {(value: T) => void} */ done, fail) => {
    const transaction = database.transaction("records", mode, { durability: "strict" });
    /** @type {any} */
    let result;
    transaction.oncomplete = () => done(result);
    transaction.onabort = () => (result === false ? done(result) : fail(transaction.error ?? new Error("No room left.")));
    const set = (/** @type {T} */ value) => (result = value);
    work(transaction.objectStore("records"), set, () => result === false && transaction.abort());
  });

/** Return a lock of this page alone. @returns {NonNullable<Storage["lock"]>} */
export function pageLock() {
  /** @type {Map<string, Promise<unknown>>} */
  const queues = new Map();
  return (name, work, abort) => {
    const before = queues.get(name);
    const mine = (async () => {
      await before;
      abort?.throwIfAborted();
      return work();
    })();
    queues.set(name, mine.catch(() => {}));
    return mine;
  };
}
