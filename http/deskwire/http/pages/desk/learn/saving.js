// @ts-check
/** Saving what somebody else may have changed meanwhile: with the tag of what was read, and both versions side by side after a 412. */
import { useState } from "../vendor/preact.js";
import { Problem, call } from "../api.js";
/** @import { Loaded } from "../parts/loading.js" */

/**
 * @typedef {object} Late  a change that came too late
 * @property {(names: Record<string, string>) => {label: string, theirs: any, mine: any}[]} fields  what differs, by the names of fields
 * @property {() => void} keep  theirs stay
 * @property {() => Promise<unknown>} save  mine are saved over what was shown
 */

/**
 * @param {Loaded} of  what is changed, with its tag
 * @param {(answer: any) => any} [shown]  what the page shows then, of what the call has answered; by default the answer
 * @returns {{late: Late|null, save: (method: string, path: string, body: any) => Promise<boolean>}}  `save` answers false after a 412; other refusals are thrown
 */
export function useSaving(of, shown = (answer) => answer) {
  const [late, setLate] = useState(/** @type {Late|null} */ (null));
  const save = async (/** @type {string} */ method, /** @type {string} */ path, /** @type {any} */ body, tag = of.tag) => {
    /** @type {string|null} */
    let next = null;
    try {
      const answer = await call(method, path, { body, ifMatch: tag, answered: (headers) => (next = headers.get("etag")) });
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
    const now = await call("GET", of.call.path, { query: of.call.query, answered: (headers) => (theirs = headers.get("etag")) });
    setLate({
      fields: (names) => Object.entries(names).filter(([name]) => name in body).map(([name, label]) => ({ label, theirs: now[name], mine: body[name] })),
      keep: () => (setLate(null), of.put(now, theirs)),
      save: () => save(method, path, body, theirs),
    });
    return false;
  };
  return { late, save };
}
