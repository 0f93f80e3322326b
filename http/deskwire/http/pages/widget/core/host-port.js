// @ts-check
/** The panel's half of the storage that the host page keeps for it; the other half is host-storage.js. */
/** @import { Storage } from "../customer.js" */

const HOST_TIMEOUT_MS = 5_000;

/** Return the storage of the host page, behind a port that `serveStorage` answers. Rejects if the host has none. @param {MessagePort} port @param {string} name @returns {Promise<Storage>} */
export async function openHostStorage(port, name) {
  let last = 0;
  /** @type {Map<number, {done: (value: any) => void, fail: (reason: any) => void}>} */
  const waiting = new Map();
  /** @type {(message: any) => void} */
  let receive = () => {};
  const ask = (/** @type {string} */ act, /** @type {any[]} */ ...args) =>
    new Promise((/** @type {(value: any) => void} */ done, fail) => {
      waiting.set(++last, { done, fail });
      port.postMessage({ id: last, act, args });
    });
  port.onmessage = ({ data: { id, value, error, message } }) => {
    if (!id) return receive(message);
    const asked = waiting.get(id);
    waiting.delete(id);
    if (error) asked?.fail(new Error(error));
    else asked?.done(value);
  };
  await Promise.race([ask("open", name), new Promise((_, fail) => setTimeout(fail, HOST_TIMEOUT_MS, new Error("The host page does not answer.")))]);
  return {
    all: () => ask("all"),
    write: (records) => ask("write", records),
    lock: async (lock, work, abort) => {
      const id = last + 1;
      await ask("lock", lock);
      try {
        abort?.throwIfAborted();
        return await work();
      } finally {
        void ask("unlock", id);
      }
    },
    post: (message) => void ask("post", message),
    listen: (to) => (receive = to),
    close: () => port.close(),
  };
}
