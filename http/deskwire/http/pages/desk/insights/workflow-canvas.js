// @ts-check
/** The diagram of flows: cards in layers, the ways between them, selection by pointer and arrow keys, and connecting by dragging. */
import { html, useLayoutEffect, useMemo, useRef, useState } from "../vendor/preact.js";
import { t } from "./texts.js";
import { t as f } from "./form-texts.js";
import { Menu, cx } from "../ui/parts.js";
import { fieldText, get, isObject, listed } from "./form-model.js";
import { NARROW, lastsText, typeName } from "./workflow-view.js";
import { ACTIONS, actionsOf, exitsOf } from "./workflow-model.js";
import { isLinked, layout, neighbour } from "./workflow-layout.js";
/** @import { Path } from "./form-model.js" */
/** @import { Box } from "./workflow-layout.js" */

const w = f.workflow;
/** @typedef {[flow: number, action: number]} At  a place in the flows; the action is -1 for the flow itself */
/** @typedef {{flowId: string, actionId: number}} Step */

/** Place an element. Below 700 pixels the style sheet lists the cards instead. @param {Box} box */
const boxed = ({ x, y, width, height }) => (/** @type {HTMLElement|null} */ element) => {
  if (!element) return;
  for (const [name, value] of Object.entries({ left: x, top: y, width, height })) element.style.setProperty(name, `${value}px`);
};

/** An action in a few words. @param {any} action */
function summary(action) {
  switch (action?.type) {
    case "message": case "buttons": case "form": return fieldText(action.text) || w.noText;
    case "wait": return Number.isFinite(action.seconds) ? lastsText(action.seconds) : fieldText(action.seconds);
    case "assign": return w.assignee(fieldText(get(action, ["assignee", "type"])) || "?", fieldText(get(action, ["assignee", "id"])));
    case "set_attributes": return Object.entries(isObject(action.attributes) ? action.attributes : {}).map(([name, value]) => `${name} = ${JSON.stringify(value)}`).join(", ");
    case "branch": return `${t.workflows.branchOn} ${fieldText(action.on)}`;
    default: return "";
  }
}

/** The steps of a try-out as keys of actions and of ways. @param {any[]} flows @param {Step[]} steps */
function trail(flows, steps) {
  const places = steps.map(({ flowId, actionId }) => {
    const flow = flows.findIndex((each) => each?.id === flowId);
    return `${flow} ${actionsOf(flows[flow]).findIndex((each) => each?.id === actionId)}`;
  });
  return { done: new Set(places), ways: new Set(places.slice(1).flatMap((place, i) => (place.endsWith(" 0") ? [`${places[i]} ${place.split(" ")[0]}`] : []))) };
}

/**
 * @typedef {object} CanvasProps
 * @property {any} flows
 * @property {At|null} selected
 * @property {(at: At, enter: boolean) => void} select  enter: edit it, by Enter or a tap
 * @property {Step[]} [steps]  of a try-out, the last one is where it is
 * @property {boolean} [waits]  true if the try-out waits there
 * @property {Set<string>} [wrong]  keys of places with problems, such as "0 1"
 * @property {((at: At) => void)} [remove]  without it, nothing can be changed
 * @property {(path: Path, to: string|null|undefined) => void} [connect]
 * @property {(at: At, type: string) => void} [add]  adds an action at a place
 */

