// @ts-check
/** A customer's browsers: badge, presence, current page and reported context. */
import { html, useEffect } from "../vendor/preact.js";
import { t } from "./texts.js";
import { Icon } from "./parts.js";
import { channelName, customer, refreshPresence, watch } from "../core/customers.js";
import { safeAddress, signedFields, standingOf } from "../core/customer-state.js";
import { may } from "../core/session.js";
/** @import { Customer } from "../core/customer-state.js" */
/** @import { BrowserPage } from "../core/types.js" */

const PRESENCE_INTERVAL_MS = 15_000;

/**
 * Return a contact's browsers, loaded and followed while the component is shown. Reads a signal.
 * @param {string|undefined} contactId @param {boolean} [polls]  true where the stream has no presence of the contact: outside of a conversation @returns {Customer|undefined}
 */
export function useCustomer(contactId, polls = false) {
  useEffect(() => (contactId && may("contacts.read") ? watch(contactId) : undefined), [contactId]);
  useEffect(() => {
    if (!contactId || !polls) return;
    const timer = setInterval(() => !document.hidden && refreshPresence(contactId), PRESENCE_INTERVAL_MS);
    return () => clearInterval(timer);
  }, [contactId, polls]);
  return customer(contactId);
}

/** Return the fields that a backend has signed, in words. @param {string[]} fields */
export const signedText = (fields) => ["id", ...fields].map((each) => t.customer.signed[/** @type {"name"} */ (each)] ?? each).join(", ");

/** The badge of a contact, and whether a browser of it is online. @param {{contact: any, of: Customer|undefined}} props */
export function CustomerBadges({ contact, of }) {
  const standing = standingOf(contact, of?.sessions ?? []);
  return html`${contact.blocked && html`<span class="chip bad"><${Icon} name="warn" />${t.blocking.badge}</span>`}${standing === "verified" && html`<span class="chip good" title=${t.customer.verifiedText(signedText(signedFields(of?.sessions ?? [])))}><${Icon} name="check" />${t.customer.verified}</span>`}
    ${standing === "visitor" && html`<span class="chip waits" title=${t.customer.visitorText}><${Icon} name="warn" />${t.customer.visitor}</span>`}
    ${of && of.sessions.length > 0 && html`<span class="chip">${of.online && html`<span class="dot live"></span>`}${of.online ? t.customer.online : t.customer.offline}</span>`}`;
}

/** A page's title and address as text; the address is a link if that is safe. @param {{page: BrowserPage|any}} props */
function PageLink({ page }) {
  const href = safeAddress(page.url);
  return html`${page.title && html`<bdi>${page.title}</bdi><br />`}${page.url && (href ? html`<a href=${href} target="_blank" rel="noopener noreferrer nofollow" class="address"><bdi>${href}</bdi></a>` : html`<bdi class="address">${String(page.url)}</bdi>`)}`;
}

/** @param {unknown} value */
const plain = (value) => html`<bdi>${typeof value === "string" ? value : JSON.stringify(value)}</bdi>`;

/** The current page and the context that the newest session's browser has reported, marked as unverified. @param {{of: Customer}} props */
export function BrowserContext({ of }) {
  const reported = of.sessions.find((each) => each.context)?.context ?? {};
  const page = of.page ?? (reported.url || reported.title ? reported : null);
  const rows = /** @type {[string, any][]} */ ([
    [t.customer.page, page && html`<${PageLink} page=${page} />`],
    [t.customer.referrer, reported.referrer && html`<${PageLink} page=${{ url: reported.referrer }} />`],
    [t.customer.language, reported.language && plain(reported.language)],
    [t.customer.timezone, reported.timezone && plain(reported.timezone)],
    ...Object.entries(reported.custom ?? {}).map(([name, value]) => [name, plain(value)]),
  ]);
  const shown = rows.filter(([, value]) => value);
  if (!shown.length) return null;
  return html`<p class="muted unverified"><${Icon} name="info" /> ${t.customer.unverified}</p><dl class="pairs">${shown.map(([name, value]) => html`<dt key=${name}><bdi>${name}</bdi></dt><dd>${value}</dd>`)}</dl>`;
}

/** The name of a channel. @param {{id: string}} props */
export function ChannelName({ id }) {
  const name = channelName(id);
  return html`<bdi>${name === null ? t.customer.deletedChannel : (name ?? "")}</bdi>`;
}
