import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";

const widget = new URL("../../../../http/deskwire/http/pages/widget/", import.meta.url);
const { Offline, Problem, retryDelay } = await import(new URL("core/api.js", widget));
const { EMPTY, lacksLastMessage, leavesGap, reduce, resolve } = await import(new URL("core/state.js", widget));
const { afterFailure, createOutbox, heads, inOrder } = await import(new URL("core/outbox.js", widget));
const { createSession, decide, subjectOf } = await import(new URL("core/session.js", widget));
const { parse, parsing } = await import(new URL("core/stream.js", widget));
const { leadingZeros, solve } = await import(new URL("core/proof.js", widget));
const { Records, memoryStorage } = await import(new URL("core/storage.js", widget));

const AT = "2026-01-01T00:00:00.000Z";
const conversation = (id, changes = {}) => ({ id, title: null, status: "OPEN", closed: false, closedBy: null, unread: false, assignee: null, rating: null, lastMessageAt: AT, createdAt: AT, updatedAt: AT, closedAt: null, sequence: 1, ...changes });
const message = (index, changes = {}) => ({ id: `msg_${String(index).padStart(3, "0")}`, conversationId: "cnv_a", index, author: { type: "contact", name: null, self: true }, text: `Text ${index}`, attachments: [], createdAt: AT, redactedAt: null, ...changes });
const event = (type, data) => ({ type: "event", event: { id: "evt_1", type, createdAt: AT, data } });
const after = (...changes) => changes.reduce(reduce, EMPTY);
const texts = (state, id = "cnv_a") => state.messages.get(id)?.map(({ text }) => text);
const entry = (clientId, changes = {}) => ({ clientId, conversation: "client:x", text: clientId, files: [], createdAt: AT, state: "kept", problem: null, order: 1, starts: false, uploads: {}, ...changes });

test("repeated and reordered changes make the same state", () => {
  const changes = [
    { type: "list", items: [conversation("cnv_a", { sequence: 3, unread: true })] },
    { type: "messages", id: "cnv_a", items: [message(0), message(1)] },
    event("message.created", { conversation: conversation("cnv_a", { sequence: 4 }), message: message(2) }),
    { type: "sent", clientId: "m2", message: message(2), conversation: null },
  ];
  for (const order of [[0, 1, 2, 3], [0, 1, 3, 2], [0, 1, 2, 2, 3, 3], [0, 1, 2, 0, 3, 1], [1, 0, 2, 3]]) {
    const state = after(...order.map((at) => changes[at]));
    assert.deepEqual(texts(state), ["Text 0", "Text 1", "Text 2"], String(order));
    assert.equal(state.unread, 0);
    assert.equal(state.conversations.get("cnv_a").sequence, 4);
  }
});

test("a conversation changes only to a greater sequence", () => {
  const state = after({ type: "list", items: [conversation("cnv_a", { sequence: 5, title: "New" })] }, { type: "list", items: [conversation("cnv_a", { sequence: 4, title: "Old" })] });
  assert.equal(state.conversations.get("cnv_a").title, "New");
});

test("a message of a thread that is not loaded does not look like the whole thread", () => {
  const state = after(event("message.created", { conversation: conversation("cnv_a"), message: message(7) }));
  assert.equal(texts(state), undefined);
  assert.equal(state.conversations.get("cnv_a").lastMessage.index, 7);
});

test("the first message of a conversation makes its thread complete", () => {
  const state = after(event("message.created", { conversation: conversation("cnv_a"), message: message(0) }));
  assert.ok(state.loaded.has("cnv_a"));
});

test("a missing message is noticed and not bridged", () => {
  const state = after({ type: "messages", id: "cnv_a", items: [message(0)] });
  const late = event("message.created", { conversation: conversation("cnv_a"), message: message(2) });
  assert.ok(leavesGap(state, late.event));
  assert.deepEqual(texts(reduce(state, late)), ["Text 0"]);
  assert.ok(!leavesGap(state, event("message.created", { conversation: conversation("cnv_a"), message: message(1) }).event));
});

