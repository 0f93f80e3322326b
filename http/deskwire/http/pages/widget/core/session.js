// @ts-check
/**
 * The session: the token and the contact it belongs to.
 *
 * A visitor's session costs the service nothing until the first message. With a signed identity, the visitor's conversations move to that contact. If
 * the identity changes, waiting messages are sent for the contact who wrote them, the old session is ended, and all stored data is deleted.
 */
import { Offline, Problem } from "./api.js";
/** @import { Contact, IdentityFunction } from "../customer.js" */
/** @import { Records } from "./storage.js" */

/** @typedef {{token: string, contact: Contact, cursor: string|null}} Session */

/** Return the `sub` of a JWT, unchecked: the service checks it. Null if it has none. @param {string|null} jwt */
export function subjectOf(jwt) {
  try {
    const bytes = Uint8Array.from(atob((jwt ?? "").split(".")[1]?.replace(/-/g, "+").replace(/_/g, "/") ?? ""), (each) => each.charCodeAt(0));
    return JSON.parse(new TextDecoder().decode(bytes)).sub ?? null;
  } catch {
    return null;
  }
}

/**
 * Return the next step for a stored session, if any, and a new identity, if any. `use`: the session is still right. `open`: get the first one, or a new one
 * for the same contact. `upgrade`: the visitor has signed in. `switch`: it is another contact.
 * @param {Session|null} stored @param {string|null|undefined} jwt  null: the customer is signed out; undefined: the page did not say @param {string|null} refused  a token that has ended
 * @returns {"use"|"open"|"upgrade"|"switch"}
 */
export function decide(stored, jwt, refused) {
  if (!stored) return "open";
  const ended = stored.token === refused;
  const { verified, userId } = stored.contact;
  if (!verified) return ended ? "open" : jwt ? "upgrade" : "use";
  if (jwt === undefined || (jwt && subjectOf(jwt) === userId)) return ended ? "open" : "use";
  return "switch";
}

/**
 * @param {object} io
 * @param {Records} io.records
 * @param {string} io.channelId
 * @param {(method: string, path: string, options: {body?: unknown}, token?: string|null) => Promise<any>} io.call  without renewal
 * @param {() => IdentityFunction|null|undefined} io.identity
 * @param {(token: string) => Promise<void>} io.flush  sends the contact's waiting messages under a token, while the lock `send` is held
 * @param {() => void} io.leaving  the stored contact's data must no longer be shown
 * @param {(session: Session, step: string, givenUp: number) => void} io.began  the session is another one; `givenUp` messages of the previous contact were deleted
 */
