// @ts-check
/** Workflows: the list, the dialog for a new one, and one workflow with its diagram, definition, try-out, runs and versions. */
import { locale } from "../core/texts.js";
import { html, useState } from "../vendor/preact.js";
import { t } from "./texts.js";
import { Ago, Button, Empty, Menu, lazy, notify } from "../ui/parts.js";
import { Dialog } from "../ui/dialog.js";
import { call, newKey } from "../core/api.js";
import { go, may } from "../core/session.js";
import { Frame, Section } from "../ui/frame.js";
import { Field, Form } from "../ui/form.js";
import { Link, setQuery, query } from "../ui/link.js";
import { ListTable } from "../ui/table.js";
import { States, useCall, useList } from "../ui/loading.js";
import { Choose, Tabs, figureText, partShown } from "./page-parts.js";
import { ConfirmDialog } from "../ui/confirm-dialog.js";
import { Flows } from "./flows.js";
import { ConflictDialog, useSave } from "../ui/conflict.js";
/** @import { Values } from "../ui/form.js" */
/** @import { Loaded } from "../ui/loading.js" */

const Definition = lazy(() => import("./workflow-definition.js"), "Definition");
const TryOut = lazy(() => import("./try-out.js"), "TryOut");

/** The flows of a new workflow. */
const INITIAL_FLOWS = [{ id: "main", actions: [{ id: 1, type: "message", text: t.workflows.firstText }, { id: 2, type: "hand_off" }] }];

