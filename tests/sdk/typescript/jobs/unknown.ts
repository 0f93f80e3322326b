// Reads responses and events that a later version of the service sends: with fields and values that this SDK does not know.
import { Deskwire, Mirror, MemoryMirrorStore, type Conversation, type DeskwireEvent } from "deskwire-sdk";

const { BASE = "", KEY = "" } = process.env;
const client = new Deskwire({ baseUrl: BASE, apiKey: KEY, fetch: later });

/** Add a field to every object, another value to every status, and another type to the last event. */
async function later(...request: Parameters<typeof fetch>): Promise<Response> {
  const response = await fetch(...request);
  const body: unknown = JSON.parse(await response.text(), (key, value) => {
    if (key === "status") return "SNOOZED";
    return value !== null && typeof value === "object" && !Array.isArray(value) ? { ...value, priority: "high" } : value;
  });
  const { items } = body as { items?: DeskwireEvent[] };
  if (items?.at(-1)?.id.startsWith("evt_")) items.push({ ...items.at(-1), type: "conversation.snoozed" } as unknown as DeskwireEvent);
  return new Response(JSON.stringify(body), response);
}

function shown(conversation: Conversation & { priority?: string }): string[] {
  switch (conversation.status) {
    case "OPEN":
    case "PENDING":
    case "CLOSED":
      return ["known"];
    default:
      return [conversation.status, conversation.priority ?? "none"];
  }
}

const made = await client.conversations.create({ contact: { userId: "u1" }, message: { text: "Hello" } });
const types: string[] = [];
for await (const event of client.events.list()) types.push(event.type);
const store = new MemoryMirrorStore();
const mirror = new Mirror(client, store);
store.cursor = (await client.events.list({ limit: 1 })).items[0]?.id ?? null;
await mirror.catchUp();
console.log(JSON.stringify({ shown: shown(made), types, mirrored: [...store.conversations.values()].map(shown) }));
