// @ts-check
/** The settings of a channel, one form for each part of them: websites, sign-in of customers, visitors, look and conversations. */
import { locale } from "../core/texts.js";
import { html, useRef, useState } from "../vendor/preact.js";
import { t } from "./channel-texts.js";
import { t as admin } from "./texts.js";
import { Button, Menu } from "../ui/parts.js";
import { Dialog } from "../ui/dialog.js";
import { Pairs } from "../ui/frame.js";
import { Table } from "../ui/table.js";
import { useList } from "../ui/loading.js";
import { Field, FieldProblems, Form, Tick, Values } from "../ui/form.js";
import { ConfirmDialog } from "../ui/confirm-dialog.js";
import { choices } from "../ui/names.js";

/** @typedef {{channel: any, save: (changes: any) => Promise<boolean>}} Part */

const LOCAL = /^(localhost|127\.0\.0\.1|\[::1\])(:|$)/;

/** Return the origins in the lines of a text. A name alone gets the scheme that it needs. @param {string} text */
export const originsIn = (text) => text.split("\n").map((each) => each.trim()).filter(Boolean).map((each) => (each.includes("://") ? each : `${LOCAL.test(each) ? "http" : "https"}://${each}`));

/** The websites that may show the widget, one a line. @param {{initial?: string[]}} props */
export const Origins = ({ initial = [] }) => html`<${Field} name="origins" label=${t.origins} hint=${t.originsHint} rows=${Math.min(10, Math.max(3, initial.length + 1))} mono initial=${initial.join("\n")} spellcheck=${false} part=${(/** @type {string} */ index) => t.line(Number(index) + 1)} />`;

/** @param {Part} props */
export function Settings({ channel, save }) {
  const send = (/** @type {Values} */ form) => save({ name: form.raw("name").trim(), enabled: form.on("enabled"), origins: originsIn(form.raw("origins")), native: form.on("native") });
  return html`<${Form} key=${JSON.stringify([channel.name, channel.enabled, channel.origins, channel.native])} save=${send} label=${t.save.settings}>
    <${Field} name="name" label=${t.name} hint=${t.nameHint} initial=${channel.name} required maxlength="100" />
    <${Tick} name="enabled" label=${t.isEnabled} hint=${t.isEnabledHint} initial=${channel.enabled} />
    ${!channel.origins.length && html`<p class="lead warn">${t.noSitesText}</p>`}
    <${Origins} initial=${channel.origins} />
    <${Tick} name="native" label=${t.native} hint=${t.nativeHint} initial=${channel.native} />
  <//>`;
}

