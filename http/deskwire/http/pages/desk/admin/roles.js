// @ts-check
/** Roles of the organisation: the built-in ones, and its own with the permissions that it chooses. */
import { html, useState } from "../vendor/preact.js";
import { t } from "./texts.js";
import { Button, Empty, Menu, Name, notify } from "../ui/parts.js";
import { Dialog } from "../ui/dialog.js";
import { call, newKey } from "../core/api.js";
import { may, permissions, project } from "../core/session.js";
import { Frame } from "../ui/frame.js";
import { ListTable } from "../ui/table.js";
import { useList } from "../ui/loading.js";
import { useRefreshOnEvents } from "../ui/auto-refresh.js";
import { Field, Form, Tick } from "../ui/form.js";
import { ConfirmDialog } from "../ui/confirm-dialog.js";
import { AREAS, changes, roleName, rolesPath } from "./role-names.js";
/** @import { Values } from "../ui/form.js" */
/** @import { Role } from "./role-names.js" */

/** The meaning of a permission in words. @param {string} permission */
const meaning = (permission) => /** @type {Record<string, string>} */ (t.roles.means)[permission];

/** The name of an area of permissions. @param {string} area */
const areaName = (area) => /** @type {Record<string, string>} */ (t.roles.areas)[area] ?? area;

export function Page() {
  const path = rolesPath();
  const of = useList(path, {}, 200);
  useRefreshOnEvents((event) => event.type === "settings.changed" && ["roles", "members"].includes(event.data.what), of.renew);
  const [open, setOpen] = useState(/** @type {{what: "edit"|"show"|"delete", role: Role|null, from?: Role}|null} */ (null));
  const close = () => setOpen(null);
  const saved = async (/** @type {string} */ words) => (close(), notify(words), await of.reload());
  const remove = async () => (await call("DELETE", `${path}/${open?.role?.id}`), await saved(t.roles.deleted));
  const entries = (/** @type {Role} */ role) => [
    { label: t.roles.show, icon: "info", pick: () => setOpen({ what: "show", role }) },
    ...(changes(role) ? [{ label: t.edit, icon: "pencil", pick: () => setOpen({ what: "edit", role }) }] : []),
    ...(may("members.manage") ? [{ label: t.roles.copy, icon: "plus", pick: () => setOpen({ what: "edit", role: null, from: role }) }] : []),
    ...(changes(role) && !role.members ? [{ label: t.delete, icon: "close", danger: true, pick: () => setOpen({ what: "delete", role }) }] : []),
  ];
  const columns = [
    { label: t.roles.name, cell: (/** @type {Role} */ role) => html`<${Name} name=${roleName([role], role.id)} />${role.builtIn && html` <span class="chip">${t.roles.builtIn}</span>`}${role.description && html`<br /><span class="muted">${role.description}</span>`}` },
    { label: t.roles.permissions, cell: (/** @type {Role} */ role) => html`<span title=${role.permissions.join(", ")}>${t.roles.count(role.permissions.length)}</span>` },
    { label: t.roles.members, cell: (/** @type {Role} */ role) => role.members },
    { label: t.actions, silent: true, cell: (/** @type {Role} */ role) => html`<${Menu} label=${t.actionsFor(roleName([role], role.id))} icon="more" only kind="quiet" entries=${() => entries(role)} />` },
  ];
  const actions = may("members.manage") && html`<${Button} icon="plus" kind="primary" label=${t.roles.create} press=${() => setOpen({ what: "edit", role: null })} />`;
  return html`<${Frame} title=${t.pages.roles} actions=${actions} calls=${[of.call]}>
    <p class="lead">${t.roles.lead(roleName(of.items, project.value?.role ?? "viewer"))}</p>
    <${ListTable} of=${of} caption=${t.pages.roles} columns=${columns} empty=${html`<${Empty} icon="info" title=${t.roles.none} />`} />
    <p class="muted">${t.roles.owner}</p>
    ${open?.what === "edit" && html`<${Edit} path=${path} role=${open.role} from=${open.from} close=${close} done=${saved} />`}
    ${open?.what === "show" && open.role && html`<${Permissions} role=${open.role} close=${close} />`}
    ${open?.what === "delete" && open.role && html`<${ConfirmDialog} title=${t.roles.deleteOne} loses=${[t.roles.losesRole(open.role.name)]} label=${t.delete} run=${remove} close=${close} />`}
  <//>`;
}

/** The permissions of a role, by area. @param {{role: Role, close: () => void}} props */
function Permissions({ role, close }) {
  const areas = AREAS.map(([area, names]) => ({ area, names: names.filter((each) => role.permissions.includes(each)) })).filter(({ names }) => names.length);
  return html`<${Dialog} title=${t.roles.of(roleName([role], role.id))} close=${close}><div class="body">
    ${role.description && html`<p>${role.description}</p>`}
    ${areas.map(({ area, names }) => html`<h3 key=${area}>${areaName(area)}</h3><ul>${names.map((each) => html`<li key=${each}>${meaning(each)} <code class="mono muted">${each}</code></li>`)}</ul>`)}
    ${!areas.length && html`<p class="muted">${t.roles.nothing}</p>`}
  </div><//>`;
}

/** The form of a role. @param {{path: string, role: Role|null, from?: Role, close: () => void, done: (words: string) => Promise<void>}} props  from: a role to copy */
function Edit({ path, role, from, close, done }) {
  const [key] = useState(newKey);
  const given = new Set((role ?? from)?.permissions);
  const save = async (/** @type {Values} */ form) => {
    const body = { name: form.raw("name").trim(), description: form.text("description") ?? "", permissions: form.all("permissions") };
    if (role) await call("PATCH", `${path}/${role.id}`, { body });
    else await call("POST", path, { key, body });
    await done(role ? t.roles.saved : t.roles.created);
  };
  const areas = AREAS.map(([area, names]) => ({ area, names: names.filter((each) => permissions.value.has(each)) })).filter(({ names }) => names.length);
  return html`<${Dialog} title=${role ? t.roles.editOne : t.roles.create} class="wide" close=${close}><div class="body"><${Form} save=${save} label=${role ? t.save : t.roles.createIt} cancel=${close}>
    <${Field} name="name" label=${t.roles.name} initial=${role?.name} required maxlength="200" />
    <${Field} name="description" label=${t.roles.description} initial=${role?.description} maxlength="500" />
    ${role && role.members > 0 && html`<p class="muted">${t.roles.atOnce(role.members)}</p>`}
    ${areas.map(({ area, names }) => html`<fieldset key=${area} class="two"><legend>${areaName(area)}</legend>${names.map((each) => html`<${Tick} key=${each} name="permissions" value=${each} label=${meaning(each)} hint=${html`<code class="mono">${each}</code>`} initial=${given.has(each)} />`)}</fieldset>`)}
    <p class="muted">${t.roles.onlyOwn}</p>
  <//></div><//>`;
}
