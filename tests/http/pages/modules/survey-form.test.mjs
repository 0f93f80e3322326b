import assert from "node:assert/strict";
import { test } from "node:test";
import { random } from "./browser.mjs";

const model = await import(new URL("insights/form-model.js", desk));
const survey = await import(new URL("insights/survey-model.js", desk));
const { linesOf, parseJson, pretty } = await import(new URL("insights/json-text.js", desk));
const { cardPlace, scrollStep } = await import(new URL("insights/card-drag.js", desk));
const { get, numberOf, placed, set } = model;

const chance = random(7);
const below = (n) => Math.floor(chance() * n);
const one = (items) => items[below(items.length)];
const maybe = (share, value) => (chance() < share ? value() : undefined);
const shuffled = (of) => Object.fromEntries(Object.entries(of).filter(([, value]) => value !== undefined).map((each) => [chance(), each]).sort(([a], [b]) => a - b).map(([, each]) => each));
const ODD = [null, 7, -1.5, true, "", "text", [], ["x"], {}, { "10": 1, b: [2], "2": 3, __proto__x: 4 }, JSON.parse('{"__proto__": {"a": 1}}')];
const odd = () => one(ODD);
const texts = (languages) => (chance() < 0.1 ? odd() : shuffled({ ...Object.fromEntries(languages.map((each) => [each, one(["?", "", "Ü “x”"])])), xx: maybe(0.1, odd) }));

/** A definition that a person could have written: mostly valid, in any order, with unknown members and wrong types. */
function written() {
  const languages = one([["en"], ["en", "de"], ["pt-BR", "en", "fr"]]);
  const choice = (i) => (chance() < 0.05 ? odd() : shuffled({ id: `c${i}`, label: texts(languages), note: maybe(0.1, odd) }));
  const question = (i) => {
    const type = one([...Object.keys(survey.TYPES), "stars"]);
    return chance() < 0.05 ? odd() : shuffled({ id: maybe(0.95, () => `q${i}`), type, title: texts(languages), required: maybe(0.4, () => one([true, false, "yes"])), choices: maybe(0.5, () => (chance() < 0.1 ? odd() : [0, 1, 2].map(choice))), min: maybe(0.3, () => one([0, 1.5, "a"])), colour: maybe(0.1, odd) });
  };
  const jump = () => (chance() < 0.05 ? odd() : shuffled({ from: `q${below(4)}`, to: one(["q3", "end", "nowhere"]), when: maybe(0.8, () => (chance() < 0.1 ? odd() : shuffled({ op: one(["eq", "in", "answered", "like"]), value: maybe(0.8, odd), more: maybe(0.1, odd) }))) }));
  return shuffled({ schemaVersion: "2.0", title: one(["A title", odd()]), languages: chance() < 0.05 ? odd() : languages, primaryLanguage: languages[0], questions: chance() < 0.03 ? odd() : [0, 1, 2, 3].map(question), logic: maybe(0.8, () => (chance() < 0.05 ? odd() : [0, 1, 2].map(jump))), thankYou: maybe(0.6, () => texts(languages)), unknown: maybe(0.2, odd) });
}

const partOf = (definition, pointer) => pointer.split("/").slice(1).reduce((part, name) => (part === null || typeof part !== "object" ? undefined : part[Array.isArray(part) ? Number(name) : name.replaceAll("~1", "/").replaceAll("~0", "~")]), definition);
const pathOf = (definition, pointer) => {
  let part = definition;
  return pointer.split("/").slice(1).map((name) => {
    const step = Array.isArray(part) ? Number(name) : name;
    part = part?.[step];
    return step;
  });
};

test("the order of members is the same for the same definition, and loses nothing", () => {
  for (let round = 0; round < 500; round += 1) {
    const definition = written();
    const ordered = survey.ordered(definition);
    assert.deepEqual(ordered, definition);
    assert.equal(pretty(survey.ordered(shuffled(definition))), pretty(ordered));
    assert.equal(pretty(survey.ordered(JSON.parse(pretty(ordered)))), pretty(ordered));
  }
});