test("a page that does not touch the loaded messages replaces them", () => {
  const state = after({ type: "messages", id: "cnv_a", items: [message(0), message(1)] }, { type: "messages", id: "cnv_a", items: [message(8), message(9)] });
  assert.deepEqual(texts(state), ["Text 8", "Text 9"]);
});

test("the row of a sent message stays while the list is loading", () => {
  const waiting = reduce(EMPTY, { type: "set", value: { entries: [entry("m7")] } });
  assert.deepEqual([...waiting.conversations.keys()], ["client:x"]);
  const sent = reduce(waiting, { type: "sent", clientId: "m7", message: message(7, { clientId: "m7" }), conversation: null });
  assert.deepEqual([...sent.conversations.values()].map(({ id, clientId, lastMessage }) => [id, clientId, lastMessage?.index]), [["cnv_a", "x", 7]]);
  assert.ok(!sent.listed);
  const listed = reduce(sent, { type: "list", items: [conversation("cnv_a", { clientId: "x", title: "Of the list" })] });
  assert.deepEqual([...listed.conversations.values()].map(({ title }) => title), ["Of the list"]);
});

test("other tabs learn of a stored message before its record is gone", async () => {
  const posted = [];
  const records = new Records({ ...memoryStorage(), post: (given) => posted.push(given) });
  await records.change(() => ({ session: { token: "ct_1", contact: { userId: "ada" } } }));
  const outbox = createOutbox({ records, call: async () => message(0), about: () => ({}), changed: (change) => posted.push(change), refresh: () => {}, signIn: async () => {} });
  await outbox.add({ clientId: "m0", owner: "ada", conversation: "cnv_a", text: "Text 0", attachments: [] });
  posted.length = 0;
  await outbox.pump();
  assert.deepEqual(posted.map(({ type, changed }) => type ?? (changed && "record")), ["sending", "sent", "record", "sending"]);
  assert.deepEqual(outbox.all(), []);
});

test("a message that was sent over a gap hides nothing until the gap is filled", () => {
  const state = after({ type: "messages", id: "cnv_a", items: [message(0), message(1)] }, { type: "sent", clientId: "m4", message: message(4), conversation: null });
  assert.deepEqual(texts(state), ["Text 0", "Text 1", "Text 4"]);
  const filled = [2, 3, 4].map((index) => event("message.created", { conversation: conversation("cnv_a"), message: message(index) })).reduce(reduce, state);
  assert.deepEqual(texts(filled), ["Text 0", "Text 1", "Text 2", "Text 3", "Text 4"]);
});

test("older messages come before the loaded ones", () => {
  const state = after({ type: "messages", id: "cnv_a", items: [message(5)] }, { type: "messages", id: "cnv_a", items: [message(3), message(4)] });
  assert.deepEqual(texts(state), ["Text 3", "Text 4", "Text 5"]);
});

test("redacted text stays away, also if the old message comes again", () => {
  const state = after(
    { type: "messages", id: "cnv_a", items: [message(0), message(1)] },
    event("conversation.updated", { conversation: conversation("cnv_a", { sequence: 9 }), redactedMessageIds: ["msg_000"], deletedMessageIds: ["msg_001"] }),
    { type: "messages", id: "cnv_a", items: [message(0)] },
  );
  assert.deepEqual(texts(state), [""]);
  assert.equal(state.messages.get("cnv_a")[0].redactedAt, AT);
});

test("a deleted conversation does not come back with an older response", () => {
  const state = after({ type: "list", items: [conversation("cnv_a")] }, { type: "set", value: { open: "cnv_a" } }, event("conversation.deleted", { conversation: { id: "cnv_a" } }), { type: "list", items: [conversation("cnv_a")] });
  assert.equal(state.conversations.size, 0);
  assert.equal(state.open, null);
});

test("the unread count follows the conversations, and the badge until they are loaded", () => {
  const state = after({ type: "set", value: { badge: 3 } });
  assert.equal(state.unread, 3);
  assert.equal(reduce(state, { type: "list", items: [conversation("cnv_a", { unread: true }), conversation("cnv_b")] }).unread, 1);
});

