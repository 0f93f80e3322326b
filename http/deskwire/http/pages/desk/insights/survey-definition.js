// @ts-check
/** The editor of a survey's definition, which publishes it as a version, and the list of versions. */
import { html, useRef, useState } from "../vendor/preact.js";
import { t } from "./texts.js";
import { Ago, Button, notify } from "../ui/parts.js";
import { Dialog } from "../ui/dialog.js";
import { call, newKey } from "../core/api.js";
import { may } from "../core/session.js";
import { States, useCall, useList } from "../ui/loading.js";
import { ListTable } from "../ui/table.js";
import { Copied } from "../ui/secret.js";
import { t as f } from "./form-texts.js";
import { pretty } from "./json-text.js";
import { DefinitionEditor } from "./definition-editor.js";
import { SurveyForm, placeName } from "./survey-form.js";
import { fieldsOf, ordered } from "./survey-model.js";
/** @import { Loaded } from "../ui/loading.js" */
/** @import { Kind } from "./definition-editor.js" */

/** @param {{of: Loaded}} props */
export function Definition({ of }) {
  const path = `engagement/surveys/${of.data.id}`;
  const edits = may("surveys.manage");
  /** @type {Kind} */
  const kind = {
    path, name: "definition", label: t.surveys.definition, formLabel: f.form, publish: ["POST", `${path}/versions`], shown: () => of.data, order: ordered, fields: fieldsOf, placeName, form: SurveyForm,
    ask: async (definition) => (await call("POST", `${path}/validate`, { body: { definition } })).errors,
    texts: { intro: edits ? t.surveys.definitionText(of.data.version) : t.surveys.definitionRead(of.data.version), publish: t.surveys.publish, published: t.surveys.published, nothing: t.surveys.nothingChanged },
  };
  return html`<${DefinitionEditor} of=${of} kind=${kind} edits=${edits} />`;
}

/** @param {{survey: any, number: number, close: () => void}} props */
function Version({ survey, number, close }) {
  const of = useCall(`engagement/surveys/${survey.id}/versions/${number}`);
  const [busy, setBusy] = useState(false);
  const key = useRef(newKey()).current;
  const again = async () => {
    setBusy(true);
    try {
      await call("POST", `engagement/surveys/${survey.id}/versions`, { key, body: { definition: of.data.definition } });
      notify(t.surveys.published);
      close();
    } catch (error) {
      notify(/** @type {Error} */ (error).message, { bad: true });
      setBusy(false);
    }
  };
  return html`<${Dialog} title=${t.surveys.versionNumber(number)} class="wide" close=${close}><div class="body">
    <${States} of=${of}>${(/** @type {any} */ data) => html`<${Copied} text=${pretty(data.definition)} label=${t.surveys.versionNumber(number)} />
      ${!data.published && may("surveys.manage") && html`<div class="actions"><${Button} label=${t.surveys.publishAgain} disabled=${busy} press=${again} /></div>`}`}<//>
  </div><//>`;
}

/** @param {{survey: any}} props */
export function Versions({ survey }) {
  const of = useList(`engagement/surveys/${survey.id}/versions`);
  const [open, setOpen] = useState(/** @type {number|null} */ (null));
  const columns = [
    { label: t.surveys.version, cell: (/** @type {any} */ row) => html`<button type="button" class="link" onClick=${() => setOpen(row.version)}>${t.surveys.versionNumber(row.version)}</button> ${row.published && html`<span class="chip good">${t.surveys.isPublished}</span>`}` },
    { label: t.created, cell: (/** @type {any} */ row) => html`<${Ago} at=${row.createdAt} />` },
  ];
  return html`<${ListTable} of=${of} caption=${t.surveys.partNames.versions} columns=${columns} keyOf=${(/** @type {any} */ row) => String(row.version)} empty=${null} />
    ${open !== null && html`<${Version} survey=${survey} number=${open} close=${() => (setOpen(null), of.reload())} />`}`;
}
