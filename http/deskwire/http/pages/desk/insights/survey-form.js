// @ts-check
/** The form of a survey's definition: title and languages, the questions with their choices and jumps, and the thanks. */
import { loadModule } from "../core/api.js";
import { html, useEffect, useRef, useState } from "../vendor/preact.js";
import { t } from "./texts.js";
import { t as f } from "./form-texts.js";
import { Button, Menu, cx, lazy, notify } from "../ui/parts.js";
import { ChooseAt, GroupProblems, ItemButtons, NumberAt, OtherMembers, TextAt, TickAt, useEdited, usePart } from "./form-fields.js";
import { fieldText, get, isObject, listed, moved, set, unknownMembers } from "./form-model.js";
import * as model from "./survey-model.js";
import { Jumps } from "./survey-jumps.js";
import { isSound } from "./definition-check.js";
import { useGoal } from "./definition-editor.js";
/** @import { Path } from "./form-model.js" */
/** @import { Drag } from "./card-drag.js" */

const s = f.survey;
const [members, least, most] = [/** @type {Record<string, string>} */ (s.members), /** @type {Record<string, string>} */ (s.least), /** @type {Record<string, string>} */ (s.most)];
const Preview = lazy(() => import("./survey-preview.js"), "Preview");
/** With more questions than this, they are folded at first. */
const UNFOLDED_MAX = 12;

/** The options of all types of questions. */
const TYPE_OPTIONS = Object.keys(model.TYPES).map((value) => ({ value, label: t.surveys.types[/** @type {"nps"} */ (value)] }));

/** Return a field in words. @param {any} definition @param {string} pointer */
export function placeName(definition, pointer) {
  const parts = pointer.split("/").slice(1);
  const nouns = /** @type {Record<string, (n: number) => string>} */ ({ questions: s.question, choices: s.choice, logic: s.jump, languages: s.language });
  const words = parts.flatMap((part, i) => {
    if (/^\d+$/.test(part)) return [nouns[parts[i - 1] ?? ""]?.(Number(part) + 1) ?? part];
    return nouns[part] && parts.length > i + 1 ? [] : [members[part] ?? part];
  });
  return words.join(" › ") || f.whole;
}

/** A text in each language. @param {{path: Path, label: string, labelIn: (language: string) => string, shown: string, rows?: number}} props  shown: a language, or "" for all */
function TextsAt({ path, label, labelIn, shown, rows }) {
  const { value } = useEdited();
  const { part } = usePart(path);
  if (part !== undefined && !isObject(part)) return html`<p class="muted">${label}: <code>${fieldText(part)}</code> ${f.otherShape}</p><${GroupProblems} path=${path} />`;
  const languages = model.languagesShown(value, part).filter((each) => !shown || each === shown || each === value.primaryLanguage);
  return html`<${GroupProblems} path=${path} /><div class="texts">${languages.map((each) => html`<${TextAt} key=${each} path=${[...path, each]} label=${languages.length > 1 || each !== value.primaryLanguage ? labelIn(each) : label} rows=${rows} lang=${each} optional=${!model.languagesOf(value).includes(each)} />`)}</div>`;
}

function Languages() {
  const { value, change, undo, edits } = useEdited();
  const [typed, setTyped] = useState("");
  const add = () => {
    if (!typed.trim()) return;
    change(model.withLanguage(value, typed.trim()));
    setTyped("");
  };
  const remove = (/** @type {number} */ at) => {
    const next = model.withoutLanguage(value, at);
    change(next);
    notify(s.removedLanguage(fieldText(value.languages[at])), { action: f.undo, run: () => undo(next) });
  };
  if (value.languages !== undefined && !Array.isArray(value.languages)) return html`<p class="muted">${s.languages}: <code>${fieldText(value.languages)}</code> ${f.otherShape}</p><${GroupProblems} path=${["languages"]} />`;
  return html`<fieldset class="languages"><legend>${s.languages}</legend><${GroupProblems} path=${["languages"]} />
    <ul>${listed(value.languages).map((each, i) => html`<li key=${i}><span class="chip"><bdi>${fieldText(each)}</bdi>${edits && html`<button type="button" aria-label=${f.remove(fieldText(each))} title=${f.remove(fieldText(each))} onClick=${() => remove(i)}>×</button>`}</span><${GroupProblems} path=${["languages", i]} /></li>`)}</ul>
    ${edits && html`<div class="add-language"><input class="field" aria-label=${s.addLanguage} placeholder="de" title=${s.languageHint} maxlength="35" value=${typed} onInput=${(/** @type {any} */ event) => setTyped(event.target.value)} onKeyDown=${(/** @type {KeyboardEvent} */ event) => event.key === "Enter" && (event.preventDefault(), add())} /><${Button} label=${s.addLanguage} icon="plus" disabled=${!typed.trim()} press=${add} /></div>`}
  </fieldset>`;
}

