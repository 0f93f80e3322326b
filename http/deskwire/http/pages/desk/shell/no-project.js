// @ts-check
/** The page of a user who may not see the project in the address, or who is in none. */
import { html } from "../vendor/preact.js";
import { t } from "../ui/sign-in-texts.js";
import { Button, Icon } from "../ui/parts.js";
import { openProject, projects, signOut, unknownProject, user } from "../core/session.js";

const PROJECTS_MAX = 5;

/** The buttons to other projects. @param {{of: import("../core/types.js").Project[]}} props */
export const ToProjects = ({ of }) => of.slice(0, PROJECTS_MAX).map((each) => html`<p key=${each.id}><${Button} label=${t.project.to(each.name)} press=${() => openProject(each.id)} /></p>`);

export function NoProject() {
  const unknown = unknownProject.value;
  return html`<main class="sign-in"><div class="card"><span class="mark"><${Icon} name=${unknown ? "lock" : "wire"} /></span>
    ${unknown
      ? html`<h1>${t.project.title}</h1><p>${t.project.text(user.value?.email ?? "")}</p><p><code class="mono">${unknown}</code></p>
          ${projects.value.length ? html`<${ToProjects} of=${projects.value} />` : html`<p>${t.project.none}</p>`}`
      : html`<h1>${t.project.noProject}</h1><p>${t.project.noProjectText}</p><${Button} label=${t.signOut} press=${signOut} />`}
  </div></main>`;
}
