import assert from "node:assert/strict";
import { test } from "node:test";
import "./browser.mjs";

const { Offline, Problem } = await import(new URL("core/api.js", desk));
const { due, afterFailure, retryDelay, withNewKey, asSending, asStored, outcomeUnknown } = await import(new URL("core/outbox.js", desk));

const NOW = 1_000_000;
const entry = (changes = {}) => ({ key: "k1", kind: "message", conversationId: "cnv_a", state: "kept", order: 1, attempts: 0, notBefore: 0, body: { text: "Hello", ifSequence: 7 }, text: "Hello", sentAt: null, problem: null, since: [], waitsFor: null, ...changes });
const problem = (status, code, more = {}, retryAfterMs = null) => new Problem(status, { code, detail: "why", ...more }, "req_1", retryAfterMs);
const fails = (error, ours = new Set(), before = entry()) => afterFailure(before, error, NOW, 0.5, ours);

test("what may yet succeed is kept under its key, with the reason, and tried again later", () => {
  for (const [error, waitsFor] of [
    [new Offline("nobody"), "offline"],
    [problem(500, "internal"), "server_failed"],
    [problem(503, "not_ready"), "server_failed"],
    [problem(409, "idempotency_in_progress"), "server_failed"],
    [problem(429, "rate_limited"), "rate_limited"],
    [problem(401, "unauthorized"), "signed_out"],
    [new TypeError("anything"), "failed"],
  ]) {
    const next = fails(error);
    assert.equal(next.state, "kept");
    assert.equal(next.waitsFor, waitsFor);
    assert.equal(next.key, "k1");
    assert.equal(next.attempts, 1);
    assert.ok(next.notBefore > NOW);
  }
});

test("what the server refuses is never sent again, and says why", () => {
  for (const status of [400, 403, 404, 409, 413, 422]) {
    const next = fails(problem(status, "conversation_closed"));
    assert.equal(next.state, "refused");
    assert.deepEqual(next.problem, { status, code: "conversation_closed", detail: "why", requestId: "req_1", errors: [] });
  }
});

test("the server's word on when to come back goes before the page's own", () => {
  assert.equal(fails(problem(429, "rate_limited", {}, 7000)).notBefore, NOW + 7000);
  assert.equal(fails(problem(503, "busy", {}, 2000)).notBefore, NOW + 2000);
});

test("pauses grow, have a bound, and are not the same for all", () => {
  assert.ok(retryDelay(1, 0) < retryDelay(4, 0));
  assert.equal(retryDelay(50, 1), 30_000);
  assert.notEqual(retryDelay(3, 0), retryDelay(3, 1));
});

test("a reply to a conversation that moved on waits for a decision, with what came", () => {
  const since = [{ id: "msg_2", internal: false, text: "Never mind." }];
  const next = fails(problem(409, "conversation_moved_on", { sequence: 9, since }));
  assert.equal(next.state, "conflict");
  assert.deepEqual(next.since, since);
});

test("one that moved on by our own messages alone is sent anew, behind them, under a new key", () => {
  const since = [{ id: "msg_2", internal: false }, { id: "msg_3", internal: true }];
  const next = fails(problem(409, "conversation_moved_on", { sequence: 9, since }), new Set(["msg_2"]));
  assert.equal(next.state, "kept");
  assert.notEqual(next.key, "k1");
  assert.equal(next.body.ifSequence, 9);
  const closed = fails(problem(409, "conversation_moved_on", { sequence: 9, since: [] }), new Set(["msg_2"]));
  assert.equal(closed.state, "conflict");
});

test("an answer that was erased meanwhile was an answer", () => {
  assert.equal(fails(problem(409, "idempotency_answer_erased")).state, "stored");
});

test("what is sent anew has another key, and may have another text or no condition", () => {
  const next = withNewKey(entry({ state: "conflict", attempts: 3, sentAt: 5 }), { ifSequence: null, text: "Hello again" }, NOW);
  assert.notEqual(next.key, "k1");
  assert.deepEqual(next.body, { text: "Hello again" });
  assert.deepEqual([next.state, next.sentAt, next.text, next.problem], ["kept", null, "Hello again", null]);
});

test("the time of the first sending stays, and after a day nobody can tell what became of it", () => {
  const sent = asSending(entry(), NOW);
  assert.equal(asSending({ ...sent, state: "kept" }, NOW + 5).sentAt, NOW);
  assert.ok(!outcomeUnknown(sent, NOW + 3_600_000));
  assert.ok(outcomeUnknown(sent, NOW + 24 * 3_600_000));
  assert.ok(!outcomeUnknown(entry(), NOW));
  assert.deepEqual(asStored(sent, { id: "msg_1" }, NOW + 40, 40).tookMs, 40);
});

test("each conversation sends one after the other, and none waits for another one", () => {
  const all = [
    entry({ key: "a1", notBefore: NOW + 50, state: "held" }),
    entry({ key: "a2", order: 2 }),
    entry({ key: "b1", conversationId: "cnv_b" }),
    entry({ key: "c1", conversationId: "cnv_c", state: "sending" }),
    entry({ key: "c2", conversationId: "cnv_c" }),
    entry({ key: "d1", conversationId: "cnv_d", state: "refused" }),
    entry({ key: "d2", conversationId: "cnv_d" }),
    entry({ key: "n1", conversationId: null }),
    entry({ key: "n2", conversationId: null }),
  ];
  const { ready, at } = due(all, NOW);
  assert.deepEqual(ready.map((each) => each.key), ["b1", "d2", "n1", "n2"]);
  assert.equal(at, NOW + 50);
});
