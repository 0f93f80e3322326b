import assert from "node:assert/strict";
import { test } from "node:test";
import "./browser.mjs";

const { MESSAGES_MAX, isTaken, messagesFrom } = await import(new URL("inbox/split-choice.js", desk));

const message = (id, changes = {}) => ({ id, conversationId: "cnv_a", text: id, internal: false, ...changes });
const ids = ({ free }) => free.map((each) => each.id);

test("the later messages are those of the same conversation that no other one shows", () => {
  const first = message("msg_2");
  const thread = [message("msg_1"), message("msg_b", { conversationId: "cnv_b" }), first, message("msg_3", { splitInto: "cnv_d" }), message("msg_c", { conversationId: "cnv_b" }), message("msg_4", { internal: true })];
  const found = messagesFrom(thread, first);
  assert.deepEqual(ids(found), ["msg_2", "msg_4"]);
  assert.equal(found.taken, 1);
});

test("a message whose new conversation was merged back can go again", () => {
  const [first, back, away] = [message("msg_1"), message("msg_2", { splitInto: "cnv_b" }), message("msg_3", { splitInto: "cnv_c" })];
  assert.deepEqual([isTaken(first), isTaken(back), isTaken(back, ["cnv_b"]), isTaken(away, ["cnv_b"])], [false, true, false, true]);
  const found = messagesFrom([first, back, away], first, ["cnv_b"]);
  assert.deepEqual([ids(found), found.taken], [["msg_1", "msg_2"], 1]);
});

test("the newest message stands alone", () => {
  const last = message("msg_9");
  assert.deepEqual(messagesFrom([message("msg_1"), last], last), { free: [last], taken: 0 });
});

test("as many messages can go along as the service takes", () => assert.equal(MESSAGES_MAX, 100));