test("a new conversation is shown at once and keeps its place once it is stored", () => {
  const local = after({ type: "set", value: { open: "client:x", entries: [entry("m1"), entry("m2", { order: 2 })] } });
  assert.deepEqual([...local.conversations.keys()], ["client:x"]);
  const stored = reduce(local, { type: "sent", clientId: "m1", message: message(0, { clientId: "m1" }), conversation: conversation("cnv_a", { clientId: "x" }) });
  assert.deepEqual([...stored.conversations.keys()], ["cnv_a"]);
  assert.equal(stored.open, "cnv_a");
  assert.equal(resolve(stored, "client:x"), "cnv_a");
  assert.deepEqual(stored.outbox.map(({ clientId, conversation }) => [clientId, conversation]), [["m2", "cnv_a"]]);
});

test("a message that the stream has already brought is not shown as waiting", () => {
  const state = after({ type: "set", value: { entries: [entry("m1", { conversation: "cnv_a" })] } }, { type: "messages", id: "cnv_a", items: [message(0, { clientId: "m1" })] });
  assert.deepEqual(state.outbox, []);
});

test("an unchanged state is the same object", () => {
  const state = after({ type: "list", items: [conversation("cnv_a", { sequence: 2 })] });
  assert.equal(reduce(state, { type: "list", items: [] }).conversations.get("cnv_a"), state.conversations.get("cnv_a"));
});

const refused = (status, code = "some_code", retryAfterMs = null) => new Problem(status, { code, detail: "why" }, retryAfterMs);

test("a failure that can pass keeps the message", () => {
  for (const error of [new Offline("no response"), new TypeError("anything"), refused(500), refused(503), refused(408), refused(409, "channel_disabled"), refused(403, "origin_not_allowed")]) {
    const next = afterFailure(error, 1, 0.5);
    assert.ok(next.retryMs > 0 && next.retryMs <= 30_000, String(error));
    assert.ok(!("refused" in next));
  }
  assert.ok(afterFailure(refused(401), 1).signIn);
});

test("the server's delay counts, for all conversations", () => {
  assert.deepEqual(afterFailure(refused(429, "rate_limited", 7_000), 3), { retryMs: 7_000, pause: true });
  assert.equal(afterFailure(refused(503, "not_ready", 9_000), 1).retryMs, 9_000);
});

test("any other refusal is final and has its reason", () => {
  for (const status of [400, 403, 404, 409, 413, 422]) assert.deepEqual(afterFailure(refused(status), 1), { refused: { status, code: "some_code", detail: "why", errors: [] } });
});

test("delays grow to half a minute and differ", () => {
  for (const failures of [1, 3, 10, 1000]) {
    assert.ok(retryDelay(failures, 0) < retryDelay(failures, 0.99));
    assert.ok(retryDelay(failures, 0.99) <= 30_000);
  }
  assert.ok(retryDelay(2, 0.5) > retryDelay(1, 0.5));
});

test("the first waiting message of each free conversation is next", () => {
  const all = inOrder([entry("c", { order: 3 }), entry("b", { order: 2 }), entry("a", { order: 1, state: "refused" }), entry("d", { order: 4, conversation: "cnv_b" })]);
  assert.deepEqual(heads(all, new Set()).map(({ clientId }) => clientId), ["b", "d"]);
  assert.deepEqual(heads(all, new Set(["client:x"])).map(({ clientId }) => clientId), ["d"]);
});

const jwt = (claims) => ["e30", Buffer.from(JSON.stringify(claims)).toString("base64url"), "signature"].join(".");
const session = (verified, userId) => ({ token: "t", contact: { id: null, userId, name: null, email: null, verified }, cursor: null });

test("the subject of an identity is read as the service reads it", () => {
  assert.equal(subjectOf(jwt({ sub: "Ådä-🙂" })), "Ådä-🙂");
  for (const broken of [null, "", "x", "a.b.c", jwt({})]) assert.equal(subjectOf(broken), null);
});