/** @param {{close: () => void}} props */
function New({ close }) {
  const [key] = useState(newKey);
  const save = async (/** @type {Values} */ form) => {
    const made = await call("POST", "workflows", { key, body: { name: form.text("name") ?? "", trigger: { type: form.text("trigger") }, flows: INITIAL_FLOWS } });
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
  const tools = html`<${Choose} label=${t.workflows.trigger} value=${trigger} set=${(/** @type {string} */ value) => setQuery({ trigger: value })} of=${[["", t.any], ...Object.entries(t.workflows.triggers)]} />`;
  return html`<${Frame} title=${t.pages.workflows} calls=${[of.call]} actions=${start} tools=${tools}>
    <${ListTable} of=${of} caption=${t.pages.workflows} columns=${columns} empty=${html`<${Empty} icon="bot" title=${trigger ? t.nothingFound : t.workflows.none} text=${trigger ? "" : t.workflows.noneText} />`} />
    ${adds && html`<${New} close=${() => add(false)} />`}
  <//>`;
}

/** @param {{id: string|null}} props */
export const Page = ({ id }) => (id ? html`<${Workflow} id=${id} />` : html`<${List} />`);

/** @param {{workflow: any}} props */
function Diagram({ workflow }) {
  const of = useCall(`workflows/${workflow.id}/figures`);
  const figures = of.data;
  const old = figures?.waiting.filter((/** @type {any} */ each) => each.version !== workflow.version) ?? [];
  const stops = figures?.stopped ?? [];
  return html`<${States} of=${of}>${(/** @type {any} */ data) => html`<dl class="facts">
      <div><dt>${t.workflows.waitNow}</dt><dd class="big">${figureText(data.waiting.reduce((/** @type {number} */ sum, /** @type {any} */ each) => sum + each.runs, 0))}</dd></div>
      <div><dt>${t.workflows.outcomes.completed}</dt><dd class="big">${figureText(data.completed)}</dd></div>
      <div><dt>${t.workflows.outcomes.handed_off}</dt><dd class="big">${figureText(data.handedOff)}</dd></div>
      <div><dt>${t.workflows.stoppedRuns}</dt><dd class="big">${figureText(stops.reduce((/** @type {number} */ sum, /** @type {any} */ each) => sum + each.runs, 0))}</dd></div>
    </dl>
    ${stops.map((/** @type {any} */ each) => html`<p key=${each.reason} class="alert"><strong>${t.workflows.times(each.runs)}</strong> ${t.workflows.whyStopped[/** @type {"step_limit"} */ (each.reason)]} <${Link} to=${`workflows/${workflow.id}?part=runs&state=stopped`}>${t.workflows.showThem}<//></p>`)}
    ${old.length > 0 && html`<p class="muted">${t.workflows.oldVersions(old.reduce((/** @type {number} */ sum, /** @type {any} */ each) => sum + each.runs, 0))}</p>`}`}<//>
    <${Section} title=${t.workflows.flowsOf(workflow.version)}><${Flows} flows=${workflow.flows} waiting=${figures?.waiting.filter((/** @type {any} */ each) => each.version === workflow.version) ?? []} /><//>`;
}

/** @param {{workflow: any}} props */
function Runs({ workflow }) {
  const state = query.value.get("state") ?? "waiting";
  const of = useList(`workflows/${workflow.id}/runs`, { state });
  const step = (/** @type {any} */ row) => (row.actionId === null ? "–" : t.workflows.stepOf(row.flowId, row.actionId));
  const columns = [
    { label: t.workflows.conversation, cell: (/** @type {any} */ row) => html`<${Link} to=${`c/${row.conversationId}`} class="mono">${row.conversationId}<//>` },
    { label: state === "waiting" ? t.workflows.waitsAt : t.workflows.endedAt, cell: step },
    { label: t.workflows.version, num: true, less: true, cell: (/** @type {any} */ row) => row.version },
    { label: state === "waiting" ? t.workflows.waitsSince : t.workflows.ended, cell: (/** @type {any} */ row) => (row.since ? html`<${Ago} at=${row.since} />` : t.workflows.unknownSince) },
    state === "waiting"
      ? { label: t.workflows.goesOn, less: true, cell: (/** @type {any} */ row) => (row.dueAt ? new Date(row.dueAt).toLocaleString(locale, { dateStyle: "medium", timeStyle: "short" }) : t.workflows.withAnswer) }
      : { label: t.workflows.how, cell: (/** @type {any} */ row) => (row.stopped ? html`<span class="chip bad">${t.workflows.stopped}</span> ${t.workflows.whyStopped[/** @type {"step_limit"} */ (row.stopped)]}` : t.workflows.outcomes[/** @type {"completed"} */ (row.reason)]) },
  ];
  return html`<div class="part-tools"><${Choose} label=${t.workflows.state} value=${state} set=${(/** @type {string} */ value) => setQuery({ state: value === "waiting" ? null : value })} of=${Object.entries(t.workflows.states)} /></div>
    <${ListTable} key=${state} of=${of} caption=${t.workflows.partNames.runs} columns=${columns} keyOf=${(/** @type {any} */ row) => `${row.conversationId} ${row.since}`} empty=${html`<${Empty} icon="bot" title=${t.workflows.noRuns[/** @type {"waiting"} */ (state)]} />`} />`;
}

/** @param {{workflow: any, number: number, close: () => void, restore: (flows: any) => Promise<unknown>}} props */
function Version({ workflow, number, close, restore }) {
  const of = useCall(`workflows/${workflow.id}/versions/${number}`);
  return html`<${Dialog} title=${t.workflows.versionNumber(number)} class="wide" close=${close}><div class="body">
    <${States} of=${of}>${(/** @type {any} */ data) => html`<${Flows} flows=${data.flows} waiting=${[]} id=${`v${number}-`} />
      ${!data.published && may("projects.manage") && html`<${Form} save=${async () => (await restore(data.flows), close())} label=${t.workflows.publishAgain} cancel=${close} />`}`}<//>
  </div><//>`;
}

/** @param {{of: Loaded}} props */
function Versions({ of }) {
  const workflow = of.data;
  const list = useList(`workflows/${workflow.id}/versions`);
  const [open, setOpen] = useState(/** @type {number|null} */ (null));
  const restore = async (/** @type {any} */ flows) => {
    await call("PATCH", `workflows/${workflow.id}`, { body: { flows }, ifMatch: of.tag });
    notify(t.workflows.published);
    await Promise.all([of.reload(), list.reload()]);
  };
  const columns = [
    { label: t.workflows.version, cell: (/** @type {any} */ row) => html`<button type="button" class="link" onClick=${() => setOpen(row.version)}>${t.workflows.versionNumber(row.version)}</button> ${row.published && html`<span class="chip good">${t.workflows.isPublished}</span>`}` },
    { label: t.created, cell: (/** @type {any} */ row) => (row.createdAt ? html`<${Ago} at=${row.createdAt} />` : t.workflows.unknownSince) },
  ];
  return html`<p class="muted">${t.workflows.versionsText}</p><${ListTable} of=${list} caption=${t.workflows.partNames.versions} columns=${columns} keyOf=${(/** @type {any} */ row) => String(row.version)} empty=${null} />
    ${open !== null && html`<${Version} workflow=${workflow} number=${open} restore=${restore} close=${() => setOpen(null)} />`}`;
}

/** @param {{of: Loaded, close: () => void}} props */
function Edit({ of, close }) {
  const saving = useSave(of);
  const save = async (/** @type {Values} */ form) => (await saving.save("PATCH", `workflows/${of.data.id}`, { name: form.text("name") ?? "", trigger: { type: form.text("trigger") } })) && close();
  if (saving.conflict) return html`<${ConflictDialog} fields=${saving.conflict.fields(t.fieldNames)} keep=${saving.conflict.keep} save=${saving.conflict.save} close=${close} />`;
  return html`<${Dialog} title=${t.workflows.edit} close=${close}><div class="body"><${Form} save=${save} label=${t.save} cancel=${close}>
    <${Field} name="name" label=${t.workflows.name} initial=${of.data.name} maxlength="200" autofocus />
    <${Field} name="trigger" label=${t.workflows.trigger} initial=${of.data.trigger.type} options=${Object.entries(t.workflows.triggers).map(([value, label]) => ({ value, label }))} />
  <//></div><//>`;
}

/** @param {{id: string}} props */
export function Workflow({ id }) {
  const of = useCall(`workflows/${id}`);
  const [shown, show] = useState(/** @type {"edit"|"remove"|null} */ (null));
  const part = partShown("picture");
  const workflow = of.data;
  const remove = async () => {
    await call("DELETE", `workflows/${id}`);
    notify(t.workflows.removed(workflow.name));
    go("workflows");
  };
  const entries = () => [{ label: t.workflows.edit, icon: "pencil", pick: () => show("edit") }, /** @type {"line"} */ ("line"), { label: t.workflows.remove, icon: "close", danger: true, pick: () => show("remove") }];
  const face = workflow && html`<bdi>${workflow.name}</bdi> <span class="chip">${t.workflows.triggers[/** @type {"manual"} */ (workflow.trigger.type)]}</span>`;
  return html`<${Frame} title=${workflow?.name ?? t.pages.workflows} face=${face} up=${{ to: "workflows", label: t.pages.workflows }} calls=${[of.call]}
      actions=${workflow && may("projects.manage") && html`<${Menu} label=${t.workflows.more} caret entries=${entries} />`}
      tools=${html`<${Tabs} label=${t.workflows.parts} otherwise="picture" of=${t.workflows.partNames} />`}>
    <${States} of=${of}>${(/** @type {any} */ data) =>
      part === "definition" ? html`<${Definition} of=${of} />`
      : part === "try" ? html`<${TryOut} flows=${data.flows} />`
      : part === "runs" ? html`<${Runs} workflow=${data} />`
      : part === "versions" ? html`<${Versions} of=${of} />`
      : html`<${Diagram} workflow=${data} />`}<//>
    ${shown === "edit" && html`<${Edit} of=${of} close=${() => show(null)} />`}
    ${shown === "remove" && html`<${ConfirmDialog} title=${t.workflows.remove} loses=${t.workflows.loses} stays=${t.workflows.stays} label=${t.workflows.remove} run=${remove} close=${() => show(null)} />`}
  <//>`;
}
