// @ts-check
/** Teams and their members, as assignees of conversations and tickets. */
import { html, useState } from "../vendor/preact.js";
import { t } from "./texts.js";
import { Ago, Button, Empty, Menu, Name, notify } from "../ui/parts.js";
import { Dialog } from "../ui/dialog.js";
import { call, newKey } from "../core/api.js";
import { may, people, reloadPeople } from "../core/session.js";
import { Frame } from "../ui/frame.js";
import { ListTable } from "../ui/table.js";
import { useList } from "../ui/loading.js";
import { Field, Form, Tick } from "../ui/form.js";
import { ConfirmDialog } from "../ui/confirm-dialog.js";
/** @import { Values } from "../ui/form.js" */

export function Page() {
  const of = useList("teams");
  const [open, setOpen] = useState(/** @type {{what: "edit"|"delete", row: any}|null} */ (null));
  const manages = may("members.manage");
  const close = () => setOpen(null);
  const saved = async (/** @type {string} */ words) => (close(), notify(words), reloadPeople(), await of.reload());
  const remove = async () => (await call("DELETE", `teams/${open?.row.id}`), await saved(t.teams.deleted));
  const columns = [
    { label: t.teams.name, cell: (/** @type {any} */ row) => html`<${Name} name=${row.name} />` },
    { label: t.teams.members, cell: (/** @type {any} */ row) => row.members.map((/** @type {any} */ each) => each.name).join(", ") || t.none },
    { label: t.teams.updated, less: true, cell: (/** @type {any} */ row) => html`<${Ago} at=${row.updatedAt} />` },
    ...(manages ? [{ label: t.actions, silent: true, cell: (/** @type {any} */ row) => html`<${Menu} label=${t.actionsFor(row.name)} icon="more" only kind="quiet" entries=${() => [{ label: t.edit, icon: "pencil", pick: () => setOpen({ what: "edit", row }) }, { label: t.delete, icon: "close", danger: true, pick: () => setOpen({ what: "delete", row }) }]} />` }] : []),
  ];
  return html`<${Frame} title=${t.pages.teams} actions=${manages && html`<${Button} icon="plus" kind="primary" label=${t.teams.create} press=${() => setOpen({ what: "edit", row: null })} />`} calls=${[of.call]}>
    <${ListTable} of=${of} caption=${t.pages.teams} columns=${columns} empty=${html`<${Empty} icon="people" title=${t.teams.none} text=${t.teams.noneText} />`} />
    ${open?.what === "edit" && html`<${Edit} of=${open.row} close=${close} done=${saved} />`}
    ${open?.what === "delete" && html`<${ConfirmDialog} title=${t.teams.deleteOne} loses=${[t.teams.losesTeam(open.row.name), t.teams.losesTickets]} stays=${[t.teams.staysConversations, t.teams.staysMembers]} label=${t.delete} run=${remove} close=${close} />`}
  <//>`;
}

/** @param {{of: any, close: () => void, done: (words: string) => Promise<void>}} props */
function Edit({ of, close, done }) {
  const [key] = useState(newKey);
  const inside = new Set(of?.members.map((/** @type {any} */ each) => each.id));
  const save = async (/** @type {Values} */ form) => {
    const body = { name: form.raw("name").trim(), members: form.all("members") };
    if (of) await call("PATCH", `teams/${of.id}`, { body });
    else await call("POST", "teams", { key, body });
    await done(of ? t.teams.saved : t.teams.created);
  };
  return html`<${Dialog} title=${of ? t.teams.editOne : t.teams.create} close=${close}><div class="body"><${Form} save=${save} label=${t.save} cancel=${close}>
    <${Field} name="name" label=${t.teams.name} initial=${of?.name} required maxlength="200" />
    <fieldset><legend>${t.teams.members}</legend>${people().users.map((each) => html`<${Tick} key=${each.id} name="members" value=${each.id} label=${each.name} initial=${inside.has(each.id)} />`)}</fieldset>
  <//></div><//>`;
}
