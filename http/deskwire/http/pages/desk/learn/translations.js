// @ts-check
/** The translatable entries of a project: those that a language lacks first, each beside what it says in the primary language. */
import { html, useState } from "../vendor/preact.js";
import { t } from "./texts.js";
import { Ago, Button, Empty, say } from "../parts.js";
import { Dialog } from "../dialog.js";
import { call } from "../api.js";
import { go, may, project } from "../session.js";
import { Frame } from "../parts/frame.js";
import { Field, Form } from "../parts/form.js";
import { Link, ask, query } from "../parts/link.js";
import { ListTable } from "../parts/table.js";
import { States, useCall, useList } from "../parts/loading.js";
import { Meanwhile } from "../parts/gone.js";
import { useSaving } from "./saving.js";
import { Choose } from "./tabs.js";
import { Entry, entryPath, placeOf } from "./translation.js";
/** @import { Values } from "../parts/form.js" */

/** The languages of the project, and which is the primary one. */
export function useLanguages() {
  const of = useCall(project.value ? `projects/${project.value.id}` : null);
  const settings = of.data?.settings;
  return { of, primary: /** @type {string} */ (settings?.primaryLanguage ?? ""), languages: /** @type {string[]} */ (settings?.languages ?? []) };
}

/** @param {{language: string, close: () => void}} props */
function New({ language, close }) {
  const saving = useSaving(useCall(null));
  const [id, setId] = useState("");
  const leave = (/** @type {string} */ made) => (close(), go(placeOf(made, language)));
  const save = async (/** @type {Values} */ form) => {
    const made = `${form.text("type")}:${form.raw("key").trim()}`;
    setId(made);
    if (await saving.save("PUT", entryPath(made), { language, fields: { [form.text("field") ?? "text"]: form.raw("text") } }, { language })) leave(made);
  };
  const { late } = saving;
  if (late) return html`<${Meanwhile} fields=${late.fields({ fields: t.translations.fields })} keep=${() => leave(id)} save=${async () => (await late.save()) && void leave(id)} close=${close} />`;
  return html`<${Dialog} title=${t.translations.add} close=${close}><div class="body"><${Form} save=${save} label=${t.translations.create} cancel=${close}>
    <${Field} name="type" label=${t.translations.type} initial="statictranslation" options=${Object.entries(t.translations.types).map(([value, label]) => ({ value, label }))} />
    <${Field} name="key" label=${t.translations.key} hint=${t.translations.keyHint} mono autofocus />
    <${Field} name="field" label=${t.translations.fieldName} initial="text" maxlength="64" mono />
    <${Field} name="text" label=${t.translations.textIn(language)} rows=${3} />
  <//></div><//>`;
}

function List() {
  const { of: settings, primary, languages } = useLanguages();
  const progress = useCall("translations/missing");
  const asked = ["show", "language", "type", "q"].map((name) => query.value.get(name) ?? "");
  const [show, given, type, q] = /** @type {[string, string, string, string]} */ (asked);
  const worst = progress.data?.languages.filter((/** @type {any} */ each) => languages.includes(each.language)).toSorted((/** @type {any} */ a, /** @type {any} */ b) => b.missing - a.missing)[0];
  const language = given || (worst?.missing ? worst.language : primary);
  const ready = Boolean(progress.data && settings.data);
  const of = useList(ready ? "translations/entries" : null, { missing: show === "all" ? null : language, type: type || null, q: q || null });
  const [adds, add] = useState(false);
  const columns = [
    { label: t.translations.entry, cell: (/** @type {any} */ row) => html`<${Link} to=${placeOf(row.entryId, language)}><bdi>${row.id}</bdi><//>` },
    { label: t.translations.type, less: true, cell: (/** @type {any} */ row) => t.translations.types[/** @type {"article"} */ (row.type)] },
    { label: t.translations.there, cell: (/** @type {any} */ row) => row.languages.map((/** @type {string} */ each) => html`<span key=${each} class="chip">${each}</span> `) },
    { label: t.changed, less: true, cell: (/** @type {any} */ row) => html`<${Ago} at=${row.updatedAt} />` },
  ];
  const tools = html`<${Choose} label=${t.translations.show} value=${show} set=${(/** @type {string} */ value) => ask({ show: value })} of=${[["", t.translations.missingOnly], ["all", t.translations.all]]} />
    <${Choose} label=${t.translations.language} value=${language} set=${(/** @type {string} */ value) => ask({ language: value })} of=${languages.map((each) => [each, each])} />
    <${Choose} label=${t.translations.type} value=${type} set=${(/** @type {string} */ value) => ask({ type: value })} of=${[["", t.any], ...Object.entries(t.translations.types)]} />
    <label class="label"><span>${t.search}</span><input class="field" type="search" value=${q} onChange=${(/** @type {any} */ event) => ask({ q: event.target.value.trim() })} /></label>`;
  const start = may("translations.manage") && primary && html`<${Button} kind="primary" icon="plus" label=${t.translations.add} press=${() => add(true)} />`;
  const nothing = show === "all" || q || type ? t.nothingFound : progress.data?.entries ? t.translations.complete(language) : t.translations.none;
  return html`<${Frame} title=${t.pages.translations} calls=${[progress.call, of.call]} actions=${start} tools=${tools}>
    <${States} of=${progress}>${(/** @type {any} */ data) => html`<div class="missing" role="group" aria-label=${t.translations.progress}>${data.languages.map((/** @type {any} */ each) => html`<button key=${each.language} type="button" class="button small" aria-pressed=${each.language === language && show !== "all"} onClick=${() => ask({ language: each.language, show: null })}>${t.translations.lacks(each.language, each.missing)}</button>`)}</div>`}<//>
    <div class="part"><${ListTable} of=${of} caption=${t.pages.translations} columns=${columns} keyOf=${(/** @type {any} */ row) => row.entryId} empty=${html`<${Empty} icon="text" title=${nothing} />`} /></div>
    ${adds && html`<${New} language=${primary} close=${() => add(false)} />`}
  <//>`;
}

/** @param {{id: string}} props */
function One({ id }) {
  const { of, primary, languages } = useLanguages();
  const language = query.value.get("language") || languages.find((each) => each !== primary) || primary;
  const next = async () => {
    const page = await call("GET", "translations/entries", { query: { missing: language, limit: 1 } });
    if (page.items[0]) return go(placeOf(page.items[0].entryId, language));
    say(t.translations.complete(language));
    go("translations");
  };
  if (!of.data) return html`<${Frame} title=${id} up=${{ to: "translations", label: t.pages.translations }}><${States} of=${of}>${() => null}<//><//>`;
  return html`<${Entry} key=${`${id} ${language}`} id=${id} language=${language} primary=${primary} languages=${languages} next=${next} />`;
}

export function Page() {
  const id = query.value.get("entry");
  return id ? html`<${One} key=${id} id=${id} />` : html`<${List} />`;
}
