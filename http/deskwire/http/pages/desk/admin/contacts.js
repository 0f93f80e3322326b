// @ts-check
/** Contacts: the list with its search, and one contact with merge, export and erasure. */
import { html, useEffect, useState } from "../vendor/preact.js";
import { t } from "./texts.js";
import { t as ticketTexts } from "../ui/ticket-texts.js";
import { Ago, Avatar, Button, Empty, Name, contactName, notify } from "../ui/parts.js";
import { go, may } from "../core/session.js";
import { Frame, Pairs, Section } from "../ui/frame.js";
import { ListTable, Table } from "../ui/table.js";
import { States, useCall, useList } from "../ui/loading.js";
import { Link, setQuery, query } from "../ui/link.js";
import { Dialog } from "../ui/dialog.js";
import { call, get } from "../core/api.js";
import { Field, Form } from "../ui/form.js";
import { ConfirmDialog } from "../ui/confirm-dialog.js";
import { BrowserContext, CustomerBadges, useCustomer } from "../ui/customer.js";
import { ContactSessions } from "../ui/contact-sessions.js";
import { isVisitor } from "../core/state.js";
import { splitWords } from "../ui/names.js";
import { BlockDialog, BlockLine } from "../ui/blocking.js";
/** @import { Values } from "../ui/form.js" */

/** @param {{id: string|null}} props */
export const Page = ({ id }) => (id ? html`<${ContactPage} id=${id} />` : html`<${List} />`);

function List() {
  const now = query.value;
  const [q, setQ] = useState(now.get("q") ?? "");
  const tag = now.get("tag");
  const of = useList("contacts", { q: now.get("q"), tag });
  const search = (/** @type {Event} */ event) => (event.preventDefault(), setQuery({ q: q.trim() || null }));
  const tools = html`<form role="search" onSubmit=${search}><label class="label"><span class="sr">${t.search}</span><input class="field wide" type="search" placeholder=${t.contacts.find} value=${q} onInput=${(/** @type {any} */ event) => setQ(event.target.value)} onChange=${search} /></label></form>
    ${tag && html`<span class="chip tag">${tag}<button type="button" aria-label=${t.contacts.anyTag} onClick=${() => setQuery({ tag: null })}>×</button></span>`}`;
  const columns = [
    { label: t.contacts.name, cell: (/** @type {any} */ row) => html`<${Link} to=${`contacts/${row.id}`} class="person"><${Avatar} name=${contactName(row)} id=${row.id} size="s" /><${Name} name=${contactName(row)} /><//>${isVisitor(row) && html` <span class="chip">${t.contacts.visitor}</span>`}${row.blocked && html` <span class="chip bad">${t.contacts.blocked}</span>`}` },
    { label: t.contacts.email, cell: (/** @type {any} */ row) => html`<bdi>${row.email ?? ""}</bdi>` },
    { label: t.contacts.userId, cell: (/** @type {any} */ row) => html`<code class="mono">${row.userId}</code>` },
    { label: t.contacts.tags, less: true, cell: (/** @type {any} */ row) => row.tags.map((/** @type {string} */ each) => html`<${Link} key=${each} to=${`contacts?tag=${encodeURIComponent(each)}`} class="chip tag">${each}<//> `) },
    { label: t.contacts.updated, less: true, cell: (/** @type {any} */ row) => html`<${Ago} at=${row.updatedAt} />` },
  ];
  const asked = now.get("q") ?? tag;
  const empty = asked
    ? html`<${Empty} icon="search" title=${t.contacts.noneFound(asked)} action=${html`<${Button} label=${t.clearFilters} press=${() => (setQ(""), go("contacts", { replace: true }))} />`} />`
    : html`<${Empty} icon="person" title=${t.contacts.none} text=${t.contacts.noneText} />`;
  return html`<${Frame} title=${t.pages.contacts} tools=${tools} calls=${[of.call]}><${ListTable} of=${of} caption=${t.pages.contacts} columns=${columns} empty=${empty} /><//>`;
}

const IDENTITY = /** @type {const} */ (["name", "email", "phone"]);

/** Return attributes as lines `name: value`; values other than plain text as JSON. @param {any} attributes */
const attributeLines = (attributes) => Object.entries(attributes).map(([name, value]) => `${name}: ${typeof value === "string" && !isJson(value) ? value : JSON.stringify(value)}`).join("\n");

