import assert from "node:assert/strict";
import { test } from "node:test";
import { random } from "./browser.mjs";

const { apply, applyAll, withPending, holdOrder, appendPage, comparison, matches, matchesGuard, emptyState, placeRows, applyPresence, sortKey, withRows } = await import(new URL("core/state.js", desk));
const { applyDeliveries, loadedThread, applyTyping, withNewest, withOlder } = await import(new URL("core/thread-state.js", desk));

const ME = "usr_me";
const evt = (n) => `evt_${String(n).padStart(26, "0")}`;
const time = (n) => new Date(Date.UTC(2026, 10, 1) + n * 1000).toISOString();

/** A project whose conversations change at random, and the events that tell of it, as the service does. */
class Service {
  constructor(seed) {
    this.random = random(seed);
    this.events = [];
    this.public = new Map();
    this.messages = new Map();
  }
  pick(many) {
    return many[Math.floor(this.random() * many.length)];
  }
  tell(type, id, data) {
    const n = this.events.length + 1;
    const shown = this.public.get(id);
    const internal = type === "note.created" || type === "conversation.changed";
    if (!internal) shown.sequence += 1;
    const event = { id: evt(n), type, sequence: internal ? null : shown.sequence, created_at: time(n), data: { ...structuredClone(data), conversation: { ...structuredClone(shown) } } };
    if (internal) Object.assign(event.data.conversation, structuredClone(data.extra));
    delete event.data.extra;
    this.events.push(event);
  }
  begin(id) {
    const n = this.events.length;
    const contact = { id: `con_${id}`, userId: id, name: `Name ${id}`, email: null };
    this.public.set(id, { id, contact, title: null, status: "OPEN", closed: false, closedBy: null, unread: false, archived: false, assignee: null, attributes: {}, rating: null, ticketId: null, lastMessageAt: null, sequence: 0, createdAt: time(n), updatedAt: time(n), closedAt: null });
    this.messages.set(id, []);
    this.tell("conversation.created", id, {});
  }
  step() {
    const ids = [...this.public.keys()];
    if (!ids.length || (ids.length < 5 && this.random() < 0.2)) return this.begin(`cnv_${ids.length}`);
    const id = this.pick(ids);
    const shown = this.public.get(id);
    const at = time(this.events.length + 1);
    const what = this.random();
    if (what < 0.5) {
      const type = this.pick(["contact", "contact", "agent", "bot", "system"]);
      const all = this.messages.get(id);
      const message = { id: `msg_${id}_${all.length}`, conversationId: id, index: all.length, author: { type, id: null, name: type }, text: `${type} ${"x".repeat(this.random() * 300)}`, attachments: [], createdAt: at };
      all.push(message);
      shown.lastMessageAt = at;
      shown.unread = type !== "contact";
      this.tell("message.created", id, { message });
    } else if (what < 0.6) {
      shown.assignee = this.pick([null, { type: "user", id: ME, name: "Me" }, { type: "team", id: "tem_1", name: "Team" }]);
      this.tell("conversation.assigned", id, {});
    } else if (what < 0.7 && shown.status !== "CLOSED") {
      Object.assign(shown, { status: "CLOSED", closed: true, closedAt: at });
      this.tell("conversation.closed", id, { closedBy: "agent" });
    } else if (what < 0.8 && shown.status === "CLOSED") {
      Object.assign(shown, { status: "OPEN", closed: false, closedAt: null });
      this.tell("conversation.reopened", id, {});
    } else if (what < 0.9 && shown.unread) {
      shown.unread = false;
      this.tell("conversation.updated", id, { changed: ["unread"] });
    } else {
      shown.title = `title ${at}`;
      this.tell("conversation.updated", id, { changed: ["title"] });
    }
  }
}

const rows = (state) => [...state.rows.values()].map(({ asOf, ...rest }) => rest).sort((a, b) => (a.id < b.id ? -1 : 1));

