// @ts-check
/** Dialogs about one conversation: its subject, its deletion, and the block of its contact. */
import { html } from "../vendor/preact.js";
import { t } from "../core/texts-lazy.js";
import { dialog, notify } from "../ui/parts.js";
import { call } from "../core/api.js";
import { row } from "../core/store.js";
import { go, open } from "../core/session.js";
import { BlockDialog } from "../ui/blocking.js";
import { ConfirmDialog } from "../ui/confirm-dialog.js";
import { Dialog } from "../ui/dialog.js";
import { Field, Form } from "../ui/form.js";
import { rename } from "./actions.js";
/** @import { Values } from "../ui/form.js" */

const TITLE_MAX = 500;
const close = () => void (dialog.value = null);

/** @param {{id: string}} props */
export function Rename({ id }) {
  const save = async (/** @type {Values} */ form) => {
    close();
    await rename(id, form.text("title") ?? null);
  };
  return html`<${Dialog} title=${t.conversation.rename} close=${close}><div class="body"><${Form} save=${save} label=${t.save} cancel=${close}>
    <${Field} name="title" label=${t.conversation.subject} hint=${t.conversation.subjectHint} initial=${row(id)?.title} maxlength=${TITLE_MAX} dir="auto" autofocus />
  <//></div><//>`;
}

/** @param {{id: string}} props */
export function Remove({ id }) {
  const one = row(id);
  const run = async () => {
    await call("DELETE", `conversations/${id}`);
    if (open.value === id) go("");
    notify(t.conversation.deleted);
  };
  return html`<${ConfirmDialog} title=${t.conversation.delete} loses=${[t.conversation.losesMessages(one?.messages ?? 0), t.conversation.losesNotes, t.conversation.losesEvents]} stays=${t.conversation.stays}
    word=${t.conversation.askFor} label=${t.dialogs.delete} run=${run} close=${close} />`;
}

/** @param {{id: string}} props */
export function Block({ id }) {
  const contactId = row(id)?.contact.id;
  return contactId ? html`<${BlockDialog} contactId=${contactId} close=${close} />` : null;
}
