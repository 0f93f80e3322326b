// @ts-check
/** Saving what somebody else may have changed meanwhile: with the tag of what was read, and both versions side by side after a 412. */
import { useState } from "../vendor/preact.js";
import { Problem, call } from "../api.js";
/** @import { Loaded } from "../parts/loading.js" */

/**
 * @typedef {object} Late  a change that came too late
 * @property {(names: Record<string, string>) => {label: string, theirs: any, mine: any}[]} fields  what differs, by the names of fields
 * @property {() => void} keep  theirs stay
 * @property {() => Promise<boolean>} save  mine are saved over what was shown; false if that has changed again, which is shown then
 * @property {() => void} close  nothing is decided: what is written stays, and nothing is saved
 */

/**
 * @param {Loaded} of  what is changed, with its tag; what has none is saved only if there is still nothing
 * @param {(answer: any) => any} [shown]  what the page shows then, of what the call has answered; by default the answer
 * @returns {{late: Late|null, kept: number, save: (method: string, path: string, body: any, query?: Record<string, unknown>) => Promise<boolean>}}
 *   save: answers false after a 412; other refusals are thrown. query: that of the GET of what is saved, if it is new. kept: another number when theirs stay
 */
export function useSaving(of, shown = (answer) => answer) {
  const [late, setLate] = useState(/** @type {Late|null} */ (null));
  const [kept, setKept] = useState(0);
  const save = async (/** @type {string} */ method, /** @type {string} */ path, /** @type {any} */ body, /** @type {Record<string, unknown>|undefined} */ query, tag = of.tag) => {
    /** @type {string|null} */
    let next = null;
    try {
      const answer = await call(method, path, { body, ifMatch: tag, ifNoneMatch: query && tag === null ? "*" : null, answered: (headers) => (next = headers.get("etag")) });
      setLate(null);
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
    setLate({
      fields: (names) => Object.entries(names).filter(([name]) => name in body).map(([name, label]) => ({ label, theirs: now[name], mine: body[name] })),
      keep: () => (setLate(null), of.put(now, theirs), setKept((n) => n + 1)),
      save: () => save(method, path, body, query, theirs),
      close: () => setLate(null),
    });
    return false;
  };
  return { late, kept, save };
}
