// @ts-check
/** The user's second factors: an authenticator app, passkeys, and recovery codes. */
import { locale } from "../core/texts.js";
import { html, useEffect, useState } from "../vendor/preact.js";
import { t } from "../ui/sign-in-texts.js";
import { Ago, Button, Name, notify } from "../ui/parts.js";
import { Dialog } from "../ui/dialog.js";
import { call } from "../core/api.js";
import { loadSession } from "../core/session.js";
import { States, useCall } from "../ui/loading.js";
import { Field, Form } from "../ui/form.js";
import { Table } from "../ui/table.js";
import { ConfirmDialog } from "../ui/confirm-dialog.js";
import { Copied } from "../ui/secret.js";
import { createPasskey, hasPasskeys } from "../ui/passkeys.js";
/** @import { Values } from "../ui/form.js" */

const PATH = "users/me/factors";
const f = t.factors;

/** The dialog with new recovery codes. They are shown once, so only its button closes it. @param {{codes: string[], close: () => void}} props */
function RecoveryCodes({ codes, close }) {
  const text = codes.join("\n");
  const download = () => {
    const href = URL.createObjectURL(new Blob([`${text}\n`], { type: "text/plain" }));
    Object.assign(document.createElement("a"), { href, download: f.file }).click();
    setTimeout(() => URL.revokeObjectURL(href), 10_000);
  };
  return html`<${Dialog} title=${f.codesTitle} held close=${close}><div class="body"><p>${f.codesText}</p><${Copied} text=${text} label=${f.recovery} />
    <div class="actions"><${Button} icon="file" label=${f.download} press=${download} /><${Button} kind="primary" label=${f.saved} press=${close} /></div>
  </div><//>`;
}

/** @param {{close: () => void, added: (answer: any) => Promise<void>}} props */
function AddApp({ close, added }) {
  const [pending, setPending] = useState(/** @type {any} */ (null));
  const [error, setError] = useState(/** @type {any} */ (null));
  useEffect(() => void call("POST", `${PATH}/totp`, { body: {} }).then(setPending, setError), []);
  const confirm = async (/** @type {Values} */ form) => added(await call("POST", `${PATH}/totp/confirm`, { body: { code: form.raw("code").replace(/\s/g, "") } }));
  return html`<${Dialog} title=${f.addApp} close=${close}><div class="body">
    ${error && html`<p class="wrong" role="alert">${error.message}</p>`}
    ${!pending && !error && html`<p aria-busy="true">…</p>`}
    ${pending && html`<p>${f.scan}</p><img class="qr" src=${pending.qr} alt=${f.qr} width="200" height="200" /><p>${f.secret}</p><${Copied} text=${pending.secret} label=${f.secret} />
      <${Form} save=${confirm} label=${t.confirm} cancel=${close}><${Field} name="code" label=${t.code} inputmode="numeric" autocomplete="one-time-code" required autofocus /><//>`}
  </div><//>`;
}

/** @param {{close: () => void, added: (answer: any) => Promise<void>}} props */
function AddPasskey({ close, added }) {
  const save = async (/** @type {Values} */ form) => {
    const { challenge, publicKey } = await call("POST", `${PATH}/passkeys/options`, { body: {} });
    const credential = await createPasskey(publicKey);
    await added(await call("POST", `${PATH}/passkeys`, { body: { challenge, credential, name: form.text("name") } }));
  };
  return html`<${Dialog} title=${f.addPasskey} close=${close}><div class="body"><p>${f.passkeyText}</p><${Form} save=${save} label=${f.addPasskey} cancel=${close}><${Field} name="name" label=${f.name} hint=${f.nameHint} required maxlength="100" /><//></div><//>`;
}