/** How customers are signed in: mode, secret and public keys. @param {Part & {rotate: () => void}} props */
export function Identity({ channel, save, rotate }) {
  const { mode, publicKeys, secret, previousSecretExpiresAt } = channel.identity;
  const [open, setOpen] = useState(/** @type {"add"|any} */ (null));
  const close = () => setOpen(null);
  const put = (/** @type {any} */ changes) => save({ identity: changes });
  const at = `identity/publicKeys/${publicKeys.length}`;
  const add = async (/** @type {Values} */ form) => {
    const added = { id: form.raw(`${at}/id`).trim(), algorithm: form.raw(`${at}/algorithm`), key: form.raw(`${at}/key`).trim() };
    await put({ publicKeys: [...publicKeys, added] });
    close();
  };
  const columns = [
    { label: t.keyId, cell: (/** @type {any} */ row) => html`<code class="mono">${row.id}</code>` },
    { label: t.algorithm, cell: (/** @type {any} */ row) => row.algorithm },
    { label: admin.actions, silent: true, cell: (/** @type {any} */ row) => html`<${Button} class="small" label=${t.removeKey(row.id)} press=${() => setOpen(row)} />` },
  ];
  return html`<${Form} key=${mode} save=${(/** @type {Values} */ form) => put({ mode: form.raw("identity/mode") })} label=${t.save.identity}>
      <${Field} name="identity/mode" label=${t.mode} hint=${t.modeHint} initial=${mode} options=${choices(t.modes)} />
    <//>
    <h3>${t.secret}</h3><p class="muted">${t.secretHint}</p>
    <${Pairs} of=${[[t.current, html`<code class="mono">${secret}</code>`], ...(previousSecretExpiresAt ? [[t.previous, t.validUntil(new Date(previousSecretExpiresAt).toLocaleString(locale))]] : [])]} />
    <div><${Button} label=${t.rotate} press=${rotate} /></div>
    <h3>${t.publicKeys}</h3><p class="muted">${t.publicKeysHint}</p>
    ${publicKeys.length > 0 && html`<${Table} caption=${t.publicKeys} columns=${columns} rows=${publicKeys} quiet />`}
    <div><${Button} icon="plus" label=${t.addKey} press=${() => setOpen("add")} /></div>
    ${open === "add" && html`<${Dialog} title=${t.addKey} class="wide" close=${close}><div class="body"><${Form} save=${add} label=${t.addKeyIt} cancel=${close}>
      <div class="field-row"><${Field} name=${`${at}/id`} label=${t.keyId} hint=${t.keyIdHint} mono required spellcheck=${false} maxlength="100" /><${Field} name=${`${at}/algorithm`} label=${t.algorithm} options=${["ES256", "EdDSA", "RS256"].map((value) => ({ value, label: value }))} /></div>
      <${Field} name=${`${at}/key`} label=${t.pem} hint=${t.pemHint} rows=${8} mono required spellcheck=${false} />
    <//></div><//>`}
    ${open && open !== "add" && html`<${ConfirmDialog} deletes=${false} title=${t.removeKey(open.id)} loses=${[t.keyLoses]} stays=${[t.keyStays]} label=${t.remove} run=${() => put({ publicKeys: publicKeys.filter((/** @type {any} */ each) => each.id !== open.id) })} close=${close} />`}`;
}

const ASKED = /** @type {const} */ (["name", "email", "phone"]);

/** @param {Part} props */
export function Visitors({ channel, save }) {
  const { allowed, ask } = channel.visitors;
  const how = (/** @type {string} */ name) => (ask.includes(name) ? "required" : ask.includes(`${name}?`) ? "optional" : "");
  const send = (/** @type {Values} */ form) => {
    const asked = ASKED.map((name) => [name, form.raw(`ask ${name}`)]).filter(([, given]) => given);
    return save({ visitors: { allowed: form.on("visitors/allowed"), ask: asked.map(([name, given]) => (given === "optional" ? `${name}?` : name)) } });
  };
  return html`<${Form} key=${JSON.stringify(channel.visitors)} save=${send} label=${t.save.visitors}>
    <${Tick} name="visitors/allowed" label=${t.allowVisitors} hint=${t.allowVisitorsHint} initial=${allowed} />
    <fieldset name="visitors"><legend>${t.ask}</legend><${FieldProblems} name="visitors" />
      <div class="field-row">${ASKED.map((name) => html`<${Field} key=${name} name=${`ask ${name}`} label=${t.asked[name]} initial=${how(name)} options=${choices(t.asking)} />`)}</div>
    </fieldset>
  <//>`;
}

const TEXTS = /** @type {const} */ (["title", "greeting", "placeholder", "offline"]);
const languages = typeof Intl.DisplayNames === "function" ? new Intl.DisplayNames(locale, { type: "language", fallback: "code" }) : null;

/** Return the name of a language; its code if that is malformed. @param {string} code */
function languageName(code) {
  try {
    return languages?.of(code) ?? code;
  } catch {
    return code;
  }
}

/** Colour, position, and texts in each language. @param {Part & {preview: (look: Record<string, string>) => void}} props  preview: shows unsaved values */
export function Look({ channel, save, preview }) {
  const { look } = channel;
  const box = useRef(/** @type {HTMLElement|null} */ (null));
  const [open, setOpen] = useState(/** @type {{what: "edit"|"remove", code: string}|null} */ (null));
  const close = () => setOpen(null);
  const typed = (/** @type {Values} */ form) => ({ colour: form.raw("look/colour"), position: form.raw("look/position") });
  const changed = () => {
    const form = box.current?.querySelector("form");
    if (form) preview(typed(new Values(form)));
  };
  const codes = Object.keys(look.texts).sort();
  const put = (/** @type {string} */ code, /** @type {any} */ texts) => save({ look: { texts: Object.fromEntries([...Object.entries(look.texts).filter(([each]) => each !== code), ...(texts ? [[code, texts]] : [])]) } });
  const columns = [
    { label: t.language, cell: (/** @type {any} */ row) => html`<bdi>${languageName(row.code)}</bdi> <code class="mono">${row.code}</code>` },
    { label: t.texts.title, cell: (/** @type {any} */ row) => html`<bdi>${look.texts[row.code].title ?? ""}</bdi>` },
    { label: admin.actions, silent: true, cell: (/** @type {any} */ { code }) => html`<${Menu} label=${admin.actionsFor(languageName(code))} icon="more" only kind="quiet" entries=${() => [{ label: admin.edit, icon: "pencil", pick: () => setOpen({ what: "edit", code }) }, { label: t.remove, icon: "close", danger: true, pick: () => setOpen({ what: "remove", code }) }]} />` },
  ];
  return html`<div ref=${box} onInput=${changed}><${Form} key=${look.colour + look.position} save=${(/** @type {Values} */ form) => save({ look: typed(form) })} label=${t.save.look}>
      <div class="field-row"><${Field} name="look/colour" type="color" label=${t.colour} hint=${t.colourHint} initial=${look.colour} /><${Field} name="look/position" label=${t.position} initial=${look.position} options=${choices(t.positions)} /></div>
    <//></div>
    <h3>${t.textsTitle}</h3><p class="muted">${t.textsHint}</p>
    ${codes.length > 0 && html`<${Table} caption=${t.textsTitle} columns=${columns} rows=${codes.map((code) => ({ code }))} keyOf=${(/** @type {any} */ row) => row.code} quiet />`}
    <div><${Button} icon="plus" label=${t.addLanguage} press=${() => setOpen({ what: "edit", code: "" })} /></div>
    ${open?.what === "edit" && html`<${Texts} code=${open.code} texts=${look.texts[open.code]} taken=${codes} put=${put} close=${close} />`}
    ${open?.what === "remove" && html`<${ConfirmDialog} title=${t.removeLanguage(languageName(open.code))} loses=${[t.textsLose(languageName(open.code))]} stays=${[t.textsStay]} label=${t.remove} run=${() => put(open.code, null)} close=${close} />`}`;
}

