// @ts-check
/** Saving with `If-Match`, and the dialog that compares both versions after a 412. */
import { html, useState } from "../vendor/preact.js";
import { t } from "./texts.js";
import { Problem, call } from "../core/api.js";
import { Dialog } from "./dialog.js";
import { Form } from "./form.js";
/** @import { Loaded } from "./loading.js" */

/**
 * @typedef {object} Conflict  a change that was refused because of another one
 * @property {(names: Record<string, string>) => {label: string, theirs: any, mine: any}[]} fields  the differing fields, by name
 * @property {() => void} keep  keeps their version
 * @property {() => Promise<boolean>} save  overwrites the version that is shown; false if that has changed again
 * @property {() => void} close  decides nothing: the input stays, and nothing is saved
 */

/**
 * Return a function that saves with `If-Match`, and the conflict after a 412.
 * @param {Loaded} of  the resource with its tag; without one, it is saved only if it does not exist
 * @param {(answer: any) => any} [shown]  selects the data to show from the response; by default all of it
 * @returns {{conflict: Conflict|null, kept: number, save: (method: string, path: string, body: any, query?: Record<string, unknown>) => Promise<boolean>}}
 *   save: resolves to false after a 412; other refusals are thrown. query: that of the GET for a new resource. kept: changes when their version was kept
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
 * Show both versions side by side after 412 `changed_meanwhile`.
 * @param {{fields: {label: string, theirs: any, mine: any}[], keep: () => void, save: () => Promise<unknown>, close: () => void}} props
 *   keep: keeps their version; save: overwrites it, using its tag; false if it has changed again, and the dialog stays open
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
