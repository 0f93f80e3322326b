// @ts-check
/** The memory of a contact: named entries that can be added, changed and deleted. */
import { html, useState } from "../vendor/preact.js";
import { t } from "./texts.js";
import { Ago, Button, Empty, contactName, notify } from "../ui/parts.js";
import { Dialog } from "../ui/dialog.js";
import { call } from "../core/api.js";
import { may } from "../core/session.js";
import { Frame } from "../ui/frame.js";
import { Field, Form } from "../ui/form.js";
import { ConfirmDialog } from "../ui/confirm-dialog.js";
import { Link, setQuery, query } from "../ui/link.js";
import { ListTable } from "../ui/table.js";
import { useCall, useList } from "../ui/loading.js";
import "./page-parts.js";
/** @import { Values } from "../ui/form.js" */

function Contacts() {
  const q = query.value.get("q") ?? "";
  const of = useList("contacts", { q: q || null });
  const columns = [
    { label: t.memory.contact, cell: (/** @type {any} */ row) => html`<${Link} to=${`memory/${row.id}`}><bdi>${contactName(row)}</bdi><//>` },
    { label: t.memory.email, less: true, cell: (/** @type {any} */ row) => html`<bdi>${row.email ?? "–"}</bdi>` },
    { label: t.memory.userId, cell: (/** @type {any} */ row) => html`<bdi class="mono">${row.userId}</bdi>` },
  ];
  const tools = html`<label class="label"><span>${t.search}</span><input class="field" type="search" value=${q} onChange=${(/** @type {any} */ event) => setQuery({ q: event.target.value.trim() })} /></label>`;
  return html`<${Frame} title=${t.pages.memory} calls=${[of.call]} tools=${tools}><p class="muted">${t.memory.choose}</p>
    <${ListTable} of=${of} caption=${t.memory.contacts} columns=${columns} empty=${html`<${Empty} icon="person" title=${q ? t.nothingFound : t.memory.none} />`} /><//>`;
}

/** @param {{path: string, entry: any, close: () => void, done: () => Promise<unknown>}} props  entry: the entry to change; null for a new one */
function Edit({ path, entry, close, done }) {
  const save = async (/** @type {Values} */ form) => {
    const rest = { content: form.raw("content"), description: form.text("description") ?? null };
    if (entry) await call("PATCH", `${path}/${encodeURIComponent(entry.name)}`, { body: rest });
    else await call("POST", path, { body: { name: form.text("name") ?? "", content: rest.content, ...(rest.description ? { description: rest.description } : {}) } });
    notify(t.memory.saved);
    close();
    await done();
  };
  return html`<${Dialog} title=${entry ? t.memory.change : t.memory.add} close=${close}><div class="body"><${Form} save=${save} label=${t.save} cancel=${close}>
    ${!entry && html`<${Field} name="name" label=${t.memory.name} hint=${t.memory.nameHint} autofocus />`}
    <${Field} name="content" label=${t.memory.content} initial=${entry?.content} rows=${4} autofocus=${Boolean(entry)} />
    <${Field} name="description" label=${t.memory.description} initial=${entry?.description} />
  <//></div><//>`;
}

/** @param {{id: string}} props */
function ContactMemory({ id }) {
  const path = `sessions/${encodeURIComponent(id)}/memory`;
  const of = useList(path);
  const off = useCall(path, { limit: 1 });
  const contact = useCall(may("contacts.read") ? `contacts/${encodeURIComponent(id)}` : null);
  const [shown, show] = useState(/** @type {{what: "edit"|"remove"|"clear", entry?: any} | null} */ (null));
  const edits = may("memory.manage");
  const name = contact.data ? contactName(contact.data) : id;
  const columns = [
    { label: t.memory.name, cell: (/** @type {any} */ row) => (edits ? html`<button type="button" class="link" onClick=${() => show({ what: "edit", entry: row })}><bdi>${row.name}</bdi></button>` : html`<bdi>${row.name}</bdi>`) },
    { label: t.memory.content, cell: (/** @type {any} */ row) => html`<span dir="auto">${row.content}</span>${row.description && html`<br /><span class="muted" dir="auto">${row.description}</span>`}` },
    { label: t.changed, less: true, cell: (/** @type {any} */ row) => html`<${Ago} at=${row.updatedAt} />` },
    ...(edits ? [{ label: t.actions, silent: true, cell: (/** @type {any} */ row) => html`<${Button} class="small" label=${t.memory.forget} press=${() => show({ what: "remove", entry: row })} />` }] : []),
  ];
  const forget = async () => {
    await call("DELETE", shown?.entry ? `${path}/${encodeURIComponent(shown.entry.name)}` : path);
    notify(t.memory.forgotten);
    await of.reload();
  };
  const disabled = off.data?.reason === "disabled";
  const actions = edits && !disabled && html`${of.items.length > 0 && html`<${Button} label=${t.memory.clear} press=${() => show({ what: "clear" })} />`}<${Button} kind="primary" icon="plus" label=${t.memory.add} press=${() => show({ what: "edit" })} />`;
  return html`<${Frame} title=${name} face=${html`<bdi>${name}</bdi>`} up=${{ to: "memory", label: t.pages.memory }} calls=${[of.call]} actions=${actions}>
    ${disabled ? html`<${Empty} icon="pause" title=${t.memory.off} text=${t.memory.offText} />` : html`<${ListTable} of=${of} caption=${t.pages.memory} columns=${columns} empty=${html`<${Empty} icon="info" title=${t.memory.nothing} text=${t.memory.nothingText} />`} />`}
    ${shown?.what === "edit" && html`<${Edit} path=${path} entry=${shown.entry ?? null} close=${() => show(null)} done=${of.reload} />`}
    ${(shown?.what === "remove" || shown?.what === "clear") && html`<${ConfirmDialog} title=${shown.entry ? t.memory.forget : t.memory.clear} loses=${[shown.entry ? t.memory.losesOne(shown.entry.name) : t.memory.losesAll(name)]} stays=${[t.memory.stays]} label=${t.memory.forget} run=${forget} close=${() => show(null)} />`}
  <//>`;
}

/** @param {{id: string|null}} props */
export const Page = ({ id }) => (id ? html`<${ContactMemory} id=${id} />` : html`<${Contacts} />`);
