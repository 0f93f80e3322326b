// @ts-check
/** Translations: the list of entries with those missing first, and the editor of one entry beside its source. */
import { html, useRef, useState } from "../vendor/preact.js";
import { t } from "./texts.js";
import { Ago, Button, Empty, Menu, notify } from "../ui/parts.js";
import { Dialog } from "../ui/dialog.js";
import { call } from "../core/api.js";
import { go, may, project } from "../core/session.js";
import { Frame } from "../ui/frame.js";
import { Field, Form } from "../ui/form.js";
import { Link, setQuery, query } from "../ui/link.js";
import { ListTable } from "../ui/table.js";
import { States, useCall, useList } from "../ui/loading.js";
import { ConflictDialog, useSave } from "../ui/conflict.js";
import { Choose } from "./page-parts.js";
import { ConfirmDialog } from "../ui/confirm-dialog.js";
/** @import { Values } from "../ui/form.js" */
/** @import { Loaded } from "../ui/loading.js" */

/** Load the languages of the project and the primary one. */
export function useLanguages() {
  const of = useCall(project.value ? `projects/${project.value.id}` : null);
  const settings = of.data?.settings;
  return { of, primary: /** @type {string} */ (settings?.primaryLanguage ?? ""), languages: /** @type {string[]} */ (settings?.languages ?? []) };
}

/** @param {{language: string, close: () => void}} props */
function New({ language, close }) {
  const saving = useSave(useCall(null));
  const [id, setId] = useState("");
  const leave = (/** @type {string} */ made) => (close(), go(placeOf(made, language)));
  const save = async (/** @type {Values} */ form) => {
    const made = `${form.text("type")}:${form.raw("key").trim()}`;
    setId(made);
    if (await saving.save("PUT", entryPath(made), { language, fields: { [form.text("field") ?? "text"]: form.raw("text") } }, { language })) leave(made);
  };
  const { conflict } = saving;
  if (conflict) return html`<${ConflictDialog} fields=${conflict.fields({ fields: t.translations.fields })} keep=${() => leave(id)} save=${async () => (await conflict.save()) && void leave(id)} close=${close} />`;
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
  const tools = html`<${Choose} label=${t.translations.show} value=${show} set=${(/** @type {string} */ value) => setQuery({ show: value })} of=${[["", t.translations.missingOnly], ["all", t.translations.all]]} />
    <${Choose} label=${t.translations.language} value=${language} set=${(/** @type {string} */ value) => setQuery({ language: value })} of=${languages.map((each) => [each, each])} />
    <${Choose} label=${t.translations.type} value=${type} set=${(/** @type {string} */ value) => setQuery({ type: value })} of=${[["", t.any], ...Object.entries(t.translations.types)]} />
    <label class="label"><span>${t.search}</span><input class="field" type="search" value=${q} onChange=${(/** @type {any} */ event) => setQuery({ q: event.target.value.trim() })} /></label>`;
  const start = may("translations.manage") && primary && html`<${Button} kind="primary" icon="plus" label=${t.translations.add} press=${() => add(true)} />`;
  const nothing = show === "all" || q || type ? t.nothingFound : progress.data?.entries ? t.translations.complete(language) : t.translations.none;
  return html`<${Frame} title=${t.pages.translations} calls=${[progress.call, of.call]} actions=${start} tools=${tools}>
    <${States} of=${progress}>${(/** @type {any} */ data) => html`<div class="missing" role="group" aria-label=${t.translations.progress}>${data.languages.map((/** @type {any} */ each) => html`<button key=${each.language} type="button" class="button small" aria-pressed=${each.language === language && show !== "all"} onClick=${() => setQuery({ language: each.language, show: null })}>${t.translations.lacks(each.language, each.missing)}</button>`)}</div>`}<//>
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
    notify(t.translations.complete(language));
    go("translations");
  };
  if (!of.data) return html`<${Frame} title=${id} up=${{ to: "translations", label: t.pages.translations }}><${States} of=${of}>${() => null}<//><//>`;
  return html`<${Entry} key=${`${id} ${language}`} id=${id} language=${language} primary=${primary} languages=${languages} next=${next} />`;
}

export function Page() {
  const id = query.value.get("entry");
  return id ? html`<${One} key=${id} id=${id} />` : html`<${List} />`;
}

const LONG = 60;

/** Return the path of an entry in the API. @param {string} id */
export const entryPath = (id) => `translations/entries/${encodeURIComponent(id)}`;
/** Return the place of an entry in the desk, for translation into a language. The key is in the query, because it may contain slashes. @param {string} id @param {string} language */
export const placeOf = (id, language) => `translations?entry=${encodeURIComponent(id)}&language=${encodeURIComponent(language)}`;

/** Return the loaded texts; none for a missing language. @param {Loaded} of @returns {Record<string, string>} */
const fieldsOf = (of) => (of.state === "gone" ? {} : (of.data?.fields ?? {}));

