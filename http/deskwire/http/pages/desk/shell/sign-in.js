// @ts-check
/** Pages shown instead of the desk: sign-in, and a project that the user may not see. */
import { html, useRef, useState } from "../vendor/preact.js";
import { t } from "../core/texts-lazy.js";
import { Button, Icon, cx } from "../ui/parts.js";
import { Dialog } from "../ui/dialog.js";
import { Offline } from "../core/api.js";
import { openProject, unknownProject, projects, user } from "../core/session.js";
import * as session from "../core/session.js";

/** Return a refusal in words. @param {any} error */
function errorText(error) {
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
      else setWrong(errorText(problem));
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

const PROJECTS_MAX = 5;

export function ProjectNotAccessible() {
  const all = projects.value;
  return html`<main class="sign-in"><div class="card"><span class="mark"><${Icon} name="lock" /></span><h1>${t.otherProject.title}</h1>
    <p>${t.otherProject.text(user.value?.email ?? "")}</p><p><code class="mono">${unknownProject.value}</code></p>
    ${all.length ? all.slice(0, PROJECTS_MAX).map((each) => html`<p key=${each.id}><${Button} label=${t.otherProject.to(each.name)} press=${() => openProject(each.id)} /></p>`) : html`<p>${t.otherProject.none}</p>`}
  </div></main>`;
}
