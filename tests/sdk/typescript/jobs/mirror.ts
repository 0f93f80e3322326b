// Keeps a mirror in a file; prints after each change. Started again, it continues.
import { existsSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { Deskwire, MemoryMirrorStore, Mirror } from "deskwire-sdk";

const file = process.argv[2] ?? "";
const client = new Deskwire({ baseUrl: process.env["BASE"] ?? "", apiKey: process.env["KEY"] ?? "" });

class FileStore extends MemoryMirrorStore {
  constructor() {
    super();
    if (!existsSync(file)) return;
    const { conversations, messages, cursor } = JSON.parse(readFileSync(file, "utf8"));
    for (const each of conversations) this.putConversation(each);
    for (const each of messages) this.putMessage(each);
    this.cursor = cursor;
  }

  async transaction(work: () => Promise<void>): Promise<void> {
    await work();
    const content = { conversations: [...this.conversations.values()], messages: [...this.messages.values()], cursor: this.cursor };
    writeFileSync(`${file}.new`, JSON.stringify(content));
    renameSync(`${file}.new`, file);
    const shown = content.conversations.map((each) => [each.contact.name, each.status, each.sequence]).sort();
    console.log(JSON.stringify({ conversations: shown, messages: content.messages.map((each) => each.text).sort(), started: this.cursor !== null }));
  }
}

const mirror = new Mirror(client, new FileStore());
await mirror.run({ onError: (error) => console.log("outage", (error as Error).name) });
