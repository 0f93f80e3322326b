import assert from "node:assert/strict";
import { test } from "node:test";
import "./browser.mjs";

const { Stream, afterBye, parse, parsing, retryDelay } = await import(new URL("core/stream.js", desk));

test("events are found wherever the pieces of the stream are cut", () => {
  const text = 'retry: 1000\nevent: hello\ndata: {"a":1}\n\n: comment\n\nid: evt_1\r\ndata: {"b":\r\ndata: 2}\r\n\r\nevent: passing\ndata:x\n\n';
  const expected = [
    { id: "", event: "hello", data: '{"a":1}' },
    { id: "evt_1", event: "message", data: '{"b":\n2}' },
    { id: "", event: "passing", data: "x" },
  ];
  for (let size = 1; size <= text.length; size++) {
    let at = parsing();
    const found = [];
    for (let from = 0; from < text.length; from += size) {
      const step = parse(at, text.slice(from, from + size));
      at = step.at;
      found.push(...step.found);
    }
    assert.deepEqual(found, expected, `pieces of ${size}`);
  }
});

test("a server that stops is tried again soon, a crowded one later, and one that says no never", () => {
  assert.deepEqual(afterBye({ reason: "shutdown", retryAfterMs: 500 }), { ended: false, afterMs: 500 });
  assert.deepEqual(afterBye({ reason: "too_many_streams" }), { ended: false, afterMs: 30_000 });
  for (const reason of ["session_ended", "permission_lost", "second_factor_required"]) assert.ok(afterBye({ reason }).ended);
  assert.ok(retryDelay(1, 1) <= 500 && retryDelay(1, 0) > 0 && retryDelay(40, 1) <= 15_000);
});

function heard(cursor = null) {
  const said = [];
  const listener = Object.fromEntries(["state", "hello", "events", "ephemeral"].map((name) => [name, (what) => said.push([name, what])]));
  return { stream: new Stream("/v3/stream?project=p", listener, cursor), said };
}
const hello = (more) => ({ id: "", event: "hello", data: JSON.stringify({ streamId: "str_1", gap: false, at: "evt_5", ...more }) });
const event = (n) => ({ id: `evt_${n}`, event: "message", data: JSON.stringify({ id: `evt_${n}`, type: "x" }) });

test("the first stream begins now, and one that is resumed counts what it had missed", () => {
  const first = heard();
  first.stream.take([hello({})]);
  assert.deepEqual([first.stream.state.state, first.stream.state.cursor], ["live", "evt_5"]);
  first.stream.take([event(6)]);
  assert.deepEqual([first.stream.state.cursor, first.stream.state.caughtUp], ["evt_6", 0]);
  first.stream.take([hello({ at: "evt_8", resumedAfter: "evt_6" }), event(7), event(8)]);
  first.stream.take([event(9)]);
  assert.deepEqual([first.stream.state.cursor, first.stream.state.caughtUp], ["evt_9", 2]);
});

test("after a gap the stream goes on from now", () => {
  const { stream, said } = heard("evt_1");
  stream.take([hello({ gap: true })]);
  assert.equal(stream.state.cursor, "evt_5");
  assert.ok(said.some(([name, what]) => name === "hello" && what.gap));
});

test("a farewell ends the stream only if it is for good, and what came before it is told", () => {
  const { stream, said } = heard();
  const bye = (reason) => ({ id: "", event: "bye", data: JSON.stringify({ reason, retryAfterMs: 100 }) });
  assert.equal(stream.take([hello({}), event(6), bye("shutdown")]), 100);
  assert.equal(stream.state.state, "live");
  assert.deepEqual(said.find(([name]) => name === "events")[1].map((each) => each.id), ["evt_6"]);
  stream.take([bye("session_ended")]);
  assert.deepEqual([stream.state.state, stream.state.reason], ["ended", "session_ended"]);
});
