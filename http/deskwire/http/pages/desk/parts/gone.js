// @ts-check
/** The dialogs before something that can't be taken back, and after a change that came too late. */
import { html, useState } from "../vendor/preact.js";
import { t } from "./texts.js";
import { Dialog } from "../dialog.js";
import { Field, Form } from "./form.js";
/** @import { Values } from "./form.js" */

/**
 * Asks before something is gone, and names what. Stays open with the reason if the call is refused.
 * @param {{title: string, text?: any, loses: any[], stays?: any[], word?: string, label: string, run: (form: Values) => Promise<unknown>, close: () => void, children?: any}} props
 *   loses: what will be gone; stays: what a reader may fear for and need not. word: must be typed, where much is lost
 */
export function Gone({ title, text, loses, stays = [], word, label, run, close, children }) {
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

/**
 * Shows what a colleague saved and what is about to be saved side by side, after 412 `changed_meanwhile`.
 * @param {{fields: {label: string, theirs: any, mine: any}[], keep: () => void, save: () => Promise<unknown>, close: () => void}} props
 *   keep: theirs stay; save: mine are saved over theirs, with their tag; false if they changed again, and the dialog stays with that
 */
export function Meanwhile({ fields, keep, save, close }) {
  const words = (/** @type {any} */ value) => (value === null || value === undefined || value === "" ? t.empty : typeof value === "string" ? value : JSON.stringify(value, null, 1));
  const differ = fields.filter((each) => words(each.theirs) !== words(each.mine));
  return html`<${Dialog} title=${t.changedMeanwhile} class="wide" close=${close}><div class="body">
    <p>${t.changedText}</p>
    <div class="table-box" role="region" aria-label=${t.changedMeanwhile} tabindex="0"><table class="table compare"><thead><tr><th scope="col">${t.field}</th><th scope="col">${t.theirs}</th><th scope="col">${t.mine}</th></tr></thead>
      <tbody>${differ.map((each) => html`<tr key=${each.label}><th scope="row">${each.label}</th><td dir="auto">${words(each.theirs)}</td><td dir="auto">${words(each.mine)}</td></tr>`)}</tbody></table></div>
    <div class="actions"><button type="button" class="button" onClick=${() => (keep(), close())}>${t.keepTheirs}</button></div>
    <${Form} save=${async () => void ((await save()) !== false && close())} label=${t.saveMine} kind="danger" cancel=${close} />
  </div><//>`;
}
