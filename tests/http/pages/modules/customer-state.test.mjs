import assert from "node:assert/strict";
import { test } from "node:test";
import "./browser.mjs";

const { isVisitor } = await import(new URL("core/state.js", desk));
const { receiptOf, safeAddress, signedFields, standingOf, withCustomerEvent, withLoadedPresence, withSessions, withoutSession } = await import(new URL("core/customer-state.js", desk));

const session = (n, more = {}) => ({ id: `cse_${n}`, channelId: "chn_1", verified: false, context: null, createdAt: `2026-11-28T10:00:0${n}.000Z`, ...more });
const ids = (known) => known.get("con_1").sessions.map((each) => each.id);
const started = (n, more) => ({ type: "contact.session.started", createdAt: session(n).createdAt, data: { contact: { id: "con_1" }, session: { id: `cse_${n}`, channelId: "chn_1", verified: true, context: null, ...more } } });
const presence = (online, page) => ({ type: "contact.presence", createdAt: "", data: { contactId: "con_1", online, page } });

test("a session that starts is added once, before the others, with its time", () => {
  const known = withSessions(new Map(), "con_1", [session(1)]);
  const next = [started(2), started(2)].reduce(withCustomerEvent, known);
  assert.deepEqual(ids(next), ["cse_2", "cse_1"]);
  assert.equal(next.get("con_1").sessions[0].createdAt, session(2).createdAt);
  assert.deepEqual(ids(known), ["cse_1"], "the state before stays as it was");
});

test("a session that starts while the list is on its way stays, and an ended one leaves", () => {
  const known = withCustomerEvent(withSessions(new Map(), "con_1", []), started(3));
  assert.deepEqual(ids(withSessions(known, "con_1", [session(2), session(1)])), ["cse_3", "cse_2", "cse_1"]);
  assert.deepEqual(ids(withSessions(known, "con_1", [session(3), session(2)])), ["cse_3", "cse_2"]);
  assert.deepEqual(ids(withoutSession(withSessions(known, "con_1", [session(3), session(2)]), "con_1", "cse_3")), ["cse_2"]);
});

test("a session that ended elsewhere leaves with the next load", () => {
  const known = withSessions(new Map(), "con_1", [session(2), session(1)]);
  assert.deepEqual(ids(withSessions(known, "con_1", [session(2)])), ["cse_2"]);
});

test("events of a contact that is not shown change nothing", () => {
  const known = withSessions(new Map(), "con_2", []);
  assert.equal(withCustomerEvent(known, started(1)), known);
  assert.equal(withCustomerEvent(known, presence(true, null)), known);
  assert.equal(withCustomerEvent(known, { type: "message.created", createdAt: "", data: {} }), known);
});

test("presence has the page while a browser is online, and none afterwards", () => {
  const page = { url: "https://shop.example/cart", title: "Cart" };
  const online = withCustomerEvent(withSessions(new Map(), "con_1", [session(1)]), presence(true, page));
  assert.deepEqual([online.get("con_1").online, online.get("con_1").page], [true, page]);
  const offline = withCustomerEvent(online, presence(false, page));
  assert.deepEqual([offline.get("con_1").online, offline.get("con_1").page], [false, null]);
});

test("a response does not replace the presence of an event that came after its request", () => {
  const before = withSessions(new Map(), "con_1", [session(1)]);
  const { changes } = before.get("con_1");
  assert.equal(withLoadedPresence(before, "con_1", { online: true, page: null }, changes).get("con_1").online, true);
  const since = withCustomerEvent(before, presence(false, null));
  assert.equal(withLoadedPresence(since, "con_1", { online: true, page: null }, changes).get("con_1").online, false);
});

test("a contact is verified by a signed session, and a visitor is not whatever it says", () => {
  assert.equal(standingOf({ userId: "ada" }, []), null);
  assert.equal(standingOf({ userId: "ada" }, [session(1), session(2, { verified: true })]), "verified");
  assert.equal(standingOf({ userId: "visitor-01" }, [session(2, { verified: true })]), "visitor");
  assert.ok(isVisitor({ userId: "visitor-01" }) && !isVisitor({ userId: "a-visitor-01" }) && !isVisitor(undefined));
});

test("the signed fields are those of the newest verified session", () => {
  assert.deepEqual(signedFields([session(3), session(2, { verified: true, signed: ["name"] }), session(1, { verified: true, signed: ["name", "email"] })]), ["name"]);
  assert.deepEqual(signedFields([session(2, { verified: true }), session(1)]), []);
});

test("only web addresses without credentials become links", () => {
  assert.equal(safeAddress("https://shop.example/a b?q=1"), "https://shop.example/a%20b?q=1");
  for (const bad of ["javascript:alert(1)", "data:text/html,x", "JaVaScRiPt:alert(1)", "blob:https://shop.example/1", "file:///etc/passwd", "https://bank.example@evil.example/", "/cart", "", null, 7]) assert.equal(safeAddress(bad), null, String(bad));
});

const ROW = { contactSeenIndex: null, contactSeenAt: null, contactReachedIndex: null, contactReachedAt: null };
const run = (...indexes) => indexes.map((index) => ({ index }));

test("messages are stored, then reach a browser, then are seen, each up to an index", () => {
  const all = run(4, 5, 6);
  assert.deepEqual([receiptOf(all, ROW).total, receiptOf(all, ROW).reached, receiptOf(all, ROW).seen], [3, 0, 0]);
  const reached = receiptOf(all, { ...ROW, contactReachedIndex: 5, contactReachedAt: "r" });
  assert.deepEqual([reached.reached, reached.reachedAt, reached.reachedExact, reached.seen], [2, "r", true, 0]);
  const seen = receiptOf(all, { contactReachedIndex: 6, contactReachedAt: "r", contactSeenIndex: 5, contactSeenAt: "s" });
  assert.deepEqual([seen.reached, seen.reachedExact, seen.seen, seen.seenAt, seen.seenExact], [3, true, 2, "s", true]);
});

test("the time of an earlier message is a bound, because later ones have moved it", () => {
  const of = receiptOf(run(2), { contactReachedIndex: 9, contactReachedAt: "r", contactSeenIndex: 8, contactSeenAt: "s" });
  assert.deepEqual([of.reachedAt, of.reachedExact, of.seenAt, of.seenExact], ["r", false, "s", false]);
});

test("a message that was seen has reached the browser, even if only that was reported", () => {
  const of = receiptOf(run(3), { ...ROW, contactSeenIndex: 3, contactSeenAt: "s" });
  assert.deepEqual([of.reached, of.reachedAt, of.reachedExact, of.seen], [1, "s", false, 1]);
});

test("notes have no receipt", () => {
  assert.deepEqual(receiptOf(run(null), { ...ROW, contactSeenIndex: 3 }), { total: 0, reached: 0, reachedAt: null, reachedExact: false, seen: 0, seenAt: null, seenExact: false });
});