/** @param {CanvasProps} props */
export function Canvas({ flows, selected, select, steps = [], waits = false, wrong, remove, connect, add }) {
  const items = listed(flows);
  const box = useRef(/** @type {HTMLElement|null} */ (null));
  const inner = useRef(/** @type {HTMLElement|null} */ (null));
  const moves = useRef(false);
  const places = useMemo(() => layout(flows), [flows]);
  const done = trail(items, steps);
  const here = trail(items, steps.slice(-1)).done.values().next().value;
  const [drag, setDrag] = useState(/** @type {{path: Path, from: [number, number], to: [number, number], over?: string}|null} */ (null));
  useLayoutEffect(() => {
    if (!moves.current || !selected) return;
    moves.current = false;
    const face = /** @type {HTMLElement|null|undefined} */ (box.current?.querySelector(`[data-place="${selected[0]} ${selected[1]}"]`));
    face?.focus();
    face?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }, [selected?.[0], selected?.[1]]);
  useLayoutEffect(() => boxed({ x: 0, y: 0, width: places.width, height: places.height })(inner.current), [places]);

  const pressed = (/** @type {KeyboardEvent} */ event) => {
    const place = /** @type {HTMLElement} */ (event.target).dataset.place?.split(" ").map(Number);
    if (!place || event.altKey || event.ctrlKey || event.metaKey) return;
    const at = /** @type {At} */ (place);
    if ((event.key === "Delete" || event.key === "Backspace") && remove) return void (event.preventDefault(), remove(at));
    const to = neighbour(items, at, event.key);
    if (!to) return;
    event.preventDefault();
    moves.current = true;
    select(to, false);
  };
  const point = (/** @type {PointerEvent} */ event) => {
    const at = inner.current?.getBoundingClientRect();
    return /** @type {[number, number]} */ ([event.clientX - (at?.left ?? 0), event.clientY - (at?.top ?? 0)]);
  };
  const start = (/** @type {Path} */ path, /** @type {{x: number, y: number}} */ from) => (/** @type {any} */ event) => {
    if (!connect || event.button) return;
    event.preventDefault();
    event.target.setPointerCapture(event.pointerId);
    setDrag({ path, from: [from.x, from.y], to: point(event) });
  };
  const under = (/** @type {PointerEvent} */ event) => document.elementFromPoint(event.clientX, event.clientY);
  const flowUnder = (/** @type {PointerEvent} */ event) => /** @type {HTMLElement|null|undefined} */ (under(event)?.closest("[data-flow]"))?.dataset.flow;
  const drop = (/** @type {PointerEvent} */ event) => {
    if (!drag || !connect) return;
    setDrag(null);
    const there = under(event);
    const flow = flowUnder(event);
    const card = /** @type {HTMLElement} */ (event.target).closest(".canvas-card");
    if (card?.contains(there)) return; // a click, or a change of mind
    if (flow !== undefined) {
      const id = items[Number(flow)]?.id;
      if (typeof id === "string" && id) connect(drag.path, id);
    } else if (inner.current?.contains(there) || box.current === there) connect(drag.path, null);
  };
  const first = selected ?? [0, items.length && actionsOf(items[0]).length ? 0 : -1];
  const face = (/** @type {At} */ at, /** @type {string} */ name, /** @type {any} */ content) => {
    const key = `${at[0]} ${at[1]}`;
    return html`<button type="button" class="face" data-place=${key} tabindex=${first[0] === at[0] && first[1] === at[1] ? 0 : -1} aria-pressed=${String(selected?.[0] === at[0] && selected?.[1] === at[1])} aria-current=${here === key ? "step" : undefined}
      onClick=${(/** @type {MouseEvent} */ event) => select(at, event.detail === 0 || innerWidth < NARROW)}><span class="sr">${name}: </span>${content}${wrong?.has(key) && html`<span class="chip bad">${t.editor.list}</span>`}${here === key && html`<span class="chip accent">${waits ? t.workflows.waitsHere : w.endsHere}</span>`}</button>`;
  };
  return html`<div ref=${box} class="canvas" role="group" aria-label=${f.diagram} onKeyDown=${pressed}><div ref=${inner} class="canvas-inner" onPointerMove=${(/** @type {PointerEvent} */ event) => drag && setDrag({ ...drag, to: point(event), over: flowUnder(event) })} onPointerUp=${drop} onPointerCancel=${() => setDrag(null)}>
    <svg aria-hidden="true" width=${places.width} height=${places.height}>
      ${places.ways.map(({ from, to, path, back }) => html`<path key=${from.join(" ")} d=${path} class=${cx("way", back && "back", done.ways.has(`${from[0]} ${from[1]} ${to}`) && "done")} />`)}
      ${places.ways.map(({ from, to }) => places.flows[to] && html`<path key=${from.join(" ")} class="tip-of-way" d=${`M${(places.flows[to]?.box.x ?? 0) - 7} ${(places.flows[to]?.box.y ?? 0) + 13}l7 5l-7 5z`} />`)}
      ${places.flows.map((flow, i) => flow.cards.map(({ box: at }, a) => isLinked(items[i], a) && html`<path key=${`${i} ${a}`} class=${cx("way", done.done.has(`${i} ${a}`) && done.done.has(`${i} ${a + 1}`) && "done")} d=${`M${at.x + at.width / 2} ${at.y + at.height}v16`} />`))}
      ${drag && html`<path class="way drag" d=${`M${drag.from[0]} ${drag.from[1]}L${drag.to[0]} ${drag.to[1]}`} />`}
    </svg>
    <ol class="canvas-flows">${items.map((flow, i) => html`<li key=${i} class=${cx("canvas-flow", drag?.over === String(i) && "target")} data-flow=${i} ref=${boxed(/** @type {any} */ (places.flows[i]).box)} aria-label=${t.workflows.flow(fieldText(flow?.id))}>
      <h2>${face([i, -1], w.flow, html`<bdi class="ellipsis">${fieldText(flow?.id) || w.noId}</bdi>${i === 0 && html`<span class="chip accent">${t.workflows.begins}</span>`}`)}</h2>
      <ol>${actionsOf(flow).map((action, a) => html`<${Card} key=${a} action=${action} card=${places.flows[i]?.cards[a]} base=${places.flows[i]?.box} face=${face([i, a], w.action(fieldText(action?.id) || "?"), html`<span class="kind">${typeName(action?.type)}</span><span class="text ellipsis" dir="auto">${summary(action)}</span>`)}
          done=${done.done.has(`${i} ${a}`)} start=${connect ? (/** @type {Path} */ path, /** @type {any} */ from) => start([i, "actions", a, ...path], from) : null} name=${(/** @type {any} */ to) => (to === null ? t.workflows.nextAction : to === "end" ? t.workflows.theEnd : fieldText(to))} />`)}</ol>
      ${add && html`<${Menu} label=${w.addTo(fieldText(flow?.id))} icon="plus" only kind="quiet" class="small add-card" entries=${() => Object.keys(ACTIONS).map((type) => ({ label: typeName(type), pick: () => add([i, actionsOf(flow).length], type) }))} />`}
    </li>`)}</ol>
  </div></div>`;
}

/** @param {{action: any, card: any, base: any, face: any, done: boolean, start: ((path: Path, from: any) => (event: any) => void)|null, name: (to: any) => string}} props */
function Card({ action, card, base, face, done, start, name }) {
  const exits = exitsOf(action);
  const at = { ...card.box, x: card.box.x - base.x, y: card.box.y - base.y };
  return html`<li class=${cx("canvas-card", done && "done")} ref=${boxed(at)}>${face}
    ${exits.length > 0 && html`<ul class="exits">${exits.map((each, e) => html`<li key=${e}><bdi class="ellipsis">${each.label || t.workflows.otherwise}</bdi><span class="ellipsis muted">→ ${name(each.to)}</span>${start && html`<span class="handle" aria-hidden="true" title=${w.dragHint} onPointerDown=${start(each.path, card.exits[e])}></span>`}</li>`)}</ul>`}</li>`;
}
