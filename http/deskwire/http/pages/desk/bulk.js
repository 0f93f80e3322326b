// @ts-check
/** What can be done with all selected conversations, in place of the filters above the list. */
import { html } from "./vendor/preact.js";
import { t } from "./later-texts.js";
import { Button } from "./parts.js";
import { selection } from "./list.js";
import { run } from "./keys.js";

export function Bulk() {
  const act = (/** @type {string} */ id) => () => run(id);
  const tool = (/** @type {string} */ id, /** @type {string} */ icon, /** @type {string} */ keys) =>
    html`<${Button} label=${/** @type {any} */ (t.commands)[id]} icon=${icon} only kind="quiet" class="small" keys=${keys} press=${act(id)} />`;
  return html`<div class="list-bar bulk" role="toolbar" aria-label=${t.list.selected(selection.value.size)}>
    <strong>${t.list.selected(selection.value.size)}</strong>
    ${tool("assignMe", "person", "a")}${tool("assign", "people", "shift+a")}${tool("tag", "tag", "t")}${tool("snooze", "moon", "z")}${tool("pending", "pause", "p")}${tool("close", "done", "e")}
    <${Button} label=${t.list.selectNone} icon="close" only kind="quiet" class="small" press=${() => (selection.value = new Set())} />
  </div>`;
}
