// @ts-check
/** Changes of one ticket that ask only if a colleague has changed the same field; and the link between a ticket and a conversation. */
import { t } from "../ui/ticket-texts.js";
import { notify } from "../ui/parts.js";
import { Problem, call } from "../core/api.js";
import { fetchRow, row } from "../core/store.js";

const ATTEMPTS_MAX = 5;

/** @typedef {{ticket: any, tag: string|null, conflict: boolean}} Saved  conflict: a colleague has changed the field, and nothing was saved */

/** @param {string} id @returns {Promise<{ticket: any, tag: string|null}>} */
export async function fetchTicket(id) {
  /** @type {string|null} */
  let tag = null;
  const ticket = await call("GET", `tickets/${id}`, { answered: (headers) => (tag = headers.get("etag")) });
  return { ticket, tag };
}

/**
 * Change one field of a ticket. Changes of other fields by colleagues stay.
 * @param {any} ticket  as it was shown @param {string|null} tag  its `ETag` @param {string} name @param {any} value @returns {Promise<Saved>}
 */
export async function saveField(ticket, tag, name, value) {
  let now = { ticket, tag };
  for (let attempt = 1; ; attempt++) {
    /** @type {string|null} */
    let next = null;
    try {
      const saved = await call("PATCH", `tickets/${ticket.id}`, { body: { [name]: value }, ifMatch: now.tag, answered: (headers) => (next = headers.get("etag")) });
      return { ticket: saved, tag: next, conflict: false };
    } catch (error) {
      if (!(error instanceof Problem) || error.code !== "changed_meanwhile" || attempt === ATTEMPTS_MAX) throw error;
    }
    now = await fetchTicket(ticket.id);
    if (JSON.stringify(now.ticket[name]) !== JSON.stringify(ticket[name])) return { ...now, conflict: true };
  }
}

/** Link a ticket that has no conversation. @param {any} ticket @param {string} conversationId */
export async function link(ticket, conversationId) {
  const { ticket: now, tag } = await fetchTicket(ticket.id);
  if (now.conversationId && now.conversationId !== conversationId) throw new Error(t.linkedElsewhere);
  const { conflict } = await saveField(now, tag, "conversationId", conversationId);
  if (conflict) throw new Error(t.linkedElsewhere);
  void fetchRow(conversationId);
  notify(t.linked(ticket.title));
}

/** Unlink the ticket of a conversation, with an undo. @param {string} conversationId */
export async function unlink(conversationId) {
  const id = row(conversationId)?.ticketId;
  if (!id) return;
  try {
    const { ticket, tag } = await fetchTicket(id);
    if (ticket.conversationId === conversationId) await saveField(ticket, tag, "conversationId", null);
    const undo = () => link(ticket, conversationId).catch((error) => notify(t.failed(error.message), { bad: true }));
    notify(t.unlinked(ticket.title), { action: t.undo, run: () => void undo() });
  } catch (error) {
    notify(t.failed(/** @type {Error} */ (error).message), { bad: true });
  }
  void fetchRow(conversationId);
}
