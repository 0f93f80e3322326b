// @ts-check
/** The desk's own dialogs: its keys, its settings, and signing out with something unsent. */
import { html } from "./vendor/preact.js";
import { t } from "./later-texts.js";
import { Button, Kbd, dialog } from "./parts.js";
import { Dialog } from "./dialog.js";
import { signOut } from "./session.js";
import { COMMANDS, singleKeys } from "./keys.js";
import { theme, unsent } from "./app.js";
import { unsaved } from "./outbox.js";
import { undoSend } from "./held.js";
import { advance } from "./actions.js";
import { unopenable } from "./seal.js";

const close = () => void (dialog.value = null);
const GROUPS = /** @type {[string, string[]][]} */ ([
  [t.commandGroups.list, ["next", "previous", "openRow", "nextConversation", "previousConversation", "select", "extendDown", "extendUp", "selectAll"]],
  [t.commandGroups.go, ["viewMine", "viewWaiting", "viewUnassigned", "viewTeam", "viewSnoozed", "viewAll"]],
  [t.commandGroups.conversation, ["assignMe", "assign", "close", "reopen", "pending", "snooze", "tag", "unread", "context", "timeline"]],
  [t.commandGroups.composer, ["reply", "note", "send", "sendClose", "snippets", "undo"]],
  [t.commandGroups.anywhere, ["palette", "search", "start", "help", "back"]],
]);

/** Every key and what it does. */
export function Help() {
  const names = /** @type {Record<string, string>} */ (t.commands);
  const keys = (/** @type {string} */ id) => COMMANDS.find((each) => each.id === id)?.keys ?? [];
  const spell = (/** @type {string} */ each) => (each === "openRow" ? keys(each) : keys(each).slice(0, 2));
  return html`<${Dialog} title=${t.dialogs.help} class="wide" close=${close}><div class="body"><div class="keys">
    ${GROUPS.map(([title, ids]) => html`<section key=${title}><h3>${title}</h3><dl>${ids.map((id) => html`<div key=${id}><dt>${names[id]}</dt><dd class="kbds">${spell(id).map((each) => html`<span><${Kbd} keys=${each} /><span class="sr">${each}</span></span>`)}</dd></div>`)}</dl></section>`)}
  </div></div><//>`;
}

/** @param {{name: string, legend: string, of: Record<string, string>, value: string, set: (value: string) => void}} props */
const Choice = ({ name, legend, of, value, set }) => html`<fieldset class="choice"><legend>${legend}</legend><div class="segments">
  ${Object.entries(of).map(([key, label]) => html`<label key=${key}><input type="radio" name=${name} value=${key} checked=${key === value} onChange=${() => set(key)} /><span>${label}</span></label>`)}
</div></fieldset>`;

/** What this browser remembers of how its user works. */
export function Settings() {
  return html`<${Dialog} title=${t.dialogs.settings} close=${close}><div class="body">
    <${Choice} name="theme" legend=${t.dialogs.theme} of=${t.dialogs.themes} value=${theme.value} set=${(/** @type {string} */ value) => (theme.value = value)} />
    <${Choice} name="undo" legend=${t.dialogs.undoSend} of=${t.dialogs.undoChoices} value=${String(undoSend.value)} set=${(/** @type {string} */ value) => (undoSend.value = value)} />
    <p class="muted">${t.dialogs.undoText}</p>
    <label class="switch"><input type="checkbox" checked=${advance.value} onChange=${(/** @type {any} */ event) => (advance.value = event.target.checked)} /><span>${t.dialogs.advance}</span></label>
    <label class="switch"><input type="checkbox" checked=${singleKeys.value} onChange=${(/** @type {any} */ event) => (singleKeys.value = event.target.checked)} /><span>${t.dialogs.singleKeys}<br /><span class="muted">${t.dialogs.singleKeysText}</span></span></label>
    ${unopenable.value.size > 0 && html`<${Button} label=${t.unopened.title} kind="quiet" press=${() => void (dialog.value = { name: "unopened" })} />`}
  </div><//>`;
}

/** Asked before what is kept here is discarded. */
export const SignOut = () => html`<${Dialog} title=${t.dialogs.signOut} close=${close}><div class="body">
  ${unsent() > 0 && html`<p>${t.dialogs.signOutKept(unsent())}</p>`}${unsaved.value > 0 && html`<p>${t.dialogs.signOutDrafts(unsaved.value)}</p>`}
  <div class="actions"><${Button} label=${t.dialogs.stay} kind="primary" press=${close} /><${Button} label=${t.dialogs.signOut} kind="danger" press=${() => (close(), signOut())} /></div>
</div><//>`;
