// @ts-check
/** The dialog before something that can't be taken back. */
import { html, useState } from "../vendor/preact.js";
import { t } from "./texts.js";
import { Dialog } from "./dialog.js";
import { Field, Form } from "./form.js";
/** @import { Values } from "./form.js" */

/**
 * Asks before something is gone, and names what. Stays open with the reason if the call is refused.
 * @param {{title: string, text?: any, loses: any[], stays?: any[], word?: string, label: string, run: (form: Values) => Promise<unknown>, close: () => void, children?: any}} props
 *   loses: what will be gone; stays: what a reader may fear for and need not. word: must be typed, where much is lost
 */
export function ConfirmDialog({ title, text, loses, stays = [], word, label, run, close, children }) {
  const [wrong, setWrong] = useState(false);
  const save = async (/** @type {Values} */ form) => {
    if (word && form.text("word") !== word) return setWrong(true);
    await run(form);
    close();
  };
  return html`<${Dialog} title=${title} close=${close}><div class="body">
    ${text && html`<p>${text}</p>`}
    <p>${t.willBeGone}</p><ul class="loses">${loses.map((each) => html`<li>${each}</li>`)}</ul>
    ${stays.length > 0 && html`<p>${t.willStay}</p><ul class="stays">${stays.map((each) => html`<li>${each}</li>`)}</ul>`}
    <${Form} save=${save} label=${label} kind="danger" cancel=${close}>
      ${children}
      ${word && html`<${Field} name="word" label=${t.confirmWord(word)} spellcheck="false" onInput=${() => setWrong(false)} />`}
      ${wrong && word && html`<p class="wrong" role="alert">${t.wordWrong(word)}</p>`}
    <//>
  </div><//>`;
}