test("writing back the value of a field changes no byte of the text", () => {
  for (let round = 0; round < 500; round += 1) {
    const definition = survey.ordered(written());
    for (const pointer of survey.fieldsOf(definition)) {
      const path = pathOf(definition, pointer);
      const part = get(definition, path);
      if (part === undefined) continue;
      assert.equal(pretty(survey.ordered(set(definition, path, part))), pretty(definition), pointer);
    }
  }
});

test("a change of one field changes nothing else", () => {
  for (let round = 0; round < 500; round += 1) {
    const definition = survey.ordered(written());
    const pointer = one(survey.fieldsOf(definition).filter((each) => partOf(definition, each) !== undefined && each));
    const path = pathOf(definition, pointer);
    const next = set(set(definition, path, "changed"), path, get(definition, path));
    assert.equal(pretty(next), pretty(definition), pointer);
  }
});

test("a survey made by the form has the bytes of one written by hand", () => {
  let made = { schemaVersion: "2.0", title: "New", languages: ["en"], primaryLanguage: "en", questions: [], logic: [], thankYou: { en: "Thanks!" } };
  made = survey.withQuestion(made, 0, "rating");
  made = set(made, ["questions", 0, "title", "en"], "How was it?");
  made = set(made, ["questions", 0, "max"], 10);
  made = set(made, ["questions", 0, "required"], true);
  made = survey.withQuestion(made, 1, "single_choice");
  made = set(made, ["questions", 1, "title", "en"], "Why?");
  made = survey.withChoice(made, 1);
  made = set(set(made, ["questions", 1, "choices", 0, "label", "en"], "Price"), ["questions", 1, "choices", 1, "label", "en"], "Help");
  made = survey.withId(survey.withId(made, 0, "stars"), 1, "why");
  made = survey.withJump(made, 0);
  made = set(made, ["logic", 0, "when"], { value: 8, op: "gte" });
  made = survey.withLanguage(made, "de");
  made = survey.withoutLanguage(made, 1);
  const written = `{"thankYou": {"en": "Thanks!"}, "title": "New", "schemaVersion": "2.0", "primaryLanguage": "en", "languages": ["en"],
    "questions": [{"type": "rating", "id": "stars", "max": 10, "required": true, "title": {"en": "How was it?"}},
      {"id": "why", "choices": [{"label": {"en": "Price"}, "id": "choice1"}, {"id": "choice2", "label": {"en": "Help"}}], "type": "single_choice", "title": {"en": "Why?"}}],
    "logic": [{"when": {"op": "gte", "value": 8}, "from": "stars", "to": "end"}]}`;
  assert.equal(pretty(survey.ordered(made)), pretty(survey.ordered(JSON.parse(written))));
});

test("a new id is followed by the jumps, and a taken one takes over none", () => {
  const definition = { questions: [{ id: "a", type: "nps" }, { id: "b", type: "text" }], logic: [{ from: "a", to: "b" }, { from: "b", to: "end" }, 5] };
  assert.deepEqual(survey.withId(definition, 1, "c").logic, [{ from: "a", to: "c" }, { from: "c", to: "end" }, 5]);
  assert.deepEqual(survey.withId(definition, 1, "a").logic, definition.logic);
  assert.deepEqual(survey.withoutQuestion(definition, 1).logic, [{ from: "a", to: "b" }, 5]);
});

test("a copy has a free id, also of a question without one", () => {
  const ids = (/** @type {any} */ of, at = 0) => survey.withCopy({ questions: of }, at).questions.map((/** @type {any} */ each) => each.id);
  assert.deepEqual(ids([{ id: "a" }]), ["a", "a-1"]);
  assert.deepEqual(ids([{ type: "nps" }]), [undefined, "question1"]);
});

