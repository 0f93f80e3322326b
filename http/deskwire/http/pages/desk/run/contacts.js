// @ts-check
/** Contacts: the list with its search. One by itself is in contact.js. */
import { html, useState } from "../vendor/preact.js";
import { t } from "./texts.js";
import { Ago, Avatar, Button, Empty, Name, lazy } from "../parts.js";
import { go } from "../session.js";
import { Frame } from "../parts/frame.js";
import { ListTable } from "../parts/table.js";
import { useList } from "../parts/loading.js";
import { Link, ask, query } from "../parts/link.js";

const One = lazy(() => import("./contact.js"), "One");

/** What a contact is called. @param {any} contact @returns {string} */
export const called = (contact) => contact.name || contact.email || contact.userId;

/** @param {{id: string|null}} props */
export const Page = ({ id }) => (id ? html`<${One} id=${id} />` : html`<${List} />`);

function List() {
  const now = query.value;
  const [q, setQ] = useState(now.get("q") ?? "");
  const tag = now.get("tag");
  const of = useList("contacts", { q: now.get("q"), tag });
  const search = (/** @type {Event} */ event) => (event.preventDefault(), ask({ q: q.trim() || null }));
  const tools = html`<form role="search" onSubmit=${search}><label class="label"><span class="sr">${t.search}</span><input class="field wide" type="search" placeholder=${t.contacts.find} value=${q} onInput=${(/** @type {any} */ event) => setQ(event.target.value)} onChange=${search} /></label></form>
    ${tag && html`<span class="chip tag">${tag}<button type="button" aria-label=${t.contacts.anyTag} onClick=${() => ask({ tag: null })}>×</button></span>`}`;
  const columns = [
    { label: t.contacts.name, cell: (/** @type {any} */ row) => html`<${Link} to=${`contacts/${row.id}`} class="person"><${Avatar} name=${called(row)} id=${row.id} size="s" /><${Name} name=${called(row)} /><//>` },
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