export function createSession({ records, channelId, call, identity, flush, leaving, began }) {
  /** @type {Promise<Session>|null} */
  let opening = null;
  /** @type {string|null} */
  let refused = null;

  /** @returns {Session|null} */
  const stored = () => records.get("session");

  /** True once this page's identity was compared with the session. */
  let checked = false;

  /** Return the session; get one if there is none. @param {boolean} [check]  compare the identity again @returns {Promise<Session>} */
  function current(check = !checked) {
    const known = stored();
    if (known && !check && known.token !== refused && !opening) return Promise.resolve(known);
    opening ??= open(check).finally(() => (opening = null));
    return opening;
  }

  /** Counts the sign-outs: an identity from before one must not open a session after it. */
  let signOuts = 0;

  /** @param {boolean} check */
  async function open(check) {
    for (let attempt = 0; ; attempt++) {
      const since = signOuts;
      const jwt = await identityOf(identity());
      if (since !== signOuts) continue;
      const known = stored();
      if (known && !check && known.token !== refused) return known; // another tab has stored it in the meantime, perhaps for the next contact
      const step = decide(known, jwt, refused);
      if (step === "switch") leave(); // before the lock, which a message under way can hold
      try {
        // An ended session under the lock, too: another tab may be signing in, which ends the visitor's before the next one is stored.
        const found = step === "use" ? known : !known ? await store(await ask(jwt), step, known, 0, since) : await records.lock("send", async () => (since === signOuts ? replace(jwt, check ? null : known) : null));
        if (!found) continue;
        checked = true;
        return found;
      } catch (error) {
        if (attempt || !(error instanceof Problem) || error.code !== "identity_expired") throw error;
      }
    }
  }

  /** From now on nothing is shown or written for the stored contact. */
  function leave() {
    checked = false;
    leaving();
  }

  /** @param {string|null|undefined} jwt @param {string} [session] */
  const ask = (jwt, session) => call("POST", "session", { body: { channelId, identity: jwt || undefined, session } }, null);

  /** Upgrade or end the stored session, while nothing is being sent. @param {string|null|undefined} jwt @param {Session|null} ended  the one that this page only renews, with the identity it compared before */
  async function replace(jwt, ended) {
    await records.refresh();
    const known = /** @type {Session} */ (stored());
    // Another tab has replaced it, perhaps by that of the next contact, whom this page's older identity must not sign out.
    if (known && ended && known.token !== ended.token && known.token !== refused) return known;
    const again = decide(known, jwt, refused); // another tab may have done it
    if (again === "open") return store(await ask(jwt), again, known);
    if (again === "use") return known;
    if (again === "upgrade") return store(await ask(jwt, known.token), again, known);
    leave();
    if (known.token !== refused) {
      await flush(known.token);
      await call("DELETE", "me", {}, known.token).catch((error) => {
        if (error instanceof Offline) throw error; // then nothing could be sent either: it is done when the service answers
      });
    }
    return store(await ask(jwt), again, known, await deleteAll(known.contact.userId));
  }

  /** Delete everything stored, or everything but the messages of others than this contact; return the number of deleted messages. @param {string} [userId] */
  async function deleteAll(userId) {
    let givenUp = 0;
    await records.change(() => {
      const others = records.list("message:").filter(({ owner }) => userId && owner !== userId);
      // At a change of contacts the session stays until the next one replaces it: with a new revision 1, another tab's write could pass.
      const stays = new Set([userId && "session", ...others.flatMap(({ clientId, files }) => [`message:${clientId}`, ...files.map((/** @type {any} */ { key }) => `file:${key}`)])]);
      const goes = [...records.known.keys()].filter((key) => !stays.has(key));
      givenUp = goes.filter((key) => key.startsWith("message:")).length;
      return Object.fromEntries(goes.map((key) => [key, null]));
    });
    return givenUp;
  }

  /** @param {Session} session  the response @param {string} step @param {Session|null} before  the stored session at the decision @param {number} [givenUp] @param {number} [since]  the sign-outs at that time @returns {Promise<Session|null>} null if the customer has signed out since then */
  async function store(session, step, before, givenUp = 0, since = signOuts) {
    await records.change(() => {
      if (since !== signOuts) return null;
      const now = stored();
      // Two tabs may open a session at once: the first one counts. Or another tab has stored that of the next contact.
      if (step === "open" && now?.token !== before?.token) return null;
      const moved = records.list("message:").filter(({ owner }) => step !== "switch" && owner === now?.contact.userId);
      // Another person may have entered the visitor's fields in this browser, so they are not the signed-in customer's.
      const entered = step === "upgrade" && records.get("me") ? { me: null } : {};
      return { session, ...entered, ...Object.fromEntries(moved.map((each) => [`message:${each.clientId}`, { ...each, owner: session.contact.userId }])) };
    });
    if (since !== signOuts) return null;
    refused = null;
    const result = stored() ?? session;
    began(result, step, givenUp);
    return result;
  }

  return {
    current,
    deleteAll,
    stored,
    known: () => checked,
    /** Note that the customer signs out: the identity is compared again before the next call. */
    forget: () => {
      checked = false;
      signOuts++;
    },
    /** Note that the service refused a token. @param {string} token */
    ended(token) {
      if (stored()?.token === token) refused = token;
    },
  };
}

/** @param {IdentityFunction|null|undefined} identity */
async function identityOf(identity) {
  if (!identity) return undefined;
  try {
    return (await identity()) ?? null;
  } catch (error) {
    throw new Problem(503, { code: "identity_failed", detail: `The page's identity function failed: ${error}` });
  }
}
