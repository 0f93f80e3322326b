// @ts-check
/** The three places for stored data, tried in order: IndexedDB of this origin, the host page, memory. And the cached records of one of them. */
import { openDatabase, pageLock } from "./database.js";
/** @import { Options, State, Storage, StoredRecord } from "../customer.js" */

/** Return a storage that lasts as long as the page. @returns {Storage} */
export function memoryStorage() {
  /** @type {Map<string, StoredRecord>} */
  const stored = new Map();
  return {
    all: async () => [...stored.values()],
    write: async (records) => {
      if (records.some(({ key, rev }) => (stored.get(key)?.rev ?? 0) !== rev - 1)) return false;
      for (const each of records) each.value === null ? stored.delete(each.key) : stored.set(each.key, each);
      return true;
    },
  };
}

/** @param {Options} options @returns {Promise<{storage: Storage, place: State["storage"]}>} */
export async function openStorage({ baseUrl, channelId, storage, site, hostPort }) {
  if (storage) return { storage, place: "kept" };
  const name = ["deskwire", channelId, baseUrl, site ?? topOrigin()].join(" ");
  try {
    return { storage: await openDatabase(name), place: "kept" };
  } catch {
    // the next place
  }
  try {
    if (hostPort) return { storage: await (await import("./host-port.js")).openHostStorage(await hostPort(), name), place: "host" };
  } catch {
    // the next place
  }
  return { storage: memoryStorage(), place: "page" };
}

/** Return the origin of the site that shows this page, which can be another one's frame. */
function topOrigin() {
  const place = globalThis.location;
  if (!place) return "";
  if (window.parent === window) return place.origin;
  return place.ancestorOrigins?.[place.ancestorOrigins.length - 1] ?? (document.referrer ? new URL(document.referrer).origin : place.origin);
}

/** The records of a storage, as last read. */
export class Records {
  /** @param {Storage} storage */
  constructor(storage) {
    this.storage = storage;
    this.lock = storage.lock ?? pageLock();
    /** @type {Map<string, StoredRecord>} */
    this.known = new Map();
  }

  /** Read all records. */
  async refresh() {
    this.known = new Map((await this.storage.all()).map((each) => [each.key, each]));
  }

  /** Return the value of a record. @param {string} key */
  get(key) {
    return this.known.get(key)?.value ?? null;
  }

  /** Return the values of all records whose keys have this prefix. @param {string} prefix @returns {any[]} */
  list(prefix) {
    return [...this.known.values()].filter(({ key }) => key.startsWith(prefix)).map(({ value }) => value);
  }

  /**
   * Write records, all or none; resolves once they are on disk. Returns false if `edit` returned nothing to write.
   * @param {() => Record<string, any>|null} edit  the new values by key, from the current ones; null removes. Called again if another page wrote first.
   */
  async change(edit) {
    for (;;) {
      const values = edit();
      if (!values || !Object.keys(values).length) return false;
      const records = Object.entries(values).map(([key, value]) => ({ key, value, rev: (this.known.get(key)?.rev ?? 0) + 1 }));
      if (await this.storage.write(records)) {
        for (const each of records) each.value === null ? this.known.delete(each.key) : this.known.set(each.key, each);
        this.storage.post?.({ changed: true });
        return true;
      }
      await this.refresh();
    }
  }
}