test("a condition without a value has no field for it, so its problem belongs to the jump", () => {
  const definition = { questions: [], logic: [{ from: "a", to: "end", when: { op: "answered", value: 1 } }] };
  const [found] = placed([{ path: "/logic/0/when/value", code: "", message: "" }], survey.fieldsOf(definition));
  assert.equal(found.field, "/logic/0");
});

test("a type that is taken back brings the choices and bounds back", () => {
  const definition = { languages: ["en"], questions: [{ id: "a", type: "multiple_choice", choices: [{ id: "x", label: { en: "X" } }], max: 1 }] };
  const earlier = {};
  const text = survey.withType(definition, 0, "date", earlier);
  assert.deepEqual(text.questions[0], { id: "a", type: "date" });
  assert.deepEqual(survey.ordered(survey.withType(text, 0, "multiple_choice", earlier)), survey.ordered(definition));
});

test("a problem belongs to the innermost field around it", () => {
  const definition = { languages: ["en"], questions: [{ id: "a", type: "nps", title: { en: "?" } }], logic: [{ from: "a", to: "end", when: { op: "in", value: [1] } }] };
  const fields = survey.fieldsOf(definition);
  const found = placed(["/questions/0/title/en", "/questions/0/colour", "/questions/0/min", "/logic/0/when/value/3", "/logic/0/when", "/more/x", ""].map((path) => ({ path, code: "", message: "" })), fields);
  assert.deepEqual(found.map(({ field, rest }) => [field, rest]), [["/questions/0/title/en", ""], ["/questions/0", "colour"], ["/questions/0", "min"], ["/logic/0/when/value", "3"], ["/logic/0", "when"], ["", "more/x"], ["", ""]]);
});

test("numbers are read as they are typed, and other text stays text", () => {
  assert.deepEqual(["7", " -1.5 ", ".5", "9.", "", "1e3", "a", "-"].map(numberOf), [7, -1.5, 0.5, 9, undefined, "1e3", "a", "-"]);
});

test("a text of which a part would be lost is no definition", () => {
  assert.deepEqual(parseJson('{"a": [1, {"b": 2}], "b": {"a": 3}}'), { value: { a: [1, { b: 2 }], b: { a: 3 } } });
  for (const [text, line] of [['{"a": 1,\n"a": 2}', 2], ['[{"x": {"a": 1, "\\u0061": 2}}]', 1], ["[\n\n9007199254740993]", 3], ["[1e999]", 1], ["[1e-400]", 1], ["[0.1234567890123456789]", 1], ['{"a": }', 1]]) {
    const found = parseJson(text);
    assert.equal("value" in found, false, text);
    assert.equal(found.line, line, text);
  }
  for (const number of ["0.30000000000000004", "1.50", "-0.0", "1E3", "100", "1e-7", "123456789012345680000"]) assert.deepEqual(parseJson(number), { value: Number(number) }, number);
  assert.equal(linesOf('{\n"a": {\n"b": [1,\n2]}}').get("/a/b/1"), 4);
});

test("a dragged card gets the index of the place where it is dropped", () => {
  const middles = [50, 150, 250, 350];
  for (const [from, y, place] of [[0, 10, 0], [0, 120, 0], [0, 160, 1], [0, 999, 3], [3, -5, 0], [3, 140, 1], [2, 240, 2], [1, 260, 2]]) {
    assert.equal(cardPlace(middles, from, y), place, `${from} at ${y}`);
    const list = ["a", "b", "c", "d"];
    assert.equal(model.moved(list, from, place)[place], list[from]);
  }
  assert.equal(cardPlace([50], 0, 400), 0);
});

test("the page scrolls while a card is dragged near its edges, and faster the nearer it is", () => {
  assert.equal(scrollStep(100, 900, 500), 0);
  assert.ok(scrollStep(100, 900, 110) < scrollStep(100, 900, 140) && scrollStep(100, 900, 140) < 0);
  assert.ok(scrollStep(100, 900, 895) > 0);
  assert.equal(scrollStep(100, 900, 5000), -scrollStep(100, 900, -5000));
});
