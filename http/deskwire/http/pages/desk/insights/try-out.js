// @ts-check
/** A try-out of a workflow, which stores and sends nothing. */
import { html, useState } from "../vendor/preact.js";
import { t } from "./texts.js";
import { Button } from "../ui/parts.js";
import { Problem, call } from "../core/api.js";
import { Field, Form } from "../ui/form.js";
import { LoadingLines } from "../ui/loading.js";
import { Canvas } from "./workflow-canvas.js";
/** @import { Values } from "../ui/form.js" */

/** @param {{event: any}} props */
function SimulatedEvent({ event }) {
  const did = t.workflows.did;
  if (event.type === "message") return html`<li dir="auto"><span class="sr">${did.message}</span>${event.text}</li>`;
  if (event.type === "answer") return html`<li class="answer" dir="auto"><span class="sr">${did.answer}</span>${event.text || t.workflows.nothingFilledIn}</li>`;
  if (event.type === "waited") return html`<li class="did">${did.waited(event.seconds)}</li>`;
  if (event.type === "assigned") return html`<li class="did">${did.assigned} <bdi>${event.assignee.name}</bdi></li>`;
  if (event.type === "attributes") return html`<li class="did">${did.attributes} <bdi>${Object.entries(event.attributes).map(([name, value]) => `${name} = ${JSON.stringify(value)}`).join(", ")}</bdi></li>`;
  return html`<li class="did">${did.closed}</li>`;
}

const TYPES = /** @type {Record<string, string>} */ ({ email: "email", number: "number", date: "date" });

/** The fields of a form for the contact's answer. @param {{action: any, answer: (value: any) => Promise<void>}} props */
function FormFields({ action, answer }) {
  const save = (/** @type {Values} */ form) => {
    /** @type {Record<string, any>} */
    const value = {};
    for (const each of action.fields) {
      if (each.type === "boolean") form.text(each.id) && (value[each.id] = form.text(each.id) === "true");
      else if (form.text(each.id) !== undefined) value[each.id] = each.type === "number" ? form.number(each.id) : form.text(each.id);
    }
    return answer(value);
  };
  const booleans = [{ value: "", label: "–" }, { value: "true", label: t.yes }, { value: "false", label: t.no }];
  return html`<${Form} save=${save} label=${t.workflows.answer}>${action.fields.map((/** @type {any} */ each) => html`<${Field} key=${each.id} name=${each.id} label=${`${each.label}${each.required ? " *" : ""}`} type=${TYPES[each.type] ?? "text"} options=${each.type === "boolean" ? booleans : undefined} />`)}<//>`;
}

/** @param {{action: any, answer: (value: any) => Promise<void>}} props */
const OptionButtons = ({ action, answer }) => html`<div class="options" role="group" aria-label=${t.workflows.options}>${action.options.map((/** @type {any} */ each) => html`<${Button} key=${each.id} label=${each.label} press=${() => answer(each.id).catch(() => {})} />`)}</div>
  ${action.allowText && html`<${Form} save=${(/** @type {Values} */ form) => answer(form.text("value") ?? "")} label=${t.workflows.answer}><${Field} name="value" label=${t.workflows.orText} /><//>`}`;

/** Parse lines of `name = value`. A value is JSON, or else a text. @param {string} text @returns {Record<string, any>} */
export function parseAttributes(text) {
  const lines = text.split("\n").map((each) => each.trim()).filter(Boolean);
  return Object.fromEntries(lines.map((line) => {
    const at = line.includes("=") ? line.indexOf("=") : line.length;
    const value = line.slice(at + 1).trim();
    try {
      return [line.slice(0, at).trim(), JSON.parse(value)];
    } catch {
      return [line.slice(0, at).trim(), value];
    }
  }));
}

/**
 * @param {{flows: any[], diagram?: boolean, typed?: {current: string}, show?: (course: any) => void}} props
 *   diagram: false if the path is shown elsewhere, by `show`, which gets each course and null at the end; typed: keeps the text of the attributes
 */
export function TryOut({ flows, diagram = true, typed, show }) {
  const [answers, setAnswers] = useState(/** @type {any[]} */ ([]));
  const [course, setCourse] = useState(/** @type {any} */ (null));
  const [attributes, setAttributes] = useState(/** @type {Record<string, any>} */ ({}));
  const [wrong, setWrong] = useState("");
  const [busy, setBusy] = useState(false);
  const [at, setAt] = useState(/** @type {[number, number]|null} */ (null));
  const go = async (/** @type {any[]} */ next, given = attributes) => {
    setBusy(true);
    setWrong("");
    try {
      const found = await call("POST", "workflows/simulate", { body: { flows, attributes: given, answers: next } });
      setCourse(found);
      show?.(found);
      setAnswers(next);
      setAttributes(given);
    } catch (error) {
      setWrong(/** @type {Error} */ (error).message);
      if (error instanceof Problem) error.errors.forEach((each) => (each.pointer = each.pointer.replace(new RegExp(`^/answers/${next.length - 1}$`), "/value").replace(new RegExp(`^/answers/${next.length - 1}/`), "/")));
      throw error;
    } finally {
      setBusy(false);
    }
  };
  const answer = (/** @type {any} */ value) => go([...answers, value]);
  const again = (/** @type {any[]} */ next) => () => void go(next).catch(() => {});
  if (!course)
    return html`<p class="muted">${t.workflows.tryText}</p><${Form} save=${(/** @type {Values} */ form) => go([], parseAttributes(form.raw("attributes")))} label=${t.workflows.tryIt}>
      <${Field} name="attributes" label=${t.workflows.attributes} hint=${t.workflows.attributesHint} rows=${3} mono initial=${typed?.current} onInput=${(/** @type {any} */ event) => typed && (typed.current = event.target.value)} /><//>`;
  const { waits, ended } = course;
  return html`<div class="columns"><section class="part" aria-label=${t.workflows.course}>
      <ol class="course" aria-live="polite">${course.events.map((/** @type {any} */ each, /** @type {number} */ i) => html`<${SimulatedEvent} key=${i} event=${each} />`)}</ol>
      ${busy && html`<${LoadingLines} />`}
      ${waits?.action.type === "buttons" && html`<${OptionButtons} key=${answers.length} action=${waits.action} answer=${answer} />`}
      ${waits?.action.type === "form" && html`<${FormFields} key=${answers.length} action=${waits.action} answer=${answer} />`}
      ${ended && html`<p role="status"><strong>${ended.stopped ? t.workflows.stopped : t.workflows.outcomes[/** @type {"completed"} */ (ended.reason)]}</strong> ${ended.stopped && t.workflows.whyStopped[/** @type {"step_limit"} */ (ended.stopped)]}</p>`}
      ${wrong && html`<p class="wrong" role="alert">${wrong}</p>`}
      <div class="options"><${Button} icon="reopen" label=${t.workflows.fromStart} press=${() => (setCourse(null), show?.(null))} />${answers.length > 0 && html`<${Button} icon="left" label=${t.workflows.stepBack} press=${again(answers.slice(0, -1))} />`}</div>
    </section>
    <section class="part" aria-label=${t.workflows.attributesNow}><h2>${t.workflows.attributesNow}</h2><pre class="mono" tabindex="0">${JSON.stringify(course.attributes, null, 2)}</pre></section></div>
    ${diagram && html`<div class="part"><${Canvas} flows=${flows} selected=${at} select=${setAt} steps=${course.path} waits=${Boolean(waits)} /></div>`}`;
}
