// @ts-check
/** Dialogs of the desk itself: keyboard shortcuts, settings, sign-out, and stored texts that can't be decrypted. */
import { html, useEffect, useState } from "../vendor/preact.js";
import { t } from "../core/texts-lazy.js";
import { Button, Kbd, dialog, theme } from "../ui/parts.js";
import { hiddenInRows } from "../ui/row-parts.js";
import { Dialog } from "../ui/dialog.js";
import { LanguageChoice } from "../ui/language.js";
import { go, project, signOut, user } from "../core/session.js";
import { COMMANDS, singleKeys } from "../core/keys.js";
import { unsaved, unsent } from "../core/outbox.js";
import { undoSend } from "../inbox/held-messages.js";
import { advance } from "../inbox/actions.js";
import { unopenable } from "../core/seal.js";
import { removeUnopened, unopened } from "../core/outbox-store.js";
/** @import { Unopened as One } from "../core/outbox-store.js" */

const close = () => void (dialog.value = null);
const GROUPS = /** @type {[string, string[]][]} */ ([
  [t.commandGroups.list, ["next", "previous", "openRow", "nextConversation", "previousConversation", "select", "extendDown", "extendUp", "selectAll"]],
  [t.commandGroups.go, ["viewMine", "viewMentions", "viewFollowing", "viewWaiting", "viewUnassigned", "viewTeam", "viewSnoozed", "viewAll"]],
  [t.commandGroups.conversation, ["assignMe", "assign", "close", "noAnswer", "reopen", "pending", "snooze", "tag", "ticket", "follow", "unread", "context", "timeline"]],
  [t.commandGroups.composer, ["reply", "note", "send", "sendClose", "sendLater", "snippets", "bold", "italic", "code", "link", "undo"]],
  [t.commandGroups.anywhere, ["palette", "search", "start", "help", "back"]],
]);

/** All keyboard shortcuts. */
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

/** @param {{part: string}} props */
function RowPart({ part }) {
  const hidden = hiddenInRows.value;
  const change = (/** @type {any} */ event) => (hiddenInRows.value = event.target.checked ? hidden.filter((each) => each !== part) : [...hidden, part]);
  return html`<label class="switch"><input type="checkbox" checked=${!hidden.includes(part)} onChange=${change} /><span>${t.dialogs.rowParts[/** @type {"words"} */ (part)]}</span></label>`;
}

/** The settings stored in this browser. */
export function Settings() {
  return html`<${Dialog} title=${t.dialogs.settings} close=${close}><div class="body">
    <${Choice} name="theme" legend=${t.dialogs.theme} of=${t.dialogs.themes} value=${theme.value} set=${(/** @type {string} */ value) => (theme.value = value)} />
    <${LanguageChoice} />
    <${Choice} name="undo" legend=${t.dialogs.undoSend} of=${t.dialogs.undoChoices} value=${String(undoSend.value)} set=${(/** @type {string} */ value) => (undoSend.value = value)} />
    <p class="muted">${t.dialogs.undoText}</p>
    <label class="switch"><input type="checkbox" checked=${advance.value} onChange=${(/** @type {any} */ event) => (advance.value = event.target.checked)} /><span>${t.dialogs.advance}</span></label>
    <label class="switch"><input type="checkbox" checked=${singleKeys.value} onChange=${(/** @type {any} */ event) => (singleKeys.value = event.target.checked)} /><span>${t.dialogs.singleKeys}<br /><span class="muted">${t.dialogs.singleKeysText}</span></span></label>
    <fieldset class="choice"><legend>${t.dialogs.rows}</legend>${Object.keys(t.dialogs.rowParts).map((part) => html`<${RowPart} key=${part} part=${part} />`)}</fieldset>
    ${unopenable.value.size > 0 && html`<${Button} label=${t.unopened.title} kind="quiet" press=${() => void (dialog.value = { name: "unopened" })} />`}
  </div><//>`;
}

/** The question before sign-out discards unsent work. */
export const SignOut = () => html`<${Dialog} title=${t.dialogs.signOut} close=${close}><div class="body">
  ${unsent() > 0 && html`<p>${t.dialogs.signOutKept(unsent())}</p>`}${unsaved.value > 0 && html`<p>${t.dialogs.signOutDrafts(unsaved.value)}</p>`}
  <div class="actions"><${Button} label=${t.dialogs.stay} kind="primary" press=${close} /><${Button} label=${t.dialogs.signOut} kind="danger" press=${() => (close(), signOut())} /></div>
</div><//>`;

/** Drafts and unsent messages that can't be decrypted. */
export function UndecryptableTexts() {
  const [all, setAll] = useState(/** @type {One[]|null} */ (null));
  const [mine, of] = [user.value?.id, project.value?.id];
  const load = () => void unopened(`deskwire.draft.${mine}.${of}.`, `${mine} ${of}`).then(setAll);
  useEffect(load, [mine, of]);
  const remove = async (/** @type {One[]} */ some) => {
    for (const each of some) await removeUnopened(each);
    load();
  };
  const name = (/** @type {One} */ one) => (one.kind === "message" ? t.unopened.message : one.mode === "note" ? t.unopened.note : t.unopened.reply);
  return html`<${Dialog} title=${t.unopened.title} close=${close}><div class="body">
    <p>${t.unopened.why}</p>
    ${all && (all.length
      ? html`<ul class="plain">${all.map((each) => html`<li key=${each.key} class="inline"><span class="grow">${name(each)}</span>${each.conversationId && html`<${Button} class="small" kind="quiet" label=${t.unopened.open} press=${() => (close(), go(`c/${each.conversationId}`))} />`}<${Button} class="small" kind="danger" label=${t.unopened.remove} press=${() => remove([each])} /></li>`)}</ul>
          <div class="actions"><${Button} kind="danger" label=${t.unopened.removeAll} press=${() => remove(all)} /></div>`
      : html`<p class="muted" role="status">${t.unopened.none}</p>`)}
  </div><//>`;
}