/** @param {{at: number, shown: string}} props */
function Choices({ at, shown }) {
  const { value, change, edits } = useEdited();
  const path = /** @type {Path} */ (["questions", at, "choices"]);
  const { part } = usePart(path);
  const put = (/** @type {any} */ next) => change(set(value, path, next));
  const unused = part !== undefined && !model.TYPES[value.questions[at].type]?.choices;
  if (part !== undefined && !Array.isArray(part)) return html`<p class="muted">${s.choices}: <code>${fieldText(part)}</code> ${f.otherShape}</p><${GroupProblems} path=${path} />`;
  return html`<fieldset class="choice-list"><legend>${s.choices}</legend><${GroupProblems} path=${path} />
    <ol>${listed(part).map((choice, i) => html`<li key=${i} class="choice-row"><${GroupProblems} path=${[...path, i]} />
      ${isObject(choice) ? html`<${TextAt} path=${[...path, i, "id"]} label=${s.choiceId} commit=${(/** @type {string} */ id) => put(set(part, [i, "id"], id))} spellcheck="false" class="short" /><div class="grow"><${TextsAt} path=${[...path, i, "label"]} label=${s.label} labelIn=${s.labelIn} shown=${shown} /></div>` : html`<code>${fieldText(choice)}</code>`}
      ${edits && html`<${ItemButtons} name=${s.choice(i + 1)} at=${i} count=${part.length} move=${(/** @type {number} */ to) => put(moved(part, i, to))} remove=${() => put(part.toSpliced(i, 1))} />`}
      <${OtherMembers} path=${[...path, i]} names=${unknownMembers(choice, model.CHOICE_MEMBERS)} /></li>`)}</ol>
    ${edits && (unused ? html`<${Button} label=${s.removeChoices} press=${() => put(undefined)} />` : html`<${Button} label=${s.addChoice} icon="plus" class="small" press=${() => change(model.withChoice(value, at))} />`)}
  </fieldset>`;
}

/** The lower and the upper bound, with the labels of the question's type. @param {{at: number, type: string}} props */
function Bounds({ at, type }) {
  const question = useEdited().value.questions[at];
  const bounded = model.TYPES[type]?.bounds ? type : "other";
  const names = [least[bounded] ?? "min", most[bounded] ?? "max"];
  const scale = model.TYPES[type]?.scale;
  const shown = /** @type {const} */ (["min", "max"]).filter((each) => model.showsMember(question, each));
  return shown.length > 0 && html`<div class="field-row">${shown.map((each) => html`<${NumberAt} key=${each} path=${["questions", at, each]} label=${names[each === "min" ? 0 : 1]} placeholder=${scale?.[each === "min" ? 0 : 1]} />`)}</div>`;
}

/**
 * @param {{at: number, shown: string, open: boolean, toggle: () => void, earlier: Record<string, any>, act: {rename: (at: number, id: string) => void, move: (from: number, to: number) => void, remove: (at: number) => void}, grip: ((event: PointerEvent) => void) | null, drag: string | null}} props
 *   earlier: members of the question's earlier types; drag: its class while cards are dragged
 */
