// @ts-check
/** The jumps from a question: the condition, which fits the type of the question, and the target. */
import { html, useState } from "../vendor/preact.js";
import { t } from "./texts.js";
import { t as f } from "./form-texts.js";
import { Button } from "../ui/parts.js";
import { ChooseAt, GroupProblems, ItemButtons, Labelled, NumberAt, OtherMembers, ProblemText, TextAt, useEdited, usePart } from "./form-fields.js";
import { fieldText, get, isObject, listed, numberOf, set, unknownMembers } from "./form-model.js";
import { CONDITION_MEMBERS, JUMP_MEMBERS, PRESENCE, TYPES, withJump } from "./survey-model.js";
/** @import { Path } from "./form-model.js" */

const s = f.survey;
const [OPS, DATE_OPS] = [/** @type {Record<string, string>} */ (s.ops), /** @type {Record<string, string>} */ (s.dateOps)];

/** A list of values, separated by commas. @param {{path: Path, numbers: boolean}} props */
function ValuesAt({ path, numbers }) {
  const { part, put } = usePart(path);
  const [typed, setTyped] = useState("");
  const valuesOf = (/** @type {string} */ text) => text.split(",").map((each) => each.trim()).filter(Boolean).map((each) => (numbers ? (numberOf(each) ?? each) : each));
  const same = JSON.stringify(valuesOf(typed)) === JSON.stringify(part);
  const shown = same ? typed : Array.isArray(part) ? part.map(fieldText).join(", ") : fieldText(part);
  return html`<${Labelled} path=${path} label=${s.values} hint=${s.valuesHint} control=${(/** @type {any} */ common) =>
    html`<input ...${common} autocomplete="off" value=${shown} onInput=${(/** @type {any} */ event) => (setTyped(event.target.value), put(valuesOf(event.target.value)))} />`} />`;
}

/** Several choices. Others in the list are kept. @param {{path: Path, options: {value: string, label: string}[]}} props */
function ChoicesAt({ path, options }) {
  const { part, pointer, problems, put } = usePart(path);
  const chosen = listed(part);
  const others = chosen.filter((each) => !options.some(({ value }) => value === each)).map((each) => ({ value: each, label: fieldText(each) }));
  return html`<fieldset class="ticks" data-at=${pointer} tabindex="-1"><legend>${s.values}</legend>${[...options, ...others].map((each) => html`<label key=${each.value} class="switch"><input type="checkbox" checked=${chosen.includes(each.value)} onChange=${(/** @type {any} */ event) => put(event.target.checked ? [...chosen, each.value] : chosen.filter((one) => one !== each.value))} /><span dir="auto">${each.label}</span></label>`)}<${ProblemText} of=${problems} /></fieldset>`;
}

/** The value of a condition. @param {{path: Path, question: any, op: string}} props */
function ValueAt({ path, question, op }) {
  const { value } = useEdited();
  const { part, put } = usePart(path);
  const type = question?.type;
  const choices = listed(question?.choices).filter(isObject).map((each) => ({ value: fieldText(each.id), label: fieldText(get(each, ["label", value.primaryLanguage])) || fieldText(each.id) }));
  if (TYPES[type]?.choices) return op === "in" ? html`<${ChoicesAt} path=${path} options=${choices} />` : html`<${ChooseAt} path=${path} label=${s.value} options=${choices} />`;
  const numbers = Boolean(TYPES[type]?.scale) || type === "number";
  if (op === "in") return html`<${ValuesAt} path=${path} numbers=${numbers} />`;
  if (numbers) return html`<${NumberAt} path=${path} label=${s.value} />`;
  if (type === "boolean") return html`<${ChooseAt} path=${path} label=${s.value} options=${[{ value: "true", label: t.yes }, { value: "false", label: t.no }]} pick=${(/** @type {string} */ text) => put(text === "true")} />`;
  if (type === "date" && (part === undefined || part === "" || /^\d{4}-\d\d-\d\d$/.test(fieldText(part)))) return html`<${TextAt} path=${path} label=${s.value} type="date" />`;
  return html`<${TextAt} path=${path} label=${s.value} />`;
}