test("whatever was read when, and however often an event comes, the rows are those of the service", () => {
  for (let seed = 1; seed <= 150; seed++) {
    const service = new Service(seed);
    for (let n = 0; n < 60; n++) service.step();
    const truth = applyAll(emptyState(ME), service.events);
    // The page opens its stream at some event, reads lists at others, and is sent what it has seen once more.
    const from = Math.floor(service.random() * 30);
    let page = emptyState(ME);
    let at = from;
    const reads = new Set(Array.from({ length: 4 }, () => from + Math.floor(service.random() * 30)));
    const read = (until) => {
      const then = applyAll(emptyState(ME), service.events.slice(0, until));
      const asOf = until ? evt(until) : evt(0);
      page = withRows(page, [...then.rows.values()].map((row) => ({ ...row, asOf })));
    };
    read(Math.max(from, 30)); // a list that is newer than the stream
    while (at < service.events.length) {
      const again = Math.max(from, at - Math.floor(service.random() * 8)); // after a break
      const batch = service.events.slice(again, at + 1 + Math.floor(service.random() * 5));
      page = applyAll(page, batch);
      at = Math.max(at, again + batch.length);
      if (reads.has(at)) read(at - Math.floor(service.random() * 5)); // an answer that took its time
    }
    read(service.events.length);
    for (const wanted of page.wanted) assert.ok(!page.rows.has(wanted));
    assert.deepEqual(rows(page), rows(truth), `seed ${seed}`);
  }
});

test("an event at a time makes the same state as all at once, and the state before is what it was", () => {
  const service = new Service(7);
  for (let n = 0; n < 40; n++) service.step();
  let state = emptyState(ME);
  for (const event of service.events) {
    const before = structuredClone([...state.rows]);
    const next = apply(state, event);
    assert.deepEqual([...state.rows], before);
    state = next;
  }
  assert.deepEqual(rows(state), rows(applyAll(emptyState(ME), service.events)));
});

const begun = () => {
  const service = new Service(1);
  service.begin("cnv_a");
  return { service, state: applyAll(emptyState(ME), service.events) };
};
const message = (index, type, at) => ({ id: `msg_${index}`, conversationId: "cnv_a", index, author: { type, id: null, name: type }, text: `text ${index}`, attachments: [], createdAt: time(at) });

test("a contact waits from the first message that nobody answered, and is not answered by a note or the system", () => {
  const { service, state } = begun();
  let now = state;
  const row = () => now.rows.get("cnv_a");
  const say = (index, type) => {
    service.tell("message.created", "cnv_a", { message: message(index, type, 10 + index) });
    now = apply(now, service.events.at(-1));
  };
  say(0, "contact");
  say(1, "contact");
  assert.equal(row().waitingSince, time(10));
  assert.equal(row().mine.unread, 2);
  say(2, "system");
  assert.equal(row().waitingSince, time(10));
  const note = { ...message(null, "agent", 20), id: "msg_note", internal: true };
  service.tell("note.created", "cnv_a", { message: note, extra: { ...row(), mine: undefined, asOf: undefined } });
  now = apply(now, service.events.at(-1));
  assert.equal(row().waitingSince, time(10));
  assert.equal(row().mine.unread, 2);
  say(3, "agent");
  assert.equal(row().waitingSince, null);
  assert.equal(row().messages, 4);
  assert.equal(row().lastMessage.text, "text 3");
});

test("the next question or answer removes the mark that no answer is needed", () => {
  for (const [author, waits] of [["contact", time(30)], ["agent", null], ["bot", null]]) {
    const { service, state } = begun();
    service.tell("message.created", "cnv_a", { message: message(0, "contact", 10) });
    let now = apply(state, service.events.at(-1));
    const marked = { ...now.rows.get("cnv_a"), waitingSince: null, noAnswerNeededSince: time(10), mine: undefined, asOf: undefined };
    service.tell("conversation.changed", "cnv_a", { changed: ["waitingSince", "noAnswerNeededSince"], extra: marked });
    now = apply(now, service.events.at(-1));
    const row = () => now.rows.get("cnv_a");
    assert.deepEqual([row().waitingSince, row().noAnswerNeededSince], [null, time(10)]);
    assert.ok(matchesGuard(row(), { noAnswerNeededSince: time(10) }));
    service.tell("message.created", "cnv_a", { message: message(1, "system", 20) });
    now = apply(now, service.events.at(-1));
    assert.deepEqual([row().waitingSince, row().noAnswerNeededSince], [null, time(10)]);
    service.tell("message.created", "cnv_a", { message: message(2, author, 30) });
    now = apply(now, service.events.at(-1));
    assert.deepEqual([row().waitingSince, row().noAnswerNeededSince], [waits, null]);
    assert.ok(!matchesGuard(row(), { noAnswerNeededSince: time(10) }));
  }
});

