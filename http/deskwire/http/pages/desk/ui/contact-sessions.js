// @ts-check
/** The sessions of a customer's browsers and apps, and how to end one. */
import { html, useState } from "../vendor/preact.js";
import { t } from "./texts.js";
import { Ago, Button, notify } from "./parts.js";
import { clientName } from "./format.js";
import { Table } from "./table.js";
import { ConfirmDialog } from "./confirm-dialog.js";
import { ChannelName, signedText } from "./customer.js";
import { endSession } from "../core/customers.js";
import { may } from "../core/session.js";
/** @import { Customer } from "../core/customer-state.js" */
/** @import { ContactSession } from "../core/types.js" */

/** @param {ContactSession} of */
const hasEnded = (of) => Boolean(of.endedAt) || Boolean(of.expiresAt && Date.parse(of.expiresAt) <= Date.now());

/** The sessions of a contact, and how to end one. @param {{contactId: string, of: Customer, brief?: boolean}} props  brief: as a list, for a narrow panel */
export function ContactSessions({ contactId, of, brief }) {
  const [ends, setEnds] = useState(/** @type {ContactSession|null} */ (null));
  const end = async () => {
    await endSession(contactId, /** @type {ContactSession} */ (ends).id);
    notify(t.customer.ended);
  };
  const state = (/** @type {ContactSession} */ each) => (hasEnded(each) ? html`<span class="chip">${t.customer.is.over}</span>` : each.verified ? html`<span class="chip good">${t.customer.is.verified}</span> <span class="muted">${signedText(each.signed ?? [])}</span>` : html`<span class="chip waits">${t.customer.is.visitor}</span>`);
  const channel = (/** @type {ContactSession} */ each) => html`<${ChannelName} id=${each.channelId} />`;
  const ending = (/** @type {ContactSession} */ each) => may("contacts.manage") && !hasEnded(each) && html`<${Button} class="small" label=${t.customer.end} press=${() => setEnds(each)} />`;
  const dialog = ends && html`<${ConfirmDialog} deletes=${false} title=${t.customer.endOne} loses=${t.customer.endLoses(clientName(ends.client ?? null))} stays=${t.customer.endStays} label=${t.customer.end} run=${end} close=${() => setEnds(null)} />`;
  if (!of.sessions.length) return html`<p class="muted">${t.customer.noSessions}</p>`;
  if (brief) {
    return html`<ul class="browser-sessions">${of.sessions.map((each) => html`<li key=${each.id}><span><bdi>${clientName(each.client ?? null)}</bdi> ${state(each)}<br /><span class="muted">${channel(each)}, <${Ago} at=${each.lastUsedAt ?? each.createdAt} /></span></span>${ending(each)}</li>`)}</ul>${dialog}`;
  }
  const columns = [
    { label: t.customer.client, cell: (/** @type {ContactSession} */ each) => html`<bdi>${clientName(each.client ?? null)}</bdi> ${state(each)}` },
    { label: t.customer.channel, cell: channel },
    { label: t.customer.lastUsed, cell: (/** @type {ContactSession} */ each) => html`<${Ago} at=${each.lastUsedAt ?? each.createdAt} />` },
    { label: t.customer.began, less: true, cell: (/** @type {ContactSession} */ each) => html`<${Ago} at=${each.createdAt} />` },
    { label: t.customer.actions, silent: true, cell: ending },
  ];
  return html`<${Table} caption=${t.customer.sessions} columns=${columns} rows=${/** @type {any} */ (of.sessions)} quiet />${dialog}`;
}