/** Return whether a text is valid JSON. @param {string} text */
function isJson(text) {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/** Parse lines of attributes. @param {string} text @returns {Record<string, unknown>} */
function parseAttributes(text) {
  const found = text.split("\n").filter((line) => line.trim()).map((line) => {
    const at = line.indexOf(":");
    const [name, value] = at < 0 ? [line, ""] : [line.slice(0, at), line.slice(at + 1).trim()];
    return [name.trim(), isJson(value) ? JSON.parse(value) : value];
  });
  return Object.fromEntries(found);
}

/** @param {{id: string}} props */
export function ContactPage({ id }) {
  const of = useCall(`contacts/${id}`);
  const conversations = useList("conversations", { contact: id }, 20);
  const tickets = useList(may("tickets.read") ? "tickets" : null, { contact: id }, 20);
  const customer = useCustomer(id, true);
  const [edits, setEdits] = useState(0);
  const [open, setOpen] = useState(/** @type {"merge"|"erase"|"block"|null} */ (null));
  const manages = may("contacts.manage");
  const close = () => setOpen(null);
  const save = async (/** @type {Values} */ form) => {
    const before = of.data.attributes;
    const after = parseAttributes(form.raw("attributes"));
    const removed = Object.keys(before).filter((name) => !(name in after)).map((name) => [name, null]);
    const identity = IDENTITY.map((name) => [name, form.text(name) ?? null]);
    of.put(await call("PATCH", `contacts/${id}`, { body: { ...Object.fromEntries(identity), tags: splitWords(form.raw("tags")), attributes: { ...after, ...Object.fromEntries(removed) } } }));
    setEdits((n) => n + 1);
    notify(t.contacts.saved);
  };
  const download = async () => {
    try {
      const url = URL.createObjectURL(new Blob([JSON.stringify(await call("GET", `contacts/${id}/export`), null, 2)], { type: "application/json" }));
      Object.assign(document.createElement("a"), { href: url, download: `${id}.json` }).click();
      setTimeout(() => URL.revokeObjectURL(url), 10_000);
      notify(t.contacts.exported);
    } catch (error) {
      notify(t.contacts.exportFailed(/** @type {Error} */ (error).message), { bad: true });
    }
  };
  const actions = of.data && html`${manages && html`<${Button} icon="file" label=${t.contacts.export} press=${download} /><${Button} icon="people" label=${t.contacts.merge} press=${() => setOpen("merge")} />${!of.data.blocked && html`<${Button} icon="lock" label=${t.contacts.block} press=${() => setOpen("block")} />`}`}${may("conversations.delete") && html`<${Button} icon="close" label=${t.contacts.erase} press=${() => setOpen("erase")} />`}`;
  const title = of.data ? contactName(of.data) : t.contacts.one;
  return html`<${Frame} title=${title} face=${html`<bdi>${title}</bdi> ${of.data && html`<span class="badges"><${CustomerBadges} contact=${of.data} of=${customer} /></span>`}`} up=${{ to: "contacts", label: t.pages.contacts }} actions=${actions} calls=${[of.call, conversations.call]}>
    <${States} of=${of}>${(/** @type {any} */ contact) => html`<${BlockLine} contact=${contact} changed=${of.reload} /><div class="columns">
      <div>
        <${Section} title=${t.contacts.identity}>${manages
          ? html`<${Form} key=${edits} save=${save} label=${t.saveChanges}>
              ${IDENTITY.map((name) => html`<${Field} key=${name} name=${name} label=${t.contacts[name]} initial=${contact[name]} dir="auto" />`)}
              <${Field} name="tags" label=${t.contacts.tags} hint=${t.commas} initial=${contact.tags.join(", ")} />
              <${Field} name="attributes" label=${t.contacts.attributes} hint=${t.contacts.attributesHint} rows=${Math.min(12, Math.max(3, Object.keys(contact.attributes).length + 1))} mono initial=${attributeLines(contact.attributes)} spellcheck="false" />
            <//>`
          : html`<${Pairs} of=${[...IDENTITY.map((name) => [t.contacts[name], contact[name] && html`<bdi>${contact[name]}</bdi>`]), [t.contacts.tags, contact.tags.join(", ")], ...Object.entries(contact.attributes).map(([name, value]) => [name, html`<bdi>${typeof value === "string" ? value : JSON.stringify(value)}</bdi>`])]} />`}<//>
        <${Section} title=${t.contacts.conversations}><${States} of=${conversations} empty=${html`<p class="muted">${t.contacts.noConversations}</p>`}>${(/** @type {any[]} */ rows) => html`<${Table} caption=${t.contacts.conversations} rows=${rows} columns=${[
          { label: t.contacts.title, cell: (/** @type {any} */ row) => html`<${Link} to=${`c/${row.id}`}><${Name} name=${row.title || t.contacts.untitled} /><//>` },
          { label: t.contacts.status, cell: (/** @type {any} */ row) => /** @type {any} */ (t.contacts.statuses)[row.status] },
          { label: t.contacts.lastActivity, cell: (/** @type {any} */ row) => html`<${Ago} at=${row.lastActivityAt ?? row.updatedAt} />` },
        ]} />`}<//><//>
        ${customer && html`<${Section} title=${t.contacts.browsers}><${ContactSessions} contactId=${id} of=${customer} /><//>`}
      </div>
      <div>
        <${Section} title=${t.contacts.about}><${Pairs} of=${[[t.contacts.userId, html`<code class="mono">${contact.userId}</code>`], [t.contacts.id, html`<code class="mono">${contact.id}</code>`], [t.contacts.created, html`<${Ago} at=${contact.createdAt} />`], [t.contacts.updated, html`<${Ago} at=${contact.updatedAt} />`]]} /><//>
        ${customer && customer.sessions.length > 0 && html`<${Section} title=${t.contacts.browser}><${BrowserContext} of=${customer} /><//>`}
        ${may("tickets.read") && html`<${Section} title=${t.pages.tickets}><${States} of=${tickets} empty=${html`<p class="muted">${t.contacts.noTickets}</p>`}>${(/** @type {any[]} */ rows) => html`<ul class="links">${rows.map((each) => html`<li key=${each.id}><${Link} to=${`tickets/${each.id}`}><${Name} name=${each.title} /><//> <span class="muted">${/** @type {any} */ (ticketTexts.statuses)[each.status]}</span></li>`)}</ul>`}<//><//>`}
      </div>
    </div>
    ${open === "block" && html`<${BlockDialog} contactId=${id} close=${close} changed=${of.reload} />`}
    ${open === "erase" && html`<${Erase} contact=${contact} close=${close} />`}
    ${open === "merge" && html`<${Merge} into=${contact} close=${close} done=${async () => (await of.reload(), setEdits((n) => n + 1), await conversations.reload())} />`}`}<//>
  <//>`;
}

