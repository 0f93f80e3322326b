// @ts-check
/** The choice of the desk's language. The service reads it from a cookie, and sends the desk in this language. */
import { html } from "../vendor/preact.js";
import { ROOT } from "../core/api.js";
import { saveBeforeSignOut } from "../core/session.js";
import { t } from "./language-texts.js";

const COOKIE = "deskwire-language";
const KEPT_S = 400 * 24 * 3600; // the longest time that browsers keep a cookie for
/** The languages that there are, by their tags. @type {Record<string, string>} */
const names = JSON.parse(document.documentElement.dataset.languages ?? "{}");

/** Return the language that was chosen in this browser; "" if it is the browser's own. */
const chosen = () => document.cookie.match(new RegExp(`(?:^|; )${COOKIE}=([\\w-]+)`))?.[1] ?? "";

/** Choose a language, and load the desk in it. Drafts are saved before. @param {string} tag */
async function choose(tag) {
  const secure = location.protocol === "https:" ? "; Secure" : "";
  document.cookie = `${COOKIE}=${tag}; Path=${ROOT}desk; Max-Age=${tag ? KEPT_S : 0}; SameSite=Lax${secure}`;
  await saveBeforeSignOut();
  location.reload();
}

/** A field with the languages. */
export const LanguageChoice = () =>
  html`<label class="label">${t.label}<select class="field" onChange=${(/** @type {any} */ event) => choose(event.target.value)}>
    <option value="" selected=${!names[chosen()]}>${t.browser}</option>
    ${Object.entries(names).map(([tag, name]) => html`<option key=${tag} value=${tag} lang=${tag} selected=${tag === chosen()}>${name}</option>`)}
  </select></label>`;
