// @ts-check
/** What stands in a list without a conversation. */
import { html } from "./vendor/preact.js";
import { t } from "./later-texts.js";
import { Button, Empty } from "./parts.js";
import { chosen, plain, view } from "./list.js";
import { counters } from "./store.js";

export function Nothing() {
  const { key } = view.value;
  const texts = /** @type {any} */ (t.list);
  if (!plain.value) {
    const clear = () => (chosen.value = Object.fromEntries(Object.entries(chosen.value).filter(([each]) => each !== key)));
    return html`<${Empty} icon="filter" title=${t.list.filtered} action=${html`<${Button} label=${t.list.clearFilters} press=${clear} />`} />`;
  }
  const snoozed = key !== "snoozed" && key !== "all" ? (counters.value?.snoozed ?? 0) : 0;
  return html`<${Empty} icon=${key === "mine" || key === "waiting" ? "done" : "inbox"} title=${texts.empty[key]} text=${snoozed ? `${texts.emptyText[key]} ${t.list.snoozedToo(snoozed)}` : texts.emptyText[key]} />`;
}
