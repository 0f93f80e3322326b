// @ts-check
/** The fields of an action by its type. */
import { html, useId, useState } from "../vendor/preact.js";
import { t } from "./texts.js";
import { t as f } from "./form-texts.js";
import { Button } from "../ui/parts.js";
import { assignable, people } from "../core/session.js";
import { ChooseAt, GroupProblems, ItemButtons, Labelled, NumberAt, OtherMembers, TextAt, TickAt, useEdited, usePart, useTyped } from "./form-fields.js";
import { fieldText, freeId, get, isObject, listed, moved, numberOf, set, unknownMembers } from "./form-model.js";
import * as model from "./workflow-model.js";
import { typeName } from "./workflow-view.js";
/** @import { Path } from "./form-model.js" */

const w = f.workflow;
/** The value of the option for a new flow; no id has these characters. */
const NEW = " new";

/** The target of an exit. @param {{path: Path, label: string, next?: boolean}} props  next: it may be the next action */
function TargetAt({ path, label, next = false }) {
  const { value, change } = useEdited();
  const ids = [...new Set(listed(value).map((flow) => flow?.id).filter((id) => typeof id === "string" && id))];
  const options = [...(next ? [{ value: "", label: t.workflows.nextAction }] : []), ...ids.map((id) => ({ value: id, label: t.workflows.flow(id) })), { value: "end", label: w.theEnd }, { value: NEW, label: w.newFlow }];
  return html`<${ChooseAt} path=${path} label=${label} options=${options} pick=${(/** @type {string} */ to) => change(model.connected(value, path, to === NEW ? null : to || undefined))} />`;
}

/** A list of objects. @param {{path: Path, label: string, name: (n: number) => string, add: string, make: (items: any[]) => any, members: string[], row: (at: Path) => any}} props */
function ItemsAt({ path, label, name, add, make, members, row }) {
  const { edits } = useEdited();
  const { part, put } = usePart(path);
  if (part !== undefined && !Array.isArray(part)) return html`<p class="muted">${label}: <code>${fieldText(part)}</code> ${f.otherShape}</p><${GroupProblems} path=${path} />`;
  const items = listed(part);
  return html`<fieldset class="items"><legend>${label}</legend><${GroupProblems} path=${path} /><ol>${items.map((item, i) => html`<li key=${i} class="item"><${GroupProblems} path=${[...path, i]} />
      ${isObject(item) ? row([...path, i]) : html`<code>${fieldText(item)}</code>`}<${OtherMembers} path=${[...path, i]} names=${unknownMembers(item, members)} />
      ${edits && html`<${ItemButtons} name=${name(i + 1)} at=${i} count=${items.length} move=${(/** @type {number} */ to) => put(moved(items, i, to))} remove=${() => put(items.toSpliced(i, 1))} />`}</li>`)}</ol>
    ${edits && html`<${Button} label=${add} icon="plus" class="small" press=${() => put([...items, make(items)])} />`}</fieldset>`;
}

/** A value of an attribute: JSON, or else a text. @param {{path: Path, label: string}} props */
function AttributeAt({ path, label }) {
  const { part, put } = usePart(path);
  const [typed, setTyped] = useState(/** @type {string|null} */ (null));
  const shown = typed !== null && JSON.stringify(model.attributeValue(typed)) === JSON.stringify(part) ? typed : model.attributeText(part);
  return html`<${Labelled} path=${path} label=${label} control=${(/** @type {any} */ common) =>
    html`<input ...${common} class="field mono" autocomplete="off" value=${shown} onInput=${(/** @type {any} */ event) => (setTyped(event.target.value), put(model.attributeValue(event.target.value)))} />`} />`;
}

/** A name in an object. @param {{label: string, name: string, list?: string, rename: (to: string) => void}} props */
const Key = ({ label, name, list, rename }) => html`<label class="label"><span>${label}</span><input class="field" list=${list} autocomplete="off" ...${useTyped(name, rename)} /></label>`;

/** An object with any names. @param {{path: Path, label: string, hint?: string, keyLabel: string, add: string, word: string, initial: any, list?: string, row: (at: Path, key: string) => any}} props */
function KeyedAt({ path, label, hint, keyLabel, add, word, initial, list, row }) {
  const { edits } = useEdited();
  const { part, put } = usePart(path);
  if (part !== undefined && !isObject(part)) return html`<p class="muted">${label}: <code>${fieldText(part)}</code> ${f.otherShape}</p><${GroupProblems} path=${path} />`;
  const of = part ?? {};
  return html`<fieldset class="items"><legend>${label}</legend>${hint && html`<p class="hint">${hint}</p>`}<${GroupProblems} path=${path} /><ol>${Object.keys(of).map((key, i) => html`<li key=${i} class="item keyed">
      <${Key} label=${keyLabel} name=${key} list=${list} rename=${(/** @type {string} */ to) => put(model.withKey(of, key, to))} />${row([...path, key], key)}
      ${edits && html`<${Button} label=${f.remove(key)} icon="close" only kind="quiet" class="small" press=${() => put(set(of, [key], undefined))} />`}</li>`)}</ol>
    ${edits && html`<${Button} label=${add} icon="plus" class="small" press=${() => put(set(of, [freeId(word, Object.keys(of))], initial))} />`}</fieldset>`;
}

