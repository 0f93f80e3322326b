// @ts-check
/** A try-out of a survey: its questions one by one, in the order of its logic. Nothing is stored. */
import { html, useEffect, useRef, useState } from "../vendor/preact.js";
import { t } from "./texts.js";
import { t as f } from "./form-texts.js";
import { Button } from "../ui/parts.js";
import { brokenBounds, following } from "../core/survey-logic.js";
import { TYPES } from "./survey-model.js";
/** @import { Definition, Question } from "../core/survey-logic.js" */

const s = f.survey;
/** The largest number of an answer. */
const NUMBER_MAX = 10 ** 15;

/** Return the answer in a form; undefined if there is none. @param {HTMLFormElement} form @param {Question} question @returns {any} */
function answerOf(form, { type }) {
  const given = new FormData(form).getAll("answer").map(String);
  const text = given[0] ?? "";
  if (type === "multiple_choice") return given.length ? given : undefined;
  if (!text.trim()) return undefined;
  if (type === "boolean") return text === "true";
  return TYPES[type]?.scale || type === "number" ? Number(text) : text;
}

/** Return the problem of an answer; "" if it does. @param {Question} question @param {any} answer */
function problem(question, answer) {
  if (answer === undefined && question.required) return s.needed;
  const broken = brokenBounds(question, answer) ?? (question.type === "number" && answer !== undefined && (answer < (question.min ?? -Infinity) || answer > (question.max ?? Infinity)) ? /** @type {[number, number]} */ ([question.min ?? -NUMBER_MAX, question.max ?? NUMBER_MAX]) : null);
  return broken ? s.size(...broken) : "";
}

/** @param {{of: Question, text: (of: Record<string, string> | undefined) => string}} props */
function Control({ of, text }) {
  const scale = TYPES[of.type]?.scale;
  const [low, high] = scale ? [of.min ?? scale[0], of.max ?? scale[1]] : [0, 0];
  const picks = scale ? Array.from({ length: high - low + 1 }, (_, i) => ({ value: String(low + i), label: String(low + i) }))
    : of.type === "boolean" ? [{ value: "true", label: t.yes }, { value: "false", label: t.no }]
    : TYPES[of.type]?.choices ? (of.choices ?? []).map((each) => ({ value: each.id, label: text(each.label) })) : null;
  const title = html`${text(of.title)}${of.required && " *"}`;
  if (picks) return html`<fieldset class=${scale ? "picks scale" : "picks"}><legend dir="auto">${title}</legend>${picks.map((each) => html`<label key=${each.value} class="switch"><input type=${of.type === "multiple_choice" ? "checkbox" : "radio"} name="answer" value=${each.value} /><span dir="auto">${each.label}</span></label>`)}</fieldset>`;
  return html`<label class="label"><span dir="auto">${title}</span>${of.type === "text" ? html`<textarea class="field" name="answer" rows="3" dir="auto"></textarea>` : html`<input class="field" name="answer" type=${of.type} step="any" />`}</label>`;
}

/** @param {{definition: Definition}} props */
export function Preview({ definition }) {
  const [language, setLanguage] = useState(definition.primaryLanguage);
  const [asked, setAsked] = useState([0]);
  const [answers, setAnswers] = useState(/** @type {Record<string, any>} */ ({}));
  const [wrong, setWrong] = useState("");
  const box = useRef(/** @type {HTMLElement|null} */ (null));
  const step = useRef(0);
  const { questions } = definition;
  const at = Math.min(asked.at(-1) ?? 0, questions.length);
  const question = questions[at];
  const text = (/** @type {Record<string, string> | undefined} */ of) => of?.[language] ?? of?.[definition.primaryLanguage] ?? "";
  useEffect(() => void (step.current && /** @type {HTMLElement|null} */ (box.current?.querySelector("form :is(input, textarea), [role=status]"))?.focus()), [step.current]);
  const go = (/** @type {number[]} */ next) => (setAsked(next), setWrong(""), void (step.current += 1));
  const submit = (/** @type {any} */ event) => {
    event.preventDefault();
    if (!question) return;
    const answer = answerOf(event.currentTarget, question);
    const why = problem(question, answer);
    if (why) return setWrong(why);
    setAnswers({ ...answers, [question.id]: answer });
    go([...asked, following(definition, at, answer)]);
  };
  const given = asked.slice(0, -1).flatMap((each) => questions[each] ?? []);
  return html`<section ref=${box} class="survey-preview" aria-label=${f.tryIt}><p class="muted">${s.tryText}</p>
    ${definition.languages.length > 1 && html`<label class="label"><span>${s.tryLanguage}</span><select class="field" onChange=${(/** @type {any} */ event) => setLanguage(event.target.value)}>${definition.languages.map((each) => html`<option key=${each} value=${each} selected=${each === language}>${each}</option>`)}</select></label>`}
    ${question ? html`<form key=${`${at} ${step.current}`} class="form" onSubmit=${submit} novalidate><p class="muted">${s.asked(at + 1, questions.length)}</p><${Control} of=${question} text=${text} />
        ${wrong && html`<p class="wrong" role="alert">${wrong}</p>`}<div class="options">${asked.length > 1 && html`<${Button} label=${s.back} press=${() => go(asked.slice(0, -1))} />`}<button type="submit" class="button primary">${s.next}</button></div></form>`
      : html`<p role="status" tabindex="-1"><strong>${s.done}</strong> ${text(definition.thankYou)}</p>`}
    ${given.length > 0 && html`<h3>${s.answers}</h3><dl class="pairs wide">${given.map((each) => html`<dt key=${each.id}>${each.id}</dt><dd>${answers[each.id] === undefined ? s.skipped : JSON.stringify(answers[each.id])}</dd>`)}</dl>
      <${Button} label=${s.startOver} icon="reopen" press=${() => (setAnswers({}), go([0]))} />`}
  </section>`;
}
