// @ts-check
/** Snippets: texts that agents insert into replies by a shortcut. */
import { html, useState } from "../vendor/preact.js";
import { t } from "./texts.js";
import { Ago, Button, Empty, Menu, Name, notify } from "../ui/parts.js";
import { Dialog } from "../ui/dialog.js";
import { call, newKey } from "../core/api.js";
import { may, people, user } from "../core/session.js";
import { Frame } from "../ui/frame.js";
import { ListTable } from "../ui/table.js";
import { useList } from "../ui/loading.js";
import { Field, Form } from "../ui/form.js";
import { ConfirmDialog } from "../ui/confirm-dialog.js";
import { nameOf, teamChoices } from "../ui/names.js";
/** @import { Values } from "../ui/form.js" */

export function Page() {
  const of = useList("snippets");
  const [open, setOpen] = useState(/** @type {{what: "edit"|"delete", row: any}|null} */ (null));
  const close = () => setOpen(null);
  const writes = may("snippets.manage");
  /** Return whether the user may change a snippet. The service decides, and also admits members of its team. @param {any} row */
  const mine = (row) => writes && (may("projects.manage") || row.createdBy?.id === user.value?.id || people().teams.some((each) => each.id === row.teamId));
  const done = async (/** @type {string} */ words) => (close(), notify(words), await of.reload());
  const remove = async () => (await call("DELETE", `snippets/${open?.row.id}`), await done(t.snippets.deleted));
  const columns = [
    { label: t.snippets.shortcut, cell: (/** @type {any} */ row) => html`<code class="mono">;${row.shortcut}</code>` },
    { label: t.snippets.title, cell: (/** @type {any} */ row) => html`<${Name} name=${row.title} />` },
    { label: t.snippets.text, less: true, cell: (/** @type {any} */ row) => html`<span class="clip" dir="auto">${row.text}</span>` },
    { label: t.snippets.team, cell: (/** @type {any} */ row) => nameOf(row.teamId) ?? t.snippets.everybody },
    { label: t.snippets.updated, less: true, cell: (/** @type {any} */ row) => html`<${Ago} at=${row.updatedAt} />` },
    ...(writes ? [{ label: t.actions, silent: true, cell: (/** @type {any} */ row) => mine(row) && html`<${Menu} label=${t.actionsFor(row.title)} icon="more" only kind="quiet" entries=${() => [{ label: t.edit, icon: "pencil", pick: () => setOpen({ what: "edit", row }) }, { label: t.delete, icon: "close", danger: true, pick: () => setOpen({ what: "delete", row }) }]} />` }] : []),
  ];
  return html`<${Frame} title=${t.pages.snippets} actions=${writes && html`<${Button} icon="plus" kind="primary" label=${t.snippets.create} press=${() => setOpen({ what: "edit", row: null })} />`} calls=${[of.call]}>
    <${ListTable} of=${of} caption=${t.pages.snippets} columns=${columns} empty=${html`<${Empty} icon="text" title=${t.snippets.none} text=${t.snippets.noneText} />`} />
    ${open?.what === "edit" && html`<${Edit} of=${open.row} close=${close} done=${done} />`}
    ${open?.what === "delete" && html`<${ConfirmDialog} title=${t.snippets.deleteOne} loses=${[t.snippets.losesSnippet(open.row.title)]} stays=${[t.snippets.staysReplies]} label=${t.delete} run=${remove} close=${close} />`}
  <//>`;
}

/** @param {{of: any, close: () => void, done: (words: string) => Promise<void>}} props */
function Edit({ of, close, done }) {
  const [key] = useState(newKey);
  const save = async (/** @type {Values} */ form) => {
    const body = { shortcut: form.raw("shortcut").trim(), title: form.raw("title").trim(), text: form.raw("text"), language: form.text("language") ?? null, teamId: form.text("teamId") ?? null };
    if (of) await call("PATCH", `snippets/${of.id}`, { body });
    else await call("POST", "snippets", { key, body });
    await done(of ? t.snippets.saved : t.snippets.created);
  };
  return html`<${Dialog} title=${of ? t.snippets.editOne : t.snippets.create} class="wide" close=${close}><div class="body"><${Form} save=${save} label=${t.save} cancel=${close}>
    <${Field} name="shortcut" label=${t.snippets.shortcut} hint=${t.snippets.shortcutHint} initial=${of?.shortcut} mono required spellcheck="false" />
    <${Field} name="title" label=${t.snippets.title} initial=${of?.title} required />
    <${Field} name="text" label=${t.snippets.text} hint=${t.snippets.textHint} initial=${of?.text} rows=${8} required />
    <div class="field-row"><${Field} name="teamId" label=${t.snippets.team} initial=${of?.teamId} options=${teamChoices(t.snippets.everybody)} /><${Field} name="language" label=${t.snippets.language} hint=${t.snippets.languageHint} initial=${of?.language} /></div>
  <//></div><//>`;
}
