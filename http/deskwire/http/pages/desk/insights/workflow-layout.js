// @ts-check
/**
 * The places of a workflow's flows and actions in the diagram, and the ways between them.
 *
 * Flows stand in layers from the left to the right: each in the layer after the first flow that leads to it. A way to an earlier layer runs below all flows.
 */
import { isObject, listed } from "./form-model.js";
import { actionsOf, exitsOf, goesOn } from "./workflow-model.js";

export const WIDTH = 236;
const HEAD = 36;
const FACE = 58;
const EXIT = 24;
const GAP = 16;
const PAD = 10;
const LAYER_GAP = 72;
const FLOW_GAP = 28;
const LANE = 12;
const ROUND = 8;

/** @typedef {{x: number, y: number, width: number, height: number}} Box */
/** @typedef {{box: Box, exits: {x: number, y: number}[]}} Card */
/** @typedef {{box: Box, layer: number, cards: Card[]}} Placed */
/** @typedef {{from: [flow: number, action: number, exit: number], to: number, path: string, back: boolean}} Way */

/** Return the layer of each flow; flows that nothing leads to come last. @param {any[]} flows @returns {number[]} */
export function layersOf(flows) {
  const index = new Map();
  flows.forEach((flow, f) => index.has(flow?.id) || index.set(flow?.id, f));
  const layers = flows.map(() => -1);
  const todo = flows.length ? [0] : [];
  if (flows.length) layers[0] = 0;
  for (let f = todo.shift(); f !== undefined; f = todo.shift()) {
    for (const action of actionsOf(flows[f]))
      for (const { to } of exitsOf(action)) {
        const target = index.get(to);
        if (target === undefined || layers[target] !== -1) continue;
        layers[target] = (layers[f] ?? 0) + 1;
        todo.push(target);
      }
  }
  const last = Math.max(0, ...layers);
  return layers.map((layer) => (layer === -1 ? last + 1 : layer));
}

/** @param {any} flow @param {number} x @param {number} y @returns {Omit<Placed, "layer">} */
function placedFlow(flow, x, y) {
  let top = y + HEAD;
  const cards = actionsOf(flow).map((action) => {
    const exits = exitsOf(action);
    const height = FACE + exits.length * EXIT + (exits.length ? 6 : 0);
    const box = { x: x + PAD, y: top, width: WIDTH - 2 * PAD, height };
    top += height + GAP;
    return { box, exits: exits.map((_, i) => ({ x: x + WIDTH - PAD, y: box.y + FACE + i * EXIT + EXIT / 2 })) };
  });
  return { box: { x, y, width: WIDTH, height: Math.max(top - y, HEAD + EXIT) + PAD - (cards.length ? GAP : 0) + 30 }, cards };
}

/** A way below all flows, with round corners. @param {number} x1 @param {number} y1 @param {number} x2 @param {number} y2 @param {number} low @param {number} lane */
function around(x1, y1, x2, y2, low, lane) {
  const right = x1 + 14 + lane / 2;
  const left = x2 - 14 - lane / 2;
  const r = ROUND;
  return `M${x1} ${y1}H${right - r}q${r} 0 ${r} ${r}V${low - r}q0 ${r} ${-r} ${r}H${left + r}q${-r} 0 ${-r} ${-r}V${y2 + r}q0 ${-r} ${r} ${-r}H${x2}`;
}

/** Place all flows. @param {any} flows @returns {{flows: Placed[], ways: Way[], width: number, height: number}} */
export function layout(flows) {
  const items = listed(flows);
  const layers = layersOf(items);
  /** @type {number[]} */
  const bottoms = [];
  const placed = items.map((flow, f) => {
    const layer = layers[f] ?? 0;
    const at = placedFlow(isObject(flow) ? flow : {}, layer * (WIDTH + LAYER_GAP), bottoms[layer] ?? 0);
    bottoms[layer] = at.box.y + at.box.height + FLOW_GAP;
    return { ...at, layer };
  });
  const low = Math.max(0, ...placed.map(({ box }) => box.y + box.height));
  const index = new Map();
  items.forEach((flow, f) => index.has(flow?.id) || index.set(flow?.id, f));
  let backs = 0;
  /** @type {Way[]} */
  const ways = [];
  items.forEach((flow, f) => actionsOf(flow).forEach((action, a) => exitsOf(action).forEach(({ to }, e) => {
    const target = index.get(to);
    const from = placed[f]?.cards[a]?.exits[e];
    const goal = placed[target]?.box;
    if (!from || !goal) return;
    const y = goal.y + HEAD / 2;
    const back = (layers[target] ?? 0) <= (layers[f] ?? 0);
    const lane = back ? ++backs * LANE : 0;
    const bend = Math.max(30, (goal.x - from.x) / 2);
    ways.push({ from: [f, a, e], to: target, back, path: back ? around(from.x, from.y, goal.x, y, low + lane, lane % 48) : `M${from.x} ${from.y}C${from.x + bend} ${from.y} ${goal.x - bend} ${y} ${goal.x} ${y}` });
  })));
  const width = Math.max(WIDTH, ...placed.map(({ box }) => box.x + box.width));
  return { flows: placed, ways, width: width + 40, height: low + (backs + 1) * LANE };
}

/** Return the place that an arrow key leads to. @param {any} flows @param {[number, number]} at  the action is -1 for the head of a flow @param {string} key @returns {[number, number]|null} */
export function neighbour(flows, [f, a], key) {
  const items = listed(flows);
  const count = actionsOf(items[f]).length;
  const sources = items.flatMap((flow, i) => actionsOf(flow).flatMap((action, j) => (exitsOf(action).some(({ to }) => to === items[f]?.id) ? [/** @type {[number, number]} */ ([i, j])] : [])));
  const target = exitsOf(actionsOf(items[f])[a]).map(({ to }) => items.findIndex((flow) => flow?.id === to)).find((found) => found >= 0);
  const to = /** @type {Record<string, [number, number]|null>} */ ({
    ArrowDown: a + 1 < count ? [f, a + 1] : f + 1 < items.length ? [f + 1, -1] : null,
    ArrowUp: a >= 0 ? [f, a - 1] : f > 0 ? [f - 1, actionsOf(items[f - 1]).length - 1] : null,
    ArrowRight: target !== undefined ? [target, Math.min(0, actionsOf(items[target]).length - 1)] : f + 1 < items.length ? [f + 1, Math.min(0, actionsOf(items[f + 1]).length - 1)] : null,
    ArrowLeft: sources[0] ?? (f > 0 ? [f - 1, Math.min(0, actionsOf(items[f - 1]).length - 1)] : null),
    Home: [f, -1],
    End: [f, count - 1],
  });
  return to[key] ?? null;
}

/** True if a line leads from an action to the next one. @param {any} flow @param {number} a */
export const isLinked = (flow, a) => a + 1 < actionsOf(flow).length && goesOn(actionsOf(flow)[a]);
