// @ts-check
/** Signing in: a page of its own, or a dialog above what somebody is doing. */
import { html, useRef, useState } from "./vendor/preact.js";
import { t } from "./later-texts.js";
import { Icon, cx } from "./parts.js";
import { Dialog } from "./dialog.js";
import { Offline } from "./api.js";
import * as session from "./session.js";

/** What a refusal means, in words. @param {any} error */
function words(error) {
  if (error instanceof Offline) return t.signIn.offline;
  if (error.code === "sign_in_disabled") return t.signIn.disabled;
  if (error.status === 401) return t.signIn.wrong;
  return error.message;
}

/** @param {{over?: boolean}} props */
function Form({ over }) {
  const [wrong, setWrong] = useState("");
  const [change, setChange] = useState(false);
  const [busy, setBusy] = useState(false);
  const form = useRef(/** @type {HTMLFormElement | null} */ (null));
  const email = over ? (session.user.value?.email ?? "") : "";
  const submit = async (/** @type {Event} */ event) => {
    event.preventDefault();
    const given = new FormData(/** @type {HTMLFormElement} */ (form.current));
    const value = (/** @type {string} */ name) => String(given.get(name) ?? "");
    setBusy(true);
    setWrong("");
    try {
      await session.signIn(value("email"), value("password"), change ? value("newPassword") : undefined);
    } catch (error) {
      const problem = /** @type {any} */ (error);
      if (problem.code === "password_change_required" && !change) setChange(true);
      else setWrong(words(problem));
    }
    setBusy(false);
  };
  return html`<form ref=${form} onSubmit=${submit} aria-busy=${busy}>
    ${!over && html`<span class="mark"><${Icon} name="wire" /></span><h1>${t.signIn.title}</h1>`}
    ${over && html`<p>${t.signIn.againText}</p>`}
    ${change && html`<p>${t.signIn.newPasswordText}</p>`}
    ${wrong && html`<p class="wrong" role="alert">${wrong}</p>`}
    <label class="label">${t.signIn.email}<input class="field" name="email" type="email" autocomplete="username" required autofocus=${!email} defaultValue=${email} /></label>
    <label class="label">${t.signIn.password}<input class="field" name="password" type="password" autocomplete="current-password" required autofocus=${Boolean(email)} /></label>
    ${change && html`<label class="label">${t.signIn.newPassword}<input class="field" name="newPassword" type="password" autocomplete="new-password" minlength="12" required /></label>`}
    <button type="submit" class=${cx("button primary")} aria-disabled=${busy ? "true" : undefined}>${t.signIn.signIn}</button>
  </form>`;
}

/** @param {{over?: boolean}} props */
export const SignIn = ({ over }) =>
  over
    ? html`<${Dialog} title=${t.signIn.again} held close=${() => {}}><div class="body sign-again"><${Form} over /></div><//>`
    : html`<main class="sign-in"><${Form} /></main>`;
