// @ts-check
/** The user's own name, password, second factors and accounts at identity providers. */
import { html, useState } from "../vendor/preact.js";
import { t } from "./texts.js";
import { notify } from "../ui/parts.js";
import { Problem, call } from "../core/api.js";
import { retry } from "../core/feed.js";
import { loadSession, user } from "../core/session.js";
import { Frame, Pairs, Section } from "../ui/frame.js";
import { Field, Form } from "../ui/form.js";
import { Link } from "../ui/link.js";
import { t as signIn } from "../ui/sign-in-texts.js";
import { Factors } from "./factors.js";
import { Identities } from "./identities.js";
/** @import { Values } from "../ui/form.js" */

/** Return a problem for one field of a form. @param {string} name @param {string} code @param {string} message */
const beside = (name, code, message) => new Problem(422, { detail: message, code, errors: [{ pointer: `/${name}`, code, message }] }, null, null);

export function Page() {
  const [edits, setEdits] = useState(0);
  const rename = async (/** @type {Values} */ form) => {
    await call("PATCH", "users/me", { body: { name: form.raw("name").trim() } });
    await loadSession();
    notify(t.account.nameSaved);
  };
  const change = async (/** @type {Values} */ form) => {
    if (form.raw("newPassword") !== form.raw("again")) throw beside("again", "mismatch", t.account.notTheSame);
    await call("POST", "users/me/password", { body: { password: form.raw("password"), newPassword: form.raw("newPassword") } });
    await loadSession(); // the response contains a new session, and the old one's stream has ended
    retry();
    setEdits((n) => n + 1);
    notify(t.account.passwordSaved);
  };
  return html`<${Frame} title=${t.pages.account} calls=${["users/me", "users/me/factors", "users/me/identities"].map((path) => ({ method: "GET", path }))}>
    <${Section} title=${t.account.you}><${Pairs} of=${[[t.account.email, html`<bdi>${user.value?.email}</bdi>`], [t.account.sessions, html`<${Link} to="settings/sessions">${t.account.seeSessions}<//>`]]} />
      <div class="gap"></div><${Form} save=${rename} label=${t.saveChanges}><${Field} name="name" label=${t.account.name} hint=${t.account.nameHint} initial=${user.value?.name} required maxlength="200" /><//><//>
    <${Section} title=${t.account.password}><p class="lead">${t.account.passwordText}</p><${Form} key=${edits} save=${change} label=${t.account.changePassword}>
      <${Field} name="password" type="password" label=${t.account.present} autocomplete="current-password" required />
      <${Field} name="newPassword" type="password" label=${t.account.new} autocomplete="new-password" required />
      <${Field} name="again" type="password" label=${t.account.again} autocomplete="new-password" required />
    <//><//>
    <${Section} title=${signIn.factors.title}><${Factors} /><//>
    <${Identities} />
  <//>`;
}
