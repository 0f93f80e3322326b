// @ts-check
/** The views of the inbox in the navigation. */
import { html } from "../vendor/preact.js";
import { number } from "../core/texts.js";
import { t } from "../core/texts-lazy.js";
import { Icon } from "../ui/parts.js";
import { Link } from "../ui/link.js";
import { counters } from "../core/store.js";
import { page, people } from "../core/session.js";
import { VIEWS, addressOfView, countText, view } from "./list.js";
import { t as texts } from "./saved-view-texts.js";
import { listedViews } from "./saved-views.js";
/** @import { View } from "./list.js" */

/** @param {{to: View, label: string, icon: string, n?: number, some?: {value: number, more: boolean} | null}} props  n: of a counter; some: of a saved view */
function Entry({ to, label, icon, n, some }) {
  const here = !page.value && view.value.key === to.key && view.value.id === to.id;
  return html`<li><${Link} to=${addressOfView(to)} class="view" aria-current=${here ? "page" : undefined} title=${label}><${Icon} name=${icon} /><span class="label-text ellipsis">${label}</span>${n ? html`<span class="count">${countText(n, counters.value?.bound ?? 1000)}</span>` : some?.value || some?.more ? html`<span class="count">${(some.more ? t.countMore : number)(some.value)}</span>` : null}<//></li>`;
}

const SAVED_ICONS = { me: "person", team: "people", project: "filter" };

/** The lists of views in the navigation. */
export function Views() {
  const all = counters.value;
  const { teams } = people();
  const saved = listedViews();
  return html`<ul>${VIEWS.map((each) => html`<${Entry} key=${each.key} to=${{ key: each.key }} label=${/** @type {any} */ (t.views)[each.key]} icon=${each.icon} n=${all ? each.count?.(all) : undefined} />`)}</ul>
    ${teams.length > 0 && html`<h2>${t.views.team}</h2><ul>${teams.map((each) => html`<${Entry} key=${each.id} to=${{ key: "team", id: each.id }} label=${each.name} icon="people" n=${all?.teams[each.id]} />`)}</ul>`}
    ${saved.length > 0 && html`<h2>${texts.title}</h2><ul>${saved.map((each) => html`<${Entry} key=${each.id} to=${{ key: "view", id: each.id }} label=${each.name} icon=${SAVED_ICONS[each.visibility]} some=${each.count} />`)}</ul>`}`;
}
