// @ts-check
/** The flows of a workflow: a diagram with the number of waiting runs, and a try-out that stores and sends nothing. */
import { html, useState } from "../vendor/preact.js";
import { t } from "./texts.js";
import { Ago, Button, cx } from "../ui/parts.js";
import { Problem, call } from "../core/api.js";
import { Field, Form } from "../ui/form.js";
import { LoadingLines } from "../ui/loading.js";
/** @import { Values } from "../ui/form.js" */

/** @typedef {{flowId: string|null, actionId: number|null, runs: number, since: string|null}} WaitingAt */

/** An action in words. @param {any} action */
function actionText(action) {
  switch (action.type) {
    case "message": case "buttons": case "form": return html`<p dir="auto">${action.text}</p>`;
    case "wait": return html`<p>${t.workflows.seconds(action.seconds)}</p>`;
    case "assign": return html`<p>${t.workflows.to[/** @type {"user"} */ (action.assignee.type)]} <code>${action.assignee.id}</code></p>`;
    case "set_attributes": return Object.entries(action.attributes).map(([name, value]) => html`<p key=${name}><code>${name}</code> = <bdi>${JSON.stringify(value)}</bdi></p>`);
    case "branch": return html`<p>${t.workflows.branchOn} <code>${action.on}</code></p>`;
    default: return null;
  }
}

/** Return the exits of an action: label and target flow; null for the next action. @param {any} action @returns {{label: string, to: string|null}[]} */
function exits(action) {
  if (action.type === "buttons") return [...action.options.map((/** @type {any} */ each) => ({ label: each.label, to: each.goto ?? null })), ...(action.allowText ? [{ label: t.workflows.anyText, to: null }] : [])];
  if (action.type === "branch") return [...Object.entries(action.cases).map(([value, to]) => ({ label: value, to })), { label: t.workflows.otherwise, to: action.default }];
  if (action.type === "form") return action.fields.map((/** @type {any} */ each) => ({ label: `${each.label}${each.required ? " *" : ""}`, to: "" }));
  return [];
}

/** @param {{to: string|null, id: string}} props */
function Target({ to, id }) {
  if (to === "") return null;
  if (to === null) return html`<span class="muted">→ ${t.workflows.nextAction}</span>`;
  if (to === "end") return html`<span class="muted">→ ${t.workflows.theEnd}</span>`;
  const show = (/** @type {Event} */ event) => {
    event.preventDefault(); // the address must stay that of the page
    const there = document.getElementById(id + to);
    there?.scrollIntoView({ block: "nearest" });
    there?.focus();
  };
  return html`<a href=${`#${id}${to}`} onClick=${show}>→ ${to}</a>`;
}

/**
 * The diagram of flows.
 * @param {{flows: any[], waiting: WaitingAt[], here?: number|null, id?: string}} props  here: the action at which a try-out waits. id: the prefix of element ids
 */
export const Flows = ({ flows, waiting, here = null, id = "flow-" }) => html`<ol class="flows">${flows.map((flow, number) => html`<li key=${flow.id} class="flow" id=${id + flow.id} tabindex="-1" aria-label=${t.workflows.flow(flow.id)}>
  <h3><bdi>${flow.id}</bdi> ${number === 0 && html`<span class="chip accent">${t.workflows.begins}</span>`}</h3>
  <ol>${flow.actions.map((/** @type {any} */ action) => {
    const waits = waiting.find((each) => each.actionId === action.id && each.flowId === flow.id);
    return html`<li key=${action.id} class=${cx("step", action.id === here && "here")} aria-current=${action.id === here ? "step" : undefined}><span class="no">${action.id}</span><div>
      <div class="kind">${t.workflows.actions[/** @type {"message"} */ (action.type)]}${waits && html`<span class="chip waits">${t.workflows.wait(waits.runs)}${waits.since && html`, ${t.workflows.since} <${Ago} at=${waits.since} />`}</span>`}${action.id === here && html`<span class="chip accent">${t.workflows.waitsHere}</span>`}</div>
      ${actionText(action)}
      ${exits(action).length > 0 && html`<ul class="exits">${exits(action).map((each) => html`<li key=${each.label}><bdi>${each.label}</bdi> <${Target} to=${each.to} id=${id} /></li>`)}</ul>`}
    </div></li>`;
  })}</ol></li>`)}</ol>`;

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

/** The fields of a form, as the contact fills them in. @param {{action: any, answer: (value: any) => Promise<void>}} props */
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

/** @param {{flows: any[]}} props */
export function TryOut({ flows }) {
  const [answers, setAnswers] = useState(/** @type {any[]} */ ([]));
  const [course, setCourse] = useState(/** @type {any} */ (null));
  const [attributes, setAttributes] = useState(/** @type {Record<string, any>} */ ({}));
  const [wrong, setWrong] = useState("");
  const [busy, setBusy] = useState(false);
  const go = async (/** @type {any[]} */ next, given = attributes) => {
    setBusy(true);
    setWrong("");
    try {
      setCourse(await call("POST", "workflows/simulate", { body: { flows, attributes: given, answers: next } }));
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
      <${Field} name="attributes" label=${t.workflows.attributes} hint=${t.workflows.attributesHint} rows=${3} mono /><//>`;
  const { waits, ended } = course;
  return html`<div class="columns"><section class="part" aria-label=${t.workflows.course}>
      <ol class="course" aria-live="polite">${course.events.map((/** @type {any} */ each, /** @type {number} */ i) => html`<${SimulatedEvent} key=${i} event=${each} />`)}</ol>
      ${busy && html`<${LoadingLines} />`}
      ${waits?.action.type === "buttons" && html`<${OptionButtons} key=${answers.length} action=${waits.action} answer=${answer} />`}
      ${waits?.action.type === "form" && html`<${FormFields} key=${answers.length} action=${waits.action} answer=${answer} />`}
      ${ended && html`<p role="status"><strong>${ended.stopped ? t.workflows.stopped : t.workflows.outcomes[/** @type {"completed"} */ (ended.reason)]}</strong> ${ended.stopped && t.workflows.whyStopped[/** @type {"step_limit"} */ (ended.stopped)]}</p>`}
      ${wrong && html`<p class="wrong" role="alert">${wrong}</p>`}
      <div class="options"><${Button} icon="reopen" label=${t.workflows.fromStart} press=${() => setCourse(null)} />${answers.length > 0 && html`<${Button} icon="left" label=${t.workflows.stepBack} press=${again(answers.slice(0, -1))} />`}</div>
    </section>
    <section class="part" aria-label=${t.workflows.attributesNow}><h2>${t.workflows.attributesNow}</h2><pre class="mono" tabindex="0">${JSON.stringify(course.attributes, null, 2)}</pre></section></div>
    <div class="part"><${Flows} flows=${flows} waiting=${[]} here=${waits?.actionId ?? null} id="try-" /></div>`;
}
