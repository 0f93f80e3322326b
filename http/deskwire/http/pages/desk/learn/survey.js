// @ts-check
/** One survey: its name and state, and its parts: figures, responses, definition, versions. */
import { html, useState } from "../vendor/preact.js";
import { t } from "./texts.js";
import { Button, Menu, say } from "../parts.js";
import { Dialog } from "../dialog.js";
import { call } from "../api.js";
import { go, may } from "../session.js";
import { Frame } from "../parts/frame.js";
import { Field, Form } from "../parts/form.js";
import { Gone, Meanwhile } from "../parts/gone.js";
import { States, useCall } from "../parts/loading.js";
import { Tabs, partShown } from "./tabs.js";
import { Figures } from "./survey-figures.js";
import { Responses } from "./survey-responses.js";
import { Definition, Versions } from "./survey-definition.js";
import { useSaving } from "./saving.js";
/** @import { Values } from "../parts/form.js" */
/** @import { Loaded } from "../parts/loading.js" */

/** @param {{of: Loaded, close: () => void}} props */
function Rename({ of, close }) {
  const saving = useSaving(of);
  const save = async (/** @type {Values} */ form) => (await saving.save("PATCH", `engagement/surveys/${of.data.id}`, { name: form.text("name") ?? "" })) && close();
  if (saving.late) return html`<${Meanwhile} fields=${saving.late.fields(t.fieldNames)} keep=${saving.late.keep} save=${saving.late.save} close=${close} />`;
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
      say(t.surveys.nowIs(to));
    } catch (error) {
      say(/** @type {Error} */ (error).message, { bad: true });
    }
  };
  const remove = async () => {
    await call("DELETE", path);
    say(t.surveys.removed(survey.name));
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
      : part === "definition" ? html`<${Definition} key=${data.version} of=${of} />`
      : part === "versions" ? html`<${Versions} survey=${data} />`
      : html`<${Figures} survey=${data} />`}<//>
    ${shown === "rename" && html`<${Rename} of=${of} close=${() => show(null)} />`}
    ${shown === "remove" && html`<${Gone} title=${t.surveys.remove} loses=${t.surveys.loses(survey.responses, survey.version)} stays=${[t.surveys.contactsStay]} word=${survey.name} label=${t.surveys.remove} run=${remove} close=${() => show(null)} />`}
  <//>`;
}
