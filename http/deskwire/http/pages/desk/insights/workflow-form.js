// @ts-check
/** The editor of a workflow's flows: the diagram, the form of the selected part beside it, and a try-out whose path the diagram shows. */
import { html, useEffect, useRef, useState } from "../vendor/preact.js";
import { t } from "./texts.js";
import { t as f } from "./form-texts.js";
import { Button, Menu, lazy, notify } from "../ui/parts.js";
import { Section } from "../ui/frame.js";
import { GroupProblems, ItemButtons, OtherMembers, TextAt, useEdited } from "./form-fields.js";
import { fieldText, get, isObject, listed, moved, unknownMembers } from "./form-model.js";
import * as model from "./workflow-model.js";
import { NARROW, typeName } from "./workflow-view.js";
import { isSound } from "./definition-check.js";
import { focusSoon, useGoal } from "./definition-editor.js";
/** @import { Path } from "./form-model.js" */
/** @import { At } from "./workflow-canvas.js" */

const w = f.workflow;
const members = /** @type {Record<string, string>} */ (w.members);
const Canvas = lazy(() => import("./workflow-canvas.js"), "Canvas");
const ActionFields = lazy(() => import("./workflow-actions.js"), "ActionFields");
const TryOut = lazy(() => import("./try-out.js"), "TryOut");

/** Return a field in words. @param {any} flows @param {string} pointer */
export function placeName(flows, pointer) {
  const [flow, area, action, ...rest] = pointer.split("/").slice(1);
  if (flow === undefined) return f.whole;
  const id = get(flows, [Number(flow), "id"]);
  const words = [t.workflows.flow(fieldText(id) || String(Number(flow) + 1))];
  if (area === "id") words.push(w.flowId);
  if (action !== undefined) words.push(w.action(fieldText(get(flows, [Number(flow), "actions", Number(action), "id"])) || "?"));
  rest.forEach((part, i) => words.push(/^\d+$/.test(part) && i ? String(Number(part) + 1) : (members[part] ?? part)));
  return words.join(" › ");
}

/** Return the place of a pointer. @param {string} pointer @returns {At|null} */
function atOf(pointer) {
  const found = /^\/(\d+)(?:\/actions\/(\d+))?/.exec(pointer);
  return found && [Number(found[1]), found[2] === undefined ? -1 : Number(found[2])];
}

/** The menu of types for a new action. @param {{label: string, add: (type: string) => void}} props */
const AddAction = ({ label, add }) => html`<${Menu} label=${label} icon="plus" caret entries=${() => Object.keys(model.ACTIONS).map((type) => ({ label: typeName(type), pick: () => add(type) }))} />`;

/** @typedef {{select: (at: At|null, enter?: boolean) => void, remove: (at: At) => void, earlier: Record<string, any>}} Act */

/** @param {{at: At, act: Act}} props */
function FlowFields({ at: [i], act }) {
  const { value, change, edits } = useEdited();
  const flow = value[i];
  const move = (/** @type {number} */ to) => (change(moved(value, i, to)), act.select([to, -1], true));
  if (!isObject(flow)) return html`<p class="muted"><code>${fieldText(flow)}</code> ${f.otherShape}</p><${GroupProblems} path=${[i]} />`;
  return html`<h2 tabindex="-1">${t.workflows.flow(fieldText(flow.id))}</h2><${GroupProblems} path=${[i]} />
    <${TextAt} path=${[i, "id"]} label=${w.flowId} hint=${i === 0 ? w.startHint : w.flowHint} commit=${(/** @type {string} */ id) => change(model.withFlowId(value, i, id))} spellcheck="false" />
    <${GroupProblems} path=${[i, "actions"]} />
    <${OtherMembers} path=${[i]} names=${unknownMembers(flow, ["id", "actions"])} />
    ${edits && html`<div class="options"><${AddAction} label=${w.addFirst} add=${(/** @type {string} */ type) => (change(model.withAction(value, i, 0, type)), act.select([i, 0], true))} />
      <${ItemButtons} name=${t.workflows.flow(fieldText(flow.id))} at=${i} count=${value.length} move=${move} remove=${() => act.remove([i, -1])} /></div>`}`;
}

/** @param {{at: At, act: Act}} props */
function ActionForm({ at, act }) {
  const { value, change, edits } = useEdited();
  const [i, a] = at;
  const path = /** @type {Path} */ ([i, "actions", a]);
  const action = get(value, path);
  const actions = model.actionsOf(value[i]);
  const name = w.action(fieldText(action?.id) || "?");
  const move = (/** @type {number} */ to) => (change(model.withMoved(value, i, a, to)), act.select([i, to], true));
  const others = listed(value).flatMap((flow, n) => (n === i || !isObject(flow) ? [] : [{ label: fieldText(flow.id), pick: () => (change(model.withActionIn(value, i, a, n)), act.select([n, model.actionsOf(flow).length], true)) }]));
  return html`<h2 tabindex="-1">${name}: ${typeName(action?.type)}</h2><${GroupProblems} path=${path} />
    ${isObject(action) ? html`<${ActionFields} key=${`${i} ${a}`} path=${path} earlier=${(act.earlier[fieldText(action.id)] ??= {})} />` : html`<p class="muted"><code>${fieldText(action)}</code> ${f.otherShape}</p>`}
    ${edits && html`<div class="options"><${AddAction} label=${w.addAfter} add=${(/** @type {string} */ type) => (change(model.withAction(value, i, a + 1, type)), act.select([i, a + 1], true))} />
      ${others.length > 0 && html`<${Menu} label=${w.moveTo} caret entries=${() => others} />`}
      <${ItemButtons} name=${name} at=${a} count=${actions.length} move=${move} remove=${() => act.remove(at)} /></div>`}`;
}

