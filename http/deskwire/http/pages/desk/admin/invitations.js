// @ts-check
/** Invitations to the organisation: sent, listed, renewed and revoked. A link is shown once. */
import { locale } from "../core/texts.js";
import { html, useState } from "../vendor/preact.js";
import { t } from "./texts.js";
import { Ago, Button, Empty, Menu, notify } from "../ui/parts.js";
import { Dialog } from "../ui/dialog.js";
import { call, newKey } from "../core/api.js";
import { ListTable } from "../ui/table.js";
import { useList } from "../ui/loading.js";
import { Field, Form } from "../ui/form.js";
import { ConfirmDialog } from "../ui/confirm-dialog.js";
import { Copied } from "../ui/secret.js";
import { Section } from "../ui/frame.js";
/** @import { Values } from "../ui/form.js" */
/** @import { Listed } from "../ui/loading.js" */

/** The dialog with a one-time link. Only its button closes it, not Esc. @param {{title: string, url: string, text: string, close: () => void}} props */
export const LinkShown = ({ title, url, text, close }) => html`<${Dialog} title=${title} held close=${close}><div class="body">
  <p>${text}</p>${url.includes("…") ? html`<p role="alert">${t.members.linkLost}</p>` : html`<${Copied} text=${url} label=${t.members.link} />`}
  <div class="actions"><${Button} label=${t.members.done} kind="primary" press=${close} /></div>
</div><//>`;

/** @param {string} at */
export const untilText = (at) => new Date(at).toLocaleString(locale, { dateStyle: "medium", timeStyle: "short" });

/** The dialog that invites a person. @param {{path: string, roles: {value: string, label: string}[], close: () => void, made: (invitation: any) => Promise<void>}} props */
export function Invite({ path, roles, close, made }) {
  const [key] = useState(newKey);
  const save = async (/** @type {Values} */ form) => made(await call("POST", path, { key, body: { email: form.raw("email").trim(), name: form.text("name"), role: form.raw("role") } }));
  return html`<${Dialog} title=${t.members.invite} close=${close}><div class="body"><${Form} save=${save} label=${t.members.inviteIt} cancel=${close}>
    <${Field} name="email" label=${t.members.email} type="email" required /><${Field} name="name" label=${t.members.name} hint=${t.members.nameHint} />
    <${Field} name="role" label=${t.members.role} initial="agent" options=${roles} />
  <//></div><//>`;
}

/** The open invitations. @param {{of: Listed, path: string, roleName: (role: string) => string, shown: (invitation: any) => void}} props  shown: opens the dialog with a new link */
export function Invitations({ of, path, roleName, shown }) {
  const [revokes, setRevokes] = useState(/** @type {any} */ (null));
  const renew = async (/** @type {any} */ row) => {
    try {
      shown(await call("POST", `${path}/${row.id}/renew`, { key: newKey(), body: {} }));
      await of.reload();
    } catch (error) {
      notify(/** @type {Error} */ (error).message, { bad: true });
    }
  };
  const revoke = async () => {
    await call("DELETE", `${path}/${revokes.id}`);
    notify(t.members.revoked);
    await of.reload();
  };
  const entries = (/** @type {any} */ row) => [
    { label: t.members.renew, icon: "reopen", pick: () => void renew(row) },
    { label: t.members.revoke, icon: "close", danger: true, pick: () => setRevokes(row) },
  ];
  const columns = [
    { label: t.members.email, cell: (/** @type {any} */ row) => html`<bdi>${row.email}</bdi>` },
    { label: t.members.role, cell: (/** @type {any} */ row) => roleName(row.role) },
    { label: t.members.invited, less: true, cell: (/** @type {any} */ row) => html`<${Ago} at=${row.createdAt} />` },
    { label: t.members.expires, cell: (/** @type {any} */ row) => (Date.parse(row.expiresAt) <= Date.now() ? html`<span class="chip late">${t.members.expired}</span>` : untilText(row.expiresAt)) },
    { label: t.actions, silent: true, cell: (/** @type {any} */ row) => html`<${Menu} label=${t.members.actionsFor(row.email)} icon="more" only kind="quiet" entries=${() => entries(row)} />` },
  ];
  return html`<${Section} title=${t.members.invitations}><${ListTable} quiet of=${of} caption=${t.members.invitations} columns=${columns} empty=${html`<p class="muted">${t.members.noInvitations}</p>`} /><//>
    ${revokes && html`<${ConfirmDialog} deletes=${false} title=${t.members.revokeOne} loses=${[t.members.losesLink(revokes.email)]} label=${t.members.revoke} run=${revoke} close=${() => setRevokes(null)} />`}`;
}
