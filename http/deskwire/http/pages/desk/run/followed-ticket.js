// @ts-check
/** One ticket as it is at the moment, beside what its fields were made of: what somebody writes is never replaced by what came. */
import { useRef, useState } from "../vendor/preact.js";
import { Problem, call } from "../api.js";
import { useFollowed } from "../parts/fresh.js";
import { useCall } from "../parts/loading.js";
/** @import { Loaded } from "../parts/loading.js" */

/** @typedef {{ticket: any, tag: string|null, by: string|null}} Theirs  ticket: null if it was deleted; by: who changed it last */
/**
 * @typedef {object} Followed
 * @property {Loaded} of  what the fields were made of
 * @property {Theirs|null} theirs  the ticket now, if it is another one and something is written in the fields
 * @property {number} edits  another number when the fields are to be made anew
 * @property {(ticket: any, tag: string|null, anew?: boolean) => void} put  takes what the service has answered; anew: whether the fields are made of it
 * @property {<T>(work: () => Promise<T>) => Promise<T>} own  does what changes the ticket from here, of which the stream tells nothing new
 */

/**
 * @param {string} id @param {() => boolean} written  whether something is written in the fields that is not saved @param {() => unknown} changed  called after a change
 * @returns {Followed}
 */
export function useTicket(id, written, changed) {
  const path = `tickets/${id}`;
  const of = useCall(path);
  const [theirs, setTheirs] = useState(/** @type {Theirs|null} */ (null));
  const [edits, setEdits] = useState(0);
  const known = useRef({ by: /** @type {string|null} */ (null), own: /** @type {Promise<unknown>} */ (Promise.resolve()), of, theirs }).current;
  Object.assign(known, { of, theirs });
  const put = (/** @type {any} */ ticket, /** @type {string|null} */ tag, anew = true) => {
    if (!anew && known.theirs) return setTheirs({ ticket, tag, by: known.theirs.by });
    known.of.put(ticket, tag);
    setTheirs(null);
    if (anew) setEdits((n) => n + 1);
  };
  const look = async () => {
    await known.own;
    /** @type {string|null} */
    let tag = null;
    try {
      const ticket = await call("GET", path, { answered: (headers) => (tag = headers.get("etag")) });
      if (tag === known.of.tag) put(ticket, tag, false);
      else if (written()) setTheirs({ ticket, tag, by: known.by });
      else put(ticket, tag);
    } catch (error) {
      if (!(error instanceof Problem) || error.status !== 404) return; // it is looked at again with the next event, or when the service is back
      if (written()) setTheirs({ ticket: null, tag: null, by: known.by });
      else await known.of.reload();
    }
    changed();
  };
  useFollowed(({ type, data }) => {
    const about = type.startsWith("ticket.") && data.ticket.id === id;
    if (about) known.by = data.actor.name;
    return about;
  }, look);
  const own = (/** @type {() => Promise<any>} */ work) => {
    const done = work();
    known.own = done.catch(() => {});
    return done;
  };
  return { of, theirs, edits, put, own };
}
