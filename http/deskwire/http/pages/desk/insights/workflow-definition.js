// @ts-check
/** The editor of a workflow's flows, which publishes them as a version. */
import { html } from "../vendor/preact.js";
import { t } from "./texts.js";
import { t as f } from "./form-texts.js";
import { call } from "../core/api.js";
import { may } from "../core/session.js";
import { DefinitionEditor } from "./definition-editor.js";
import { WorkflowForm, placeName } from "./workflow-form.js";
import { fieldsOf, ordered } from "./workflow-model.js";
/** @import { Loaded } from "../ui/loading.js" */
/** @import { Kind } from "./definition-editor.js" */

/** Return a function that validates flows by the service. @param {any} workflow */
const validator = (workflow) => async (/** @type {any} */ flows) => (await call("POST", "workflows/validate", { body: { name: workflow.name, trigger: workflow.trigger, flows } })).errors.map((/** @type {any} */ each) => ({ ...each, path: each.path.replace(/^\/flows/, "") }));

/** @param {{of: Loaded}} props */
export function Definition({ of }) {
  const workflow = of.data;
  const edits = may("projects.manage");
  /** @type {Kind} */
  const kind = {
    path: `workflows/${workflow.id}`, name: "flows", label: t.workflows.definition, formLabel: f.diagram, publish: ["PATCH", `workflows/${workflow.id}`], order: ordered, fields: fieldsOf, placeName, form: WorkflowForm, ask: validator(workflow),
    texts: { intro: edits ? t.workflows.definitionText(workflow.version) : t.workflows.definitionRead(workflow.version), publish: t.workflows.publish, published: t.workflows.published, nothing: t.workflows.nothingChanged },
  };
  return html`<${DefinitionEditor} of=${of} kind=${kind} edits=${edits} />`;
}