/** @param {{path: Path}} props */
function Assignee({ path }) {
  const here = /** @type {Path} */ ([...path, "assignee"]);
  const { part } = usePart(here);
  const { value, change } = useEdited();
  if (part !== undefined && !isObject(part)) return html`<p class="muted">${w.members.assignee}: <code>${fieldText(part)}</code> ${f.otherShape}</p><${GroupProblems} path=${here} />`;
  const known = part?.type === "user" ? assignable() : people().teams;
  return html`<${GroupProblems} path=${here} /><${ChooseAt} path=${[...here, "type"]} label=${w.assignTo} options=${[{ value: "team", label: w.team }, { value: "user", label: w.user }]} pick=${(/** @type {string} */ type) => change(set(value, here, { ...part, type, id: "" }))} />
    <${ChooseAt} path=${[...here, "id"]} label=${part?.type === "user" ? w.user : w.team} options=${known.map((/** @type {any} */ each) => ({ value: each.id, label: each.name }))} />
    <${OtherMembers} path=${here} names=${unknownMembers(part, ["type", "id"])} />`;
}

/** @param {{path: Path}} props */
function Branch({ path }) {
  const { value } = useEdited();
  const id = useId();
  const on = fieldText(get(value, [...path, "on"]));
  const source = listed(value).flatMap(model.actionsOf).find((action) => on === `answers.${action?.id}`);
  const cases = listed(source?.options).map((option) => fieldText(option?.id));
  return html`<${TextAt} path=${[...path, "on"]} label=${w.on} hint=${w.onHint} list=${`${id}-on`} spellcheck="false" /><datalist id=${`${id}-on`}>${model.operands(value).map((each) => html`<option key=${each} value=${each} />`)}</datalist>
    <datalist id=${`${id}-cases`}>${cases.map((each) => html`<option key=${each} value=${each} />`)}</datalist>
    <${KeyedAt} path=${[...path, "cases"]} label=${w.members.cases} keyLabel=${w.caseValue} add=${w.addCase} word="value" initial="end" list=${`${id}-cases`} row=${(/** @type {Path} */ at) => html`<${TargetAt} path=${at} label=${w.goTo} />`} />
    <${TargetAt} path=${[...path, "default"]} label=${w.otherwise} />`;
}

/** The fields of an action's own members. @param {{path: Path, type: string}} props */
function OwnFields({ path, type }) {
  const text = html`<${TextAt} path=${[...path, "text"]} label=${w.text} rows=${3} />`;
  switch (type) {
    case "message": return text;
    case "buttons": return html`${text}<${ItemsAt} path=${[...path, "options"]} label=${w.members.options} name=${w.option} add=${w.addOption} members=${model.OPTION_MEMBERS} make=${(/** @type {any[]} */ items) => ({ id: freeId("option", items.map((each) => each?.id)), label: "" })}
        row=${(/** @type {Path} */ at) => html`<${TextAt} path=${[...at, "label"]} label=${w.label} /><${TextAt} path=${[...at, "id"]} label=${w.id} spellcheck="false" /><${TargetAt} path=${[...at, "goto"]} label=${w.goTo} next />`} />
      <${TickAt} path=${[...path, "allowText"]} label=${w.allowText} />`;
    case "form": return html`${text}<${ItemsAt} path=${[...path, "fields"]} label=${w.members.fields} name=${w.field} add=${w.addField} members=${model.FIELD_MEMBERS} make=${(/** @type {any[]} */ items) => ({ id: freeId("field", items.map((each) => each?.id)), type: "text", label: "" })}
        row=${(/** @type {Path} */ at) => html`<${TextAt} path=${[...at, "label"]} label=${w.label} /><${TextAt} path=${[...at, "id"]} label=${w.id} spellcheck="false" /><${ChooseAt} path=${[...at, "type"]} label=${w.members.type} options=${model.FIELD_TYPES.map((value) => ({ value, label: (/** @type {Record<string, string>} */ (w.fieldTypes))[value] ?? value }))} /><${TickAt} path=${[...at, "required"]} label=${w.required} />`} />`;
    case "wait": return html`<${NumberAt} path=${[...path, "seconds"]} label=${w.seconds} hint=${w.secondsHint} />`;
    case "assign": return html`<${Assignee} path=${path} />`;
    case "set_attributes": return html`<${KeyedAt} path=${[...path, "attributes"]} label=${w.members.attributes} hint=${w.attributesHint} keyLabel=${w.attribute} add=${w.addAttribute} word="attribute" initial="" row=${(/** @type {Path} */ at) => html`<${AttributeAt} path=${at} label=${w.value} />`} />`;
    case "branch": return html`<${Branch} path=${path} />`;
    default: return type in model.ACTIONS ? html`<p class="muted">${w.noFields}</p>` : null;
  }
}

/** @param {{path: Path, earlier: Record<string, any>}} props  earlier: members of the action's earlier types */
export function ActionFields({ path, earlier }) {
  const { value, change } = useEdited();
  const [i, , a] = /** @type {[number, string, number]} */ (path);
  const action = get(value, path);
  const options = Object.keys(model.ACTIONS).map((type) => ({ value: type, label: typeName(type) }));
  return html`<${ChooseAt} path=${[...path, "type"]} label=${w.members.type} options=${options} pick=${(/** @type {string} */ type) => change(model.withType(value, i, a, type, earlier))} />
    <${OwnFields} path=${path} type=${fieldText(action.type)} />
    <${TextAt} path=${[...path, "id"]} label=${w.actionId} hint=${w.actionHint} commit=${(/** @type {string} */ text) => change(model.withActionId(value, i, a, numberOf(text)))} inputmode="numeric" />
    <${OtherMembers} path=${path} names=${unknownMembers(action, model.membersOf(action))} />`;
}
