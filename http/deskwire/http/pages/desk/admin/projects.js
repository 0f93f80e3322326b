// @ts-check
/** The projects of the organisation and their settings. */
import { locale } from "../core/texts.js";
import { html, useState } from "../vendor/preact.js";
import { t } from "./texts.js";
import { Ago, Button, Empty, Name, notify } from "../ui/parts.js";
import { Dialog } from "../ui/dialog.js";
import { call, newKey } from "../core/api.js";
import { loadSession, openProject, go, may, project, projects } from "../core/session.js";
import { Frame, Pairs, Section } from "../ui/frame.js";
import { ListTable } from "../ui/table.js";
import { States, useCall, useList } from "../ui/loading.js";
import { Field, Form, Tick } from "../ui/form.js";
import { ConfirmDialog } from "../ui/confirm-dialog.js";
import { Link } from "../ui/link.js";
import { splitWords } from "../ui/names.js";
import { useRefreshOnEvents } from "../ui/auto-refresh.js";
/** @import { Values } from "../ui/form.js" */

const MIB = 1 << 20;

/** @param {{id: string|null}} props */
export const Page = ({ id }) => (id ? html`<${One} id=${id} />` : html`<${List} />`);

function List() {
  const path = `organisations/${project.value?.organisationId}/projects`;
  const of = useList(path);
  const [making, setMaking] = useState(false);
  const [key] = useState(newKey);
  const create = async (/** @type {Values} */ form) => {
    const made = await call("POST", path, { key, body: { name: form.raw("name").trim() } });
    await loadSession();
    setMaking(false);
    go(`settings/projects/${made.id}`);
  };
  const columns = [
    { label: t.projects.name, cell: (/** @type {any} */ row) => html`<${Link} to=${`settings/projects/${row.id}`}><${Name} name=${row.name} /><//>${row.id === project.value?.id && html` <span class="chip good">${t.projects.thisOne}</span>`}` },
    { label: t.projects.id, cell: (/** @type {any} */ row) => html`<code class="mono">${row.id}</code>` },
    { label: t.projects.created, less: true, cell: (/** @type {any} */ row) => html`<${Ago} at=${row.createdAt} />` },
  ];
  return html`<${Frame} title=${t.pages.projects} actions=${may("projects.manage") && html`<${Button} icon="plus" kind="primary" label=${t.projects.create} press=${() => setMaking(true)} />`} calls=${[of.call]}>
    <${ListTable} of=${of} caption=${t.pages.projects} columns=${columns} empty=${html`<${Empty} icon="gear" title=${t.projects.none} />`} />
    ${making && html`<${Dialog} title=${t.projects.create} close=${() => setMaking(false)}><div class="body"><${Form} save=${create} label=${t.projects.createIt} cancel=${() => setMaking(false)}><${Field} name="name" label=${t.projects.name} required /><//></div><//>`}
  <//>`;
}

/** Whether the members of the current project see its first steps, with a button that changes it. */
function FirstSteps() {
  const of = useCall("setup");
  useRefreshOnEvents((event) => event.type === "settings.changed" && event.data.what === "project", of.reload);
  const put = async (/** @type {boolean} */ hidden) => {
    try {
      of.put(await call("PUT", "setup", { body: { hidden } }));
      notify(hidden ? t.projects.stepsHidden : t.projects.stepsShown);
    } catch (error) {
      notify(t.projects.stepsFailed(/** @type {Error} */ (error).message), { bad: true });
    }
  };
  return html`<${Section} title=${t.projects.firstSteps}><${States} of=${of}>${(/** @type {{hidden: boolean}} */ { hidden }) => html`<p class="muted">${hidden ? t.projects.stepsHidden : t.projects.stepsText}</p>
    <div><${Button} label=${hidden ? t.projects.showSteps : t.projects.hideSteps} press=${() => put(!hidden)} /></div>`}<//><//>`;
}

