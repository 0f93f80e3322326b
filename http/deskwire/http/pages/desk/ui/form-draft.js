// @ts-check
/**
 * Keeps the input of a form until it is saved or left, so that the end of a session, a reload or a crash loses nothing.
 *
 * The input is encrypted in the tab's sessionStorage, under the place, the form's fields and their initial values. The same form at the same place
 * gets it back. Passwords and files are not kept.
 */
import { useLayoutEffect } from "../vendor/preact.js";
import { signedOut } from "../core/api.js";
import { canSeal, open, seal } from "../core/seal.js";
import { onSignOut, place, project, user } from "../core/session.js";

/** @typedef {HTMLInputElement | HTMLTextAreaElement | HTMLSelectElement} Control */

/** The prefix of stored input, which signing out removes. */
export const FORM_PREFIX = "deskwire.form.";

/** @param {HTMLElement} form @returns {Control[]} */
const controls = (form) => /** @type {any[]} */ ([...form.querySelectorAll("input, select, textarea")]).filter((each) => each.name && !["password", "file", "submit", "button", "hidden"].includes(each.type));

/** @param {Control} one @returns {string|boolean} */
const valueOf = (one) => (one instanceof HTMLInputElement && ["checkbox", "radio"].includes(one.type) ? one.checked : one.value);

/** @param {HTMLElement} form */
const snapshot = (form) => JSON.stringify(controls(form).map((each) => [each.name, valueOf(each)]));

/** Return a short hash of a text (FNV-1a). @param {string} text */
function digest(text) {
  let hash = 0x811c9dc5;
  for (let at = 0; at < text.length; at += 1) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193) >>> 0;
  return hash.toString(36);
}

/** Store encrypted input; null removes it. @param {string} key @param {unknown} draft */
export function storeDraft(key, draft) {
  try {
    if (draft === null) sessionStorage.removeItem(key);
    else if (canSeal()) sessionStorage.setItem(key, seal(draft, key));
  } catch {
    // the browser has no storage, or no room, so the input lasts as long as the page
  }
}

/** Return stored input; null without any that can be decrypted. @param {string} key @returns {any} */
export function storedDraft(key) {
  try {
    const sealed = canSeal() ? sessionStorage.getItem(key) : null;
    return sealed ? open(sealed, key) : null;
  } catch {
    return null;
  }
}

/** Set stored values in a form, as if they were typed. @param {HTMLElement} form @param {[name: string, value: string|boolean][]} values */
function restore(form, values) {
  controls(form).forEach((each, at) => {
    const [name, value] = values[at] ?? [];
    if (name !== each.name || value === undefined || value === valueOf(each)) return;
    if (typeof value === "boolean") /** @type {HTMLInputElement} */ (each).checked = value;
    else each.value = value;
    for (const type of ["input", "change"]) each.dispatchEvent(new Event(type, { bubbles: true }));
  });
}

/** Keep the input of a form. @param {{current: HTMLElement|null}} box  the form or another container of fields @param {boolean} [off]  true to keep nothing */
export function useFormDraft(box, off = false) {
  useLayoutEffect(() => {
    const form = box.current;
    const of = user.peek() && project.peek() && `${user.peek()?.id}.${project.peek()?.id}`;
    if (!form || !of || off) return;
    const begun = snapshot(form);
    const key = `${FORM_PREFIX}${of}.${place.peek().split("?")[0]}.${digest(begun)}`;
    restore(form, storedDraft(key) ?? []);
    const keep = () => {
      const typed = snapshot(form);
      storeDraft(key, typed === begun ? null : JSON.parse(typed));
    };
    form.addEventListener("input", keep);
    form.addEventListener("change", keep);
    return () => {
      if (!signedOut.peek()) storeDraft(key, null); // it was saved, or left on purpose
    };
  }, []);
}

onSignOut(async () => {
  for (const key of Object.keys(sessionStorage)) if (key.startsWith(FORM_PREFIX)) storeDraft(key, null);
});
