// @ts-check
/** What this browser keeps for its user and can't open: a list, from which each can be removed. */
import { html, useEffect, useState } from "./vendor/preact.js";
import { t } from "./later-texts.js";
import { Button, dialog } from "./parts.js";
import { Dialog } from "./dialog.js";
import { removeUnopened, unopened } from "./kept.js";
import { go, project, user } from "./session.js";
/** @import { Unopened as One } from "./kept.js" */

const close = () => void (dialog.value = null);

/** The drafts and unsent messages that open under no key of this user. */
export function Unopened() {
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
