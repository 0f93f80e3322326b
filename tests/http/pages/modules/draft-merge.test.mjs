import assert from "node:assert/strict";
import { test } from "node:test";
import { random } from "./browser.mjs";

const { EMPTY, joinTexts, merge, mergeFromServer } = await import(new URL("inbox/draft-merge.js", desk));

test("one change is taken, whichever side made it", () => {
  assert.equal(merge("Hello", "Hello Ada", "Hello"), "Hello Ada");
  assert.equal(merge("Hello", "Hello", "Hello Ada"), "Hello Ada");
  assert.equal(merge("Hello", "", "Hello"), "");
  assert.equal(merge("", "Hello", "Hello"), "Hello");
});

test("changes in different places are both made", () => {
  assert.equal(merge("Dear Ada, it left.", "Dear Ada Lovelace, it left.", "Dear Ada, it left today."), "Dear Ada Lovelace, it left today.");
});

test("where changes meet, both texts stay, in the same order on both sides", () => {
  const both = merge("", "It left today.", "No idea.");
  assert.equal(both, "It left today.\n\nNo idea.");
  assert.equal(merge("", "No idea.", "It left today."), both);
});

test("a text that is in the other one as a word, or is its beginning, is not repeated", () => {
  assert.equal(merge("", "It left", "It left us today."), "It left us today.");
  assert.equal(merge("a", "a hello wor", "a hello world"), "a hello world");
  assert.equal(joinTexts("x", "An example"), "An example\n\nx");
  assert.equal(joinTexts("ok", "my book"), "my book\n\nok");
});

test("words typed after a text that was sent elsewhere are all that is left", () => {
  assert.equal(merge("It left.", "It left. And more", "").trim(), "And more");
  assert.equal(merge("It left.", "It has left.", ""), "It has left.");
});

test("merging again what was merged adds nothing", () => {
  const once = merge("B", "B one", "B two");
  assert.ok(["B one\n\nB two", "B two\n\nB one"].includes(merge("B two", once, "B two\n\nB one")));
  assert.equal(merge("B one", once, once), once);
});

test("an emoji is never cut in two", () => {
  assert.ok(merge("\u{1f600}", "\u{1f601}", "\u{1f600}!").isWellFormed());
  assert.ok(merge("a\u{1f600}b", "a\u{1f601}b", "a\u{1f900}b").isWellFormed());
});

test("no word that either side wrote is dropped, and both sides get the same", () => {
  const next = random(20261128);
  const words = "alpha beta gamma delta epsilon zeta eta theta".split(" ");
  const pick = () => words[Math.floor(next() * words.length)];
  const some = (n) => Array.from({ length: Math.floor(next() * n) }, pick);
  const edited = (list, tag) => {
    const at = Math.floor(next() * (list.length + 1));
    const gone = next() < 0.3 ? Math.floor(next() * 3) : 0;
    return list.toSpliced(at, gone, ...some(4).map((each, i) => `${tag}${each}${i}`));
  };
  for (let round = 0; round < 3000; round += 1) {
    const base = some(8);
    const [a, b] = [edited(base, "A"), edited(base, "B")];
    const result = merge(base.join(" "), a.join(" "), b.join(" "));
    assert.equal(result, merge(base.join(" "), b.join(" "), a.join(" ")));
    for (const word of [...a, ...b].filter((each) => /^[AB]/.test(each))) assert.ok(result.includes(word), `${word} of ${a} and ${b} is not in ${result}`);
  }
});

const given = (text, version = 2) => ({ text, version, attachments: [], mentions: [], baseSequence: null });

test("a message that is taken back fills an editor that was emptied before the server knew", () => {
  const emptied = { ...EMPTY, base: { ...EMPTY.base, version: 1, text: "Hello" } };
  assert.equal(mergeFromServer(emptied, given("Hello")).text, "");
  assert.equal(mergeFromServer(emptied, given("Hello"), { returned: true }).text, "Hello");
  assert.equal(mergeFromServer({ ...emptied, sent: ["Hello"] }, given("Hello"), { returned: true }).text, "Hello");
});

test("a message that is taken back joins text that was written since", () => {
  const written = { ...EMPTY, text: "More", base: { ...EMPTY.base, version: 1, text: "More" } };
  assert.equal(mergeFromServer(written, given("More\n\nHello"), { returned: true }).text, "More\n\nHello");
});
