// @ts-check
/** The fields of a ticket, in words and as a form, and a ticket that follows the changes of colleagues. */
import { locale } from "../core/texts.js";
import { html, useRef, useState } from "../vendor/preact.js";
import { t } from "./ticket-texts.js";
import { t as shared } from "./texts.js";
import { cx } from "./parts.js";
import { Problem, call } from "../core/api.js";
import { useCall } from "./loading.js";
import { Field, Values } from "./form.js";
import { choices, nameOf, teamChoices, userChoices, splitWords } from "./names.js";
import { useRefreshOnEvents } from "./auto-refresh.js";
/** @import { Loaded } from "./loading.js" */

/** The names of a ticket's fields. */
export const LABELS = /** @type {Record<string, string>} */ ({
  title: t.title, description: t.description, status: t.status, priority: t.priority, type: t.type,
  processingUser: t.user, processingTeam: t.team, tags: t.tags, snoozedUntil: t.snoozed, conversationId: t.conversation, contactId: t.contact,
});

/** Return the value of a field in words. @param {string} name @param {any} value @returns {string|null} */
export function fieldText(name, value) {
  if (value === null || value === undefined || value === "") return null;
  if (name === "processingUser" || name === "processingTeam") return nameOf(value);
  if (name === "status") return /** @type {any} */ (t.statuses)[value] ?? value;
  if (name === "priority") return /** @type {any} */ (t.priorities)[value] ?? value;
  if (name === "snoozedUntil") return new Date(value).toLocaleString(locale);
  return Array.isArray(value) ? value.join(", ") : String(value);
}

/** A priority as a coloured chip. @param {{of: string}} props */
export const Priority = ({ of }) => html`<span class=${cx("chip", { URGENT: "bad", HIGH: "waits" }[of])}>${/** @type {any} */ (t.priorities)[of]}</span>`;

/** The fields of a new or existing ticket. @param {{of?: any}} props */
export const TicketFields = ({ of }) => html`
  <${Field} name="title" label=${t.title} initial=${of?.title} required maxlength="200" />
  <${Field} name="description" label=${t.description} initial=${of?.description} rows=${6} maxlength="20000" />
  <div class="field-row">
    <${Field} name="status" label=${t.status} initial=${of?.status ?? "OPEN"} options=${choices(t.statuses)} />
    <${Field} name="priority" label=${t.priority} initial=${of?.priority ?? "MEDIUM"} options=${choices(t.priorities)} />
    <${Field} name="type" label=${t.type} initial=${of?.type} maxlength="50" />
  </div>
  <div class="field-row">
    <${Field} name="processingUser" label=${t.user} initial=${of?.processingUser} options=${userChoices(t.unassigned)} />
    <${Field} name="processingTeam" label=${t.team} initial=${of?.processingTeam} options=${teamChoices(t.noTeam)} />
  </div>
  <${Field} name="tags" label=${t.tags} hint=${shared.commas} initial=${of?.tags.join(", ")} />`;

/** Return the fields of a ticket's form for the API. @param {Values} form */
export const ticketFromForm = (form) => ({
  title: form.raw("title").trim(), description: form.text("description") ?? null, status: form.raw("status"), priority: form.raw("priority"), type: form.text("type") ?? null,
  processingUser: form.text("processingUser") ?? null, processingTeam: form.text("processingTeam") ?? null, tags: splitWords(form.raw("tags")),
});

/** @typedef {{ticket: any, tag: string|null, by: string|null}} Theirs  ticket: null if it was deleted; by: the name of its last editor */
/**
 * @typedef {object} Followed
 * @property {Loaded} of  the version in the fields
 * @property {Theirs|null} theirs  the newer version, while fields are unsaved
 * @property {number} edits  changes when the fields must be reset
 * @property {(ticket: any, tag: string|null, fromServer?: boolean) => void} put  takes a response; fromServer: true to reset the fields to it
 * @property {<T>(work: () => Promise<T>) => Promise<T>} own  runs an own change, so that its event is not shown as a colleague's
 */

/**
 * Load a ticket and follow its changes. A newer version never replaces unsaved fields.
 * @param {string} id @param {() => boolean} written  returns true while fields are unsaved @param {() => unknown} changed  called after a change
 * @returns {Followed}
 */
export function useTicket(id, written, changed) {
  const path = `tickets/${id}`;
  const of = useCall(path);
  const [theirs, setTheirs] = useState(/** @type {Theirs|null} */ (null));
  const [edits, setEdits] = useState(0);
  const known = useRef({ by: /** @type {string|null} */ (null), own: /** @type {Promise<unknown>} */ (Promise.resolve()), of, theirs }).current;
  Object.assign(known, { of, theirs });
  const put = (/** @type {any} */ ticket, /** @type {string|null} */ tag, fromServer = true) => {
    if (!fromServer && known.theirs) return setTheirs({ ticket, tag, by: known.theirs.by });
    known.of.put(ticket, tag);
    setTheirs(null);
    if (fromServer) setEdits((n) => n + 1);
  };
  const look = async () => {
    await known.own;
    /** @type {string|null} */
    let tag = null;
    try {
      const ticket = await call("GET", path, { answered: (headers) => (tag = headers.get("etag")) });
      if (tag === known.of.tag) put(ticket, tag, false);
      else if (written()) setTheirs({ ticket, tag, by: known.by });
      else put(ticket, tag);
    } catch (error) {
      if (!(error instanceof Problem) || error.status !== 404) return; // the next event or reconnection checks again
      if (written()) setTheirs({ ticket: null, tag: null, by: known.by });
      else await known.of.reload();
    }
    changed();
  };
  useRefreshOnEvents(({ type, data }) => {
    const about = type.startsWith("ticket.") && data.ticket.id === id;
    if (about) known.by = data.actor.name;
    return about;
  }, look);
  const own = (/** @type {() => Promise<any>} */ work) => {
    const done = work();
    known.own = done.catch(() => {});
    return done;
  };
  return { of, theirs, edits, put, own };
}
