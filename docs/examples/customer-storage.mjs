// Stores the outbox and the session of `customer.js` in React Native's AsyncStorage, or another store of texts by key.
export function textStorage(store, key = "deskwire") {
  let queue = Promise.resolve();
  const inTurn = (work) => (queue = queue.then(work, work));
  const read = async () => JSON.parse((await store.getItem(key)) ?? "[]");

  return {
    all: () => inTurn(read),
    write: (records) =>
      inTurn(async () => {
        const stored = new Map((await read()).map((each) => [each.key, each]));
        if (records.some(({ key, rev }) => (stored.get(key)?.rev ?? 0) !== rev - 1)) return false;
        for (const each of records) each.value === null ? stored.delete(each.key) : stored.set(each.key, each);
        await store.setItem(key, JSON.stringify([...stored.values()]));
        return true;
      }),
  };
}
