// @ts-check
/** The page of a user who lacks the second factor that the project's organisation requires. */
import { html } from "../vendor/preact.js";
import { t } from "../ui/sign-in-texts.js";
import { Button, Icon, Notices } from "../ui/parts.js";
import "../ui/page-style.js";
import { project, projects, session, signOut } from "../core/session.js";
import { Factors } from "../admin/factors.js";
import { ToProjects } from "./no-project.js";

export function Enrolment() {
  const required = new Set(session.value.enrolmentRequired.map((/** @type {any} */ each) => each.id));
  const others = projects.value.filter((each) => !required.has(each.organisationId));
  return html`<main class="sign-in"><div class="card enrolment"><span class="mark"><${Icon} name="lock" /></span>
    <h1>${t.enrolment.title}</h1><p>${t.enrolment.text(project.value?.organisationName ?? "")}</p>
    <${Factors} heading="h2" />
    ${others.length > 0 && html`<h2>${t.enrolment.others}</h2><${ToProjects} of=${others} />`}
    <p><${Button} kind="quiet" label=${t.signOut} press=${signOut} /></p>
  </div></main><${Notices} />`;
}