/** Return a condition with another operator, and a value that fits its form. @param {any} when @param {string} op */
function withOperator(when, op) {
  const before = isObject(when) ? when : {};
  const next = set(before, ["op"], op);
  if (PRESENCE.includes(op)) return set(next, ["value"], undefined);
  if (op === "in" && !Array.isArray(before.value)) return set(next, ["value"], before.value === undefined || before.value === "" ? [] : [before.value]);
  return op !== "in" && Array.isArray(before.value) ? set(next, ["value"], before.value[0]) : next;
}

/** @param {{index: number, question: number|null, act: {at: number, count: number, move: (to: number) => void}}} props */
function Jump({ index, question, act }) {
  const { value, change, edits } = useEdited();
  const path = /** @type {Path} */ (["logic", index]);
  const jump = get(value, path);
  const source = question === null ? null : value.questions[question];
  const remove = () => change(set(value, ["logic"], value.logic.toSpliced(index, 1)));
  const targets = [...listed(value.questions).flatMap((each, i) => (isObject(each) && (question === null || i > question) ? [{ value: fieldText(each.id), label: `${i + 1} ${fieldText(get(each, ["title", value.primaryLanguage])) || fieldText(each.id)}` }] : [])), { value: "end", label: s.end }];
  const buttons = edits && html`<${ItemButtons} name=${s.jump(act.at + 1)} at=${act.at} count=${act.count} move=${act.move} remove=${remove} />`;
  if (!isObject(jump)) return html`<li class="jump"><code>${fieldText(jump)}</code>${buttons}<${GroupProblems} path=${path} /></li>`;
  const type = source?.type;
  const words = (/** @type {string} */ op) => (type === "date" ? DATE_OPS[op] : undefined) ?? OPS[op] ?? op;
  const ops = [{ value: "", label: s.always }, ...[...(TYPES[type]?.ops ?? []), ...PRESENCE].map((op) => ({ value: op, label: words(op) }))];
  const pick = (/** @type {string} */ op) => change(set(value, [...path, "when"], op ? withOperator(jump.when, op) : undefined));
  const op = fieldText(get(jump, ["when", "op"]));
  const valued = isObject(jump.when) && (op ? !PRESENCE.includes(op) : true);
  return html`<li class="jump"><${GroupProblems} path=${path} />
    ${question === null && html`<${TextAt} path=${[...path, "from"]} label=${s.from} />`}
    <${ChooseAt} path=${[...path, "when", "op"]} label=${s.when} options=${isObject(jump.when) && !op ? ops.slice(1) : ops} pick=${pick} />
    ${valued && html`<${ValueAt} path=${[...path, "when", "value"]} question=${source} op=${op} />`}
    <${ChooseAt} path=${[...path, "to"]} label=${s.to} options=${targets} />${buttons}
    <${OtherMembers} path=${path} names=${unknownMembers(jump, JUMP_MEMBERS)} /><${OtherMembers} path=${[...path, "when"]} names=${unknownMembers(jump.when, valued ? CONDITION_MEMBERS : ["op"])} /></li>`;
}

/** Jumps of a question in their order, which decides. @param {{indexes: number[], question: number|null}} props  question: its index; null for jumps without one */
export function Jumps({ indexes, question }) {
  const { value, change, edits } = useEdited();
  const swap = (/** @type {number} */ at) => (/** @type {number} */ to) => {
    const [one, other] = [indexes[at] ?? 0, indexes[to] ?? 0];
    change(set(value, ["logic"], value.logic.with(one, value.logic[other]).with(other, value.logic[one])));
  };
  return html`<fieldset class="jumps"><legend>${s.jumps}</legend>
    ${question !== null && !indexes.length && html`<p class="muted">${s.noJumps}</p>`}
    <ol>${indexes.map((index, i) => html`<${Jump} key=${i} index=${index} question=${question} act=${{ at: i, count: indexes.length, move: swap(i) }} />`)}</ol>
    ${question !== null && indexes.length > 0 && html`<p class="muted">${s.otherwise}</p>`}
    ${edits && question !== null && html`<${Button} label=${s.addJump} icon="plus" class="small" press=${() => change(withJump(value, question))} />`}</fieldset>`;
}
