// @ts-check
/** The dialog before an action that can't be undone. */
import { html, useState } from "../vendor/preact.js";
import { t } from "./texts.js";
import { Dialog } from "./dialog.js";
import { Field, Form } from "./form.js";
/** @import { Values } from "./form.js" */

/**
 * Ask before a deletion, and list its effects. If the call is refused, the dialog stays open with the reason.
 * @param {{title: string, text?: any, deletes?: boolean, loses: any[], stays?: any[], word?: string, label: string, run: (form: Values) => Promise<unknown>, close: () => void, children?: any}} props
 *   deletes: false for an action that deletes nothing. loses: the effects; stays: related data that is kept. word: must be typed to confirm
 */
export function ConfirmDialog({ title, text, deletes = true, loses, stays = [], word, label, run, close, children }) {
  const [wrong, setWrong] = useState(false);
  const save = async (/** @type {Values} */ form) => {
    if (word && form.text("word") !== word) return setWrong(true);
    await run(form);
    close();
  };
  return html`<${Dialog} title=${title} close=${close}><div class="body">
    ${text && html`<p>${text}</p>`}
    <p>${deletes ? t.willBeGone : t.effects}</p><ul class="loses">${loses.map((each) => html`<li>${each}</li>`)}</ul>
    ${stays.length > 0 && html`<p>${t.willStay}</p><ul class="stays">${stays.map((each) => html`<li>${each}</li>`)}</ul>`}
    <${Form} save=${save} label=${label} kind="danger" cancel=${close}>
      ${children}
      ${word && html`<${Field} name="word" label=${t.confirmWord(word)} spellcheck="false" onInput=${() => setWrong(false)} />`}
      ${wrong && word && html`<p class="wrong" role="alert">${t.wordWrong(word)}</p>`}
    <//>
  </div><//>`;
}