/** @param {{id: string}} props */
function One({ id }) {
  const of = useCall(`projects/${id}`);
  const [edits, setEdits] = useState(0);
  const [deletes, setDeletes] = useState(false);
  const manages = projects.value.find((each) => each.id === id)?.permissions.includes("projects.manage") ?? false;
  const save = async (/** @type {Values} */ form) => {
    const days = form.number("settings/archivedRetentionDays");
    const settings = {
      memoryEnabled: form.on("settings/memoryEnabled"), archivedRetentionDays: days ?? null, primaryLanguage: form.raw("settings/primaryLanguage").trim(),
      languages: splitWords(form.raw("settings/languages")), uploadQuotaBytes: Math.round((form.number("settings/uploadQuotaBytes") ?? 0) * MIB),
    };
    of.put(await call("PATCH", `projects/${id}`, { body: { name: form.raw("name").trim(), settings } }));
    await loadSession();
    setEdits((n) => n + 1);
    notify(t.projects.saved);
  };
  const remove = async () => {
    await call("DELETE", `projects/${id}`);
    const other = projects.value.find((each) => each.id !== id);
    if (id === project.value?.id && other) openProject(other.id);
    await loadSession();
    notify(t.projects.deleted);
    go("settings/projects");
  };
  const actions = of.data && html`${id !== project.value?.id && html`<${Button} label=${t.projects.open} press=${() => openProject(id)} />`}${manages && html`<${Button} icon="close" label=${t.delete} press=${() => setDeletes(true)} />`}`;
  return html`<${Frame} title=${of.data?.name ?? t.projects.one} up=${{ to: "settings/projects", label: t.pages.projects }} actions=${actions} calls=${[of.call]}>
    <${States} of=${of}>${(/** @type {any} */ { name, settings, ...about }) => html`<${Section} title=${t.projects.settings}>${manages
      ? html`<${Form} key=${edits} save=${save} label=${t.saveChanges}>
          <${Field} name="name" label=${t.projects.name} initial=${name} required />
          <div class="field-row"><${Field} name="settings/primaryLanguage" label=${t.projects.primaryLanguage} initial=${settings.primaryLanguage} /><${Field} name="settings/languages" label=${t.projects.languages} hint=${t.commas} initial=${settings.languages.join(", ")} /></div>
          <${Field} name="settings/archivedRetentionDays" type="number" min="1" label=${t.projects.retention} hint=${t.projects.retentionHint} initial=${settings.archivedRetentionDays} />
          <${Field} name="settings/uploadQuotaBytes" type="number" min="0" step="any" label=${t.projects.quota} initial=${settings.uploadQuotaBytes / MIB} />
          <${Tick} name="settings/memoryEnabled" label=${t.projects.memory} hint=${t.projects.memoryHint} initial=${settings.memoryEnabled} />
        <//>`
      : html`<${Pairs} of=${[[t.projects.name, name], [t.projects.primaryLanguage, settings.primaryLanguage], [t.projects.languages, settings.languages.join(", ")], [t.projects.retention, settings.archivedRetentionDays ?? t.never], [t.projects.quota, (settings.uploadQuotaBytes / MIB).toLocaleString(locale)], [t.projects.memory, settings.memoryEnabled ? t.yes : t.no]]} />`}<//>
      ${manages && id === project.value?.id && may("conversations.read") && html`<${FirstSteps} />`}
      <${Section} title=${t.projects.about}><${Pairs} of=${[[t.projects.id, html`<code class="mono">${id}</code>`], [t.projects.streamKey, html`<code class="mono">${about.streamKey}</code>`], [t.projects.created, html`<${Ago} at=${about.createdAt} />`]]} /><//>
      ${deletes && html`<${ConfirmDialog} title=${t.projects.deleteOne} text=${t.projects.deleteText} loses=${[t.projects.losesProject(name), t.projects.losesKeys]} word=${name} label=${t.delete} run=${remove} close=${() => setDeletes(false)} />`}`}<//>
  <//>`;
}