const COUNT_MAX = 100;
/** Return the length of a list as text, counted on one page. @param {string} path @param {Record<string, unknown>} query @returns {Promise<string>} */
async function countText(path, query) {
  const { items, nextCursor } = await get(path, { ...query, limit: COUNT_MAX });
  return nextCursor ? `${COUNT_MAX}+` : String(items.length);
}

/** The confirmation for erasing a contact, with counts of its data. @param {{contact: any, close: () => void}} props */
function Erase({ contact, close }) {
  const [n, setN] = useState(/** @type {{conversations: string, tickets: string|null, memory: string|null}|null} */ (null));
  const [error, setError] = useState("");
  useEffect(() => {
    const tickets = may("tickets.read") ? countText("tickets", { contact: contact.id }) : null;
    const memory = may("memory.read") ? get(`sessions/${contact.id}/memory`, { limit: COUNT_MAX }).then((found) => (found.enabled === false ? null : `${found.items?.length ?? 0}${found.nextCursor ? "+" : ""}`)) : null;
    Promise.all([countText("conversations", { contact: contact.id }), tickets, memory]).then(([a, b, c]) => setN({ conversations: a, tickets: b, memory: c }), (failure) => setError(failure.message));
  }, []);
  const run = async () => {
    await call("DELETE", `contacts/${contact.id}`);
    notify(t.contacts.erased);
    go("contacts");
  };
  if (error) return html`<${Dialog} title=${t.contacts.erase} close=${close}><div class="body"><p class="wrong" role="alert">${error}</p></div><//>`;
  if (!n) return html`<${Dialog} title=${t.contacts.erase} close=${close}><div class="body"><p role="status">${t.contacts.counting}</p></div><//>`;
  const loses = [t.contacts.losesIdentity(contactName(contact)), t.contacts.losesConversations(n.conversations), n.tickets && t.contacts.losesTickets(n.tickets), n.memory && t.contacts.losesMemory(n.memory), t.contacts.losesElsewhere].filter(Boolean);
  return html`<${ConfirmDialog} title=${t.contacts.erase} text=${t.contacts.eraseText} loses=${loses} stays=${t.contacts.stays} word=${contact.userId} label=${t.contacts.eraseIt} run=${run} close=${close} />`;
}

/** @param {{into: any, close: () => void, done: () => Promise<void>}} props */
function Merge({ into, close, done }) {
  const [q, setQ] = useState("");
  const [from, setFrom] = useState(/** @type {any} */ (null));
  const found = useList(q.trim() ? "contacts" : null, { q: q.trim() }, 10);
  const run = async () => {
    await call("POST", `contacts/${into.id}/merge`, { body: { from: from.id } });
    notify(t.contacts.merged);
    await done();
  };
  if (from) return html`<${ConfirmDialog} key="sure" title=${t.contacts.merge} text=${t.contacts.mergeText(contactName(from), contactName(into))} loses=${[t.contacts.losesContact(contactName(from)), t.contacts.losesValues, ...(isVisitor(from) ? [t.contacts.losesSessions] : [])]} stays=${t.contacts.mergeStays} label=${t.contacts.mergeIt} run=${run} close=${close} />`;
  const others = found.items.filter((each) => each.id !== into.id);
  return html`<${Dialog} key="whom" title=${t.contacts.merge} close=${close}><div class="body">
    <label class="label">${t.contacts.mergeWhich}<input class="field" type="search" autofocus value=${q} onInput=${(/** @type {any} */ event) => setQ(event.target.value)} /></label>
    ${q.trim() && html`<${States} of=${found}>${() => (others.length ? html`<ul class="choose">${others.map((each) => html`<li key=${each.id}><button type="button" class="menu-item" onClick=${() => setFrom(each)}><bdi class="ellipsis">${contactName(each)}</bdi><span class="hint ellipsis">${each.email ?? each.userId}</span></button></li>`)}</ul>` : html`<${Empty} icon="search" title=${t.contacts.noneFound(q)} />`)}<//>`}
  </div><//>`;
}
