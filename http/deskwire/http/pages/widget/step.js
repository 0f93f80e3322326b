// @ts-check
/** A workflow step that waits for the customer: buttons or a form, below the bot's message. */
import { html, useState } from "../desk/vendor/preact.js";
import { Fields } from "./fields.js";
import { valuesOf } from "./values.js";
import { problemText, t } from "./texts.js";
/** @import { Customer, Step } from "./customer.js" */

/** @param {{customer: Customer, conversation: string, step: Step}} props */
export function WorkflowStep({ customer, conversation, step: { actionId, action } }) {
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState("");
  const answer = async (/** @type {unknown} */ value) => {
    setBusy(true);
    setProblem("");
    try {
      await customer.reply(conversation, actionId, value);
    } catch (error) {
      setProblem(problemText(/** @type {any} */ (error)));
    }
    setBusy(false);
  };
  const submit = (/** @type {any} */ event) => {
    event.preventDefault();
    void answer(valuesOf(event.currentTarget, action.fields));
  };
  return html`<div class="step">
    ${action.options
      ? html`<div role="group" aria-label=${action.text} class="options">${action.options.map((/** @type {any} */ each) => html`<button type="button" class="plain" disabled=${busy} onClick=${() => answer(each.id)}><bdi>${each.label}</bdi></button>`)}</div>`
      : html`<form aria-label=${action.text} onSubmit=${submit}><${Fields} fields=${action.fields} /><button class="solid" disabled=${busy}>${t.submit}</button></form>`}
    <p role="alert" class="bad">${problem}</p>
  </div>`;
}
