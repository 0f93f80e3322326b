// @ts-check
/** The surveys of a project, and the start of a new one. */
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
import { Survey } from "./survey.js";
/** @import { Values } from "../parts/form.js" */

/** What a new survey asks until it is edited. @param {string} title */
const beginning = (title) => ({
  schemaVersion: "2.0", title, languages: ["en"], primaryLanguage: "en",
  questions: [{ id: "score", type: "nps", title: { en: t.surveys.firstQuestion }, required: true }, { id: "why", type: "text", title: { en: t.surveys.secondQuestion } }],
  logic: [], thankYou: { en: t.surveys.thanks },
});

/** @param {{close: () => void}} props */
function New({ close }) {
  const [key] = useState(newKey);
  const save = async (/** @type {Values} */ form) => {
    const name = form.text("name") ?? "";
    const made = await call("POST", "engagement/surveys", { key, body: { name, definition: beginning(name) } });
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
    { label: t.surveys.responses, num: true, cell: (/** @type {any} */ row) => row.responses.toLocaleString() },
    { label: t.changed, less: true, cell: (/** @type {any} */ row) => html`<${Ago} at=${row.updatedAt} />` },
  ];
  const start = may("surveys.manage") && html`<${Button} kind="primary" icon="plus" label=${t.surveys.add} press=${() => add(true)} />`;
  const tools = html`<label class="label"><span>${t.search}</span><input class="field" type="search" value=${q} onChange=${(/** @type {any} */ event) => ask({ q: event.target.value.trim() })} /></label>
    <${Choose} label=${t.surveys.status} value=${status} set=${(/** @type {string} */ value) => ask({ status: value })} of=${[["", t.any], ...Object.entries(t.surveys.statuses)]} />`;
  return html`<${Frame} title=${t.pages.surveys} calls=${[of.call]} actions=${start} tools=${tools}>
    <${ListTable} of=${of} caption=${t.pages.surveys} columns=${columns} empty=${html`<${Empty} icon="check" title=${q || status ? t.nothingFound : t.surveys.none} text=${q || status ? "" : t.surveys.noneText} />`} />
    ${adds && html`<${New} close=${() => add(false)} />`}
  <//>`;
}

/** @param {{id: string|null}} props */
export const Page = ({ id }) => (id ? html`<${Survey} id=${id} />` : html`<${List} />`);
