// @ts-check
/** The page of a one-time link: an invitation, a new password, or the first account. The link's token is kept in memory only. */
import { html, useEffect, useState } from "../vendor/preact.js";
import { t } from "../ui/sign-in-texts.js";
import { Button, Icon } from "../ui/parts.js";
import "../ui/page-style.js";
import { Field, Form } from "../ui/form.js";
import { Problem, call } from "../core/api.js";
import { fragment, go, session, signedIn, user } from "../core/session.js";
import { goToProvider, proofProblem } from "../ui/proof.js";
import { Challenge } from "./challenge.js";
/** @import { Values } from "../ui/form.js" */

/** @typedef {{purpose: "invitation"|"password"|"setUp", email: string|null, organisationName: string|null, name: string|null, nameNeeded: boolean, account: boolean, methods: {password: boolean, oidc: {id: string, name: string}[]}}} Inspected */

let token = fragment;

/** Leave the page for the desk, where the sign-in continues. */
function toDesk() {
  token = "";
  go("", { replace: true });
}

/** @param {{icon?: string, title: string, children?: any}} props */
const Card = ({ icon = "wire", title, children }) => html`<main class="sign-in"><div class="card"><span class="mark"><${Icon} name=${icon} /></span><h1>${title}</h1>${children}</div></main>`;

/** @param {{of: Inspected}} props */
function Use({ of }) {
  const { purpose, email, organisationName, account, methods } = of;
  const first = purpose === "setUp";
  const words = { invitation: account ? t.link.invitationKnown(organisationName) : t.link.invitation(organisationName), password: t.link.password, setUp: t.link.setUp }[purpose];
  const save = async (/** @type {Values} */ form) => {
    if (!account && form.raw("password") !== form.raw("again")) throw new Problem(422, { detail: t.link.notTheSame, errors: [{ pointer: "/again", code: "mismatch", message: t.link.notTheSame }] }, null, null);
    const body = { token, password: form.raw("password"), name: form.text("name"), email: first ? form.text("email") : undefined, organisationName: form.text("organisationName") };
    const found = await call("POST", "auth/links/use", { body });
    signedIn(found);
    if (found.user) toDesk();
  };
  return html`<${Card} title=${t.link.titles[purpose]}>
    <p>${words}</p>${user.value && user.value.email !== email && html`<p class="stale">${t.link.signedIn(user.value.email)}</p>`}
    ${methods.oidc.map((each) => html`<p key=${each.id}><${Button} icon="lock" label=${t.withProvider(each.name)} press=${() => (toDesk(), goToProvider(each.id))} /></p>`)}
    ${methods.password && html`<${Form} save=${save} label=${t.link.buttons[purpose]}>
      <${Field} name="email" type="email" label=${t.email} initial=${email} readonly=${!first} required autocomplete="username" />
      ${of.nameNeeded && html`<${Field} name="name" label=${t.link.name} initial=${of.name} autocomplete="name" required maxlength="200" />`}
      ${first && html`<${Field} name="organisationName" label=${t.link.organisation} hint=${t.link.organisationHint} autocomplete="organization" maxlength="200" />`}
      <${Field} name="password" type="password" label=${account ? t.link.yourPassword : t.link.choose} hint=${account ? undefined : t.link.passwordHint} autocomplete=${account ? "current-password" : "new-password"} required />
      ${!account && html`<${Field} name="again" type="password" label=${t.link.again} autocomplete="new-password" required />`}
    <//>`}
    ${!methods.password && !methods.oidc.length && html`<p>${t.noWay}</p>`}
  <//>`;
}

export function OneTimeLink() {
  const [found, setFound] = useState(/** @type {Inspected|Error|null} */ (null));
  const inspect = () => {
    setFound(null);
    if (token) call("POST", "auth/links/inspect", { body: { token } }).then(setFound, setFound);
  };
  useEffect(() => {
    const pasted = () => {
      if (location.hash.length < 2) return;
      token = location.hash.slice(1);
      history.replaceState(history.state, "", location.pathname + location.search);
      inspect();
    };
    inspect();
    addEventListener("hashchange", pasted);
    return () => removeEventListener("hashchange", pasted);
  }, []);
  const { challenge } = session.value;
  if (challenge && found && !(found instanceof Error)) return html`<main class="sign-in"><${Challenge} of=${challenge} done=${toDesk} /></main>`;
  const toSignIn = html`<p><${Button} kind="primary" label=${t.link.toSignIn} press=${toDesk} /></p>`;
  if (!token) return html`<${Card} icon="warn" title=${t.link.none}><p>${t.link.noneText}</p>${toSignIn}<//>`;
  if (!found) return html`<main class="sign-in" aria-busy="true"><h1 class="sr">${t.link.checking}</h1></main>`;
  if (!(found instanceof Error)) return html`<${Use} of=${found} />`;
  const ended = found instanceof Problem && found.status < 500 && found.status !== 429;
  return html`<${Card} icon="warn" title=${ended ? t.link.ended : t.link.checking}><p role="alert">${ended ? t.link.endedText : proofProblem(found)}</p>${ended ? toSignIn : html`<p><${Button} kind="primary" label=${t.tryAgain} press=${inspect} /></p>`}<//>`;
}
