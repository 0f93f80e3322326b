// The common calls, as a user would write them; prints what came back.
import { ConflictError, Deskwire, NotFoundError, UnauthenticatedError, ValidationError, type Message } from "deskwire-sdk";

const { BASE = "", KEY = "", TOKEN = "", PROJECT = "" } = process.env;
const client = new Deskwire({ baseUrl: `${BASE}/v3/`, apiKey: KEY });
const user = new Deskwire({ baseUrl: BASE, apiKey: async () => TOKEN, project: PROJECT });

const made = await client.conversations.create({
  contact: { userId: "team/7 ä", name: "Ada", email: undefined },
  title: "Order A-1001",
  message: { text: "Where is it?" },
});
await client.messages.create(made.id, { text: "On its way.", author: { type: "bot", name: "Robin" } });
for (let number = 0; number < 5; number++) await client.messages.create(made.id, { text: `${number}` });
const texts: string[] = [];
for await (const message of client.messages.list(made.id, { limit: 3 })) texts.push(message.text);
const page = await client.messages.list(made.id, { limit: 3 });
const pages: number[] = [];
for await (const each of page.pages()) pages.push(each.items.length);
const second = await page.next();

const list = await client.conversations.list({ sort: "updated", order: "asc", updatedSince: new Date(0) });
const contact = await client.contacts.get("team/7 ä");
const closed = await client.conversations.close(made.id);
const reopened = await client.conversations.reopen(made.id);
await client.conversations.setContactTyping(made.id, { typing: true });
const tags: string[] = [];
for await (const tag of client.tags.list()) tags.push(tag.name);

const problems: unknown[] = [];
async function refused(call: () => PromiseLike<unknown>): Promise<void> {
  try {
    await call();
    problems.push("accepted");
  } catch (error) {
    if (error instanceof ValidationError) problems.push([error.name, error.code, error.errors[0]?.pointer, error.requestId?.slice(0, 4)]);
    else if (error instanceof NotFoundError || error instanceof UnauthenticatedError) problems.push([error.name, error.code, error.status]);
    else problems.push([(error as Error).name, (error as Error).message]);
  }
}
await refused(() => client.conversations.rate(made.id, { rating: 11 }));
await refused(() => client.conversations.get("cnv_01KZ00000000000000000000C1"));
await refused(() => new Deskwire({ baseUrl: BASE, apiKey: "sk_wrong" }).project.get());
await refused(async () => client.contacts.get(".."));
await refused(async () => client.contacts.delete(""));
await refused(async () => new Deskwire({ baseUrl: "support.example.com" }));
await refused(async () => new Deskwire());
await refused(() => new Deskwire({ baseUrl: BASE }).project.get());
await refused(() => new Deskwire({ baseUrl: BASE, apiKey: "sk_secret\nx" }).project.get());
process.env["DESKWIRE_URL"] = BASE;
process.env["DESKWIRE_API_KEY"] = ` ${KEY}\n`;
const project = await new Deskwire().request<{ id: string }>("GET", "/v3/s2s/project");
const methods = await new Deskwire({ apiKey: "not a credential, which this call needs none of" }).auth.listMethods();

const ticket = await user.tickets.create({ title: "Parcel lost" });
let etag = "";
await user.tickets.get(ticket.id, { onResponse: ({ headers }) => (etag = headers.get("ETag") ?? "") });
const changed = await user.tickets.update(ticket.id, { priority: "HIGH" }, { ifMatch: etag });
await refused(() => user.tickets.update(ticket.id, { priority: "LOW" }, { ifMatch: etag }));
const notes = await user.dashboard.messages.create(made.id, { text: "A note", internal: true });
const permissions = await user.me.getPermissions();

const upload = await user.uploads.create({ file: new File(["label"], "label.txt", { type: "text/plain" }) });
const bytes = await user.uploads.create({ file: { content: new Uint8Array([1, 2, 3]), name: "b.bin" } });
const withFile = await client.messages.create(made.id, { text: "See", attachments: [upload.id] });
const address = withFile.attachments[0]?.url ?? "";
const downloaded = await (await fetch(new URL(address, BASE))).text();

const exported = client.exports.messages<Message>();
let lines = 0;
for await (const line of exported) if (!("deleted" in line) && line.conversationId === made.id) lines++;
const cursor = exported.nextCursor ?? "";
await client.messages.create(made.id, { text: "later" });
const later: string[] = [];
for await (const line of client.exports.messages<Message>({ cursor })) later.push("deleted" in line ? "deletion" : line.text);

const imported = await client.imports.create([
  { type: "conversation", externalId: "z-1", contact: { userId: "u9" }, createdAt: "2024-03-01T09:00:00Z" },
  { type: "message", externalId: "z-2", conversation: "z-1", author: { type: "contact" }, text: "Old", createdAt: "2024-03-01T09:00:00Z" },
]);
async function* more() {
  yield { type: "message" as const, externalId: "z-3", conversation: "z-1", author: { type: "contact" as const }, text: "New", createdAt: "2024-03-01T09:00:00Z" };
}
const streamed = await client.imports.create(more(), { events: false });
const found = await client.imports.find({ externalId: "z-1" });
const csv = await (await user.reports.volumeCsv({ from: "2026-01-01", to: "2026-01-07" })).text();

const key = { idempotencyKey: "order-1" };
const first = await client.conversations.create({ contact: { userId: "u1" } }, key);
let replayed: string | null = null;
const again = await client.conversations.create({ contact: { userId: "u1" } }, { ...key, onResponse: ({ headers }) => (replayed = headers.get("Idempotent-Replayed")) });
await refused(() => client.conversations.create({ contact: { userId: "u2" } }, key));
const deleted = await client.conversations.delete(first.id);

console.log(
  JSON.stringify({
    requested: [project.id === PROJECT, typeof methods],
    texts,
    pages,
    second: second?.items.map((each) => each.text),
    asOf: list.asOf.slice(0, 4),
    listed: list.items.length,
    contact: contact.userId,
    states: [made.status, closed.status, reopened.status],
    problems,
    priority: changed.priority,
    note: "internal" in notes && notes.internal,
    permissions: permissions.permissions.length > 0,
    sizes: [upload.size, bytes.size],
    downloaded,
    lines,
    later,
    imports: [imported.imported.messages, streamed.imported.messages, found.contact.userId],
    csv: csv.split("\n").length > 1,
    same: [first.id === again.id, replayed],
    deleted: deleted.id === first.id,
    conflict: ConflictError.name,
  }),
);
