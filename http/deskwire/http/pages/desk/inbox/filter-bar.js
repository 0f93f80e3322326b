// @ts-check
/** The filter and order of the list's view. */
import { html } from "../vendor/preact.js";
import { t } from "../core/texts-lazy.js";
import { Menu } from "../ui/parts.js";
import { runCommand } from "../core/keys.js";
import { setConditions } from "./list.js";

/** @param {{options: {status: string, sort: string, unread: boolean}}} props */
export function FilterBar({ options: { status, sort, unread } }) {
  const set = (/** @type {Record<string, string | null>} */ change) => () => setConditions(change);
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
  return html`<${Menu} label=${(states[status] ?? "") + (unread ? ` · ${t.list.unread}` : "")} icon="filter" kind="quiet" class="small" entries=${statuses} />
    <span class="grow"></span>
    <${Menu} label=${sorts[sort]} icon="sort" kind="quiet" class="small" entries=${orders} />`;
}