function Question({ at, shown, open, toggle, earlier, act, grip, drag }) {
  const { value, change, problems, edits } = useEdited();
  const path = /** @type {Path} */ (["questions", at]);
  const question = get(value, path);
  const name = s.question(at + 1);
  const wrong = [...problems.keys()].some((pointer) => `${pointer}/`.startsWith(`/questions/${at}/`));
  const title = get(question, ["title", value.primaryLanguage]);
  const pressed = (/** @type {KeyboardEvent} */ event) => {
    const to = event.altKey ? { ArrowUp: at - 1, ArrowDown: at + 1 }[event.key] : undefined;
    if (to === undefined || !edits) return;
    event.preventDefault();
    act.move(at, to);
  };
  return html`<li class=${cx("question", wrong && "wrongly", drag)}>
    <div class="question-head">${edits && grip && value.questions.length > 1 && html`<span class="grip" aria-hidden="true" title=${s.drag} onPointerDown=${grip}></span>`}<h3><button type="button" class="fold" aria-expanded=${open} data-card=${at} onClick=${toggle} onKeyDown=${pressed}><span class="no">${at + 1}</span><bdi class="ellipsis">${fieldText(title) || s.untitled}</bdi> ${isObject(question) && html`<span class="chip">${t.surveys.types[/** @type {"nps"} */ (question.type)] ?? fieldText(question.type)}</span>`}${wrong && html`<span class="chip bad">${t.editor.list}</span>`}</button></h3>
      ${edits && html`<${ItemButtons} name=${name} at=${at} count=${value.questions.length} move=${(/** @type {number} */ to) => act.move(at, to)} remove=${() => act.remove(at)} copy=${isObject(question) ? () => change(model.withCopy(value, at)) : undefined} />`}</div>
    <${GroupProblems} path=${path} />
    ${!isObject(question) ? html`<p class="muted"><code>${fieldText(question)}</code> ${f.otherShape}</p>` : open && html`<div class="question-body" role="group" aria-label=${name}>
      <${TextsAt} path=${[...path, "title"]} label=${s.text} labelIn=${s.textIn} shown=${shown} />
      <div class="field-row"><${ChooseAt} path=${[...path, "type"]} label=${s.type} options=${TYPE_OPTIONS} pick=${(/** @type {string} */ type) => change(model.withType(value, at, type, earlier))} />
        <${TextAt} path=${[...path, "id"]} label=${s.id} hint=${s.idHint} commit=${(/** @type {string} */ id) => act.rename(at, id)} spellcheck="false" /></div>
      <${TickAt} path=${[...path, "required"]} label=${s.required} />
      ${model.showsMember(question, "choices") && html`<${Choices} at=${at} shown=${shown} />`}
      <${Bounds} at=${at} type=${question.type} />
      <${OtherMembers} path=${path} names=${unknownMembers(question, model.QUESTION_MEMBERS)} />
      ${model.firstWithId(value, at) === at && html`<${Jumps} indexes=${model.jumpsFrom(value, question.id)} question=${at} />`}
    </div>`}
  </li>`;
}

/** Return the class of a card during a drag: it is dragged, or the card is dropped above or below it. @param {Drag|null} drag @param {number} at */
const dragClass = (drag, at) => drag && (at === drag.from ? "dragged" : at !== drag.to ? "" : drag.to < drag.from ? "drop-above" : "drop-below");

/** The menu of types for a new question at the end. */
function AddQuestion() {
  const { value, change } = useEdited();
  const at = listed(value.questions).length;
  return html`<${Menu} label=${s.addQuestion} icon="plus" caret entries=${() => TYPE_OPTIONS.map((each) => ({ label: each.label, pick: () => (change(model.withQuestion(value, at, each.value)), setTimeout(() => focusCard(at))) }))} />`;
}

/** Focus the head of a question. @param {number} at */
const focusCard = (at) => /** @type {HTMLElement|null} */ (document.querySelector(`[data-card="${at}"]`))?.focus();

/** @param {{shown: string, goal: {pointer: string}|null}} props */
function Questions({ shown, goal }) {
  const { value, change, undo, edits, earlier } = useEdited();
  const { part } = usePart(["questions"]);
  const questions = listed(part);
  const [folded, setFolded] = useState(/** @type {ReadonlyMap<string, boolean>} */ (new Map()));
  const [foldsAtFirst] = useState(questions.length > UNFOLDED_MAX);
  const fold = (/** @type {string} */ key, /** @type {boolean} */ yes) => setFolded((before) => new Map(before).set(key, yes));
  const keyOf = (/** @type {number} */ at) => fieldText(questions[at]?.id) || String(at);
  const isOpen = (/** @type {number} */ at) => !edits || !(folded.get(keyOf(at)) ?? foldsAtFirst);
  const wanted = goal && Number(/^\/questions\/(\d+)/.exec(goal.pointer)?.[1] ?? questions.findIndex((each) => each?.id === get(value, ["logic", Number(/^\/logic\/(\d+)/.exec(goal.pointer)?.[1]), "from"])));
  useEffect(() => void (wanted !== null && wanted >= 0 && fold(keyOf(wanted), false)), [goal]);
  const act = {
    rename: (/** @type {number} */ at, /** @type {string} */ id) => (fold(id, !isOpen(at)), change(model.withId(value, at, id))),
    move: (/** @type {number} */ from, /** @type {number} */ to) => (change(model.withMoved(value, from, to)), setTimeout(() => focusCard(Math.max(0, Math.min(to, questions.length - 1))))),
    remove: (/** @type {number} */ at) => {
      const next = model.withoutQuestion(value, at);
      change(next);
      notify(s.removed(s.question(at + 1), listed(value.logic).length - listed(next.logic).length), { action: f.undo, run: () => undo(next) });
      setTimeout(() => focusCard(Math.min(at, questions.length - 2)));
    },
  };
  const list = useRef(/** @type {HTMLElement|null} */ (null));
  const [drag, setDrag] = useState(/** @type {Drag|null} */ (null));
  // The cards get their grips once the module is there: the first drag would be over before it has loaded.
  const [dragging, setDragging] = useState(/** @type {typeof import("./card-drag.js")|null} */ (null));
  useEffect(() => void (edits && loadModule(() => import("./card-drag.js")).then(setDragging)), []);
  const move = useRef(act.move);
  move.current = act.move;
  const grip = (/** @type {number} */ from) => (/** @type {any} */ { button, currentTarget: grip, pointerId, clientY: y }) => {
    if (button) return;
    grip.setPointerCapture(pointerId);
    if (list.current) dragging?.dragCard({ grip, pointerId, y, list: list.current, from, show: setDrag, move: (...places) => move.current(...places) });
  };
  if (part !== undefined && !Array.isArray(part)) return html`<p class="muted"><code>${fieldText(part)}</code> ${f.otherShape}</p><${GroupProblems} path=${["questions"]} />`;
  return html`<${GroupProblems} path=${["questions"]} /><ol ref=${list} class="questions">${questions.map((_, i) => html`<${Question} key=${i} at=${i} shown=${shown} open=${isOpen(i)} toggle=${() => fold(keyOf(i), isOpen(i))} earlier=${(earlier[keyOf(i)] ??= {})} act=${act} grip=${dragging && grip(i)} drag=${dragClass(drag, i)} />`)}</ol>
    ${edits && html`<${AddQuestion} />`}`;
}

