// Follows the stream; prints events, gaps and states.
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { Deskwire, EventStream, type EventStreamOptions, type WebSocketLike } from "deskwire-sdk";

const { BASE = "", KEY = "", FILE, CHANNEL, BUFFER, CONSUMER, SLOW, WS } = process.env;
const client = new Deskwire({ baseUrl: BASE, apiKey: KEY });
let overflow = (): void => undefined;
const overflowed = new Promise<void>((resolve) => (overflow = resolve));
const options: EventStreamOptions = {
  client,
  channel: CHANNEL,
  consumerId: CONSUMER,
  bufferMax: BUFFER === undefined ? undefined : Number(BUFFER),
  onState: (state, reason) => {
    console.log(`state ${state} ${reason ?? ""}`);
    if (reason?.endsWith("events are unread")) overflow();
  },
};
if (WS) options.webSocket = ((await import(WS)) as { WebSocket: new (url: string) => WebSocketLike }).WebSocket;
if (FILE) {
  options.cursor = {
    load: () => (existsSync(FILE) ? readFileSync(FILE, "utf8") : null),
    save: (id) => writeFileSync(FILE, id),
  };
}

/** Let the reader wait, where it is slow, until the stream has left because of the unread events. */
async function* asked(stream: EventStream) {
  for await (const item of stream) {
    if (SLOW) await overflowed;
    yield item;
  }
}

const stream = new EventStream(options);
process.once("SIGTERM", () => stream.close());
try {
  for await (const item of asked(stream)) {
    if (item.type === "stream.gap") console.log("gap", item.resumedAfter);
    else console.log("event", item.type, item.sequence, "message" in item.data ? (item.data.message as { text: string }).text : "");
  }
} catch (error) {
  console.log("ended", (error as Error).name, (error as Error).message);
}
