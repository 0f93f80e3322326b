// Time travel and the reasons of lists: what follows from events, activity and filters.
import "./browser.mjs";
import assert from "node:assert/strict";
import { test } from "node:test";

const { conversationAt, changedFields, moments, messagesAt } = await import(new URL("developers/replay.js", desk));
const { listReasons } = await import(new URL("inbox/list-reason.js", desk));
const { matches } = await import(new URL("core/state.js", desk));

const time = (n) => `2026-11-24T10:00:${String(n).padStart(2, "0")}.000Z`;
const event = (sequence, type, data = {}, at = sequence * 2) => ({ id: `evt_${sequence}`, type, sequence, createdAt: time(at), data: { conversation: { status: "OPEN", sequence, ...data.conversation }, ...data, conversation: { status: "OPEN", sequence, ...data.conversation } } });
const newestFirst = (all) => [...all].reverse();

test("an entry of the activity stands with its event, and one without at its time", () => {
  const events = newestFirst([event(1, "conversation.created"), event(2, "conversation.closed", { closedBy: "agent", conversation: { status: "CLOSED" } })]);
  const activity = [
    { id: "act_2", at: time(5), action: "changed", eventId: null, actor: { type: "user", name: "Ken" }, changes: [{ field: "tags", from: [], to: ["vip"] }] },
    { id: "act_1", at: time(4), action: "closed", eventId: "evt_2", actor: { type: "user", name: "Grace" }, changes: [] },
  ];
  const found = moments(events, activity, null);
  assert.deepEqual(found.map((each) => each.key), ["act_2", "evt_2", "evt_1"]);
  assert.equal(found[1].activity.actor.name, "Grace");
  assert.equal(found[0].sequence, null);
});

test("activity from before the events that are loaded is left out until they are", () => {
  const events = newestFirst([event(7, "message.created")]);
  const activity = [{ id: "act_1", at: time(1), action: "changed", eventId: null, actor: { type: "user" }, changes: [] }];
  assert.equal(moments(events, activity, events[0].createdAt).length, 1);
  assert.equal(moments(events, activity, null).length, 2);
});

test("what a workflow did names the step that did it, and of older entries the one that it had shown last before", () => {
  const step = (actionId) => ({ step: { workflowId: "wfl_1", actionFlowId: "main", actionId, action: { text: `Step ${actionId}` } } });
  const events = newestFirst([
    event(1, "workflow.step.presented", step(1)),
    event(2, "workflow.step.presented", step(2)),
    event(3, "conversation.closed", { closedBy: "bot" }),
    event(4, "workflow.completed", { workflowId: "wfl_1", reason: "completed" }),
    event(5, "conversation.reopened"),
  ]);
  const stepsWith = (/** @type {any[]} */ activity) => Object.fromEntries(moments(events, activity, null).map((each) => [each.sequence, each.step?.actionId ?? null]));
  const closed = { id: "act_1", at: time(6), action: "closed", eventId: "evt_3", changes: [] };
  const bot = { ...closed, actor: { type: "bot", id: "wfl_1" } };
  assert.deepEqual(stepsWith([{ ...bot, step: { workflowId: "wfl_1", version: 1, actionFlowId: "end", actionId: 9 } }]), { 1: null, 2: null, 3: 9, 4: 2, 5: null });
  assert.deepEqual(stepsWith([bot]), { 1: null, 2: null, 3: 2, 4: 2, 5: null });
  assert.deepEqual(stepsWith([{ ...closed, actor: { type: "key" } }]), { 1: null, 2: null, 3: null, 4: 2, 5: null });
});

test("the conversation as it was is that of the event, with tags, snoozes and visibility taken back", () => {
  const events = newestFirst([event(1, "conversation.created"), event(2, "conversation.closed", { conversation: { status: "CLOSED" } })]);
  const activity = [
    { at: time(9), changes: [{ field: "tags", from: ["a"], to: ["a", "b"] }] },
    { at: time(3), changes: [{ field: "tags", from: [], to: ["a"] }, { field: "snoozedUntil", from: null, to: time(50) }] },
    { at: time(1), changes: [{ field: "visible", from: false, to: true }] },
  ];
  const now = { status: "OPEN", tags: ["a", "b"], snoozedUntil: time(50), visible: true };
  const then = (sequence) => conversationAt(events, now, activity, sequence).conversation;
  assert.deepEqual([then(2).status, then(2).tags, then(2).snoozedUntil, then(2).visible], ["CLOSED", ["a"], time(50), true]);
  assert.deepEqual([then(1).status, then(1).tags, then(1).snoozedUntil, then(1).visible], ["OPEN", [], null, true]);
  assert.equal(conversationAt(events, now, activity, 0), null);
  assert.deepEqual(changedFields(then(1), now, ["status", "tags", "visible"]), ["tags"]);
});

test("messages are there by their sequence, and notes by their time", () => {
  const messages = [{ id: "m1", sequence: 2, createdAt: time(4) }, { id: "n1", sequence: null, createdAt: time(5) }, { id: "m2", sequence: 3, createdAt: time(6) }];
  assert.deepEqual(messagesAt(messages, event(2, "message.created")).map((each) => each.id), ["m1"]);
  assert.deepEqual(messagesAt(messages, event(3, "message.created")).map((each) => each.id), ["m1", "n1", "m2"]);
});

test("the reasons hold exactly for the rows that are in the list", () => {
  const words = { team: "Support", time: (at) => at };
  const rows = [];
  for (const status of ["OPEN", "PENDING", "CLOSED"])
    for (const assignee of [null, { type: "user", id: "usr_me", name: "Me" }, { type: "user", id: "usr_2", name: "Ken" }, { type: "team", id: "team_1", name: "Support" }])
      for (const waitingSince of [null, time(1)])
        for (const snoozedUntil of [null, time(2)])
          for (const unread of [0, 3]) rows.push({ status, assignee, waitingSince, snoozedUntil, archived: unread === 3 && status === "CLOSED", visible: unread === 0, tags: unread ? ["vip"] : [], mine: { unread } });
  const filters = [
    { sort: "activity", order: "desc" }, { status: ["OPEN", "PENDING"], assignee: "me", snoozed: false }, { assignee: "none", snoozed: false }, { assignee: "usr_2" }, { team: "team_1", status: ["OPEN"] },
    { waiting: true, sort: "waiting" }, { sort: "waiting" }, { snoozed: true }, { unread: true }, { unread: false }, { tag: "vip" }, { visible: false }, { waiting: false },
  ];
  let inside = 0;
  for (const row of rows)
    for (const filter of filters) {
      const found = listReasons(row, filter, "usr_me", words);
      assert.equal(found.every((each) => each.holds), matches(row, filter, "usr_me"), JSON.stringify([row, filter, found]));
      assert.ok(found.every((each) => each.text));
      inside += Number(found.every((each) => each.holds));
    }
  assert.ok(inside > 50 && inside < rows.length * filters.length);
});
