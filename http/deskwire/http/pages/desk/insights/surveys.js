// @ts-check
/** Surveys: the list, the dialog for a new one, and one survey with its tabs. */
import { number } from "../core/texts.js";
import { html, useState } from "../vendor/preact.js";
import { t } from "./texts.js";
import { Ago, Button, Empty, Menu, lazy, notify } from "../ui/parts.js";
import { Dialog } from "../ui/dialog.js";
import { call, newKey } from "../core/api.js";
import { go, may } from "../core/session.js";
import { Frame } from "../ui/frame.js";
import { Field, Form } from "../ui/form.js";
import { Link, setQuery, query } from "../ui/link.js";
import { ListTable } from "../ui/table.js";
import { States, useCall, useList } from "../ui/loading.js";
import { Choose, Tabs, partShown } from "./page-parts.js";
import { ConfirmDialog } from "../ui/confirm-dialog.js";
import { Figures } from "./survey-figures.js";
import { Responses } from "./survey-responses.js";
import { ConflictDialog, useSave } from "../ui/conflict.js";
/** @import { Values } from "../ui/form.js" */
/** @import { Loaded } from "../ui/loading.js" */

const Definition = lazy(() => import("./survey-definition.js"), "Definition");
const Versions = lazy(() => import("./survey-definition.js"), "Versions");

/** Return the definition of a new survey. @param {string} title */
const initialDefinition = (title) => ({
  schemaVersion: "2.0", title, languages: ["en"], primaryLanguage: "en",
  questions: [{ id: "score", type: "nps", title: { en: t.surveys.firstQuestion }, required: true }, { id: "why", type: "text", title: { en: t.surveys.secondQuestion } }],
  logic: [], thankYou: { en: t.surveys.thanks },
});

/** @param {{close: () => void}} props */
function New({ close }) {
  const [key] = useState(newKey);
  const save = async (/** @type {Values} */ form) => {
    const name = form.text("name") ?? "";
    const made = await call("POST", "engagement/surveys", { key, body: { name, definition: initialDefinition(name) } });
    close();
    go(`surveys/${made.id}?part=definition`);
  };
  return html`<${Dialog} title=${t.surveys.add} close=${close}><div class="body"><p>${t.surveys.addText}</p>
    <${Form} save=${save} label=${t.surveys.create} cancel=${close}><${Field} name="name" label=${t.surveys.name} maxlength="200" autofocus /><//></div><//>`;
}

function List() {
  const q = query.value.get("q") ?? "";
  const status = query.value.get("status") ?? "";
  const of = useList("engagement/surveys", { q: q || null, status: status || null });
  const [adds, add] = useState(false);
  const columns = [
    { label: t.surveys.name, cell: (/** @type {any} */ row) => html`<${Link} to=${`surveys/${row.id}`}><bdi>${row.name}</bdi><//>` },
    { label: t.surveys.status, cell: (/** @type {any} */ row) => html`<span class=${`chip ${row.status === "OPEN" ? "good" : ""}`}>${t.surveys.statuses[/** @type {"OPEN"} */ (row.status)]}</span>` },
    { label: t.surveys.version, num: true, cell: (/** @type {any} */ row) => row.version },
    { label: t.surveys.responses, num: true, cell: (/** @type {any} */ row) => number(row.responses) },
    { label: t.changed, less: true, cell: (/** @type {any} */ row) => html`<${Ago} at=${row.updatedAt} />` },
  ];
  const start = may("surveys.manage") && html`<${Button} kind="primary" icon="plus" label=${t.surveys.add} press=${() => add(true)} />`;
  const tools = html`<label class="label"><span>${t.search}</span><input class="field" type="search" value=${q} onChange=${(/** @type {any} */ event) => setQuery({ q: event.target.value.trim() })} /></label>
    <${Choose} label=${t.surveys.status} value=${status} set=${(/** @type {string} */ value) => setQuery({ status: value })} of=${[["", t.any], ...Object.entries(t.surveys.statuses)]} />`;
  return html`<${Frame} title=${t.pages.surveys} calls=${[of.call]} actions=${start} tools=${tools}>
    <${ListTable} of=${of} caption=${t.pages.surveys} columns=${columns} empty=${html`<${Empty} icon="check" title=${q || status ? t.nothingFound : t.surveys.none} text=${q || status ? "" : t.surveys.noneText} />`} />
    ${adds && html`<${New} close=${() => add(false)} />`}
  <//>`;
}

