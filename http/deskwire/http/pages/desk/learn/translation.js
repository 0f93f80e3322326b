// @ts-check
/** One entry in one language, beside what it says in the primary language. */
import { html, useRef, useState } from "../vendor/preact.js";
import { t } from "./texts.js";
import { Menu, say } from "../parts.js";
import { Dialog } from "../dialog.js";
import { call } from "../api.js";
import { go, may } from "../session.js";
import { Frame } from "../parts/frame.js";
import { Field, Form } from "../parts/form.js";
import { Gone, Meanwhile } from "../parts/gone.js";
import { ask } from "../parts/link.js";
import { States, useCall } from "../parts/loading.js";
import { useSaving } from "./saving.js";
import { Choose } from "./tabs.js";
/** @import { Values } from "../parts/form.js" */
/** @import { Loaded } from "../parts/loading.js" */

const LONG = 60;

/** The path of an entry in the API. @param {string} id */
export const entryPath = (id) => `translations/entries/${encodeURIComponent(id)}`;
/** The place of an entry in the desk, to be translated into a language; a key may have slashes, so it stands behind the question mark. @param {string} id @param {string} language */
export const placeOf = (id, language) => `translations?entry=${encodeURIComponent(id)}&language=${encodeURIComponent(language)}`;

/** The texts of what was loaded; none for a language that the entry lacks. @param {Loaded} of @returns {Record<string, string>} */
const fieldsOf = (of) => (of.state === "gone" ? {} : (of.data?.fields ?? {}));

/** @param {{id: string, language: string, primary: string, languages: string[], next: () => Promise<void>}} props */
export function Entry({ id, language, primary, languages, next }) {
  const source = useCall(entryPath(id), { language: primary });
  const lacks = source.data && !source.data.languages.includes(language);
  // An entry that lacked the language at first is not asked for it: the browser would note an error for the 404.
  const lacked = useRef(/** @type {boolean|null} */ (null));
  if (source.data) lacked.current ??= lacks;
  const of = useCall(source.state === "loading" || lacked.current ? null : entryPath(id), { language });
  const [removes, remove] = useState(/** @type {"language"|"entry"|null} */ (null));
  const saving = useSaving(of);
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
    say(t.translations.saved(language));
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
  const late = saving.late;
  return html`<${Frame} title=${id} face=${html`<bdi class="mono">${id}</bdi>`} up=${{ to: "translations", label: t.pages.translations }} calls=${lacked.current ? [source.call] : [source.call, of.call]}
      actions=${edits && ready && html`<${Menu} label=${t.translations.more} caret entries=${entries} />`}
      tools=${html`<${Choose} label=${t.translations.into} value=${language} set=${(/** @type {string} */ value) => ask({ language: value })} of=${languages.map((each) => [each, each])} /> ${(of.state === "gone" || lacks) && html`<span class="chip waits">${t.translations.lacking(language)}</span>`}`}>
    ${!ready ? html`<${States} of=${of}>${() => null}<//>` : !names.length ? html`<p class="muted">${t.translations.nowhere}</p>` : html`
      <${Form} key=${saving.kept} save=${(/** @type {Values} */ form) => save(onward.current)(form)} label=${t.save} disabled=${!edits} class=${edits ? "sides-form" : "sides-form read"}>
        ${names.map((name) => html`<div key=${name} class="sides">
          ${language !== primary && html`<div class="label"><span>${t.translations.fieldIn(name, primary)}</span><p class="source" dir="auto" lang=${primary}>${texts[name] ?? t.translations.noSource}</p></div>`}
          <${Field} name=${`fields/${name}`} label=${t.translations.fieldIn(name, language)} initial=${mine[name] ?? ""} rows=${Math.min(14, Math.max(2, Math.ceil((texts[name] ?? mine[name] ?? "").length / LONG)))} lang=${language} readonly=${!edits} />
        </div>`)}
        ${edits && language !== primary && html`<label class="switch"><input type="checkbox" onChange=${(/** @type {any} */ event) => (onward.current = event.target.checked)} /><span>${t.translations.thenNext}</span></label>`}
      <//>`}
    ${adds && html`<${Dialog} title=${t.translations.addField} close=${() => setAdds(false)}><div class="body"><${Form} save=${add} label=${t.translations.addField} cancel=${() => setAdds(false)}><${Field} name="name" label=${t.translations.fieldName} maxlength="64" mono autofocus /><//></div><//>`}
    ${late && html`<${Meanwhile} fields=${late.fields({ fields: t.translations.fields })} keep=${late.keep} save=${late.save} close=${late.close} />`}
    ${removes && html`<${Gone} title=${removes === "language" ? t.translations.removeLanguage(language) : t.translations.remove} loses=${removes === "language" ? t.translations.losesLanguage(language) : t.translations.losesEntry(source.data?.languages ?? of.data?.languages ?? [])} label=${t.translations.remove} run=${run} close=${() => remove(null)} />`}
  <//>`;
}
