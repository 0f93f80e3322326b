// @ts-check
/** Saving with `If-Match`, and the dialog that compares both versions after a 412. */
import { html, useState } from "../vendor/preact.js";
import { t } from "./texts.js";
import { Problem, call } from "../core/api.js";
import { Dialog } from "./dialog.js";
import { Form } from "./form.js";
/** @import { Loaded } from "./loading.js" */

/**
 * @typedef {object} Conflict  a change that came too late
 * @property {(names: Record<string, string>) => {label: string, theirs: any, mine: any}[]} fields  what differs, by the names of fields
 * @property {() => void} keep  theirs stay
 * @property {() => Promise<boolean>} save  mine are saved over what was shown; false if that has changed again, which is shown then
 * @property {() => void} close  nothing is decided: what is written stays, and nothing is saved
 */

/**
 * @param {Loaded} of  what is changed, with its tag; what has none is saved only if there is still nothing
 * @param {(answer: any) => any} [shown]  what the page shows then, of what the call has answered; by default the answer
 * @returns {{conflict: Conflict|null, kept: number, save: (method: string, path: string, body: any, query?: Record<string, unknown>) => Promise<boolean>}}
 *   save: answers false after a 412; other refusals are thrown. query: that of the GET of what is saved, if it is new. kept: another number when theirs stay
 */
export function useSave(of, shown = (answer) => answer) {
  const [conflict, setConflict] = useState(/** @type {Conflict|null} */ (null));
  const [kept, setKept] = useState(0);
  const save = async (/** @type {string} */ method, /** @type {string} */ path, /** @type {any} */ body, /** @type {Record<string, unknown>|undefined} */ query, tag = of.tag) => {
    /** @type {string|null} */
    let next = null;
    try {
      const answer = await call(method, path, { body, ifMatch: tag, ifNoneMatch: query && tag === null ? "*" : null, answered: (headers) => (next = headers.get("etag")) });
      setConflict(null);
      const data = shown(answer);
      if (next) of.put(data, next);
      else await of.reload();
      return true;
    } catch (error) {
      if (!(error instanceof Problem) || error.code !== "changed_meanwhile") throw error;
    }
    /** @type {string|null} */
    let theirs = null;
    const now = await call("GET", query ? path : of.call.path, { query: query ?? of.call.query, answered: (headers) => (theirs = headers.get("etag")) });
    setConflict({
      fields: (names) => Object.entries(names).filter(([name]) => name in body).map(([name, label]) => ({ label, theirs: now[name], mine: body[name] })),
      keep: () => (setConflict(null), of.put(now, theirs), setKept((n) => n + 1)),
      save: () => save(method, path, body, query, theirs),
      close: () => setConflict(null),
    });
    return false;
  };
  return { conflict, kept, save };
}

/**
 * Shows what a colleague saved and what is about to be saved side by side, after 412 `changed_meanwhile`.
 * @param {{fields: {label: string, theirs: any, mine: any}[], keep: () => void, save: () => Promise<unknown>, close: () => void}} props
 *   keep: theirs stay; save: mine are saved over theirs, with their tag; false if they changed again, and the dialog stays with that
 */
export function ConflictDialog({ fields, keep, save, close }) {
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