test("a session is used, upgraded, opened or switched by the identity", () => {
  const ada = jwt({ sub: "ada" });
  for (const [stored, identity, ended, step] of [
    [null, undefined, null, "open"],
    [null, ada, null, "open"],
    [session(false, "visitor-1"), undefined, null, "use"],
    [session(false, "visitor-1"), null, null, "use"],
    [session(false, "visitor-1"), ada, null, "upgrade"],
    [session(false, "visitor-1"), ada, "t", "open"],
    [session(true, "ada"), ada, null, "use"],
    [session(true, "ada"), ada, "t", "open"],
    [session(true, "ada"), undefined, null, "use"],
    [session(true, "ada"), null, null, "switch"],
    [session(true, "ada"), jwt({ sub: "bob" }), null, "switch"],
    [session(true, "ada"), jwt({ sub: "bob" }), "t", "switch"],
  ])
    assert.equal(decide(stored, identity, ended), step);
});

test("events are read however they are cut", () => {
  const text = 'retry: 1000\nevent: hello\ndata: {"at":"evt_1"}\n\n: comment\n\nid: evt_2\n\nid: evt_3\r\ndata: {"a":"ü: b"}\r\n\r\n';
  const whole = parse(parsing(), text);
  assert.deepEqual(whole, [
    { id: "", event: "hello", data: { at: "evt_1" } },
    { id: "evt_2", event: "", data: null },
    { id: "evt_3", event: "", data: { a: "ü: b" } },
  ]);
  for (let size = 1; size < 7; size++) {
    const at = parsing();
    const found = [];
    for (let from = 0; from < text.length; from += size) found.push(...parse(at, text.slice(from, from + size)));
    assert.deepEqual(found, whole, `pieces of ${size}`);
  }
});

test("a proof of work has as many zero bits as demanded", async () => {
  const { challenge, nonce } = await solve({ challenge: "1-10-99-abc", difficulty: 10 });
  const digest = createHash("sha256").update(`${challenge}.${nonce}`).digest();
  assert.ok(leadingZeros(digest) >= 10);
  assert.equal(leadingZeros(Uint8Array.of(0, 0b00010000)), 11);
  assert.equal(leadingZeros(Uint8Array.of(0, 0)), 16);
  assert.equal(await solve({ challenge: "x", difficulty: 60 }), null);
});

test("two pages that write the same record never overwrite each other", async () => {
  const storage = memoryStorage();
  const [one, two] = [new Records(storage), new Records(storage)];
  await Promise.all([one.refresh(), two.refresh()]);
  const add = (records) => records.change(() => ({ count: (records.get("count") ?? 0) + 1 }));
  await Promise.all([add(one), add(two), add(one), add(two)]);
  await one.refresh();
  assert.equal(one.get("count"), 4);
});

test("a write of several records is whole or not at all", async () => {
  const storage = memoryStorage();
  assert.ok(await storage.write([{ key: "a", rev: 1, value: 1 }]));
  assert.equal(await storage.write([{ key: "b", rev: 1, value: 2 }, { key: "a", rev: 1, value: 3 }]), false);
  assert.deepEqual((await storage.all()).map(({ key, value }) => [key, value]), [["a", 1]]);
});

// Sessions that two tabs store.

const sessionOf = (userId, token = `ct_${userId}`) => ({ token, contact: { id: `con_${userId}`, userId, verified: true }, cursor: null });
const quiet = { channelId: "chn_1", flush: async () => {}, leaving: () => {}, began: () => {} };
const jwtOf = (sub) => `e30.${btoa(JSON.stringify({ sub }))}.x`;

/** A page of Ada whose session has ended. During the step `meanwhile` another tab signs Bob in and stores a message; `hears`: this page has read that. */
async function endedPage(meanwhile, hears = true) {
  const storage = memoryStorage();
  const [records, otherTab] = [new Records(storage), new Records(storage)];
  await records.change(() => ({ session: sessionOf("ada") }));
  let due = "";
  const pass = async (step) => {
    if (step !== due) return;
    await otherTab.refresh();
    await createSession({ ...quiet, records: otherTab, identity: () => async () => jwtOf("bob"), call: async () => sessionOf("bob") }).current();
    await otherTab.change(() => ({ "message:b": { clientId: "b", owner: "bob", files: [] } }));
    if (hears) await records.refresh();
  };
  const calls = [];
  const session = createSession({
    ...quiet,
    records,
    identity: () => async () => (await pass("identity"), jwtOf("ada")),
    call: async (method, path) => (calls.push(`${method} ${path}`), await pass("call"), sessionOf("ada", "ct_again")),
  });
  await session.current();
  session.ended("ct_ada");
  due = meanwhile;
  return { session, records, calls };
}

