// @ts-check
/** Machine credentials of the project: creation, permissions, rotation and revocation (ADR 70). The secret is shown once. */
import { locale } from "../core/texts.js";
import { html, useState } from "../vendor/preact.js";
import { t } from "./texts.js";
import { Ago, Button, Empty, Menu, Name, notify } from "../ui/parts.js";
import { Dialog } from "../ui/dialog.js";
import { call, newKey } from "../core/api.js";
import { permissions, project } from "../core/session.js";
import { Frame } from "../ui/frame.js";
import { ListTable } from "../ui/table.js";
import { useList } from "../ui/loading.js";
import { Field, Form, Tick } from "../ui/form.js";
import { ConfirmDialog } from "../ui/confirm-dialog.js";
import { Secret } from "../ui/secret.js";
import { choices, fromLocal, nameOf, toLocal } from "../ui/names.js";
/** @import { Values } from "../ui/form.js" */

/** @param {any} row */
const hasEnded = (row) => row.revokedAt || (row.expiresAt && Date.parse(row.expiresAt) <= Date.now());

/** A chip if the creator of a credential could not create it any longer. @param {any} row */
const creatorChip = (row) => {
  const why = /** @type {any} */ (t.credentials.makers)[row.createdBy.state];
  return why && html`<br /><span class="chip waits" title=${why.text(nameOf(row.createdBy.id) ?? row.createdBy.id)}>${why.title}</span>`;
};

export function Page() {
  const path = `projects/${project.value?.id}/credentials`;
  const of = useList(path);
  const [open, setOpen] = useState(/** @type {{what: "edit"|"secret"|"rotate"|"revoke", row: any}|null} */ (null));
  const [key, setKey] = useState(newKey);
  const close = () => setOpen(null);
  const shown = async (/** @type {any} */ made) => (setKey(newKey()), setOpen({ what: "secret", row: made }), await of.reload());
  const edit = async (/** @type {Values} */ form) => {
    const body = { name: form.raw("name").trim(), permissions: form.all("permissions"), expiresAt: fromLocal(form.text("expiresAt")) };
    if (!open?.row) return shown(await call("POST", path, { key, body: { ...body, expiresAt: body.expiresAt ?? undefined } }));
    await call("PATCH", `${path}/${open.row.id}`, { body });
    close();
    notify(t.credentials.saved);
    await of.reload();
  };
  const rotate = async (/** @type {Values} */ form) => shown(await call("POST", `${path}/${open?.row.id}/rotate`, { key, body: { overlapSeconds: form.number("overlapSeconds") } }));
  const revoke = async () => {
    await call("DELETE", `${path}/${open?.row.id}`);
    notify(t.credentials.revoked);
    await of.reload();
  };
  const entries = (/** @type {any} */ row) => [
    { label: t.edit, icon: "pencil", pick: () => setOpen({ what: "edit", row }) },
    { label: t.credentials.rotate, icon: "reopen", pick: () => setOpen({ what: "rotate", row }) },
    { label: t.credentials.revoke, icon: "close", danger: true, pick: () => setOpen({ what: "revoke", row }) },
  ];
  const columns = [
    { label: t.credentials.name, cell: (/** @type {any} */ row) => html`<${Name} name=${row.name} />${row.createdBy.type === "machine" && html`<br /><span class="muted">${t.credentials.madeByMachine}</span>`}${!hasEnded(row) && creatorChip(row)}` },
    { label: t.credentials.secret, cell: (/** @type {any} */ row) => html`<code class="mono">${row.secret}</code>` },
    { label: t.credentials.permissions, less: true, cell: (/** @type {any} */ row) => html`<span title=${row.permissions.join(", ")}>${t.credentials.count(row.permissions.length)}</span>` },
    { label: t.credentials.lastUsed, cell: (/** @type {any} */ row) => (row.lastUsedAt ? html`<${Ago} at=${row.lastUsedAt} />` : t.never) },
    { label: t.credentials.expires, cell: (/** @type {any} */ row) => (row.expiresAt ? new Date(row.expiresAt).toLocaleDateString(locale) : t.never) },
    { label: t.actions, cell: (/** @type {any} */ row) => (row.revokedAt ? html`<span class="chip bad">${t.credentials.isRevoked}</span>` : html`${hasEnded(row) && html`<span class="chip waits">${t.credentials.isOver}</span> `}<${Menu} label=${t.actionsFor(row.name)} icon="more" only kind="quiet" entries=${() => entries(row)} />`) },
  ];
  return html`<${Frame} title=${t.pages.credentials} actions=${html`<${Button} icon="plus" kind="primary" label=${t.credentials.create} press=${() => setOpen({ what: "edit", row: null })} />`} calls=${[of.call]}>
    <p class="lead">${t.credentials.lead}</p>
    <${ListTable} of=${of} caption=${t.pages.credentials} columns=${columns} empty=${html`<${Empty} icon="lock" title=${t.credentials.none} text=${t.credentials.noneText} />`} />
    ${open?.what === "edit" && html`<${Dialog} title=${open.row ? t.credentials.editOne : t.credentials.create} class="wide" close=${close}><div class="body"><${Form} save=${edit} label=${open.row ? t.save : t.credentials.createIt} cancel=${close}>
      <${Field} name="name" label=${t.credentials.name} hint=${t.credentials.nameHint} initial=${open.row?.name} required />
      <fieldset class="two"><legend>${t.credentials.permissions}</legend>${[...permissions.value].sort().map((each) => html`<${Tick} key=${each} name="permissions" value=${each} label=${html`<code class="mono">${each}</code>`} hint=${/** @type {any} */ (t.roles.means)[each]} initial=${open.row?.permissions.includes(each)} />`)}</fieldset>
      <${Field} name="expiresAt" type="datetime-local" label=${t.credentials.expires} hint=${t.credentials.expiresHint} initial=${toLocal(open.row?.expiresAt ?? null)} />
    <//></div><//>`}
    ${open?.what === "rotate" && html`<${Dialog} title=${t.credentials.rotate} close=${close}><div class="body"><p>${t.credentials.rotateText}</p><${Form} save=${rotate} label=${t.credentials.rotateIt} cancel=${close}><${Field} name="overlapSeconds" label=${t.credentials.overlap} initial="86400" options=${choices(t.credentials.overlaps)} /><//></div><//>`}
    ${open?.what === "secret" && html`<${Secret} title=${t.credentials.secretOf(open.row.name)} secret=${open.row.secret} text=${t.credentials.secretText} close=${close} />`}
    ${open?.what === "revoke" && html`<${ConfirmDialog} deletes=${false} title=${t.credentials.revoke} loses=${[t.credentials.losesCalls(open.row.name), t.credentials.losesPermissions(open.row.permissions.length), t.credentials.losesMade]} stays=${[t.keys.staysListed]} label=${t.credentials.revoke} run=${revoke} close=${close} />`}
  <//>`;
}
