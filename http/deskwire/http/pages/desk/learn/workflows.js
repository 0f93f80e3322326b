// @ts-check
/** The workflows of a project, and the start of a new one. */
import { html, useState } from "../vendor/preact.js";
import { t } from "./texts.js";
import { Ago, Button, Empty } from "../parts.js";
import { Dialog } from "../dialog.js";
import { call, newKey } from "../api.js";
import { go, may } from "../session.js";
import { Frame } from "../parts/frame.js";
import { Field, Form } from "../parts/form.js";
import { Link, ask, query } from "../parts/link.js";
import { ListTable } from "../parts/table.js";
import { useList } from "../parts/loading.js";
import { Choose } from "./tabs.js";
import { Workflow } from "./workflow.js";
/** @import { Values } from "../parts/form.js" */

/** What a new workflow does until it is edited. */
const BEGINNING = [{ id: "main", actions: [{ id: 1, type: "message", text: t.workflows.firstText }, { id: 2, type: "hand_off" }] }];

/** @param {{close: () => void}} props */
function New({ close }) {
  const [key] = useState(newKey);
  const save = async (/** @type {Values} */ form) => {
    const made = await call("POST", "workflows", { key, body: { name: form.text("name") ?? "", trigger: { type: form.text("trigger") }, flows: BEGINNING } });
    close();
    go(`workflows/${made.id}?part=definition`);
  };
  return html`<${Dialog} title=${t.workflows.add} close=${close}><div class="body"><p>${t.workflows.addText}</p><${Form} save=${save} label=${t.workflows.create} cancel=${close}>
    <${Field} name="name" label=${t.workflows.name} maxlength="200" autofocus />
    <${Field} name="trigger" label=${t.workflows.trigger} initial="manual" options=${Object.entries(t.workflows.triggers).map(([value, label]) => ({ value, label }))} />
  <//></div><//>`;
}

function List() {
  const trigger = query.value.get("trigger") ?? "";
  const of = useList("workflows", { trigger: trigger || null });
  const [adds, add] = useState(false);
  const columns = [
    { label: t.workflows.name, cell: (/** @type {any} */ row) => html`<${Link} to=${`workflows/${row.id}`}><bdi>${row.name}</bdi><//>` },
    { label: t.workflows.trigger, cell: (/** @type {any} */ row) => t.workflows.triggers[/** @type {"manual"} */ (row.trigger.type)] },
    { label: t.workflows.version, num: true, cell: (/** @type {any} */ row) => row.version },
    { label: t.changed, less: true, cell: (/** @type {any} */ row) => html`<${Ago} at=${row.updatedAt} />` },
  ];
  const start = may("projects.manage") && html`<${Button} kind="primary" icon="plus" label=${t.workflows.add} press=${() => add(true)} />`;
  const tools = html`<${Choose} label=${t.workflows.trigger} value=${trigger} set=${(/** @type {string} */ value) => ask({ trigger: value })} of=${[["", t.any], ...Object.entries(t.workflows.triggers)]} />`;
  return html`<${Frame} title=${t.pages.workflows} calls=${[of.call]} actions=${start} tools=${tools}>
    <${ListTable} of=${of} caption=${t.pages.workflows} columns=${columns} empty=${html`<${Empty} icon="bot" title=${trigger ? t.nothingFound : t.workflows.none} text=${trigger ? "" : t.workflows.noneText} />`} />
    ${adds && html`<${New} close=${() => add(false)} />`}
  <//>`;
}

/** @param {{id: string|null}} props */
export const Page = ({ id }) => (id ? html`<${Workflow} id=${id} />` : html`<${List} />`);