test("a page of the previous contact takes the session of the next one that came while it asked for its identity", async () => {
  const { session, records, calls } = await endedPage("identity");
  assert.equal((await session.current()).token, "ct_bob");
  assert.equal(records.get("message:b").owner, "bob");
  assert.deepEqual(calls, []);
});

for (const hears of [true, false])
  test(`a page of the previous contact takes the session of the next one that came while it opened its own, ${hears ? "after" : "before"} it has heard of it`, async () => {
    const { session, records } = await endedPage("call", hears);
    assert.equal((await session.current()).token, "ct_bob");
    assert.equal(records.get("session").token, "ct_bob");
    assert.equal(records.get("message:b").owner, "bob");
  });

test("a merged conversation leaves the list, and the open one becomes the other", () => {
  const state = after(
    { type: "list", items: [conversation("cnv_a", { sequence: 3, unread: true }), conversation("cnv_b", { sequence: 2 })] },
    { type: "messages", id: "cnv_a", items: [message(0)] },
    { type: "set", value: { open: "cnv_a" } },
    event("conversation.updated", { conversation: conversation("cnv_a", { sequence: 4, mergedInto: "cnv_b" }), changed: ["mergedInto"] }),
  );
  assert.deepEqual([...state.conversations.keys()], ["cnv_b"]);
  assert.equal(state.open, "cnv_b");
  assert.equal(state.unread, 0);
  assert.equal(resolve(state, "cnv_a"), "cnv_b");
  const older = reduce(state, event("conversation.updated", { conversation: conversation("cnv_a", { sequence: 3 }), changed: ["title"] }));
  assert.deepEqual([...older.conversations.keys()], ["cnv_b"]);
  const apart = reduce(state, event("conversation.updated", { conversation: conversation("cnv_a", { sequence: 5 }), changed: ["mergedInto"] }));
  assert.deepEqual([...apart.conversations.keys()].sort(), ["cnv_a", "cnv_b"]);
  assert.equal(resolve(apart, "cnv_a"), "cnv_a");
});

test("a thread shows messages of merged conversations by time, and grows by its own", () => {
  const at = (second) => `2026-01-01T00:00:0${second}.000Z`;
  const foreign = (index, second) => message(index, { id: `msg_b${index}`, conversationId: "cnv_b", text: `Other ${index}`, createdAt: at(second) });
  const own = (index, second) => message(index, { createdAt: at(second) });
  let state = after({ type: "messages", id: "cnv_a", items: [foreign(0, 1), own(0, 2), foreign(1, 3), own(1, 4)] });
  assert.deepEqual(texts(state), ["Other 0", "Text 0", "Other 1", "Text 1"]);
  state = reduce(state, event("message.created", { conversation: conversation("cnv_a", { sequence: 9 }), message: own(2, 5) }));
  assert.deepEqual(texts(state).at(-1), "Text 2");
  assert.ok(leavesGap(state, event("message.created", { conversation: conversation("cnv_a"), message: own(4, 6) }).event));
  state = reduce(state, event("conversation.updated", { conversation: conversation("cnv_b", { sequence: 1, mergedInto: "cnv_a" }), changed: ["mergedInto"] }));
  assert.ok(!state.loaded.has("cnv_a"));
});

/** A thread of cnv_c, which was started from cnv_a with one of its messages, and that of cnv_a. */
const split = () =>
  after(
    { type: "list", items: [conversation("cnv_a"), conversation("cnv_c", { splitFrom: "cnv_a" })] },
    { type: "messages", id: "cnv_a", items: [message(0), message(1)] },
    { type: "messages", id: "cnv_c", items: [message(1), message(0, { id: "msg_c0", conversationId: "cnv_c", text: "Own", createdAt: "2026-01-01T00:00:09.000Z" })] },
  );

