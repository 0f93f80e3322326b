// @ts-check
/** Sign-in: the ways that work here, instead of the desk or in a dialog over it. */
import { html, useEffect, useLayoutEffect, useRef, useState } from "../vendor/preact.js";
import { t } from "../ui/sign-in-texts.js";
import { Button, Icon, lazy } from "../ui/parts.js";
import { Dialog } from "../ui/dialog.js";
import { LanguageChoice } from "../ui/language.js";
import { Offline, Problem, call, get } from "../core/api.js";
import { session, signedIn, user } from "../core/session.js";
import { getPasskey, hasPasskeys } from "../ui/passkeys.js";
import { goToProvider } from "../ui/proof.js";
import { providerFailure } from "./provider-failure.js";

const Challenge = lazy(() => import("./challenge.js"), "Challenge");
const Forgotten = lazy(() => import("./forgotten-password.js"), "Forgotten");

/** @typedef {{password: boolean, passkey: boolean, oidc: {id: string, name: string}[]|null, forgottenPassword: "mail"|"administrator"|null, setUp: boolean}} Methods */
/** Used if the service can't be asked: the attempt then says what is wrong. @type {Methods} */
const UNKNOWN = { password: true, passkey: false, oidc: [], forgottenPassword: null, setUp: false };

/** Return a refusal in words. @param {any} error */
function errorText(error) {
  if (error instanceof Offline) return t.offline;
  if (error.code === "sign_in_disabled") return t.disabled;
  if (error instanceof Problem && error.status === 401 && error.code !== "challenge_ended") return t.wrong;
  return error.message;
}

/** @param {{over?: boolean, methods: Methods, wrong: string, setWrong: (text: string) => void, forgot: () => void}} props */
function Ways({ over, methods, wrong, setWrong, forgot }) {
  const [change, setChange] = useState(false);
  const [busy, setBusy] = useState(false);
  const running = useRef(false);
  const form = useRef(/** @type {HTMLFormElement | null} */ (null));
  const email = over ? (user.value?.email ?? "") : "";
  useLayoutEffect(() => /** @type {HTMLElement|null|undefined} */ (form.current?.querySelector(change ? "[name=newPassword]" : "[autofocus]"))?.focus(), [change]);
  const run = async (/** @type {() => Promise<any>} */ signIn, /** @type {(error: any) => string} */ words) => {
    if (running.current) return;
    setBusy((running.current = true));
    setWrong("");
    try {
      signedIn(await signIn());
    } catch (error) {
      if (/** @type {any} */ (error).code === "password_change_required" && !change) setChange(true);
      else setWrong(words(error));
    }
    setBusy((running.current = false));
  };
  const submit = (/** @type {Event} */ event) => {
    event.preventDefault();
    const given = new FormData(/** @type {HTMLFormElement} */ (form.current));
    const value = (/** @type {string} */ name) => String(given.get(name) ?? "");
    void run(() => call("POST", "auth/session", { body: { email: value("email"), password: value("password"), newPassword: change ? value("newPassword") : undefined } }), errorText);
  };
  const byPasskey = async () => {
    const { challenge, publicKey } = await call("POST", "auth/passkey/options", { body: {} });
    return call("POST", "auth/passkey", { body: { challenge, credential: await getPasskey(publicKey) } });
  };
  const others = [
    ...(methods.oidc ?? []).map((each) => html`<${Button} key=${each.id} icon="lock" label=${t.withProvider(each.name)} press=${() => goToProvider(each.id)} />`),
    ...(methods.passkey && hasPasskeys ? [html`<${Button} key="passkey" icon="keys" label=${t.withPasskey} press=${() => run(byPasskey, (error) => (error instanceof Offline ? t.offline : error.message))} />`] : []),
  ];
  return html`<form ref=${form} onSubmit=${submit} aria-busy=${busy}>
    ${!over && html`<span class="mark"><${Icon} name="wire" /></span><h1>${t.title}</h1>`}
    ${over && html`<p>${t.againText}</p>`}
    ${methods.setUp && html`<p>${t.setUp}</p>`}
    ${change && html`<p>${t.newPasswordText}</p>`}
    ${wrong && html`<p class="wrong" role="alert">${wrong}</p>`}
    ${methods.password && html`<label class="label">${t.email}<input class="field" name="email" type="email" autocomplete="username" required autofocus=${!email} defaultValue=${email} /></label>
      <label class="label">${t.password}<input class="field" name="password" type="password" autocomplete="current-password" required autofocus=${Boolean(email)} /></label>
      ${change && html`<label class="label">${t.newPassword}<input class="field" name="newPassword" type="password" autocomplete="new-password" minlength="12" required /></label>`}
      <button type="submit" class="button primary" aria-disabled=${busy ? "true" : undefined}>${t.signIn}</button>`}
    ${others}
    ${methods.password && methods.forgottenPassword && html`<${Button} kind="quiet" label=${t.forgot} press=${forgot} />`}
    ${!methods.password && !others.length && html`<p>${methods.setUp ? "" : t.noWay}</p>`}
    ${!over && html`<${LanguageChoice} />`}
  </form>`;
}

/** @param {{over?: boolean}} props */
function Steps({ over }) {
  const [methods, setMethods] = useState(/** @type {Methods|null} */ (null));
  const [wrong, setWrong] = useState(providerFailure);
  const [forgotten, setForgotten] = useState(false);
  useEffect(() => void get("auth/methods").then(setMethods, () => setMethods(UNKNOWN)), []);
  const { challenge } = session.value;
  if (challenge) return html`<${Challenge} key=${challenge.id} of=${challenge} over=${over} ended=${setWrong} />`;
  if (!methods) return html`<div aria-busy="true"><h1 class="sr">${t.title}</h1></div>`;
  if (forgotten) return html`<${Forgotten} over=${over} by=${methods.forgottenPassword} back=${() => setForgotten(false)} />`;
  return html`<${Ways} over=${over} methods=${methods} wrong=${wrong} setWrong=${setWrong} forgot=${() => setForgotten(true)} />`;
}

/** @param {{over?: boolean}} props */
export const SignIn = ({ over }) =>
  over
    ? html`<${Dialog} title=${t.again} held close=${() => {}}><div class="body sign-again"><${Steps} over /></div><//>`
    : html`<main class="sign-in"><${Steps} /></main>`;
