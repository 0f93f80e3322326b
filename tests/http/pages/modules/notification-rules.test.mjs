import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import "./browser.mjs";

const { isQuiet, reasonToNotify } = await import(new URL("core/notification-rules.js", desk));
const cases = JSON.parse(readFileSync(new URL("../../../support/data/notifications.json", import.meta.url)));
const me = { id: cases.me.id, teams: new Set(cases.me.teams) };

for (const { case: name, event, settings, reason } of cases.events) {
  test(`event: ${name}`, () => assert.equal(reasonToNotify(event, me, settings), reason));
}

for (const { case: name, quietHours, at, quiet } of cases.quiet) {
  test(`quiet hours: ${name}`, () => assert.equal(isQuiet(quietHours, Date.parse(at)), quiet));
}
