// @ts-check
/** The values of a form, by the ids of its fields. */
/** @import { Field } from "./fields.js" */

/** Return the values of a form by the ids of its fields, without those that were left empty. @param {HTMLFormElement} form @param {Field[]} fields @returns {Record<string, any>} */
export function valuesOf(form, fields) {
  const given = new FormData(form);
  const values = fields.map(({ id, type }) => {
    const text = String(given.get(id) ?? "").trim();
    return [id, type === "number" && text ? Number(text) : type === "boolean" && text ? text === "true" : text];
  });
  return Object.fromEntries(values.filter(([, value]) => value !== ""));
}
