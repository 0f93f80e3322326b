// @ts-check
/** Fields of forms: questions to visitors, workflow steps, and surveys. */
import { html, useEffect } from "../desk/vendor/preact.js";
import { t } from "./texts.js";

/** @typedef {{id: string, type: string, label: string, required?: boolean | null}} Field */

const INPUTS = /** @type {Record<string, string>} */ ({ text: "text", email: "email", phone: "tel", number: "number", date: "date" });
const COMPLETIONS = /** @type {Record<string, string>} */ ({ name: "name", email: "email", phone: "tel" });

/** @param {{of: Field}} props */
function Control({ of }) {
  const { id, type, label, required } = of;
  const name = html`${label}${!required && html` <small>(${t.optional})</small>`}`;
  if (type === "boolean")
    return html`<fieldset><legend>${name}</legend>${[true, false].map((value) => html`<label class="pick"><input type="radio" name=${id} value=${String(value)} required=${required} />${value ? t.yes : t.no}</label>`)}</fieldset>`;
  return html`<label>${name}<input name=${id} type=${INPUTS[type] ?? "text"} step="any" maxlength="1000" required=${required} autocomplete=${COMPLETIONS[id] ?? "off"} dir="auto" /></label>`;
}

/** @param {{fields: Field[], shown?: (value: true) => void}} props  shown: called once the fields are there */
export const Fields = ({ fields, shown }) => {
  useEffect(() => shown?.(true), []);
  return fields.map((each) => html`<${Control} key=${each.id} of=${each} />`);
};