/** @param {{id: string, language: string, primary: string, languages: string[], next: () => Promise<void>}} props */
export function Entry({ id, language, primary, languages, next }) {
  const source = useCall(entryPath(id), { language: primary });
  const lacks = source.data && !source.data.languages.includes(language);
  // An entry without the language is not requested: the browser would log an error for the 404.
  const lacked = useRef(/** @type {boolean|null} */ (null));
  if (source.data) lacked.current ??= lacks;
  const of = useCall(source.state === "loading" || lacked.current ? null : entryPath(id), { language });
  const [removes, remove] = useState(/** @type {"language"|"entry"|null} */ (null));
  const saving = useSave(of);
  const edits = may("translations.manage");
  const [texts, mine] = [fieldsOf(source), fieldsOf(of)];
  const [adds, setAdds] = useState(false);
  const onward = useRef(false);
  const [more, setMore] = useState(/** @type {string[]} */ ([]));
  const names = [...new Set([...Object.keys(texts), ...Object.keys(mine), ...more])];
  const ready = lacked.current || (of.state !== "loading" && source.state !== "loading" && !(of.state === "failed" && !of.data));
  const save = (/** @type {boolean} */ onward) => async (/** @type {Values} */ form) => {
    const written = names.map((name) => [name, form.raw(`fields/${name}`)]).filter(([name, text]) => text || (name && name in mine));
    const fields = Object.fromEntries(written);
    if (!(await saving.save("PUT", entryPath(id), { language, fields }, { language }))) return;
    notify(t.translations.saved(language));
    await source.reload();
    if (onward) await next();
  };
  const run = async () => {
    await call("DELETE", entryPath(id), { query: { language: removes === "language" ? language : null } });
    go("translations");
  };
  const add = async (/** @type {Values} */ form) => {
    const name = form.text("name");
    if (name && !names.includes(name)) setMore([...more, name]);
    setAdds(false);
  };
  const entries = () => [
    { label: t.translations.addField, icon: "plus", pick: () => setAdds(true) },
    ...(of.data ? [{ label: t.translations.removeLanguage(language), icon: "close", danger: true, pick: () => remove("language") }] : []),
    { label: t.translations.remove, icon: "close", danger: true, pick: () => remove("entry") },
  ];
  const conflict = saving.conflict;
  return html`<${Frame} title=${id} face=${html`<bdi class="mono">${id}</bdi>`} up=${{ to: "translations", label: t.pages.translations }} calls=${lacked.current ? [source.call] : [source.call, of.call]}
      actions=${edits && ready && html`<${Menu} label=${t.translations.more} caret entries=${entries} />`}
      tools=${html`<${Choose} label=${t.translations.into} value=${language} set=${(/** @type {string} */ value) => setQuery({ language: value })} of=${languages.map((each) => [each, each])} /> ${(of.state === "gone" || lacks) && html`<span class="chip waits">${t.translations.lacking(language)}</span>`}`}>
    ${!ready ? html`<${States} of=${of}>${() => null}<//>` : !names.length ? html`<p class="muted">${t.translations.nowhere}</p>` : html`
      <${Form} key=${saving.kept} save=${(/** @type {Values} */ form) => save(onward.current)(form)} label=${t.save} disabled=${!edits} class=${edits ? "sides-form" : "sides-form read"}>
        ${names.map((name) => html`<div key=${name} class="sides">
          ${language !== primary && html`<div class="label"><span>${t.translations.fieldIn(name, primary)}</span><p class="source" dir="auto" lang=${primary}>${texts[name] ?? t.translations.noSource}</p></div>`}
          <${Field} name=${`fields/${name}`} label=${t.translations.fieldIn(name, language)} initial=${mine[name] ?? ""} rows=${Math.min(14, Math.max(2, Math.ceil((texts[name] ?? mine[name] ?? "").length / LONG)))} lang=${language} readonly=${!edits} />
        </div>`)}
        ${edits && language !== primary && html`<label class="switch"><input type="checkbox" onChange=${(/** @type {any} */ event) => (onward.current = event.target.checked)} /><span>${t.translations.thenNext}</span></label>`}
      <//>`}
    ${adds && html`<${Dialog} title=${t.translations.addField} close=${() => setAdds(false)}><div class="body"><${Form} save=${add} label=${t.translations.addField} cancel=${() => setAdds(false)}><${Field} name="name" label=${t.translations.fieldName} maxlength="64" mono autofocus /><//></div><//>`}
    ${conflict && html`<${ConflictDialog} fields=${conflict.fields({ fields: t.translations.fields })} keep=${conflict.keep} save=${conflict.save} close=${conflict.close} />`}
    ${removes && html`<${ConfirmDialog} title=${removes === "language" ? t.translations.removeLanguage(language) : t.translations.remove} loses=${removes === "language" ? t.translations.losesLanguage(language) : t.translations.losesEntry((source.data?.languages ?? of.data?.languages ?? []).join(", "))} label=${t.translations.remove} run=${run} close=${() => remove(null)} />`}
  <//>`;
}
