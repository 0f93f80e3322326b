// @ts-check
/** Dialogs that give a conversation a ticket: a new one, or one that exists. */
import { html, useEffect, useState } from "../vendor/preact.js";
import { t } from "../ui/ticket-texts.js";
import { contactName, dialog, notify } from "../ui/parts.js";
import { call, get, newKey } from "../core/api.js";
import { fetchRow, row } from "../core/store.js";
import { go } from "../core/session.js";
import { Chooser } from "../ui/chooser.js";
import { Dialog } from "../ui/dialog.js";
import { Form } from "../ui/form.js";
import { TicketFields, ticketFromForm } from "../ui/ticket-fields.js";
import { thread } from "./conversation.js";
import { link } from "./tickets.js";
/** @import { Row } from "../core/types.js" */
/** @import { Values } from "../ui/form.js" */

const TITLE_MAX = 200;
const FIRST_LINE_MAX = 120;
const TAG_MAX = 50;
const SEARCH_DELAY_MS = 150;
const close = () => void (dialog.value = null);

/** Return the first line of a text, shortened. @param {string|undefined} text */
const firstLine = (text) => (text ?? "").trim().split("\n", 1)[0]?.slice(0, FIRST_LINE_MAX) ?? "";

/** Return the fields of a new ticket about a conversation. Without a subject, its title is what the customer wrote first. @param {Row} one */
function proposal(one) {
  const asked = thread(one.id).messages.find((each) => each.author.type === "contact")?.text ?? one.lastMessage?.text;
  const { assignee } = one;
  return {
    title: (one.title ?? firstLine(asked)).slice(0, TITLE_MAX), tags: one.tags.filter((each) => each.length <= TAG_MAX),
    processingUser: assignee?.type === "user" ? assignee.id : null, processingTeam: assignee?.type === "team" ? assignee.id : null,
  };
}

/** A new ticket about a conversation. @param {{id: string}} props */
export function CreateTicket({ id }) {
  const [key] = useState(newKey);
  const one = row(id);
  const [first] = useState(() => one && proposal(one));
  const save = async (/** @type {Values} */ form) => {
    const given = Object.fromEntries(Object.entries(ticketFromForm(form)).filter(([, value]) => value !== null));
    try {
      const made = await call("POST", "tickets", { key, body: { ...given, conversationId: id } });
      close();
      notify(t.created, { action: t.open, run: () => go(`tickets/${made.id}`) });
    } finally {
      void fetchRow(id); // also shows the ticket that a colleague has made first
    }
  };
  return html`<${Dialog} title=${t.createHere} class="wide" close=${close}><div class="body">
    <p class="muted">${t.aboutContact(contactName(one?.contact))}</p>
    <${Form} save=${save} label=${t.createIt} cancel=${close}><${TicketFields} of=${first} /><//>
  </div><//>`;
}

/** Choose a ticket that has no conversation yet. @param {{id: string}} props */
export function LinkTicket({ id }) {
  const [q, setQ] = useState("");
  const [found, setFound] = useState(/** @type {any[]|null} */ (null));
  const [wrong, setWrong] = useState("");
  const contact = row(id)?.contact.id;
  useEffect(() => {
    const abort = new AbortController();
    const query = q.trim() ? { q: q.trim() } : { contact };
    const timer = setTimeout(() => get("tickets", { ...query, sort: "updatedAt", limit: 20 }, abort.signal).then((page) => (setWrong(""), setFound(page.items)), (error) => abort.signal.aborted || setWrong(error.message)), q ? SEARCH_DELAY_MS : 0);
    return () => (clearTimeout(timer), abort.abort());
  }, [q]);
  const pick = async (/** @type {any} */ ticket) => {
    if (ticket.conversationId) return setWrong(t.linkedElsewhere);
    try {
      await link(ticket, id);
      close();
    } catch (error) {
      setWrong(/** @type {Error} */ (error).message);
    }
  };
  const options = (found ?? []).map((each) => ({ key: each.id, icon: "tag", label: each.title, hint: each.conversationId ? t.hasConversation : /** @type {any} */ (t.statuses)[each.status], pick: () => void pick(each) }));
  return html`<${Dialog} title=${t.linkHere} close=${close}><div class="body">
    <${Chooser} label=${t.find} options=${options} empty=${found ? (q.trim() ? t.filtered : t.noneOfContact) : ""} q=${q} type=${setQ} />
    ${wrong && html`<p class="wrong" role="alert">${wrong}</p>`}
  </div><//>`;
}
