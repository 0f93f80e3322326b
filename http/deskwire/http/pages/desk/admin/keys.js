// @ts-check
/** Server keys of the project: created, shown once, and revoked. */
import { locale } from "../core/texts.js";
import { html, useState } from "../vendor/preact.js";
import { t } from "./texts.js";
import { Ago, Button, Empty, Name, notify } from "../ui/parts.js";
import { Dialog } from "../ui/dialog.js";
import { call, newKey } from "../core/api.js";
import { project } from "../core/session.js";
import { Frame } from "../ui/frame.js";
import { ListTable } from "../ui/table.js";
import { useList } from "../ui/loading.js";
import { Field, Form } from "../ui/form.js";
import { ConfirmDialog } from "../ui/confirm-dialog.js";
import { Secret } from "../ui/secret.js";
import { fromLocal } from "../ui/names.js";
/** @import { Values } from "../ui/form.js" */

const WARNING_MS = 7 * 86_400_000;

/** Return how long a key is valid, in ms; null without an end or once it is revoked. @param {any} row */
const left = (row) => (row.expiresAt && !row.revokedAt ? Date.parse(row.expiresAt) - Date.now() : null);

/** @param {{of: any}} props */
function Expiry({ of }) {
  const ms = left(of);
  if (ms === null) return of.expiresAt ? new Date(of.expiresAt).toLocaleDateString(locale) : t.never;
  return html`${new Date(of.expiresAt).toLocaleDateString(locale)} ${ms < WARNING_MS && html`<span class=${ms <= 0 ? "chip bad" : "chip waits"}>${ms <= 0 ? t.keys.isExpired : t.keys.expiresSoon}</span>`}`;
}

export function Page() {
  const path = `projects/${project.value?.id}/keys`;
  const of = useList(path);
  const [open, setOpen] = useState(/** @type {{what: "create"|"secret"|"revoke", row?: any}|null} */ (null));
  const [key, setKey] = useState(newKey);
  const close = () => setOpen(null);
  const create = async (/** @type {Values} */ form) => {
    const made = await call("POST", path, { key, body: { label: form.raw("label").trim(), expiresAt: fromLocal(form.text("expiresAt")) ?? undefined } });
    setKey(newKey());
    setOpen({ what: "secret", row: made });
    await of.reload();
  };
  const revoke = async () => {
    await call("POST", `${path}/${open?.row.id}/revoke`);
    notify(t.keys.revoked);
    await of.reload();
  };
  const soon = of.items.filter((each) => { const ms = left(each); return ms !== null && ms > 0 && ms < WARNING_MS; });
  const columns = [
    { label: t.keys.label, cell: (/** @type {any} */ row) => html`<${Name} name=${row.label} />` },
    { label: t.keys.key, cell: (/** @type {any} */ row) => html`<code class="mono">${row.key}</code>` },
    { label: t.keys.lastUsed, cell: (/** @type {any} */ row) => (row.lastUsedAt ? html`<${Ago} at=${row.lastUsedAt} />` : t.never) },
    { label: t.keys.expires, cell: (/** @type {any} */ row) => html`<${Expiry} of=${row} />` },
    { label: t.keys.created, less: true, cell: (/** @type {any} */ row) => html`<${Ago} at=${row.createdAt} />` },
    { label: t.actions, cell: (/** @type {any} */ row) => (row.revokedAt ? html`<span class="chip bad">${t.keys.isRevoked}</span>` : html`<${Button} class="small" label=${t.keys.revoke} press=${() => setOpen({ what: "revoke", row })} />`) },
  ];
  return html`<${Frame} title=${t.pages.keys} actions=${html`<${Button} icon="plus" kind="primary" label=${t.keys.create} press=${() => setOpen({ what: "create" })} />`} calls=${[of.call]}>
    <p class="lead">${t.keys.lead}</p>${soon.length > 0 && html`<p class="lead warn" role="status">${t.keys.replace(soon.length, soon.map((each) => each.label).join(", "))}</p>`}
    <${ListTable} of=${of} caption=${t.pages.keys} columns=${columns} empty=${html`<${Empty} icon="lock" title=${t.keys.none} />`} />
    ${open?.what === "create" && html`<${Dialog} title=${t.keys.create} close=${close}><div class="body"><${Form} save=${create} label=${t.keys.createIt} cancel=${close}><${Field} name="label" label=${t.keys.label} hint=${t.keys.labelHint} required /><${Field} name="expiresAt" type="datetime-local" label=${t.keys.expires} hint=${t.keys.expiresHint} /><//></div><//>`}
    ${open?.what === "secret" && html`<${Secret} title=${t.keys.newKey(open.row.label)} secret=${open.row.key} text=${t.keys.secretText} close=${close} />`}
    ${open?.what === "revoke" && html`<${ConfirmDialog} deletes=${false} title=${t.keys.revokeOne} loses=${[t.keys.losesCalls(open.row.label), t.keys.losesStreams, open.row.lastUsedAt ? t.keys.lastCall(new Date(open.row.lastUsedAt).toLocaleString(locale)) : t.keys.neverUsed]} stays=${[t.keys.staysListed]} label=${t.keys.revoke} run=${revoke} close=${close} />`}
  <//>`;
}
