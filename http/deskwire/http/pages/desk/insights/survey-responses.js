// @ts-check
/** The responses to a survey: filters, details, export and deletion. */
import { locale } from "../core/texts.js";
import { html, useState } from "../vendor/preact.js";
import { t } from "./texts.js";
import { Button, Empty, notify } from "../ui/parts.js";
import { Dialog } from "../ui/dialog.js";
import { call } from "../core/api.js";
import { may } from "../core/session.js";
import { Pairs } from "../ui/frame.js";
import { ConfirmDialog } from "../ui/confirm-dialog.js";
import { setQuery, query } from "../ui/link.js";
import { useCall, useList } from "../ui/loading.js";
import { ListTable } from "../ui/table.js";
import { Choose, download } from "./page-parts.js";

/** Return functions for the titles of questions and labels of choices, in the primary language. @param {any} definition */
function definitionTexts(definition) {
  const inWords = (/** @type {Record<string, string>} */ texts) => texts[definition.primaryLanguage] ?? Object.values(texts)[0] ?? "";
  const questions = new Map(definition.questions.map((/** @type {any} */ each) => [each.id, each]));
  const label = (/** @type {any} */ question, /** @type {any} */ value) => inWords(question?.choices?.find((/** @type {any} */ each) => each.id === value)?.label ?? {}) || String(value);
  return {
    title: (/** @type {string} */ id) => (questions.has(id) ? inWords(questions.get(id).title) : id),
    answer: (/** @type {string} */ id, /** @type {any} */ value) => (Array.isArray(value) ? value.map((each) => label(questions.get(id), each)).join(", ") : typeof value === "boolean" ? (value ? t.yes : t.no) : label(questions.get(id), value)),
  };
}

/** @param {{survey: any, response: any, names: ReturnType<typeof definitionTexts>, close: () => void, gone: () => Promise<unknown>}} props */
function ResponseDialog({ survey, response, names, close, gone }) {
  const [removes, remove] = useState(false);
  // A response to an older version may answer a question that the current one does not have.
  const of = useCall(response.version === survey.version ? null : `engagement/surveys/${survey.id}/versions/${response.version}`);
  const words = of.data ? definitionTexts(of.data.definition) : names;
  const run = async () => {
    await call("DELETE", `engagement/surveys/${survey.id}/responses/${response.id}`);
    notify(t.surveys.responseRemoved);
    await gone();
  };
  if (removes) return html`<${ConfirmDialog} title=${t.surveys.removeResponse} loses=${t.surveys.losesResponse} label=${t.surveys.removeResponse} run=${run} close=${close} />`;
  return html`<${Dialog} title=${t.surveys.response} close=${close}><div class="body">
    <${Pairs} of=${[[t.surveys.contact, response.contact ? html`<bdi>${response.contact.userId}</bdi>` : t.surveys.anonymous], [t.surveys.version, response.version], [t.surveys.language, response.language], ...Object.entries(response.answers).map(([id, value]) => [html`<bdi>${words.title(id)}</bdi>`, html`<bdi>${words.answer(id, value)}</bdi>`])]} />
    ${may("surveys.manage") && html`<div class="actions"><${Button} kind="danger" label=${t.surveys.removeResponse} press=${() => remove(true)} /></div>`}
  </div><//>`;
}

/** @param {{survey: any, changed: () => Promise<unknown>}} props */
export function Responses({ survey, changed }) {
  const [version, language, since, contact] = ["version", "language", "since", "contact"].map((name) => query.value.get(name) ?? "");
  const wanted = { version: version || null, language: language || null, since: since ? new Date(`${since}T00:00:00`).toISOString() : null, contact: contact || null };
  const of = useList(`engagement/surveys/${survey.id}/responses`, wanted);
  const [open, setOpen] = useState(/** @type {any} */ (null));
  const names = definitionTexts(survey.definition);
  const first = (/** @type {any} */ row) => Object.entries(row.answers).map(([id, value]) => names.answer(id, value)).join(" · ") || t.surveys.noAnswers;
  const columns = [
    { label: t.surveys.answers, cell: (/** @type {any} */ row) => html`<button type="button" class="link" onClick=${() => setOpen(row)}><bdi>${first(row).slice(0, 160)}</bdi></button>` },
    { label: t.surveys.contact, cell: (/** @type {any} */ row) => (row.contact ? html`<bdi>${row.contact.userId}</bdi>` : html`<span class="muted">${t.surveys.anonymous}</span>`) },
    { label: t.surveys.version, num: true, less: true, cell: (/** @type {any} */ row) => row.version },
    { label: t.surveys.language, less: true, cell: (/** @type {any} */ row) => row.language },
    { label: t.at, cell: (/** @type {any} */ row) => html`<time datetime=${row.createdAt}>${new Date(row.createdAt).toLocaleString(locale, { dateStyle: "medium", timeStyle: "short" })}</time>` },
  ];
  const filtered = version || language || since || contact;
  return html`<div class="part-tools" role="search" aria-label=${t.filters}>
      <${Choose} label=${t.surveys.version} value=${version} set=${(/** @type {string} */ value) => setQuery({ version: value })} of=${[["", t.any], ...Array.from({ length: survey.version }, (_, i) => [String(i + 1), String(i + 1)])]} />
      <${Choose} label=${t.surveys.language} value=${language} set=${(/** @type {string} */ value) => setQuery({ language: value })} of=${[["", t.any], ...survey.definition.languages.map((/** @type {string} */ each) => [each, each])]} />
      <label class="label"><span>${t.since}</span><input class="field" type="date" value=${since} onChange=${(/** @type {any} */ event) => setQuery({ since: event.target.value })} /></label>
      <label class="label"><span>${t.surveys.contact}</span><input class="field" type="text" autocomplete="off" value=${contact} onChange=${(/** @type {any} */ event) => setQuery({ contact: event.target.value.trim() })} /></label>
      <span class="grow"></span>
      <${Button} icon="file" label=${t.surveys.csv} press=${() => download(`engagement/surveys/${survey.id}/responses.csv`, wanted, `${survey.id}.csv`)} />
    </div>
    <${ListTable} of=${of} caption=${t.surveys.responses} columns=${columns} empty=${html`<${Empty} icon="check" title=${filtered ? t.nothingFound : t.surveys.noResponses} text=${filtered ? "" : t.surveys.noResponsesText} />`} />
    ${open && html`<${ResponseDialog} survey=${survey} response=${open} names=${names} close=${() => setOpen(null)} gone=${async () => (await of.reload(), await changed())} />`}`;
}
