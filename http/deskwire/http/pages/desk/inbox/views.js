// @ts-check
/** The views of the inbox in the navigation. */
import { html } from "../vendor/preact.js";
import { t } from "../core/texts-lazy.js";
import { Icon } from "../ui/parts.js";
import { Link } from "../ui/link.js";
import { counters } from "../core/store.js";
import { page, people } from "../core/session.js";
import { VIEWS, addressOfView, view } from "./list.js";
/** @import { View } from "./list.js" */

/** @param {{to: View, label: string, icon: string, n?: number}} props */
function Entry({ to, label, icon, n }) {
  const here = !page.value && view.value.key === to.key && view.value.id === to.id;
  return html`<li><${Link} to=${addressOfView(to)} class="view" aria-current=${here ? "page" : undefined} title=${label}><${Icon} name=${icon} /><span class="label-text ellipsis">${label}</span>${n ? html`<span class="count">${t.count(n, counters.value?.bound ?? 1000)}</span>` : null}<//></li>`;
}

/** The lists of views in the navigation. */
export function Views() {
  const all = counters.value;
  const { teams } = people();
  return html`<ul>${VIEWS.map((each) => html`<${Entry} key=${each.key} to=${{ key: each.key }} label=${/** @type {any} */ (t.views)[each.key]} icon=${each.icon} n=${all ? each.count?.(all) : undefined} />`)}</ul>
    ${teams.length > 0 && html`<h2>${t.views.team}</h2><ul>${teams.map((each) => html`<${Entry} key=${each.id} to=${{ key: "team", id: each.id }} label=${each.name} icon="people" n=${all?.teams[each.id]} />`)}</ul>`}`;
}