/** The factors, and the dialogs that change them. @param {{heading?: "h2"|"h3"}} props  heading: of each kind of factor */
export function Factors({ heading = "h3" }) {
  const of = useCall(PATH);
  const [open, setOpen] = useState(/** @type {{what: "app"|"passkey"|"removeApp"|"removePasskey"|"newCodes"|"codes", row?: any, codes?: string[]}|null} */ (null));
  const close = () => setOpen(null);
  const showCodes = async (/** @type {string[]|null} */ codes) => {
    setOpen(codes ? { what: "codes", codes } : null);
    await of.reload();
  };
  const added = async (/** @type {any} */ answer) => {
    await showCodes(answer.recoveryCodes);
    notify(f.added);
    if (!answer.recoveryCodes) await loadSession();
  };
  const closeCodes = () => (close(), void loadSession().catch(() => {})); // not before, because the page of a required factor ends with it
  const remove = async () => {
    await call("DELETE", open?.row ? `${PATH}/passkeys/${open.row.id}` : `${PATH}/totp`);
    notify(f.removed);
    await of.reload();
    await loadSession();
  };
  const newCodes = async () => showCodes((await call("POST", `${PATH}/recovery-codes`, { body: {} })).recoveryCodes);
  const columns = [
    { label: f.name, cell: (/** @type {any} */ row) => html`<${Name} name=${row.name} />` },
    { label: f.created, less: true, cell: (/** @type {any} */ row) => html`<${Ago} at=${row.createdAt} />` },
    { label: f.lastUsed, cell: (/** @type {any} */ row) => (row.lastUsedAt ? html`<${Ago} at=${row.lastUsedAt} />` : f.never) },
    { label: f.actions, silent: true, cell: (/** @type {any} */ row) => html`<${Button} class="small" label=${f.remove} press=${() => setOpen({ what: "removePasskey", row })} />` },
  ];
  const shown = (/** @type {any} */ { totp, passkeys, recoveryCodesLeft }) => {
    const any = totp || passkeys.length > 0;
    const last = (totp ? 1 : 0) + passkeys.length === 1 ? [f.losesLast] : [];
    return html`${!any && html`<p class="lead">${f.none}</p>`}
      <div class="factor"><${heading}>${f.app}<//><p class="muted">${totp ? f.appOn(new Date(totp.createdAt).toLocaleDateString(locale)) : f.appOff}</p>
        <${Button} label=${totp ? f.removeApp : f.addApp} press=${() => setOpen({ what: totp ? "removeApp" : "app" })} /></div>
      <div class="factor"><${heading}>${f.passkeys}<//>${passkeys.length > 0 ? html`<${Table} quiet caption=${f.passkeys} columns=${columns} rows=${passkeys} />` : html`<p class="muted">${hasPasskeys ? f.noPasskeys : t.passkeys.none}</p>`}
        ${hasPasskeys && html`<${Button} label=${f.addPasskey} press=${() => setOpen({ what: "passkey" })} />`}</div>
      ${any && html`<div class="factor"><${heading}>${f.recovery}<//><p class=${recoveryCodesLeft > 2 ? "muted" : "lead warn"}>${f.left(recoveryCodesLeft)}</p><${Button} label=${f.newCodes} press=${() => setOpen({ what: "newCodes" })} /></div>`}
      ${open?.what === "removeApp" && html`<${ConfirmDialog} deletes=${false} title=${f.removeApp} loses=${[f.losesApp, ...last]} label=${f.remove} run=${remove} close=${close} />`}
      ${open?.what === "removePasskey" && html`<${ConfirmDialog} deletes=${false} title=${f.removePasskey} loses=${[f.losesPasskey(open.row.name), ...last]} label=${f.remove} run=${remove} close=${close} />`}`;
  };
  return html`<${States} of=${of}>${shown}<//>
    ${open?.what === "app" && html`<${AddApp} close=${close} added=${added} />`}
    ${open?.what === "passkey" && html`<${AddPasskey} close=${close} added=${added} />`}
    ${open?.what === "newCodes" && html`<${ConfirmDialog} deletes=${false} title=${f.newCodes} loses=${[f.losesCodes]} label=${f.newCodes} run=${newCodes} close=${() => setOpen((now) => (now?.what === "codes" ? now : null))} />`}
    ${open?.what === "codes" && html`<${RecoveryCodes} codes=${open.codes ?? []} close=${closeCodes} />`}`;
}
