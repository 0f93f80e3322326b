// @ts-check
/** The filter and order of the list's view, a chip for each further condition, and the commands on the view. */
import { html } from "../vendor/preact.js";
import { t } from "../core/texts-lazy.js";
import { Button, Icon, Menu, dialog } from "../ui/parts.js";
import { people } from "../core/session.js";
import { runCommand } from "../core/keys.js";
import { t as texts } from "./saved-view-texts.js";
/** @import { SavedView } from "../core/types.js" */
/** @import { ViewTools } from "./saved-views.js" */

/** The further conditions, in the order of their chips; see the parameters of `GET /v3/conversations`. */
export const NAMES = ["assignee", "tag", "allTags", "withoutTags", "activeWithin", "inactiveFor", "createdWithin", "createdSince", "createdUntil", "waitingFor", "contactAttribute", "channel", "priority", "rated", "rating"];

/** Return a range of ratings in words. @param {string} range */
export const ratingText = (range) => (range.includes("..") ? t.filter.rating(range.split("..")[0] ?? "", range.split("..")[1] ?? "") : range);

/** @param {string | ((value: string) => string) | undefined} text @param {string} value */
const textOf = (text, value) => (typeof text === "function" ? text(value) : text);

/** Return the name of an assignee in a filter. @param {string} id */
export function assigneeName(id) {
  if (id === "me") return t.you;
  if (id === "none") return t.dialogs.unassigned;
  const { users, teams } = people();
  return [...users, ...teams].find((each) => each.id === id)?.name ?? id;
}

/** Return a condition in words. @param {string} name @param {string} value */
function conditionText(name, value) {
  const listed = value.split(",");
  const shown = name === "assignee" || name === "team" ? listed.map(assigneeName).join(", ") : name === "rating" ? ratingText(value) : name === "priority" ? listed.map((each) => t.filter.priorities[/** @type {"LOW"} */ (each)] ?? each).join(", ") : name.startsWith("created") && name !== "createdWithin" ? value.slice(0, 10) : listed.join(", ");
  return textOf(/** @type {Record<string, string | ((value: string) => string)>} */ (t.filter.chips)[name], shown) ?? `${name}: ${shown}`;
}

const IN_MENUS = ["status", "sort", "unread", "archived", "order"];
/** The conditions that have a chip. @param {URLSearchParams} conditions */
const withChip = (conditions) => [...conditions].filter(([name, value]) => !IN_MENUS.includes(name) && !(name === "snoozed" && value === "false"));

/** Return what a list with these parameters shows, in words. @param {URLSearchParams} conditions @returns {string[]} */
export function conditionTexts(conditions) {
  const sorts = /** @type {Record<string, string>} */ (t.list.sorts);
  const status = conditions.get("status") ?? (conditions.get("archived") === "true" ? "archived" : null);
  const sort = conditions.get("sort") ?? "activity";
  return [...(status ? [statusText(status)] : []), ...(conditions.get("unread") === "true" ? [t.list.unread] : []), ...withChip(conditions).map(([name, value]) => conditionText(name, value)), ...(sort !== "activity" ? [sorts[sort] ?? sort] : [])];
}

/** @param {string} status  one or several, separated by commas */
function statusText(status) {
  const states = /** @type {Record<string, string>} */ (t.list.statuses);
  return status === "OPEN,PENDING" ? (states.active ?? "") : status.split(",").map((each) => states[each] ?? each).join(", ");
}

/** @typedef {(changes: Record<string, string | null>) => void} Change */

/**
 * The conditions of the view as chips with a button that removes them.
 *
 * @param {{conditions: URLSearchParams, change: Change, clear: () => void, focusList: () => void, isSaved: boolean, saved: SavedView | undefined, tools: ViewTools | null}} props
 */
export function FilterChips({ conditions, change, clear, focusList, isSaved, saved, tools }) {
  const shown = withChip(conditions);
  const changed = tools?.isChanged();
  if (!shown.length && !changed) return null;
  const back = (/** @type {() => unknown} */ act) => () => (act(), focusList());
  const remove = (/** @type {string} */ name) => (change({ [name]: null }), queueMicrotask(() => /** @type {HTMLElement | null} */ (document.querySelector(".filter-chips button"))?.focus() ?? focusList()));
  return html`<div class="filter-chips" role="group" aria-label=${t.filter.active}>
    ${shown.map(([name, value]) => { const text = conditionText(name, value); return html`<span key=${name} class="chip tag"><bdi class="ellipsis">${text}</bdi><button type="button" aria-label=${t.filter.remove(text)} onClick=${() => remove(name)}><${Icon} name="close" /></button></span>`; })}
    ${changed && saved && html`<span class="muted">${texts.changed}</span>${tools?.mayHave(saved) && html`<${Button} label=${texts.saveChanges} class="small" press=${back(() => tools.saveChanges(saved))} />`}<${Button} label=${texts.discard} kind="quiet" class="small" press=${back(clear)} />`}
    ${!isSaved && html`<${Button} label=${texts.saveView} kind="quiet" class="small" popup="dialog" press=${() => (dialog.value = { name: "saveView" })} />`}
    ${!isSaved && shown.length > 1 && html`<${Button} label=${t.list.clearFilters} kind="quiet" class="small" press=${back(clear)} />`}
  </div>`;
}

/** @param {{options: {status: string, sort: string, unread: boolean}, change: Change, tools: ViewTools | null}} props */
export function FilterBar({ options: { status, sort, unread }, change, tools }) {
  const set = (/** @type {Record<string, string | null>} */ changes) => () => change(changes);
  const states = /** @type {Record<string, string>} */ (t.list.statuses);
  const sorts = /** @type {Record<string, string>} */ (t.list.sorts);
  /** @returns {import("../ui/parts.js").Entry[]} */
  const statuses = () => [
    ...["active", "OPEN", "PENDING", "CLOSED", "all", "archived"].map((each) => ({ label: states[each] ?? "", checked: status === each, pick: set({ status: each, archived: null }) })),
    "line",
    { label: t.list.unread, checked: unread, pick: set({ unread: unread ? null : "true" }) },
    "line",
    { label: t.list.readAll, icon: "check", pick: () => void runCommand("readAll") },
  ];
  const orders = () => Object.keys(sorts).map((each) => ({ label: sorts[each] ?? "", checked: sort === each, pick: set({ sort: each }) }));
  return html`<${Menu} label=${statusText(status) + (unread ? ` · ${t.list.unread}` : "")} kind="quiet" class="small" caret entries=${statuses} />
    <${Button} label=${t.filter.button} icon="filter" kind="quiet" class="small" popup="dialog" keys="f" press=${() => (dialog.value = { name: "filter" })} />
    <span class="grow"></span>
    <${Menu} label=${sorts[sort]} icon="sort" only=${sort === "activity"} kind="quiet" class="small" entries=${orders} />
    <${Menu} label=${texts.actions} icon="more" only kind="quiet" class="small" entries=${() => tools?.viewCommands() ?? []} />`;
}
