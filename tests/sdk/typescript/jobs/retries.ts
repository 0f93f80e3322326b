// Makes one call against a server that fails; prints how it ended.
import { APIError, ConnectionError, Deskwire, TimeoutError } from "deskwire-sdk";

const { BASE = "", CALL = "" } = process.env;
const client = new Deskwire({ baseUrl: BASE, apiKey: "sk_x" });
const calls: Record<string, () => PromiseLike<unknown>> = {
  create: () => client.conversations.create({ contact: { userId: "u1" } }),
  never: () => client.conversations.create({ contact: { userId: "u1" } }, { maxRetries: 0 }),
  read: () => client.project.get(),
  slow: () => client.project.get({ timeoutMs: 50, maxRetries: 1 }),
  abort: () => {
    const abort = new AbortController();
    const call = client.conversations.list({}, { signal: abort.signal });
    setTimeout(() => abort.abort(new Error("no longer needed")), 20);
    return call;
  },
  once: () => client.imports.create(once()),
  export: async () => {
    const found = [];
    for await (const line of client.exports.messages()) found.push(line);
    return found;
  },
};

async function* once() {
  yield { type: "deletion" as const, externalId: "x", conversation: "y" } as never;
}

try {
  console.log(JSON.stringify({ result: await calls[CALL]?.() }));
} catch (error) {
  const { name, message } = error as Error;
  const kinds = [ConnectionError, TimeoutError, APIError].filter((kind) => error instanceof kind).map((kind) => kind.name);
  console.log(JSON.stringify({ name, message, kinds, retryAfterS: (error as APIError).retryAfterS ?? null }));
}
