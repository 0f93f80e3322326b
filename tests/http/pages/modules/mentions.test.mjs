import assert from "node:assert/strict";
import { test } from "node:test";
import "./browser.mjs";

const { mentionKeys, mentionsIn, splitMentions } = await import(new URL("inbox/mention-text.js", desk));
const { EMPTY, differs, mergeFromServer, mergeFromTab } = await import(new URL("inbox/draft-merge.js", desk));

const person = (id, name) => ({ type: "user", id: `usr_${id}`, name });
const ann = person("ann", "Ann");
const annLee = person("lee", "Ann Lee");
const dots = person("dots", "C. (Ops) [x]* \\d");

test("names in a text are found, the longest first and only as whole words", () => {
  assert.deepEqual(splitMentions("@Ann Lee and @Ann, not @Anna", [ann, annLee]), [annLee, " and ", ann, ", not @Anna"]);
  assert.deepEqual(splitMentions("no names", [ann]), ["no names"]);
  assert.deepEqual(splitMentions("", [ann]), []);
  assert.deepEqual(splitMentions(`@${dots.name}!`, [dots]), [dots, "!"]);
  assert.deepEqual(splitMentions("@Zoë @Zoë", [person("z", "Zoë")]).length, 3);
});

test("two people with one name have their places in the order of the mentions", () => {
  const other = person("other", "Ann");
  assert.deepEqual(splitMentions("@Ann and @Ann", [ann, other]), [ann, " and ", other]);
  assert.deepEqual(splitMentions("@Ann, @Ann, @Ann", [ann, other]).filter((each) => each === other).length, 2);
});

test("mentions whose name is no longer in the text are dropped", () => {
  assert.deepEqual(mentionsIn("@Ann Lee", [ann], [annLee, annLee]), [annLee]);
  assert.deepEqual(mentionsIn("@Ann", [ann], [annLee]), [ann]);
  assert.deepEqual(mentionsIn("Ann", [ann]), []);
});

test("a draft differs from the server's by its mentions, too", () => {
  const draft = { ...EMPTY, text: "@Ann", base: { ...EMPTY.base, version: 1, text: "@Ann" } };
  assert.equal(differs(draft), false);
  assert.equal(differs({ ...draft, mentions: [ann] }), true);
  assert.equal(mentionKeys([ann, annLee]), mentionKeys([annLee, ann]));
  assert.equal(mentionKeys(undefined), "");
});

test("mentions of another tab and of the server join those of this one, as far as the text has them", () => {
  const mine = { ...EMPTY, text: "@Ann", mentions: [ann], base: { ...EMPTY.base, version: 1, text: "" } };
  const given = { version: 2, text: "@Ann Lee please", attachments: [], mentions: [annLee], baseSequence: null };
  const merged = mergeFromServer(mine, given);
  assert.match(merged.text, /@Ann Lee please/);
  assert.ok(merged.mentions.some((each) => each.id === annLee.id));
  assert.deepEqual(merged.base.mentions, [annLee]);
  const theirs = { ...EMPTY, text: "@Ann @Ann Lee", mentions: [annLee] };
  assert.deepEqual(mergeFromTab(mine, { text: "@Ann", files: [] }, theirs).mentions, [ann, annLee]);
  const older = { ...EMPTY, text: "@Ann", mentions: undefined };
  assert.deepEqual(mergeFromTab(mine, { text: "@Ann", files: [] }, older).mentions, [ann]);
});
