// @ts-check
/**
 * The host page's half of the storage, for a panel to which the browser gives none. The loader loads it when the panel asks.
 *
 * The panel sends `{id, act, args}` over the port, and gets `{id, value}` or `{id, error}`; messages of other tabs come as `{message}`. `open` has the
 * name of the storage, `lock` is answered once the lock is held, and `unlock` names the id of that request.
 */
import { openDatabase } from "./core/database.js";

/** Answer the panel. @param {MessagePort} port @param {string} channelId  the only channel whose data the panel may keep here */
export function serveStorage(port, channelId) {
  /** @type {import("./customer.js").Storage|undefined} */
  let storage;
  /** @type {Map<number, () => void>} */
  const held = new Map();

  /** @type {Record<string, (id: number, ...args: any[]) => unknown>} */
  const acts = {
    open: async (_, name) => {
      if (!String(name).startsWith(`deskwire ${channelId} `)) throw new Error("This is another channel.");
      storage = await openDatabase(name);
      storage.listen?.((message) => port.postMessage({ message }));
    },
    all: () => storage?.all(),
    write: (_, records) => storage?.write(records),
    post: (_, message) => storage?.post?.(message),
    lock: (id, name) =>
      new Promise((done, fail) => {
        void storage?.lock?.(name, () => (done(undefined), new Promise((/** @type {(value?: any) => void} */ release) => held.set(id, release)))).catch(fail);
      }),
    unlock: (_, id) => {
      held.get(id)?.();
      held.delete(id);
    },
  };
  port.onmessage = async ({ data: { id, act, args } }) => {
    try {
      port.postMessage({ id, value: await acts[act]?.(id, ...args) });
    } catch (error) {
      port.postMessage({ id, error: String(error) });
    }
  };
}
