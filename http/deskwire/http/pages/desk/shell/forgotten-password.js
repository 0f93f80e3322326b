// @ts-check
/** A forgotten password: a mail with a one-time link, or whom to ask for one. */
import { html, useState } from "../vendor/preact.js";
import { t } from "../ui/sign-in-texts.js";
import { Button } from "../ui/parts.js";
import { call } from "../core/api.js";
import { user } from "../core/session.js";
import { proofProblem } from "../ui/proof.js";

/** @param {{by: "mail"|"administrator"|null, over?: boolean, back: () => void}} props */
export function Forgotten({ by, over, back }) {
  const [sent, setSent] = useState("");
  const [wrong, setWrong] = useState("");
  const submit = async (/** @type {any} */ event) => {
    event.preventDefault();
    const email = String(new FormData(event.target).get("email") ?? "").trim();
    setWrong("");
    try {
      await call("POST", "auth/password-links", { body: { email } });
      setSent(email);
    } catch (error) {
      setWrong(proofProblem(error));
    }
  };
  return html`<form onSubmit=${submit}>
    ${over ? html`<h2>${t.forgotTitle}</h2>` : html`<h1>${t.forgotTitle}</h1>`}
    ${wrong && html`<p class="wrong" role="alert">${wrong}</p>`}
    ${by !== "mail" ? html`<p>${t.forgotAdministrator}</p>` : sent ? html`<p role="status">${t.forgotSent(sent)}</p>` : html`<p>${t.forgotMail}</p>
      <label class="label">${t.email}<input class="field" name="email" type="email" autocomplete="username" required autofocus defaultValue=${user.value?.email ?? ""} /></label>
      <button type="submit" class="button primary">${t.sendLink}</button>`}
    <${Button} kind="quiet" label=${t.backToSignIn} press=${back} />
  </form>`;
}
