// @ts-check
/** The conversation of a ticket on the ticket's page: its state, and the ways to link and unlink it. */
import { html, useEffect, useLayoutEffect, useState } from "../vendor/preact.js";
import { t } from "../ui/ticket-texts.js";
import { Ago, Button, cx, contactName, notify } from "../ui/parts.js";
import { get } from "../core/api.js";
import { go, may } from "../core/session.js";
import { handle } from "../core/keys.js";
import { t as desk } from "../core/texts.js";
import { Chooser } from "../ui/chooser.js";
import { Dialog } from "../ui/dialog.js";
import { Section } from "../ui/frame.js";
import { Link } from "../ui/link.js";
import { States, useCall } from "../ui/loading.js";
import { useRefreshOnEvents } from "../ui/auto-refresh.js";

const SEARCH_DELAY_MS = 150;

/** @typedef {(id: string|null) => Promise<unknown>} Relink  links the ticket to a conversation, or to none */

/** @param {{of: any, relink: Relink | false}} props  relink: false without the permission */
export function TicketConversation({ of: ticket, relink }) {
  const { conversationId: id } = ticket;
  const [choosing, choose] = useState(false);
  const reads = may("conversations.read");
  const one = useCall(id && reads ? `conversations/${id}` : null, { view: "agent" });
  useRefreshOnEvents(({ data }) => Boolean(id) && (data.conversation?.id ?? data.conversationId ?? data.message?.conversationId) === id, () => void (id && reads && one.reload()));
  useLayoutEffect(() => handle({ ticket: () => (id ? (go(`c/${id}`), true) : false) }), [id]);
  const to = async (/** @type {string|null} */ next) => {
    try {
      if (relink) await relink(next);
    } catch (error) {
      notify(t.failed(/** @type {Error} */ (error).message), { bad: true });
    }
  };
  const actions = relink && (id ? html`<${Button} class="small" kind="quiet" label=${t.unlink} press=${() => void to(null)} />` : html`<${Button} class="small" label=${t.linkConversation} press=${() => choose(true)} />`);
  return html`<${Section} title=${t.conversation} actions=${actions}>
    ${!id ? html`<p class="muted">${t.noConversation}</p>` : reads ? html`<${States} of=${one}>${(/** @type {any} */ row) => html`<${Preview} of=${row} />`}<//>` : html`<code class="mono">${id}</code>`}
    ${choosing && relink && html`<${Choose} contact=${ticket.contactId} relink=${relink} close=${() => choose(false)} />`}
  <//>`;
}

/** @param {{of: any}} props */
const Preview = ({ of }) => html`<${Link} to=${`c/${of.id}`} class="other" aria-keyshortcuts="Shift+T"><bdi class="ellipsis">${of.title ?? contactName(of.contact) ?? desk.noTitle}</bdi><span class=${cx("chip", of.status === "OPEN" && "good")}>${/** @type {any} */ (desk.thread.status)[of.status]}</span><${Ago} at=${of.lastMessageAt ?? of.createdAt} /><//>
  ${of.lastMessage && html`<p class="muted clip" dir="auto">${of.lastMessage.text}</p>`}
  <p><${Link} to=${`c/${of.id}`} class="button small"><span>${t.openConversation}</span><//></p>`;

/** Choose a conversation that has no ticket yet; at first those of the ticket's contact. @param {{contact: string|null, relink: Relink, close: () => void}} props */
function Choose({ contact, relink, close }) {
  const [q, setQ] = useState("");
  const [found, setFound] = useState(/** @type {any[]|null} */ (null));
  const [wrong, setWrong] = useState("");
  useEffect(() => {
    const abort = new AbortController();
    const search = async () => {
      if (q.trim()) return (await get("search", { q: q.trim(), in: "conversations", limit: 20 }, abort.signal)).conversations.map((/** @type {any} */ each) => each.conversation);
      return (await get("conversations", { view: "agent", limit: 20, contact }, abort.signal)).items;
    };
    const timer = setTimeout(() => search().then((items) => (setWrong(""), setFound(items)), (error) => abort.signal.aborted || setWrong(error.message)), q ? SEARCH_DELAY_MS : 0);
    return () => (clearTimeout(timer), abort.abort());
  }, [q]);
  const pick = async (/** @type {any} */ one) => {
    if (one.ticketId) return setWrong(t.hasTicket);
    try {
      await relink(one.id);
      close();
    } catch (error) {
      setWrong(/** @type {Error} */ (error).message);
    }
  };
  const options = (found ?? []).map((each) => ({ key: each.id, icon: "chat", label: [contactName(each.contact), each.title ?? each.lastMessage?.text].filter(Boolean).join(": "), hint: each.ticketId ? t.alreadyLinked : /** @type {any} */ (desk.thread.status)[each.status], pick: () => void pick(each) }));
  return html`<${Dialog} title=${t.linkConversation} close=${close}><div class="body">
    <${Chooser} label=${t.findConversation} options=${options} empty=${found ? t.noConversations : ""} q=${q} type=${setQ} />
    ${wrong && html`<p class="wrong" role="alert">${wrong}</p>`}
  </div><//>`;
}