test("a note that mentions the user counts once, and followers come from the row of the event", () => {
  const { service, state } = begun();
  const note = { ...message(null, "agent", 20), id: "msg_note", internal: true, mentions: [] };
  const extra = { followers: ["usr_other", ME] };
  service.tell("note.created", "cnv_a", { message: note, mentioned: [ME], extra });
  service.tell("note.created", "cnv_a", { message: { ...note, id: "msg_2" }, mentioned: ["usr_other"], extra });
  const row = applyAll(state, [...service.events.slice(-2), service.events.at(-1), service.events.at(-2)]).rows.get("cnv_a");
  assert.deepEqual([row.mine.mentioned, row.mine.unseenMentions, row.followers], [true, 1, ["usr_other", ME]]);
  const views = (filter) => matches(row, filter, ME);
  assert.deepEqual([views({ mentioned: true }), views({ following: true }), views({ following: false })], [true, true, false]);
  assert.equal(matches({ ...row, archived: true }, { mentioned: true }, ME), true);
  assert.equal(matches({ ...row, archived: true }, { mentioned: true, archived: false }, ME), false);
  assert.equal(matches({ ...row, archived: true }, { following: true }, ME), false);
});

test("a hidden conversation that is deleted leaves its lists", () => {
  const { service, state } = begun();
  service.events.push({ id: evt(99), type: "conversation.changed", sequence: null, createdAt: time(9), data: { conversation: { id: "cnv_a" }, changed: ["deleted"], actor: {} } });
  const after = apply(state, service.events.at(-1));
  assert.deepEqual([after.rows.has("cnv_a"), after.gone.has("cnv_a"), [...after.touched]], [false, true, ["cnv_a"]]);
});

test("a hidden conversation that is shown tells its messages again, which counts none twice", () => {
  const { service, state } = begun();
  service.tell("message.created", "cnv_a", { message: message(0, "contact", 5) });
  const known = apply(state, service.events.at(-1)).rows.get("cnv_a");
  service.tell("conversation.created", "cnv_a", {});
  service.tell("message.created", "cnv_a", { message: message(0, "contact", 5) });
  const after = applyAll(withRows(emptyState(ME), [{ ...known, visible: false }]), service.events.slice(-2)).rows.get("cnv_a");
  assert.equal(after.messages, 1);
  assert.equal(after.mine.unread, 1);
  assert.equal(after.visible, true);
});

test("a conversation that events alone do not tell is asked for, and one that is deleted never comes back", () => {
  const { service } = begun();
  service.tell("message.created", "cnv_a", { message: message(0, "contact", 5) });
  const [created, said] = service.events;
  const unknown = apply(emptyState(ME), said);
  assert.deepEqual([...unknown.wanted], ["cnv_a"]);
  const deleted = { id: evt(9), type: "conversation.deleted", created_at: time(9), data: { conversation: { id: "cnv_a" }, reason: "retention" } };
  const gone = applyAll(unknown, [deleted, created, said]);
  assert.equal(gone.rows.size + gone.wanted.size, 0);
  assert.equal(gone.gone.get("cnv_a").reason, "retention");
  assert.equal(withRows(gone, [applyAll(emptyState(ME), [created]).rows.get("cnv_a")]).rows.size, 0);
});

test("the row of a conversation that was started from another one is asked for, and its links end with the event that lacks them", () => {
  const conversation = { id: "cnv_c", contact: { id: "con_1" }, splitFrom: "cnv_a", status: "OPEN" };
  const made = apply(emptyState(ME), { id: evt(1), type: "conversation.created", sequence: 1, createdAt: time(1), data: { conversation } });
  assert.deepEqual([...made.wanted], ["cnv_c"]);
  assert.equal(made.rows.get("cnv_c"), undefined);
  const known = withRows(made, [{ ...conversation, asOf: evt(1), splitInto: ["cnv_d"], followers: [], mine: { seenIndex: null, unread: 0, mentioned: false, unseenMentions: 0 } }]);
  const { splitFrom, ...left } = conversation;
  const ended = apply(known, { id: evt(2), type: "conversation.updated", sequence: 2, createdAt: time(2), data: { conversation: left, changed: ["splitFrom"] } }).rows.get("cnv_c");
  assert.deepEqual([splitFrom, ended.splitFrom, ended.splitInto], ["cnv_a", undefined, undefined]);
});