/** @param {{goal: {pointer: string}|null, checked: import("./definition-check.js").Checked, edits: boolean}} props */
export function WorkflowForm({ goal, checked, edits }) {
  const { value, change, undo, problems, earlier } = useEdited();
  const box = useRef(/** @type {HTMLElement|null} */ (null));
  const side = useRef(/** @type {HTMLElement|null} */ (null));
  const [selected, setSelected] = useState(/** @type {At|null} */ (null));
  const [enters, enter] = useState(0);
  const [course, setCourse] = useState(/** @type {any} */ (null));
  const attributes = useRef(""); // typed for the try-out, which begins again after each change
  useEffect(() => void (goal && setSelected(atOf(goal.pointer))), [goal]);
  useGoal(goal, () => box.current);
  useEffect(() => (enters ? focusSoon(() => side.current?.querySelector(edits ? "input, select, textarea" : "h2"), innerWidth < NARROW ? "center" : "nearest") : undefined), [enters]);
  if (!Array.isArray(value)) return html`<div ref=${box}><p class="muted"><code>${fieldText(value)}</code> ${f.otherShape}</p><${GroupProblems} path=${[]} /></div>`;
  const at = selected && selected[0] < value.length ? /** @type {At} */ ([selected[0], Math.min(selected[1], model.actionsOf(value[selected[0]]).length - 1)]) : null;
  const select = (/** @type {At|null} */ to, /** @type {boolean} */ goes = false) => (setSelected(to), goes && enter((n) => n + 1));
  const back = () => /** @type {HTMLElement|null|undefined} */ (box.current?.querySelector(`[data-place="${at?.[0]} ${at?.[1]}"]`))?.focus();
  const remove = (/** @type {At} */ [i, a]) => {
    const next = a < 0 ? model.withoutFlow(value, i) : model.withoutAction(value, i, a);
    const what = a < 0 ? t.workflows.flow(fieldText(value[i]?.id)) : w.action(fieldText(get(value, [i, "actions", a, "id"])) || "?");
    change(next);
    notify(w.removed(what), { action: f.undo, run: () => undo(next) });
    const left = /** @type {At} */ (a < 0 ? [Math.max(0, i - 1), -1] : [i, Math.min(a, model.actionsOf(value[i]).length - 2)]);
    setSelected(left);
    setTimeout(() => /** @type {HTMLElement|null|undefined} */ (box.current?.querySelector(`[data-place="${left[0]} ${left[1]}"]`))?.focus());
  };
  const addFlow = () => {
    const [next] = model.withFlow(value);
    change(next);
    select([value.length, 0], true);
  };
  const wrong = new Set([...problems.keys()].map(atOf).filter(Boolean).map((place) => place?.join(" ") ?? ""));
  const act = { select, remove, earlier };
  const sound = isSound(checked);
  const steps = course && course.flows === value ? course.path : [];
  const key = JSON.stringify(value);
  return html`<div ref=${box} class="workflow-form"><${GroupProblems} path=${[]} />
    <div class="workbench"><${Canvas} flows=${value} selected=${at} select=${select} steps=${steps} waits=${Boolean(course?.waits)} wrong=${wrong} remove=${edits ? remove : undefined}
        connect=${edits ? (/** @type {Path} */ path, /** @type {any} */ to) => change(model.connected(value, path, to)) : undefined} add=${edits ? (/** @type {At} */ [i, a], /** @type {string} */ type) => (change(model.withAction(value, i, a, type)), select([i, a], true)) : undefined} />
      <section ref=${side} class="workflow-side" aria-label=${w.selected} onKeyDown=${(/** @type {KeyboardEvent} */ event) => event.key === "Escape" && at && !/** @type {HTMLElement} */ (event.target).closest("[popover]") && (event.preventDefault(), back())}>
        ${at ? html`<fieldset class="bare" disabled=${!edits}>${at[1] < 0 ? html`<${FlowFields} key=${`${at[0]}`} at=${at} act=${act} />` : html`<${ActionForm} key=${at.join(" ")} at=${at} act=${act} />`}</fieldset><${Button} label=${w.back} kind="quiet" class="to-diagram" press=${back} />` : html`<p class="muted">${w.nothingSelected}</p>`}
        ${edits && html`<${Button} label=${w.addFlow} icon="plus" press=${addFlow} />`}
      </section></div>
    <${Section} title=${t.workflows.tryThese}>${sound ? html`<${TryOut} key=${key} flows=${value} diagram=${false} typed=${attributes} show=${(/** @type {any} */ found) => setCourse(found && { ...found, flows: value })} />` : html`<p class="muted">${f.tryFirst}</p>`}<//>
  </div>`;
}
