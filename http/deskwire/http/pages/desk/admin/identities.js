// @ts-check
/** The user's accounts at identity providers, which sign the user in. */
import { html, useState } from "../vendor/preact.js";
import { t } from "./texts.js";
import { Ago, Button, notify } from "../ui/parts.js";
import { call } from "../core/api.js";
import { Section } from "../ui/frame.js";
import { Table } from "../ui/table.js";
import { useCall } from "../ui/loading.js";
import { ConfirmDialog } from "../ui/confirm-dialog.js";

/** The section of the account page; nothing while the user has no such account. */
export function Identities() {
  const of = useCall("users/me/identities");
  const [removes, setRemoves] = useState(/** @type {any} */ (null));
  const rows = of.data?.items ?? of.data ?? [];
  const remove = async () => {
    await call("DELETE", `users/me/identities/${removes.id}`);
    notify(t.account.identityRemoved);
    await of.reload();
  };
  const columns = [
    { label: t.account.provider, cell: (/** @type {any} */ row) => row.providerName ?? row.provider },
    { label: t.account.email, cell: (/** @type {any} */ row) => html`<bdi>${row.email ?? row.subject}</bdi>` },
    { label: t.account.since, less: true, cell: (/** @type {any} */ row) => html`<${Ago} at=${row.createdAt} />` },
    { label: t.actions, silent: true, cell: (/** @type {any} */ row) => html`<${Button} class="small" label=${t.account.removeIdentity} press=${() => setRemoves(row)} />` },
  ];
  return html`${rows.length > 0 && html`<${Section} title=${t.account.identities}><p class="lead">${t.account.identitiesText}</p><${Table} quiet caption=${t.account.identities} columns=${columns} rows=${rows} /><//>`}
    ${removes && html`<${ConfirmDialog} deletes=${false} title=${t.account.removeIdentityOne} loses=${[t.account.losesIdentity(removes.email ?? removes.subject)]} label=${t.account.removeIdentity} run=${remove} close=${() => setRemoves(null)} />`}`;
}