/** @param {{shown: string}} props */
function ThankYou({ shown }) {
  const { value, change, edits } = useEdited();
  const path = ["thankYou"];
  if (value.thankYou === undefined) return edits && html`<${Button} label=${s.addThankYou} icon="plus" press=${() => change(set(value, path, model.emptyTexts(value)))} />`;
  return html`<${TextsAt} path=${path} label=${s.thankYou} labelIn=${s.thankYouIn} shown=${shown} rows=${2} />${edits && html`<${Button} label=${s.removeThankYou} kind="quiet" press=${() => change(set(value, path, undefined))} />`}`;
}

/** @param {{goal: {pointer: string}|null, checked: import("./definition-check.js").Checked, edits: boolean}} props */
export function SurveyForm({ goal, checked, edits }) {
  const { value } = useEdited();
  const box = useRef(/** @type {HTMLElement|null} */ (null));
  const [language, setLanguage] = useState("");
  const [tries, setTries] = useState(false);
  useEffect(() => void (goal && setLanguage("")), [goal]);
  useGoal(goal, () => box.current);
  const tried = useRef(/** @type {any} */ (null)); // the last definition without problems since the try-out began; others can't be tried
  if (!tries) tried.current = null;
  else if (isSound(checked)) tried.current = value;
  if (!isObject(value)) return html`<div ref=${box}><p class="muted"><code>${fieldText(value)}</code> ${f.otherShape}</p><${GroupProblems} path=${[]} /></div>`;
  const languages = model.languagesOf(value);
  const shown = languages.includes(language) ? language : "";
  const loose = model.looseJumps(value);
  return html`<div ref=${box} class=${cx("survey-form", tries && "with-preview")}><fieldset class="bare" disabled=${!edits}>
      <${GroupProblems} path=${[]} /><${OtherMembers} path=${[]} names=${unknownMembers(value, model.MEMBERS)} />
      <section class="part" aria-label=${s.general}><${TextAt} path=${["title"]} label=${s.title} maxlength="500" />
        ${value.schemaVersion !== "2.0" && html`<${TextAt} path=${["schemaVersion"]} label=${s.schemaVersion} />`}
        <${Languages} /><${ChooseAt} path=${["primaryLanguage"]} label=${s.primary} options=${languages.map((each) => ({ value: each, label: each }))} /></section>
      <section class="part" aria-label=${s.questions}><header><h2>${s.questions}</h2><span class="grow"></span></header><${Questions} shown=${shown} goal=${goal} />
        <${GroupProblems} path=${["logic"]} />${loose.length > 0 && html`<h3>${s.looseJumps}</h3><${Jumps} indexes=${loose} question=${null} />`}</section>
      <section class="part" aria-label=${s.thankYou}><h2>${s.thankYou}</h2><${ThankYou} shown=${shown} /></section>
    </fieldset>
    <aside class="form-side" aria-label=${f.tryIt}>
      ${languages.length > 1 && html`<label class="label"><span>${s.shown}</span><select class="field" onChange=${(/** @type {any} */ event) => setLanguage(event.target.value)}>${["", ...languages].map((each) => html`<option key=${each} value=${each} selected=${each === shown}>${each || s.allLanguages}</option>`)}</select></label>`}
      <${Button} label=${tries ? f.closeTry : f.tryIt} pressed=${tries} press=${() => setTries(!tries)} />
      ${tries && (tried.current && !checked.problems.length && !checked.failed ? html`<${Preview} definition=${tried.current} />` : html`<p class="muted">${f.tryFirst}</p>`)}
    </aside></div>`;
}
