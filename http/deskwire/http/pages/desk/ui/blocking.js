// @ts-check
/** The block of a contact: its line with actor and time, its dialog, and its end. */
import { html, useState } from "../vendor/preact.js";
import { t } from "./texts.js";
import { Ago, Button, Icon, contactName, notify } from "./parts.js";
import { ConfirmDialog } from "./confirm-dialog.js";
import { Dialog } from "./dialog.js";
import { Field, Form } from "./form.js";
import { States, useCall } from "./loading.js";
import { call } from "../core/api.js";
import { may } from "../core/session.js";

const REASON_MAX = 500;

/** The actor, time and reason of a block. @param {{of: any}} props  of: the contact's `blocked` */
const BlockedBy = ({ of }) => html`<${Icon} name="warn" /> ${t.blocking.by} <bdi>${of.by.name ?? t.blocking.service}</bdi>, <${Ago} at=${of.at} />${of.reason && html`. <bdi>${of.reason}</bdi>`}`;

/**
 * The line of a blocked contact with the button that ends the block; nothing for another contact.
 * @param {{contact: any, changed: () => unknown}} props  changed: is called after the end of the block
 */
export function BlockLine({ contact, changed }) {
  const [busy, setBusy] = useState(false);
  if (!contact?.blocked) return null;
  const unblock = async () => {
    setBusy(true);
    try {
      await call("POST", `contacts/${contact.id}/unblock`);
      notify(t.blocking.unblocked(contactName(contact)));
      await changed();
    } catch (error) {
      notify(/** @type {Error} */ (error).message, { bad: true });
    } finally {
      setBusy(false);
    }
  };
  return html`<div class="blocked" role="note"><p><${BlockedBy} of=${contact.blocked} /></p>${may("contacts.manage") && html`<${Button} class="small" label=${t.blocking.unblock} disabled=${busy} press=${unblock} />`}</div>`;
}

/**
 * The dialog that blocks a contact; for a blocked one, the dialog that ends the block.
 * @param {{contactId: string, close: () => void, changed?: (contact: any) => unknown}} props
 */
export function BlockDialog({ contactId, close, changed = () => {} }) {
  const of = useCall(`contacts/${contactId}`);
  const save = (/** @type {string} */ what, /** @type {any} */ body, /** @type {(name: string) => string} */ done) => async () => {
    const contact = await call("POST", `contacts/${contactId}/${what}`, { body });
    notify(done(contactName(contact)));
    close();
    await changed(contact);
  };
  if (of.state !== "ready") return html`<${Dialog} title=${t.blocking.title} close=${close}><div class="body"><${States} of=${of}>${() => null}<//></div><//>`;
  const name = contactName(of.data);
  if (of.data.blocked)
    return html`<${Dialog} title=${t.blocking.unblockTitle} close=${close}><div class="body"><p><bdi>${name}</bdi> · <${BlockedBy} of=${of.data.blocked} /></p><${Form} save=${save("unblock", undefined, t.blocking.unblocked)} label=${t.blocking.unblock} cancel=${close} /></div><//>`;
  return html`<${ConfirmDialog} title=${t.blocking.title} deletes=${false} loses=${t.blocking.effects(name)} stays=${t.blocking.stays(name)} label=${t.blocking.block} close=${close}
    run=${(/** @type {import("./form.js").Values} */ form) => save("block", { reason: form.text("reason") ?? null }, t.blocking.done)()}>
    <${Field} name="reason" label=${t.blocking.reason} hint=${t.blocking.reasonHint} maxlength=${REASON_MAX} dir="auto" />
  <//>`;
}