test("a redacted or deleted message changes in each conversation that shows it", () => {
  const redacted = reduce(split(), event("conversation.updated", { conversation: conversation("cnv_a", { sequence: 2 }), changed: [], redactedMessageIds: ["msg_001"] }));
  assert.deepEqual([texts(redacted), texts(redacted, "cnv_c")], [["Text 0", ""], ["", "Own"]]);
  const deleted = reduce(split(), event("conversation.updated", { conversation: conversation("cnv_a", { sequence: 2 }), changed: [], deletedMessageIds: ["msg_001"] }));
  assert.deepEqual([texts(deleted), texts(deleted, "cnv_c")], [["Text 0"], ["Own"]]);
});

test("the messages of a deleted conversation disappear from the one that was started from it", () => {
  const state = reduce(split(), event("conversation.deleted", { conversation: { id: "cnv_a" }, reason: "manual" }));
  assert.deepEqual([texts(state), texts(state, "cnv_c")], [undefined, ["Own"]]);
});

test("the first own message of a conversation that was started from another is not its whole thread", () => {
  const own = message(0, { conversationId: "cnv_c" });
  const told = after(event("message.created", { conversation: conversation("cnv_c", { splitFrom: "cnv_a" }), message: own }));
  assert.ok(!told.loaded.has("cnv_c"));
  assert.equal(texts(told, "cnv_c"), undefined);
  const sent = after({ type: "list", items: [conversation("cnv_c", { splitFrom: "cnv_a" })] }, { type: "sent", clientId: "m0", message: own, conversation: null });
  assert.ok(!sent.loaded.has("cnv_c"));
});

const lacks = (state, id) => lacksLastMessage(state.conversations.get(id));

test("a conversation that an event adds without its newest message lacks it until it is loaded", () => {
  const started = event("conversation.created", { conversation: conversation("cnv_c", { splitFrom: "cnv_a", lastMessageAt: null }) });
  const added = after({ type: "list", items: [conversation("cnv_a", { lastMessage: message(1) })] }, started);
  assert.deepEqual([lacks(added, "cnv_c"), lacks(added, "cnv_a"), lacks(added, "cnv_b")], [true, false, false]);
  const loaded = reduce(added, event(undefined, { conversation: conversation("cnv_c", { splitFrom: "cnv_a", lastMessageAt: null, lastMessage: message(1) }) }));
  assert.ok(!lacks(loaded, "cnv_c"));
  assert.equal(reduce(loaded, started).conversations.get("cnv_c").lastMessage.text, "Text 1");
  const empty = after(event("conversation.created", { conversation: conversation("cnv_d", { lastMessageAt: null }) }));
  assert.ok(!lacks(empty, "cnv_d"), "its first message is the next event");
  const merged = reduce(loaded, event("conversation.updated", { conversation: conversation("cnv_a", { sequence: 2, mergedInto: "cnv_c" }), changed: ["mergedInto"] }));
  const apart = reduce(merged, event("conversation.updated", { conversation: conversation("cnv_a", { sequence: 3 }), changed: ["mergedInto"] }));
  assert.ok(lacks(apart, "cnv_a"));
});

test("a row shows its message as redacted, and lacks one that was deleted", () => {
  const listed = after({ type: "list", items: [conversation("cnv_a", { lastMessage: message(1) }), conversation("cnv_c", { splitFrom: "cnv_a", lastMessage: message(1) })] });
  const last = (state) => ["cnv_a", "cnv_c"].map((id) => state.conversations.get(id).lastMessage);
  const edit = (fields) => reduce(listed, event("conversation.updated", { conversation: conversation("cnv_a", { sequence: 2 }), changed: [], ...fields }));
  assert.deepEqual(last(edit({ redactedMessageIds: ["msg_001"] })).map(({ text, redactedAt }) => [text, redactedAt]), [["", AT], ["", AT]]);
  const deleted = edit({ deletedMessageIds: ["msg_001"] });
  assert.deepEqual(last(deleted), [null, null]);
  assert.ok(lacks(deleted, "cnv_a"));
  assert.deepEqual(last(edit({ redactedMessageIds: ["msg_009"] })).map(({ text }) => text), ["Text 1", "Text 1"]);
});
