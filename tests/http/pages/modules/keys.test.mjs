import assert from "node:assert/strict";
import { test } from "node:test";
import "./browser.mjs";

const { COMMANDS, handle, commandsFor, typesText, runCommand, keyName } = await import(new URL("core/keys.js", desk));
const { t } = await import(new URL("core/texts-lazy.js", desk));

const press = (key, held = {}) => ({ key, ctrlKey: false, metaKey: false, altKey: false, shiftKey: false, ...held });
const anywhere = { field: false, singles: true, where: new Set(["list"]) };

test("a press is written as the table has it, on a Mac and elsewhere", () => {
  assert.equal(keyName(press("e"), false), "e");
  assert.equal(keyName(press("A", { shiftKey: true }), false), "shift+a");
  assert.equal(keyName(press("?", { shiftKey: true }), false), "?");
  assert.equal(keyName(press("k", { ctrlKey: true }), false), "mod+k");
  assert.equal(keyName(press("k", { metaKey: true }), true), "mod+k");
  assert.equal(keyName(press("k", { ctrlKey: true }), true), "other+k");
  assert.equal(keyName(press("Enter", { ctrlKey: true, shiftKey: true }), false), "mod+shift+enter");
  assert.equal(keyName(press("ArrowDown"), false), "arrowdown");
});

test("no two commands have the same key at the same place, and no chord begins with a command's own key", () => {
  const taken = new Set();
  const singles = new Set(COMMANDS.flatMap((each) => each.keys.filter((key) => !key.includes(" "))));
  for (const { id, keys, where } of COMMANDS) {
    for (const key of keys) {
      assert.ok(!taken.has(`${where} ${key}`), `${id}: ${key}`);
      taken.add(`${where} ${key}`);
      if (key.includes(" ")) assert.ok(!singles.has(key.split(" ")[0]), key);
    }
  }
});

test("every command has a name", () => {
  for (const { id } of COMMANDS) assert.equal(typeof t.commands[id], "string", id);
});

test("a chord is its first key and then its second, and nothing else is one", () => {
  assert.deepEqual(commandsFor("", "g", anywhere), { commands: [], pending: "g" });
  assert.deepEqual(commandsFor("g", "w", anywhere), { commands: ["viewWaiting"], pending: "" });
  assert.deepEqual(commandsFor("g", "e", anywhere), { commands: [], pending: "" });
});

test("in a field a letter is a letter, and only keys with Ctrl or Escape are commands", () => {
  const field = { field: true, singles: true, where: new Set(["composer"]) };
  assert.deepEqual(commandsFor("", "e", field).commands, []);
  assert.deepEqual(commandsFor("", "arrowdown", field).commands, []);
  assert.deepEqual(commandsFor("", "mod+enter", field).commands, ["send"]);
  assert.deepEqual(commandsFor("", "escape", field).commands, ["back"]);
  assert.ok(typesText("shift+a") && typesText("enter") && !typesText("mod+k"));
});

test("single letters can be turned off, and then only they are", () => {
  const off = { ...anywhere, singles: false };
  for (const key of ["e", "shift+a", "?", "g", "/"]) assert.deepEqual(commandsFor("", key, off), { commands: [], pending: "" }, key);
  assert.deepEqual(commandsFor("", "mod+k", off).commands, ["palette"]);
  assert.deepEqual(commandsFor("", "arrowdown", off).commands, ["next"]);
});

test("a key of the list counts where the list is", () => {
  assert.deepEqual(commandsFor("", "j", { ...anywhere, where: new Set() }).commands, []);
  assert.deepEqual(commandsFor("", "j", anywhere).commands, ["next"]);
});

test("the newest handler of a command goes first, and passes it on if it returns false", () => {
  const done = [];
  const first = handle({ undo: () => void done.push("first") });
  const second = handle({ undo: () => (done.push("second"), false) });
  assert.ok(runCommand("undo"));
  assert.deepEqual(done, ["second", "first"]);
  second();
  assert.ok(runCommand("undo"));
  assert.deepEqual(done, ["second", "first", "first"]);
  first();
  assert.ok(!runCommand("undo"));
});
