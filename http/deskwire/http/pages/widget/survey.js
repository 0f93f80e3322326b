// @ts-check
/** A survey of the channel: its questions one by one, as its logic asks them. */
import { html, useEffect, useState } from "../desk/vendor/preact.js";
import { Fields } from "./fields.js";
import { valuesOf } from "./values.js";
import { brokenBounds, following } from "../desk/core/survey-logic.js";
import { numberText, problemText, settings, t } from "./texts.js";
/** @import { Customer } from "./customer.js" */
/** @import { Definition, Question } from "../desk/core/survey-logic.js" */

const SCALES = /** @type {Record<string, [number, number]>} */ ({ nps: [0, 10], csat: [1, 5], ces: [1, 7], rating: [1, 5] });

/** @param {{customer: Customer, id: string}} props */
export function Survey({ customer, id }) {
  const [survey, setSurvey] = useState(/** @type {{version: number, definition: Definition} | null} */ (null));
  const [at, setAt] = useState(0);
  const [answers, setAnswers] = useState(/** @type {Record<string, any>} */ ({}));
  const [state, setState] = useState(/** @type {"asking" | "sending" | "sent"} */ ("asking"));
  const [problem, setProblem] = useState("");
  const [clientId] = useState(() => crypto.randomUUID());
  const failed = (/** @type {any} */ error) => (setProblem(problemText(error)), setState("asking"));
  useEffect(() => void customer.request("GET", `surveys/${id}`).then(setSurvey, failed), []);
  if (!survey) return html`<p role="alert" class="bad">${problem}</p>`;
  const { definition, version } = survey;
  const language = definition.languages.find((each) => each === settings.language) ?? definition.languages.find((each) => each.split("-")[0] === settings.texts) ?? definition.primaryLanguage;
  const text = (/** @type {Record<string, string> | undefined} */ of) => of?.[language] ?? "";
  if (state === "sent") return html`<p role="status">${text(definition.thankYou) || t.thanks}</p>`;

  const send = async (/** @type {Record<string, any>} */ given) => {
    setState("sending");
    try {
      await customer.request("POST", `surveys/${id}/responses`, { version, language, answers: given, clientId });
      setState("sent");
    } catch (error) {
      const { errors = [] } = /** @type {any} */ (error);
      const wrong = definition.questions.findIndex(({ id }) => `${errors[0]?.pointer}/`.startsWith(`/answers/${id}/`));
      if (wrong >= 0) setAt(wrong); // ask it again: there is no other way back
      failed(error);
    }
  };
  const question = /** @type {Question} */ (definition.questions[at]);
  const submit = (/** @type {any} */ event) => {
    event.preventDefault();
    const answer = answerOf(event.currentTarget, question);
    const broken = brokenBounds(question, answer);
    if (broken) return setProblem(t.scale(...bounds(broken)));
    const asked = new Set(definition.questions.slice(0, at).map(({ id }) => id));
    const before = Object.fromEntries(Object.entries(answers).filter(([id]) => asked.has(id)));
    const given = answer === undefined ? before : { ...before, [question.id]: answer };
    const next = following(definition, at, answer);
    setAnswers(given);
    setProblem("");
    if (next >= definition.questions.length) void send(given);
    else setAt(next);
  };
  return html`<form key=${question.id} class="step" aria-label=${t.survey} onSubmit=${submit}>
    <${Control} of=${question} text=${text} />
    <p role="alert" class="bad">${problem}</p>
    <button class="solid" disabled=${state === "sending"}>${at + 1 < definition.questions.length ? t.next : t.submit}</button>
  </form>`;
}

/** Return two numbers as texts. @param {[number, number]} of @returns {[string, string]} */
const bounds = ([low, high]) => [numberText(low), numberText(high)];

/** @param {{of: Question, text: (of: Record<string, string> | undefined) => string}} props */
function Control({ of, text }) {
  const { id, type, title, required, choices } = of;
  const scale = SCALES[type];
  const legend = html`<legend dir="auto">${text(title)}${!required && html` <small>(${t.optional})</small>`}</legend>`;
  if (scale) {
    const [low, high] = type === "rating" ? [of.min ?? scale[0], of.max ?? scale[1]] : scale;
    const values = Array.from({ length: high - low + 1 }, (_, step) => low + step);
    return html`<fieldset>${legend}<small>${t.scale(...bounds([low, high]))}</small><div class="options scale">${values.map((each) => html`<label class="pick"><input type="radio" name=${id} value=${each} required=${required} />${numberText(each)}</label>`)}</div></fieldset>`;
  }
  if (choices) {
    const several = type === "multiple_choice";
    const limited = several && (of.min !== undefined || of.max !== undefined);
    return html`<fieldset>${legend}${limited && html`<small>${t.scale(...bounds([Math.max(of.min ?? 1, 1), of.max ?? choices.length]))}</small>`}${choices.map((each) => html`<label class="pick"><input type=${several ? "checkbox" : "radio"} name=${id} value=${each.id} required=${required && !several} /><span dir="auto">${text(each.label)}</span></label>`)}</fieldset>`;
  }
  if (type === "text") return html`<label>${text(title)}${!required && html` <small>(${t.optional})</small>`}<textarea name=${id} rows="2" required=${required} minlength=${of.min} maxlength=${of.max ?? 20_000} dir="auto"></textarea></label>`;
  return html`<${Fields} fields=${[{ id, type, label: text(title), required }]} />`;
}

/** Return the answer in a form; undefined if there is none. @param {HTMLFormElement} form @param {Question} question */
function answerOf(form, { id, type }) {
  if (type === "multiple_choice") {
    const chosen = new FormData(form).getAll(id).map(String);
    return chosen.length ? chosen : undefined;
  }
  if (type === "text") return valuesOf(form, [{ id, type, label: "" }])[id] && String(new FormData(form).get(id)); // with its blanks, which count
  return valuesOf(form, [{ id, type: SCALES[type] ? "number" : type, label: "" }])[id];
}