test("a contact's new name is in each of its rows", () => {
  const { state } = begun();
  const contact = { id: "con_cnv_a", userId: "cnv_a", name: null, email: null, phone: null };
  const event = { id: evt(5), type: "contact.updated", created_at: time(5), data: { contact } };
  assert.deepEqual(apply(state, event).rows.get("cnv_a").contact, { id: "con_cnv_a", userId: "cnv_a", name: null, email: null });
});

test("receipts of the customer's browser change their row, and neither move it nor ask for anything", () => {
  const { service, state } = begun();
  service.tell("message.created", "cnv_a", { message: message(0, "agent", 5) });
  const said = apply(state, service.events.at(-1));
  const receipt = (n, type, index, at) => ({ id: evt(n), type, sequence: null, createdAt: at, data: { conversation: { ...service.public.get("cnv_a") }, messageId: `msg_${index}`, index, at } });
  const reached = apply(said, receipt(50, "message.reached", 0, time(7)));
  const of = (now) => (({ contactReachedIndex, contactReachedAt, contactSeenIndex, contactSeenAt }) => [contactReachedIndex, contactReachedAt, contactSeenIndex, contactSeenAt])(now.rows.get("cnv_a"));
  assert.deepEqual(of(reached), [0, time(7), null, null]);
  const seen = apply(reached, receipt(51, "message.seen", 0, time(8)));
  assert.deepEqual(of(seen), [0, time(7), 0, time(8)]);
  assert.deepEqual(of(applyAll(seen, [receipt(50, "message.reached", 0, time(7)), receipt(51, "message.seen", 0, time(8))])), of(seen));
  assert.equal(seen.rows.get("cnv_a").asOf, evt(51));
  assert.equal(seen.touched.size, 0);
  assert.deepEqual(seen.marks, said.marks);
  const read = { id: evt(52), type: "conversation.updated", sequence: 9, createdAt: time(9), data: { conversation: { ...service.public.get("cnv_a"), unread: false }, changed: ["unread"] } };
  const after = apply(seen, read);
  assert.deepEqual([after.rows.get("cnv_a").contactSeenAt, after.touched.size, after.marks], [time(9), 0, said.marks]);
  const unknown = apply(emptyState(ME), receipt(50, "message.reached", 0, time(7)));
  assert.equal(unknown.wanted.size + unknown.rows.size, 0);
});

test("the first words are 160 characters, none of them cut in half", () => {
  const { service, state } = begun();
  service.tell("message.created", "cnv_a", { message: { ...message(0, "contact", 5), text: "🙂".repeat(200) } });
  assert.equal(apply(state, service.events.at(-1)).rows.get("cnv_a").lastMessage.text, "🙂".repeat(160));
});

const many = (from, to) => Array.from({ length: to - from }, (_, n) => ({ ...message(from + n, "contact", from + n), id: `msg_${from + n}` }));
const indexes = (thread) => thread.messages.map((each) => each.index);

test("a thread goes on where its newest page follows, and begins anew where there is a hole", () => {
  const known = withNewest(undefined, many(10, 20));
  assert.deepEqual(indexes(withOlder(known, many(5, 10))), [...Array(15).keys()].map((n) => n + 5));
  const joined = withNewest(known, many(15, 25));
  assert.ok(joined.joined);
  assert.deepEqual(indexes(joined), [...Array(15).keys()].map((n) => n + 10));
  const anew = withNewest(known, many(30, 40));
  assert.ok(!anew.joined);
  assert.deepEqual(indexes(anew), [...Array(10).keys()].map((n) => n + 30));
});

test("what an event brings while a page is on its way stays behind it", () => {
  const { service, state } = begun();
  const asked = { ...state, threads: new Map([["cnv_a", loadedThread([])]]) };
  service.tell("message.created", "cnv_a", { message: message(3, "contact", 9) });
  const came = apply(apply(asked, service.events.at(-1)), service.events.at(-1));
  assert.deepEqual(indexes(withNewest(came.threads.get("cnv_a"), many(0, 3))), [0, 1, 2, 3]);
  assert.deepEqual(indexes(withNewest(came.threads.get("cnv_a"), many(0, 4))), [0, 1, 2, 3]);
});

