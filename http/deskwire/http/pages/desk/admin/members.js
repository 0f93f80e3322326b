// @ts-check
/** Members of the organisation: invitations, roles, one-time links for passwords, second factors and sessions. */
import { html, useState } from "../vendor/preact.js";
import { t } from "./texts.js";
import { Ago, Avatar, Button, Empty, Menu, Name, notify } from "../ui/parts.js";
import { Dialog } from "../ui/dialog.js";
import { call } from "../core/api.js";
import { may, project, reloadPeople, user } from "../core/session.js";
import { Frame } from "../ui/frame.js";
import { ListTable } from "../ui/table.js";
import { useList } from "../ui/loading.js";
import { Field, Form } from "../ui/form.js";
import { ConfirmDialog } from "../ui/confirm-dialog.js";
import { Link } from "../ui/link.js";
import { Invitations, Invite, LinkShown, untilText } from "./invitations.js";
import { MemberSessions } from "./member-sessions.js";
import { roleChoices, roleName, useRoles } from "./role-names.js";
/** @import { Values } from "../ui/form.js" */

/** @typedef {"invite"|"invited"|"link"|"role"|"sessions"|"password"|"factors"|"remove"} What */

export function Page() {
  const organisation = `organisations/${project.value?.organisationId}`;
  const path = `${organisation}/members`;
  const manages = may("members.manage");
  const of = useList(path);
  const invitations = useList(manages ? `${organisation}/invitations` : null);
  const roles = useRoles();
  const [open, setOpen] = useState(/** @type {{what: What, row?: any} | null} */ (null));
  const close = () => setOpen(null);
  const closeTo = (/** @type {What} */ what) => () => setOpen((now) => (now?.what === what ? now : null));
  const nameOf = (/** @type {string} */ role) => roleName(roles, role);
  const changed = async (/** @type {string} */ words) => (notify(words), reloadPeople(), await of.reload());
  const invited = async (/** @type {any} */ row) => (setOpen({ what: "invited", row }), await invitations.reload());
  const setRole = async (/** @type {Values} */ form) => {
    await call("PATCH", `${path}/${open?.row.id}`, { body: { role: form.raw("role") } });
    close();
    await changed(t.members.roleSaved);
  };
  const makeLink = async () => setOpen({ what: "link", row: { ...open?.row, ...(await call("POST", `${path}/${open?.row.id}/password-link`)) } });
  const resetFactors = async () => (await call("DELETE", `${path}/${open?.row.id}/factors`), notify(t.members.factorsReset));
  const remove = async () => (await call("DELETE", `${path}/${open?.row.id}`), await changed(t.members.removed));
  const entries = (/** @type {any} */ row) => [
    { label: t.members.changeRole, icon: "person", pick: () => setOpen({ what: "role", row }) },
    { label: t.members.sessions, icon: "out", pick: () => setOpen({ what: "sessions", row }) },
    ...(row.id === user.value?.id ? [] : [{ label: t.members.newPassword, icon: "lock", pick: () => setOpen({ what: "password", row }) }, { label: t.members.resetFactors, icon: "reopen", pick: () => setOpen({ what: "factors", row }) }]),
    { label: t.members.remove, icon: "close", danger: true, pick: () => setOpen({ what: "remove", row }) },
  ];
  const columns = [
    { label: t.members.name, cell: (/** @type {any} */ row) => html`<span class="person"><${Avatar} name=${row.name} id=${row.id} size="s" /><${Name} name=${row.name} />${row.id === user.value?.id && html` <span class="chip good">${t.members.you}</span>`}</span>` },
    { label: t.members.email, cell: (/** @type {any} */ row) => html`<bdi>${row.email}</bdi>` },
    { label: t.members.role, cell: (/** @type {any} */ row) => html`<${Link} to="settings/roles">${nameOf(row.role)}<//>` },
    { label: t.members.joined, less: true, cell: (/** @type {any} */ row) => html`<${Ago} at=${row.joinedAt} />` },
    ...(manages ? [{ label: t.actions, silent: true, cell: (/** @type {any} */ row) => html`<${Menu} label=${t.members.actionsFor(row.name)} icon="more" only kind="quiet" entries=${() => entries(row)} />` }] : []),
  ];
  const actions = manages && html`<${Button} icon="plus" kind="primary" label=${t.members.invite} press=${() => setOpen({ what: "invite" })} />`;
  return html`<${Frame} title=${t.pages.members} actions=${actions} calls=${manages ? [of.call, invitations.call] : [of.call]}>
    <${ListTable} of=${of} caption=${t.pages.members} columns=${columns} empty=${html`<${Empty} icon="people" title=${t.members.none} />`} />
    ${manages && html`<${Invitations} of=${invitations} path=${`${organisation}/invitations`} roleName=${nameOf} shown=${(/** @type {any} */ row) => setOpen({ what: "invited", row })} />`}
    ${open?.what === "invite" && html`<${Invite} path=${`${organisation}/invitations`} roles=${roleChoices(roles)} close=${close} made=${invited} />`}
    ${open?.what === "invited" && html`<${LinkShown} title=${t.members.invitationOf(open.row.email)} text=${(open.row.mailed ? t.members.mailed : t.members.notMailed)(open.row.email, untilText(open.row.expiresAt))} url=${open.row.url} close=${close} />`}
    ${open?.what === "link" && html`<${LinkShown} title=${t.members.linkOf(open.row.name)} text=${t.members.notMailed(open.row.email, untilText(open.row.expiresAt))} url=${open.row.url} close=${close} />`}
    ${open?.what === "role" && html`<${Dialog} title=${t.members.roleOf(open.row.name)} close=${close}><div class="body"><${Form} save=${setRole} label=${t.save} cancel=${close}><${Field} name="role" label=${t.members.role} initial=${open.row.role} options=${roleChoices(roles, open.row.role)} hint=${t.members.roleHint} /><//></div><//>`}
    ${open?.what === "sessions" && html`<${MemberSessions} path=${`${path}/${open.row.id}`} member=${open.row} close=${close} />`}
    ${open?.what === "password" && html`<${ConfirmDialog} deletes=${false} title=${t.members.newPassword} loses=${[t.members.linkReplaces(open.row.name)]} stays=${[t.members.staysPassword, t.members.staysMember]} label=${t.members.newPasswordIt} run=${makeLink} close=${closeTo("link")} />`}
    ${open?.what === "factors" && html`<${ConfirmDialog} deletes=${false} title=${t.members.resetFactors} loses=${[t.members.losesFactors(open.row.name)]} stays=${[t.members.staysMember]} label=${t.members.resetFactorsIt} run=${resetFactors} close=${close} />`}
    ${open?.what === "remove" && html`<${ConfirmDialog} deletes=${false} title=${t.members.remove} loses=${[t.members.losesAccess(open.row.name), t.members.losesTeams]} stays=${t.members.staysWritten} label=${t.members.remove} run=${remove} close=${close} />`}
  <//>`;
}