/**
 * The texts in one language.
 * @param {{code: string, texts: any, taken: string[], put: (code: string, texts: any) => Promise<boolean>, close: () => void}} props  code: "" for a new language
 */
function Texts({ code: known, texts, taken, put, close }) {
  const [code, setCode] = useState(known);
  const [wrong, setWrong] = useState("");
  const at = `look/texts/${code}`;
  const typed = (/** @type {Values} */ form) => Object.fromEntries(TEXTS.map((name) => [name, form.text(`${at}/${name}`)]).filter(([, text]) => text));
  const send = async (/** @type {Values} */ form) => {
    if (!known && (!code || taken.includes(code))) return setWrong(code ? t.languageTaken : t.languageMissing);
    await put(code, typed(form));
    close();
  };
  return html`<${Dialog} title=${known ? t.textsIn(languageName(known)) : t.addLanguage} class="wide" close=${close}><div class="body"><${Form} save=${send} label=${admin.save} cancel=${close}>
    ${!known && html`<${Field} name="look/texts" label=${t.languageCode} hint=${t.languageCodeHint} mono required spellcheck=${false} maxlength="35" exact onInput=${(/** @type {any} */ event) => (setWrong(""), setCode(event.target.value.trim()))} />`}
    ${wrong && html`<p class="wrong" role="alert">${wrong}</p>`}
    <${Field} name=${`${at}/title`} label=${t.texts.title} initial=${texts?.title} required />
    <${Field} name=${`${at}/greeting`} label=${t.texts.greeting} hint=${t.greetingHint} initial=${texts?.greeting} rows=${3} required />
    <${Field} name=${`${at}/placeholder`} label=${t.texts.placeholder} initial=${texts?.placeholder} />
    <${Field} name=${`${at}/offline`} label=${t.texts.offline} hint=${t.offlineHint} initial=${texts?.offline} rows=${2} />
  <//></div><//>`;
}

/** The workflow and the survey of the channel's conversations. @param {Part} props */
export function Conversations({ channel, save }) {
  const workflows = useList("workflows", {}, 200);
  const surveys = useList("engagement/surveys", {}, 200);
  const named = (/** @type {any[]} */ items, /** @type {string|null} */ chosen) => [
    { value: "", label: t.nothing },
    ...items.map((each) => ({ value: each.id, label: each.name ?? each.title ?? each.id })),
    ...(chosen && !items.some((each) => each.id === chosen) ? [{ value: chosen, label: chosen }] : []),
  ];
  const send = (/** @type {Values} */ form) => save({ startsWorkflow: form.text("startsWorkflow") ?? null, survey: form.text("survey") ?? null });
  const ready = workflows.state !== "loading" && surveys.state !== "loading";
  return html`<${Form} key=${JSON.stringify([ready, channel.startsWorkflow, channel.survey])} save=${send} label=${t.save.conversations} disabled=${!ready}>
    <${Field} name="startsWorkflow" label=${t.workflow} hint=${t.workflowHint} initial=${channel.startsWorkflow} options=${named(workflows.items, channel.startsWorkflow)} />
    <${Field} name="survey" label=${t.survey} hint=${t.surveyHint} initial=${channel.survey} options=${named(surveys.items, channel.survey)} />
  <//>`;
}
