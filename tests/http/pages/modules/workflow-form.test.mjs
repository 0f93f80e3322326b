import assert from "node:assert/strict";
import { test } from "node:test";
import { random } from "./browser.mjs";

const { get, placed, set } = await import(new URL("insights/form-model.js", desk));
const { pretty } = await import(new URL("insights/json-text.js", desk));
const model = await import(new URL("insights/workflow-model.js", desk));
const { isLinked, layersOf, layout, neighbour, WIDTH } = await import(new URL("insights/workflow-layout.js", desk));

const chance = random(11);
const below = (n) => Math.floor(chance() * n);
const one = (items) => items[below(items.length)];
const ODD = [null, 7, "text", [], ["x"], {}, { "10": 1, b: [2] }];
const shuffled = (of) => Object.fromEntries(Object.entries(of).filter(([, value]) => value !== undefined).map((each) => [chance(), each]).sort(([a], [b]) => a - b).map(([, each]) => each));
const maybe = (share, value) => (chance() < share ? value() : undefined);
const target = () => one(["flow0", "flow1", "flow2", "flow3", "end", "nowhere"]);

/** An action that a person could have written, with its members in any order, unknown ones, and wrong types. */
function action(id) {
  if (chance() < 0.04) return one(ODD);
  const type = one([...Object.keys(model.ACTIONS), "dance", "constructor", "__proto__"]);
  const parts = {
    text: () => one(["Hello", "", 7]), allowText: () => one([true, false, "yes"]), seconds: () => one([60, 1.5, "x"]), on: () => one(["attributes.plan", `answers.${below(9)}`, "?"]), default: target,
    options: () => (chance() < 0.1 ? one(ODD) : [0, 1].map((i) => shuffled({ id: `o${i}`, label: "L", goto: maybe(0.6, target), extra: maybe(0.1, () => one(ODD)) }))),
    fields: () => [shuffled({ id: "f", type: "text", label: "F", required: maybe(0.5, () => true) })],
    assignee: () => one([shuffled({ id: "usr_1", type: "user" }), 5]), attributes: () => one([{ plan: "pro", "3": null }, 5]), cases: () => one([{ yes: "flow1", "2": "end", "a/b~c": "flow2" }, [], {}]),
  };
  return shuffled({ id: chance() < 0.9 ? id : one([3, "x"]), type, ...Object.fromEntries((model.ACTIONS[type] ?? ["text"]).map((name) => [name, chance() < 0.95 ? parts[name]() : one(ODD)])), unknown: maybe(0.1, () => one(ODD)) });
}
const written = () => [0, 1, 2, 3].slice(0, 1 + below(4)).map((f) => (chance() < 0.03 ? one(ODD) : shuffled({ actions: chance() < 0.04 ? one(ODD) : [0, 1, 2].slice(0, below(4)).map((a) => action(f * 3 + a)), id: `flow${f}`, note: maybe(0.1, () => one(ODD)) })));

const pathOf = (value, pointer) => {
  let part = value;
  return pointer.split("/").slice(1).map((name) => {
    const step = Array.isArray(part) ? Number(name) : name.replaceAll("~1", "/").replaceAll("~0", "~");
    part = part?.[step];
    return step;
  });
};

test("the order of members is the same for the same flows, and loses nothing", () => {
  for (let round = 0; round < 500; round += 1) {
    const flows = written();
    const ordered = model.ordered(flows);
    assert.deepEqual(ordered, flows);
    assert.equal(pretty(model.ordered(JSON.parse(pretty(ordered)))), pretty(ordered));
  }
});

test("writing back the value of a field changes no byte", () => {
  for (let round = 0; round < 500; round += 1) {
    const flows = model.ordered(written());
    for (const pointer of model.fieldsOf(flows)) {
      const path = pathOf(flows, pointer);
      const part = get(flows, path);
      if (part !== undefined) assert.equal(pretty(model.ordered(set(flows, path, part))), pretty(flows), pointer);
    }
  }
});

test("flows made by the form have the bytes of those written by hand", () => {
  let [made] = model.withFlow([]);
  made = set(made, [0, "actions", 0, "text"], "Hello!");
  made = model.withAction(made, 0, 1, "buttons");
  made = set(set(made, [0, "actions", 1, "text"], "What?"), [0, "actions", 1, "options", 0], { id: "a", label: "A" });
  made = model.connected(made, [0, "actions", 1, "options", 0, "goto"], null);
  made = model.withFlowId(model.withFlowId(made, 0, "main"), 1, "more");
  made = model.withType(made, 1, 0, "hand_off");
  made = model.withActionId(made, 1, 0, 9);
  const hand = `[{"actions": [{"type": "message", "id": 1, "text": "Hello!"}, {"options": [{"goto": "more", "label": "A", "id": "a"}], "text": "What?", "type": "buttons", "id": 2}], "id": "main"}, {"id": "more", "actions": [{"type": "hand_off", "id": 9}]}]`;
  assert.equal(pretty(model.ordered(made)), pretty(model.ordered(JSON.parse(hand))));
});

test("a new id is followed by targets and branches, and a taken one takes over none", () => {
  const flows = [
    { id: "a", actions: [{ id: 1, type: "buttons", text: "?", options: [{ id: "x", label: "X", goto: "b" }] }, { id: 2, type: "form", text: "?", fields: [] }] },
    { id: "b", actions: [{ id: 3, type: "branch", on: "answers.1", cases: { x: "b", y: "a" }, default: "b" }, { id: 4, type: "branch", on: "answers.12.f", cases: {}, default: "end" }] },
  ];
  const next = model.withFlowId(flows, 1, "c");
  assert.equal(next[0].actions[0].options[0].goto, "c");
  assert.deepEqual([next[1].actions[0].cases, next[1].actions[0].default], [{ x: "c", y: "a" }, "c"]);
  assert.equal(model.withFlowId(flows, 1, "a")[0].actions[0].options[0].goto, "b");
  assert.deepEqual(model.withActionId(flows, 0, 0, 7)[1].actions.map(({ on }) => on), ["answers.7", "answers.12.f"]);
  assert.deepEqual(model.withActionId(flows, 0, 0, 2)[1].actions[0].on, "answers.1");
});

