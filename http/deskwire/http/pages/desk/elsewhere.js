// @ts-check
/** The address of a project that the signed-in user may not see: says so, and leads to one of their own. */
import { html } from "./vendor/preact.js";
import { Button, Icon } from "./parts.js";
import { choose, missing, projects, user } from "./session.js";

const t = {
  title: "You may not see this project",
  /** @param {string} email */ text: (email) => `The address names a project that ${email} is no member of, or that was deleted. Whoever manages the members of its organisation can add you. Nothing was changed here.`,
  none: "You are in no project either.",
  /** @param {string} name */ to: (name) => `Go to ${name}`,
};
const MOST = 5;

export function Elsewhere() {
  const all = projects.value;
  return html`<main class="sign-in"><div class="card"><span class="mark"><${Icon} name="lock" /></span><h1>${t.title}</h1>
    <p>${t.text(user.value?.email ?? "")}</p><p><code class="mono">${missing.value}</code></p>
    ${all.length ? all.slice(0, MOST).map((each) => html`<p key=${each.id}><${Button} label=${t.to(each.name)} press=${() => choose(each.id)} /></p>`) : html`<p>${t.none}</p>`}
  </div></main>`;
}