test("a list that is kept in order row by row is the one that is sorted anew, for each sort and bound", () => {
  for (let seed = 1; seed <= 60; seed++) {
    const service = new Service(seed);
    for (let n = 0; n < 30; n++) service.step();
    for (const filter of [{}, { sort: "waiting" }, { sort: "waiting", order: "asc" }, { sort: "created", order: "asc" }, { status: ["OPEN"] }, { assignee: "me" }, { assignee: "none" }, { unread: true }]) {
      const all = applyAll(emptyState(ME), service.events.slice(0, 15));
      const before = comparison(filter);
      const sorted = (state, bound) => [...state.rows.values()].filter((row) => matches(row, filter, ME) && (bound === null || before(sortKey(row, filter), bound) <= 0)).sort((a, b) => before(sortKey(a, filter), sortKey(b, filter))).map((row) => row.id);
      const first = sorted(all, null);
      const bound = seed % 2 && first.length ? sortKey(all.rows.get(first[Math.floor(first.length / 2)]), filter) : null;
      let state = all;
      let ids = sorted(all, bound);
      for (const event of service.events.slice(15)) {
        state = apply(state, event);
        ids = placeRows(ids, state.touched, { filter, me: ME, bound, rowOf: (id) => state.rows.get(id) });
        assert.deepEqual(ids, sorted(state, bound));
      }
    }
  }
});

test("a page that was asked for is shown below an order that is held, without what is there or has left", () => {
  const page = ["b", "d", "e", "x"].map((id) => ({ id }));
  assert.deepEqual(appendPage(["c", "a", "b"], ["n", "a", "b", "c", "d", "e"], page), ["c", "a", "b", "d", "e"]);
});

test("while a list is held nothing moves, and what is fresh is counted", () => {
  const stay = () => false;
  assert.deepEqual(holdOrder(["a", "b", "c"], ["a", "b", "c"], stay), { ids: ["a", "b", "c"], fresh: 0 });
  assert.deepEqual(holdOrder(["a", "b", "c"], ["n", "a", "b", "c"], stay), { ids: ["a", "b", "c"], fresh: 1 });
  assert.deepEqual(holdOrder(["a", "b", "c"], ["c", "a", "b"], stay), { ids: ["a", "b", "c"], fresh: 1 });
  assert.deepEqual(holdOrder(["a", "b", "c"], ["a", "c"], (id) => id === "b"), { ids: ["a", "c"], fresh: 0 });
});

test("typing ends by a word or by itself, presence by going, and deliveries are one for each endpoint", () => {
  const started = { type: "agent.typing.started", data: { conversationId: "cnv_a", agent: { id: "usr_1", name: "Ken" } } };
  const once = applyTyping(new Map(), started, 1000);
  assert.equal(applyTyping(once, started, 2000).get("cnv_a").length, 1);
  assert.equal(applyTyping(once, { ...started, type: "agent.typing.stopped" }, 2000).get("cnv_a").length, 0);
  const other = { type: "contact.typing.started", data: { conversationId: "cnv_a" } };
  assert.deepEqual(applyTyping(once, other, 99_000).get("cnv_a").map((each) => each.type), ["contact"]);
  const here = applyPresence(new Map(), [{ id: "usr_1", online: true, conversationIds: [] }]);
  assert.equal(applyPresence(here, [{ id: "usr_1", online: false, conversationIds: [] }]).size, 0);
  const receipt = (endpointId, status) => ({ sequence: 3, endpointId, endpoint: endpointId, status });
  const known = applyDeliveries(applyDeliveries(undefined, [receipt("b", "pending"), receipt("a", "pending")]), [receipt("b", "delivered")]);
  assert.deepEqual(known.get(3).map((each) => `${each.endpointId} ${each.status}`), ["a pending", "b delivered"]);
});

test("what is in the outbox looks done until it is refused, or an event tells how it is", () => {
  const { state } = begun();
  const row = state.rows.get("cnv_a");
  const entry = (changes) => ({ expect: { status: "CLOSED" }, ...changes });
  const status = (entry, now = 0) => withPending(row, [entry], now).status;
  for (const pending of ["held", "kept", "sending"]) assert.equal(status(entry({ state: pending })), "CLOSED");
  for (const over of ["refused", "conflict"]) assert.equal(status(entry({ state: over })), "OPEN");
  const done = entry({ state: "stored", storedAt: 0, storedAsOf: row.asOf });
  assert.equal(status(done), "CLOSED");
  assert.equal(status(done, 60_000), "OPEN");
  assert.equal(status({ ...done, storedAsOf: evt(0) }), "OPEN");
});
