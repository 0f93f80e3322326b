// @ts-check
/** Members of the organisation: one-time passwords, roles and sessions. */
import { html, useState } from "../vendor/preact.js";
import { t } from "./texts.js";
import { Ago, Avatar, Button, Empty, Menu, Name, notify } from "../ui/parts.js";
import { Dialog } from "../ui/dialog.js";
import { call, newKey } from "../core/api.js";
import { may, project, reloadPeople, user } from "../core/session.js";
import { Frame } from "../ui/frame.js";
import { ListTable } from "../ui/table.js";
import { useList } from "../ui/loading.js";
import { Field, Form } from "../ui/form.js";
import { ConfirmDialog } from "../ui/confirm-dialog.js";
import { Secret } from "../ui/secret.js";
import { Link } from "../ui/link.js";
import { roleChoices, roleName, useRoles } from "./role-names.js";
/** @import { Values } from "../ui/form.js" */

export function Page() {
  const path = `organisations/${project.value?.organisationId}/members`;
  const of = useList(path);
  const roles = useRoles();
  const [open, setOpen] = useState(/** @type {{what: string, row?: any, secret?: string|null} | null} */ (null));
  const manages = may("members.manage");
  const close = () => setOpen(null);
  const changed = async (/** @type {string} */ words) => (notify(words), reloadPeople(), await of.reload());
  const setRole = async (/** @type {Values} */ form) => {
    await call("PATCH", `${path}/${open?.row.id}`, { body: { role: form.raw("role") } });
    close();
    await changed(t.members.roleSaved);
  };
  const renew = async () => {
    const member = await call("POST", `${path}/${open?.row.id}/password`);
    setOpen({ what: "secret", row: member, secret: member.password });
  };
  const run = async () => {
    if (open?.what === "sessions") await call("DELETE", `${path}/${open.row.id}/sessions`);
    else await call("DELETE", `${path}/${open?.row.id}`);
    await changed(open?.what === "sessions" ? t.members.sessionsEnded : t.members.removed);
  };
  const entries = (/** @type {any} */ row) => [
    { label: t.members.changeRole, icon: "person", pick: () => setOpen({ what: "role", row }) },
    { label: t.members.endSessions, icon: "out", pick: () => setOpen({ what: "sessions", row }) },
    ...(row.id === user.value?.id ? [] : [{ label: t.members.newPassword, icon: "lock", pick: () => setOpen({ what: "password", row }) }]),
    { label: t.members.remove, icon: "close", danger: true, pick: () => setOpen({ what: "remove", row }) },
  ];
  const columns = [
    { label: t.members.name, cell: (/** @type {any} */ row) => html`<span class="person"><${Avatar} name=${row.name} id=${row.id} size="s" /><${Name} name=${row.name} />${row.id === user.value?.id && html` <span class="chip good">${t.members.you}</span>`}</span>` },
    { label: t.members.email, cell: (/** @type {any} */ row) => html`<bdi>${row.email}</bdi>` },
    { label: t.members.role, cell: (/** @type {any} */ row) => html`<${Link} to="settings/roles">${roleName(roles, row.role)}<//>` },
    { label: t.members.joined, less: true, cell: (/** @type {any} */ row) => html`<${Ago} at=${row.joinedAt} />` },
    ...(manages ? [{ label: t.actions, silent: true, cell: (/** @type {any} */ row) => html`<${Menu} label=${t.members.actionsFor(row.name)} icon="more" only kind="quiet" entries=${() => entries(row)} />` }] : []),
  ];
  const actions = manages && html`<${Button} icon="plus" kind="primary" label=${t.members.add} press=${() => setOpen({ what: "add" })} />`;
  return html`<${Frame} title=${t.pages.members} actions=${actions} calls=${[of.call]}>
    <${ListTable} of=${of} caption=${t.pages.members} columns=${columns} empty=${html`<${Empty} icon="people" title=${t.members.none} />`} />
    ${open?.what === "add" && html`<${Add} path=${path} roles=${roles} close=${close} made=${async (/** @type {any} */ member) => (await changed(t.members.added(member.name)), member.password ? setOpen({ what: "secret", row: member, secret: member.password }) : close())} />`}
    ${open?.what === "secret" && html`<${Secret} title=${t.members.passwordOf(open.row.name)} text=${t.members.passwordText(open.row.email, new Date(open.row.passwordEndsAt).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" }))} secret=${open.secret ?? ""} close=${close} />`}
    ${open?.what === "role" && html`<${Dialog} title=${t.members.roleOf(open.row.name)} close=${close}><div class="body"><${Form} save=${setRole} label=${t.save} cancel=${close}><${Field} name="role" label=${t.members.role} initial=${open.row.role} options=${roleChoices(roles, open.row.role)} hint=${t.members.roleHint} /><//></div><//>`}
    ${open?.what === "sessions" && html`<${ConfirmDialog} deletes=${false} title=${t.members.endSessions} loses=${[t.members.losesSessions(open.row.name)]} stays=${[t.members.staysTokens]} label=${t.sessions.end} run=${run} close=${close} />`}
    ${open?.what === "password" && html`<${ConfirmDialog} deletes=${false} title=${t.members.newPassword} loses=${[t.members.losesPassword(open.row.name), t.members.losesSessions(open.row.name)]} stays=${[t.members.staysMember]} label=${t.members.newPasswordIt} run=${renew} close=${() => setOpen((now) => (now?.what === "secret" ? now : null))} />`}
    ${open?.what === "remove" && html`<${ConfirmDialog} deletes=${false} title=${t.members.remove} loses=${[t.members.losesAccess(open.row.name), t.members.losesTeams]} stays=${t.members.staysWritten} label=${t.members.remove} run=${run} close=${close} />`}
  <//>`;
}

/** @param {{path: string, roles: import("./role-names.js").Role[], close: () => void, made: (member: any) => Promise<void>}} props */
function Add({ path, roles, close, made }) {
  const [key] = useState(newKey);
  const save = async (/** @type {Values} */ form) => made(await call("POST", path, { key, body: { email: form.raw("email").trim(), name: form.text("name"), role: form.raw("role") } }));
  return html`<${Dialog} title=${t.members.add} close=${close}><div class="body"><${Form} save=${save} label=${t.members.addIt} cancel=${close}>
    <${Field} name="email" label=${t.members.email} type="email" required /><${Field} name="name" label=${t.members.name} />
    <${Field} name="role" label=${t.members.role} initial="agent" options=${roleChoices(roles)} />
  <//></div><//>`;
}
