// @ts-check
/** The organisation: its name, and how its members sign in. */
import { html, useState } from "../vendor/preact.js";
import { t } from "./texts.js";
import { notify } from "../ui/parts.js";
import { call } from "../core/api.js";
import { loadSession, project } from "../core/session.js";
import { Frame, Section } from "../ui/frame.js";
import { States, useCall } from "../ui/loading.js";
import { Field, Form, Tick } from "../ui/form.js";
/** @import { Values } from "../ui/form.js" */

const HOUR_S = 3600;

/** @param {number|null|undefined} seconds */
const hours = (seconds) => (seconds ? seconds / HOUR_S : null);
/** @param {number|undefined} given */
const seconds = (given) => (given === undefined ? null : Math.round(given * HOUR_S));

export function Page() {
  const path = `organisations/${project.value?.organisationId}`;
  const of = useCall(path);
  const [edits, setEdits] = useState(0);
  const change = async (/** @type {Record<string, unknown>} */ body) => {
    of.put(await call("PATCH", path, { body }));
    await loadSession();
    setEdits((n) => n + 1);
    notify(t.organisation.saved);
  };
  const rename = (/** @type {Values} */ form) => change({ name: form.raw("name").trim() });
  const rules = (/** @type {Values} */ form) => change({ requireSecondFactor: form.on("requireSecondFactor"), sessionIdleS: seconds(form.number("sessionIdleS")), sessionMaxS: seconds(form.number("sessionMaxS")) });
  return html`<${Frame} title=${t.pages.organisation} calls=${[of.call]}><${States} of=${of}>${(/** @type {any} */ found) => html`
    <${Section} title=${t.organisation.about}><${Form} key=${`name ${edits}`} save=${rename} label=${t.saveChanges}><${Field} name="name" label=${t.organisation.name} initial=${found.name} required maxlength="200" /><//><//>
    ${found.requireSecondFactor !== undefined && html`<${Section} title=${t.organisation.signIn}><${Form} key=${`rules ${edits}`} save=${rules} label=${t.organisation.save}>
      <${Tick} name="requireSecondFactor" label=${t.organisation.factor} hint=${t.organisation.factorHint} initial=${found.requireSecondFactor} />
      <div class="field-row"><${Field} name="sessionIdleS" type="number" min="0" step="any" label=${t.organisation.idle} hint=${t.organisation.limitHint} initial=${hours(found.sessionIdleS)} /><${Field} name="sessionMaxS" type="number" min="0" step="any" label=${t.organisation.max} hint=${t.organisation.limitHint} initial=${hours(found.sessionMaxS)} /></div>
    <//><//>`}`}<//><//>`;
}