test("a type that is taken back brings the members back", () => {
  const flows = [{ id: "a", actions: [{ id: 1, type: "buttons", text: "?", options: [{ id: "x", label: "X" }], colour: "red" }] }];
  const earlier = {};
  const other = model.withType(flows, 0, 0, "wait", earlier);
  assert.deepEqual(other[0].actions[0], { id: 1, type: "wait", seconds: 60, colour: "red" });
  assert.equal(pretty(model.ordered(model.withType(other, 0, 0, "buttons", earlier))), pretty(model.ordered(flows)));
});

test("no flow and no card covers another, and each target that exists has a way", () => {
  for (let round = 0; round < 300; round += 1) {
    const flows = written();
    const { flows: boxes, ways, width, height } = layout(flows);
    const apart = (a, b) => a.x + a.width <= b.x || b.x + b.width <= a.x || a.y + a.height <= b.y || b.y + b.height <= a.y;
    boxes.forEach((one, i) => boxes.slice(i + 1).forEach((other) => assert.ok(apart(one.box, other.box))));
    for (const { box, cards } of boxes) {
      assert.ok(box.x + box.width <= width && box.y + box.height <= height && box.width === WIDTH);
      cards.forEach(({ box: card }, i) => {
        assert.ok(card.x > box.x && card.x + card.width < box.x + box.width && card.y > box.y && card.y + card.height <= box.y + box.height);
        assert.ok(i === 0 || card.y > cards[i - 1].box.y + cards[i - 1].box.height);
      });
    }
    const ids = new Set(flows.map((flow) => flow?.id).filter((id) => id !== undefined));
    const exits = flows.flatMap((flow) => model.actionsOf(flow).flatMap((each) => model.exitsOf(each))).filter(({ to }) => ids.has(to));
    assert.equal(ways.length, exits.length);
  }
});

test("layers follow the ways, and flows without a way to them come last", () => {
  const to = (id, ...targets) => ({ id, actions: [{ id: 1, type: "branch", on: "attributes.x", cases: Object.fromEntries(targets.map((each) => [each, each])), default: "end" }] });
  assert.deepEqual(layersOf([to("a", "b", "c"), to("b", "d"), to("c", "d", "a"), to("d"), to("e", "a")]), [0, 1, 1, 2, 3]);
  assert.deepEqual(layersOf([]), []);
});

test("arrow keys lead to each action and back, and along the exits", () => {
  for (let round = 0; round < 100; round += 1) {
    const flows = written();
    let at = [0, -1];
    const seen = [];
    while (at) {
      seen.push(at.join(" "));
      at = neighbour(flows, at, "ArrowDown");
    }
    assert.deepEqual(seen, flows.flatMap((flow, f) => [`${f} -1`, ...model.actionsOf(flow).map((_, a) => `${f} ${a}`)]));
    let back = seen.at(-1).split(" ").map(Number);
    let count = 0;
    while (back) {
      count += 1;
      back = neighbour(flows, back, "ArrowUp");
    }
    assert.equal(count, seen.length);
  }
  const flows = [{ id: "a", actions: [{ id: 1, type: "buttons", options: [{ id: "x", goto: "c" }] }] }, { id: "b", actions: [] }, { id: "c", actions: [{ id: 2, type: "close" }] }];
  assert.deepEqual([neighbour(flows, [0, 0], "ArrowRight"), neighbour(flows, [2, 0], "ArrowLeft"), neighbour(flows, [0, -1], "ArrowRight"), neighbour(flows, [0, 0], "x")], [[2, 0], [0, 0], [1, -1], null]);
});

test("a line leads on only from an action that can continue", () => {
  const flow = { id: "a", actions: [{ type: "message" }, { type: "buttons", options: [{ id: "x", goto: "b" }] }, { type: "buttons", options: [{ id: "x", goto: "b" }], allowText: true }, { type: "branch", cases: {}, default: "b" }, { type: "hand_off" }, { type: "close" }] };
  assert.deepEqual(flow.actions.map((_, a) => isLinked(flow, a)), [true, false, true, false, false, false]);
});

test("a problem belongs to the innermost field, also below a long or odd name", () => {
  const key = "ü/".repeat(40);
  const flows = [{ id: "a", actions: [{ id: 1, type: "branch", on: "?", cases: { [key]: "nowhere" }, default: "end" }, { id: 2, type: "assign", assignee: { type: "team", id: "x" } }] }];
  const cut = `/0/actions/0/cases/${[...key].slice(0, 40).join("").replaceAll("/", "~1")}`;
  const found = placed([cut, "/0/actions/0/colour", "/0/actions/1/assignee/id", "/0/actions/1", "/0/actions", "/0", "/7/id"].map((path) => ({ path, code: "", message: "" })), model.fieldsOf(flows));
  assert.deepEqual(found.map(({ field, rest }) => [field, rest]), [[cut, ""], ["/0/actions/0", "colour"], ["/0/actions/1/assignee/id", ""], ["/0/actions/1", ""], ["/0/actions", ""], ["/0", ""], ["", "7/id"]]);
});

test("attributes are read as JSON, and a text that reads as JSON is quoted", () => {
  for (const value of ["pro", "3", "true", "null", "", '"', 3, null, true, { a: [1] }, "two words"]) assert.deepEqual(model.attributeValue(model.attributeText(value)), value);
});