/** @param {{id: string|null}} props */
export const Page = ({ id }) => (id ? html`<${Survey} id=${id} />` : html`<${List} />`);

/** @param {{of: Loaded, close: () => void}} props */
function Rename({ of, close }) {
  const saving = useSave(of);
  const save = async (/** @type {Values} */ form) => (await saving.save("PATCH", `engagement/surveys/${of.data.id}`, { name: form.text("name") ?? "" })) && close();
  if (saving.conflict) return html`<${ConflictDialog} fields=${saving.conflict.fields(t.fieldNames)} keep=${saving.conflict.keep} save=${saving.conflict.save} close=${close} />`;
  return html`<${Dialog} title=${t.surveys.rename} close=${close}><div class="body"><${Form} save=${save} label=${t.save} cancel=${close}><${Field} name="name" label=${t.surveys.name} initial=${of.data.name} maxlength="200" autofocus /><//></div><//>`;
}

/** @param {{id: string}} props */
export function Survey({ id }) {
  const of = useCall(`engagement/surveys/${id}`);
  const [shown, show] = useState(/** @type {"rename"|"remove"|null} */ (null));
  const part = partShown("figures");
  const survey = of.data;
  const path = `engagement/surveys/${id}`;
  const status = async (/** @type {"OPEN"|"CLOSED"} */ to) => {
    try {
      of.put(await call("PATCH", path, { body: { status: to } }));
      notify(t.surveys.nowIs(to));
    } catch (error) {
      notify(/** @type {Error} */ (error).message, { bad: true });
    }
  };
  const remove = async () => {
    await call("DELETE", path);
    notify(t.surveys.removed(survey.name));
    go("surveys");
  };
  const entries = () => [
    { label: t.surveys.rename, icon: "pencil", pick: () => show("rename") },
    survey.status === "OPEN" ? { label: t.surveys.close, icon: "pause", pick: () => status("CLOSED") } : { label: t.surveys.reopen, icon: "reopen", pick: () => status("OPEN") },
    /** @type {"line"} */ ("line"),
    { label: t.surveys.remove, icon: "close", danger: true, pick: () => show("remove") },
  ];
  const face = survey && html`<bdi>${survey.name}</bdi> <span class=${`chip ${survey.status === "OPEN" ? "good" : ""}`}>${t.surveys.statuses[/** @type {"OPEN"} */ (survey.status)]}</span>`;
  return html`<${Frame} title=${survey?.name ?? t.pages.surveys} face=${face} up=${{ to: "surveys", label: t.pages.surveys }} calls=${[of.call]}
      actions=${survey && may("surveys.manage") && html`<${Menu} label=${t.surveys.more} caret entries=${entries} />`}
      tools=${html`<${Tabs} label=${t.surveys.parts} otherwise="figures" of=${t.surveys.partNames} />`}>
    <${States} of=${of}>${(/** @type {any} */ data) =>
      part === "responses" ? html`<${Responses} survey=${data} changed=${of.reload} />`
      : part === "definition" ? html`<${Definition} of=${of} />`
      : part === "versions" ? html`<${Versions} survey=${data} />`
      : html`<${Figures} survey=${data} />`}<//>
    ${shown === "rename" && html`<${Rename} of=${of} close=${() => show(null)} />`}
    ${shown === "remove" && html`<${ConfirmDialog} title=${t.surveys.remove} loses=${t.surveys.loses(survey.responses, survey.version)} stays=${[t.surveys.contactsStay]} word=${survey.name} label=${t.surveys.remove} run=${remove} close=${() => show(null)} />`}
  <//>`;
}
