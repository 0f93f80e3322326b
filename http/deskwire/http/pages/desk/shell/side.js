// @ts-check
/** The navigation: the project, the views of the inbox, the pages, and the user. */
import { html } from "../vendor/preact.js";
import { t } from "../core/texts-lazy.js";
import { Avatar, Icon, Kbd, Menu, dialog } from "../ui/parts.js";
import * as session from "../core/session.js";
import { runCommand } from "../core/keys.js";
import { Views } from "../inbox/views.js";
import { Places } from "../pages.js";
import "../ui/row-parts.js";
import { Status } from "./connection.js";

/** The content of the navigation. */
export function Side() {
  const projects = () => session.projects.value.map((each) => ({ label: each.name, hint: each.organisationName, checked: each.id === session.project.value?.id, pick: () => session.openProject(each.id) }));
  const me = () => [
    { title: session.user.value?.email ?? "" },
    { label: t.side.settings, icon: "gear", pick: () => (dialog.value = { name: "settings" }) },
    { label: t.side.notifications, icon: "bell", pick: () => session.go("settings/notifications") },
    { label: t.side.shortcuts, icon: "keys", hint: "?", pick: () => (dialog.value = { name: "help" }) },
    /** @type {"line"} */ ("line"),
    { label: t.side.signOut, icon: "out", pick: () => void runCommand("signOut") },
  ];
  const brand = html`<span class="mark"><${Icon} name="wire" /></span><span class="grow ellipsis">${session.project.value?.name ?? t.name}</span><${Icon} name="down" />`;
  const face = html`<${Avatar} name=${session.user.value?.name} id=${session.user.value?.id} size="s" /><span class="label-text ellipsis">${session.user.value?.name}</span>`;
  return html`<${Menu} label=${t.side.project} face=${brand} faceClass="brand" entries=${projects} />
    <button type="button" class="side-search" title=${t.side.actions} onClick=${() => runCommand("palette")}><${Icon} name="bolt" /><span class="label-text">${t.side.actions}</span><${Kbd} keys="mod+k" /></button>
    <div class="side-in">${session.reads.value && html`<${Views} />`}<${Places} /></div>
    <div class="side-foot">${session.reads.value && html`<${Status} />`}<${Menu} label=${t.side.me} face=${face} faceClass="view" entries=${me} /></div>`;
}

