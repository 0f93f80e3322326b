// @ts-check
/** The filter and order of the list's view, and a chip for each further condition. */
import { html } from "../vendor/preact.js";
import { t } from "../core/texts-lazy.js";
import { Button, Icon, Menu, dialog } from "../ui/parts.js";
import { people } from "../core/session.js";
import { runCommand } from "../core/keys.js";

/** The further conditions, in the order of their chips; see the parameters of `GET /v3/conversations`. */
export const NAMES = ["assignee", "tag", "allTags", "withoutTags", "activeWithin", "inactiveFor", "createdWithin", "createdSince", "createdUntil", "waitingFor", "contactAttribute", "channel", "priority", "rated", "rating"];

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
  const shown = name === "assignee" ? listed.map(assigneeName).join(", ") : name === "priority" ? listed.map((each) => t.filter.priorities[/** @type {"LOW"} */ (each)] ?? each).join(", ") : name.startsWith("created") && name !== "createdWithin" ? value.slice(0, 10) : listed.join(", ");
  return /** @type {Record<string, (value: string) => string>} */ (t.filter.chips)[name]?.(shown) ?? `${name}: ${shown}`;
}

/** @typedef {(changes: Record<string, string | null>) => void} Change */

/** The conditions of the view as chips with a button that removes them. @param {{conditions: URLSearchParams, change: Change, clear: () => void, focusList: () => void}} props */
export function FilterChips({ conditions, change, clear, focusList }) {
  const shown = [...conditions].filter(([name]) => name !== "status" && name !== "sort" && name !== "unread");
  if (!shown.length) return null;
  const remove = (/** @type {string} */ name) => (change({ [name]: null }), queueMicrotask(() => /** @type {HTMLElement | null} */ (document.querySelector(".filter-chips button"))?.focus() ?? focusList()));
  return html`<div class="filter-chips" role="group" aria-label=${t.filter.active}>
    ${shown.map(([name, value]) => { const text = conditionText(name, value); return html`<span key=${name} class="chip tag"><bdi class="ellipsis">${text}</bdi><button type="button" aria-label=${t.filter.remove(text)} onClick=${() => remove(name)}><${Icon} name="close" /></button></span>`; })}
    ${shown.length > 1 && html`<${Button} label=${t.list.clearFilters} kind="quiet" class="small" press=${() => (clear(), focusList())} />`}
  </div>`;
}

/** @param {{options: {status: string, sort: string, unread: boolean}, change: Change}} props */
export function FilterBar({ options: { status, sort, unread }, change }) {
  const set = (/** @type {Record<string, string | null>} */ changes) => () => change(changes);
  const states = /** @type {Record<string, string>} */ (t.list.statuses);
  const sorts = /** @type {Record<string, string>} */ (t.list.sorts);
  /** @returns {import("../ui/parts.js").Entry[]} */
  const statuses = () => [
    ...["active", "OPEN", "PENDING", "CLOSED", "all", "archived"].map((each) => ({ label: states[each] ?? "", checked: status === each, pick: set({ status: each }) })),
    "line",
    { label: t.list.unread, checked: unread, pick: set({ unread: unread ? null : "true" }) },
    "line",
    { label: t.list.readAll, icon: "check", pick: () => void runCommand("readAll") },
  ];
  const orders = () => Object.keys(sorts).map((each) => ({ label: sorts[each] ?? "", checked: sort === each, pick: set({ sort: each }) }));
  return html`<${Menu} label=${(states[status] ?? "") + (unread ? ` · ${t.list.unread}` : "")} kind="quiet" class="small" caret entries=${statuses} />
    <${Button} label=${t.filter.button} icon="filter" kind="quiet" class="small" popup="dialog" keys="f" press=${() => (dialog.value = { name: "filter" })} />
    <span class="grow"></span>
    <${Menu} label=${sorts[sort]} icon="sort" kind="quiet" class="small" entries=${orders} />`;
}
