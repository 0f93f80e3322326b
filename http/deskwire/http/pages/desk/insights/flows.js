// @ts-check
/** The flows of a workflow side by side, with the number of waiting runs. */
import { html } from "../vendor/preact.js";
import { t } from "./texts.js";
import { lastsText } from "./workflow-view.js";
import { Ago } from "../ui/parts.js";

/** @typedef {{flowId: string|null, actionId: number|null, runs: number, since: string|null}} WaitingAt */

/** An action in words. @param {any} action */
function actionText(action) {
  switch (action.type) {
    case "message": case "buttons": case "form": return html`<p dir="auto">${action.text}</p>`;
    case "wait": return html`<p>${lastsText(action.seconds)}</p>`;
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

/** The flows side by side. @param {{flows: any[], waiting: WaitingAt[], id?: string}} props  id: the prefix of element ids */
export const Flows = ({ flows, waiting, id = "flow-" }) => html`<ol class="flows">${flows.map((flow, number) => html`<li key=${flow.id} class="flow" id=${id + flow.id} tabindex="-1" aria-label=${t.workflows.flow(flow.id)}>
  <h3><bdi>${flow.id}</bdi> ${number === 0 && html`<span class="chip accent">${t.workflows.begins}</span>`}</h3>
  <ol>${flow.actions.map((/** @type {any} */ action) => {
    const waits = waiting.find((each) => each.actionId === action.id && each.flowId === flow.id);
    return html`<li key=${action.id} class="step"><span class="no">${action.id}</span><div>
      <div class="kind">${t.workflows.actions[/** @type {"message"} */ (action.type)]}${waits && html`<span class="chip waits">${t.workflows.wait(waits.runs)}${waits.since && html`, ${t.workflows.since} <${Ago} at=${waits.since} />`}</span>`}</div>
      ${actionText(action)}
      ${exits(action).length > 0 && html`<ul class="exits">${exits(action).map((each) => html`<li key=${each.label}><bdi>${each.label}</bdi> <${Target} to=${each.to} id=${id} /></li>`)}</ul>`}
    </div></li>`;
  })}</ol></li>`)}</ol>`;
