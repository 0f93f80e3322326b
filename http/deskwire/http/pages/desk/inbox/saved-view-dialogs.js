// @ts-check
/** Dialogs that save a filter as a view, rename or share a view, and delete it. */
import { html, useState } from "../vendor/preact.js";
import { t } from "./saved-view-texts.js";
import { t as common } from "../core/texts-lazy.js";
import { dialog, notify } from "../ui/parts.js";
import { Problem, call, newKey } from "../core/api.js";
import { go, people } from "../core/session.js";
import { ConfirmDialog } from "../ui/confirm-dialog.js";
import { Dialog } from "../ui/dialog.js";
import { Field, Form } from "../ui/form.js";
import "../ui/page-style.js";
import { conditionTexts } from "./filter-bar.js";
import { clearConditions, isSaved } from "./list.js";
import { changeView, leaveView, loadViews, mayHave, shownFilter } from "./saved-views.js";
/** @import { SavedView } from "../core/types.js" */
/** @import { Values } from "../ui/form.js" */

const close = () => void (dialog.value = null);
const NAME_MAX = 100;

/** Return the choices of a view's visibility for a select. @param {SavedView | undefined} of */
function audiences(of) {
  const createdBy = of?.createdBy;
  const teams = people().teams.filter((each) => mayHave({ visibility: "team", teamId: each.id }));
  return [
    ...(mayHave({ visibility: "me", teamId: null, createdBy }) ? [{ value: "me", label: t.me }] : []),
    ...teams.map((each) => ({ value: each.id, label: t.team(each.name) })),
    ...(mayHave({ visibility: "project", teamId: null }) ? [{ value: "project", label: t.project }] : []),
  ];
}

/** Show problems of the filter as a sentence, because the dialog has no fields for them. @param {unknown} error */
function inWords(error) {
  if (!(error instanceof Problem) || !error.document?.errors?.some((/** @type {any} */ each) => each.pointer.startsWith("/filter"))) return error;
  return new Error(t.filterRefused(error.document.errors.map((/** @type {any} */ each) => each.message).join(" ")));
}

/** Save the shown filter as a new view, or rename and share one. @param {{of?: SavedView}} props */
export function SaveView({ of }) {
  const [key] = useState(newKey);
  const [filter] = useState(() => (of ? of.filter : shownFilter()));
  const save = async (/** @type {Values} */ form) => {
    const audience = form.raw("visibility");
    const shared = ["me", "project"].includes(audience) ? { visibility: audience } : { visibility: "team", teamId: audience };
    const body = { name: form.raw("name").trim(), ...shared };
    try {
      if (of) await changeView(of.id, body);
      else await create({ ...body, filter }, key);
    } catch (error) {
      throw inWords(error);
    }
    close();
    notify(of ? t.saved(body.name) : t.created(body.name));
  };
  const shows = conditionTexts(new URLSearchParams(filter));
  return html`<${Dialog} title=${of ? t.editTitle : t.newTitle} close=${close}><div class="body"><${Form} save=${save} label=${common.save} cancel=${close}>
    <${Field} name="name" label=${t.name} initial=${of?.name} placeholder=${t.namePlaceholder} maxlength=${NAME_MAX} dir="auto" required autofocus />
    <${Field} name="visibility" label=${t.visibleTo} hint=${t.sharedHint} initial=${of ? (of.teamId ?? of.visibility) : "me"} options=${audiences(of)} />
    <div><p class="muted">${t.filter}</p><p>${shows.length ? html`<bdi>${shows.join(" · ")}</bdi>` : t.everything}</p></div>
  <//></div><//>`;
}

/** Create a view and show it. The view that it was made from loses its conditions. @param {object} body @param {string} key */
async function create(body, key) {
  const made = await call("POST", "views", { body, key });
  await loadViews();
  if (!isSaved.peek()) clearConditions();
  go(`inbox/view/${made.id}`);
}

/** @param {{of: SavedView}} props */
export function DeleteView({ of }) {
  const run = async () => {
    try {
      await call("DELETE", `views/${of.id}`);
    } catch (error) {
      if (!(error instanceof Problem) || error.status !== 404) throw error; // a colleague was faster
    }
    leaveView(of.id);
    await loadViews();
    notify(t.deleted(of.name));
  };
  return html`<${ConfirmDialog} title=${t.deleteTitle(of.name)} loses=${[t.loses[of.visibility]]} stays=${t.stays} label=${t.deleteIt} run=${run} close=${close} />`;
}
