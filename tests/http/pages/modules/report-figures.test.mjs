import assert from "node:assert/strict";
import { test } from "node:test";
import "./browser.mjs";

const { REPORTS, changeText, chartUnit, daysEarlier, drawn, earlier, isFew, shown, sizeText } = await import(new URL("insights/report-figures.js", desk));

const [median] = REPORTS["first-response"].figures;
const [csat, average, ratings] = REPORTS.csat.figures;
const [created] = REPORTS.volume.figures;
const change = (metric, of, now, before) => changeText(metric, of, now, before);

test("a report on few values warns in its own words, and one on none says that", () => {
  assert.equal(sizeText("csat", { count: 3 }), "3 ratings: too few to compare");
  assert.equal(sizeText("first-response", { count: 1 }), "1 first reply: too few to compare");
  assert.equal(sizeText("time-to-close", { count: 10 }), "10 closings");
  assert.equal(sizeText("csat", { count: 0 }), "No ratings");
  assert.equal(sizeText("volume", { conversationsCreated: 3 }), null);
  assert.deepEqual([9, 10, null].map(isFew), [true, false, false]);
});

test("durations have the unit that fits, and a chart has one unit for all its series", () => {
  assert.deepEqual([12.4, 90, 5400, 9000, 300_000, null].map((each) => shown(median, each)), ["12 s", "1.5 min", "90 min", "2.5 h", "3.5 d", "–"]);
  assert.deepEqual(drawn(median, [{ median: 1800 }, { median: null }, undefined], 7200), [0.5, null, null]);
  assert.equal(chartUnit(median, 7200), "hours");
  assert.equal(chartUnit(csat, 90), "%");
});

test("a change is said in words, with the earlier figure, and in percent only of enough values", () => {
  const [many, few] = [{ median: 240, count: 40 }, { median: 240, count: 4 }];
  assert.equal(change("first-response", median, many, { median: 120, count: 30 }), "Up 2 min from 2 min (+100%)");
  assert.equal(change("first-response", median, many, { median: 480, count: 30 }), "Down 4 min from 8 min (-50%)");
  assert.equal(change("first-response", median, few, { median: 120, count: 30 }), "Up 2 min from 2 min");
  assert.equal(change("first-response", median, many, { median: 120, count: 3 }), "Up 2 min from 2 min, with only 3 first replies then");
  assert.equal(change("first-response", median, many, { median: 240, count: 30 }), "Unchanged from 4 min");
  assert.equal(change("first-response", median, many, { median: null, count: 0 }), "Nothing to compare in the period before");
  assert.equal(change("first-response", median, { median: null, count: 0 }, many), null);
});

test("counts have no percentage of a small base, and ratings and percentages have none at all", () => {
  const of = (n) => ({ conversationsCreated: n });
  assert.equal(change("volume", created, of(18), of(12)), "Up 6 from 12 (+50%)");
  assert.equal(change("volume", created, of(18), of(9)), "Up 9 from 9");
  assert.equal(change("volume", created, of(18), of(0)), "Up 18 from 0");
  assert.equal(change("volume", created, of(0), of(12)), "Down 12 from 12 (-100%)");
  assert.equal(change("csat", csat, { csat: 85, count: 40 }, { csat: 80, count: 40 }), "Up 5 points from 80%");
  assert.equal(change("csat", average, { average: 8.5, count: 40 }, { average: 8, count: 40 }), "Up 0.5 from 8");
  assert.equal(change("csat", ratings, { count: 40 }, { count: 4 }), "Up 36 from 4");
});

test("the period before begins whole weeks earlier, at the same time of day", () => {
  assert.deepEqual([1, 6, 7, 30, 90, 365].map(daysEarlier), [1, 6, 7, 35, 91, 371]);
  const at = new Date(2026, 10, 2, 14, 30);
  const then = earlier(at, 35);
  assert.deepEqual([then.getDay(), then.getHours(), then.getMinutes(), then.getMonth(), then.getDate()], [at.getDay(), 14, 30, 8, 28]);
});
