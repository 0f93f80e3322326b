import assert from "node:assert/strict";
import { test } from "node:test";
import "./browser.mjs";

const { APART_PX, LOOKS, closest, labelled, linePath, markersPath, movedApart, partsOf, ticksOf } = await import(new URL("ui/chart-layout.js", desk));

const points = (...ys) => ys.map((y, i) => (y === null ? null : { x: 10 * i, y }));

test("ticks have every value and zero, and are whole for counts", () => {
  assert.deepEqual(ticksOf([3, null, 17]), [0, 5, 10, 15, 20]);
  assert.deepEqual(ticksOf([1, 2], true), [0, 1, 2]);
  assert.deepEqual(ticksOf([0.25]), [0, 0.1, 0.2, 0.3]);
  assert.deepEqual(ticksOf([-40, 55]), [-50, 0, 50, 100]);
  assert.deepEqual(ticksOf([0, 0], true), [0, 1]);
  assert.deepEqual(ticksOf([null]), [0, 0.5, 1]);
});

test("a gap splits a line, and a point between two gaps is only a marker", () => {
  const parts = partsOf(points(1, 2, null, 5, null, null, 7, 8));
  assert.deepEqual(parts.map((part) => part.map(({ y }) => y)), [[1, 2], [5], [7, 8]]);
  assert.equal(linePath(parts), "M0 1L10 2M60 7L70 8");
  assert.equal(markersPath("square", parts[1]).match(/M/g).length, 1);
});

test("equal and close values are drawn apart, in their order, around their mean", () => {
  assert.deepEqual(movedApart([100, 100]), [97.5, 102.5]);
  assert.deepEqual(movedApart([101, 100]), [103, 98]);
  assert.deepEqual(movedApart([100, 100, 100]), [95, 100, 105]);
  assert.deepEqual(movedApart([100, null, 100]), [97.5, null, 102.5]);
  assert.deepEqual(movedApart([100, 120]), [100, 120]);
});

test("a pair that is moved apart does not hide a third value", () => {
  for (let third = 80; third <= 120; third++) {
    const moved = movedApart([100, 101, third]).toSorted((a, b) => a - b);
    for (const i of [1, 2]) assert.ok(moved[i] - moved[i - 1] >= APART_PX - 1e-9, `${third}: ${moved}`);
    assert.ok(Math.abs(moved.reduce((sum, each) => sum + each, 0) - (201 + third)) < 1e-9);
  }
});

test("no two looks share their pattern, and no two have the same marker in the same way", () => {
  assert.equal(new Set(LOOKS.map(({ dash }) => dash)).size, LOOKS.length);
  assert.equal(new Set(LOOKS.map(({ marker, hollow }) => `${marker} ${hollow}`)).size, LOOKS.length);
});

test("labels do not touch, and the closest point is found", () => {
  assert.deepEqual(labelled([0, 30, 60, 70, 130], 60), [0, 2, 4]);
  assert.equal(closest([0, 30, 60], 44), 1);
  assert.equal(closest([0, 30, 60], 500), 2);
});
