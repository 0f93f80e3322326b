// @ts-check
/** The dialog with the further conditions of a view. The service checks them, and names the wrong ones. */
import { html } from "../vendor/preact.js";
import { t } from "../core/texts-lazy.js";
import { dialog } from "../ui/parts.js";
import { get } from "../core/api.js";
import { assignable, people, user } from "../core/session.js";
import { Dialog } from "../ui/dialog.js";
import { Field, FieldProblems, Form, Tick } from "../ui/form.js";
import "../ui/page-style.js";
import { tags } from "./conversation.js";
import { NAMES, ratingText } from "./filter-bar.js";
import { conditions, setConditions, view } from "./list.js";
/** @import { Values } from "../ui/form.js" */

const close = () => void (dialog.value = null);
const DURATIONS = ["1h", "4h", "1d", "3d", "7d", "30d", "90d"];
/** Return a duration such as 3d in words. @param {string} each */
const durationText = (each) => t.filter.durations[/** @type {"m"|"h"|"d"|"w"} */ (each.slice(-1))](Number(each.slice(0, -1)));
const RATINGS = ["0..6", "7..8", "9..10", "1..2", "3", "4..5"];
const LISTS = ["assignee", "priority"];
const WITHOUT_FIELD = ["createdSince", "createdUntil", "channel"]; // they stay as they are

/** @param {string} name @param {string[]} values @param {(value: string) => string} label @param {string} any */
const choice = (name, values, label, any) => {
  const now = conditions.peek().get(name) ?? (name === "rating" && conditions.peek().get("rated") === "false" ? "none" : "");
  const all = now && !values.includes(now) ? [now, ...values] : values;
  return html`<${Field} name=${name} label=${t.filter.fields[/** @type {"rating"} */ (name)]} initial=${now} options=${[{ value: "", label: any }, ...all.map((each) => ({ value: each, label: label(each) }))]} />`;
};
/** @param {string} name @param {string} hint */
const text = (name, hint) => html`<${Field} name=${name} label=${t.filter.fields[/** @type {"tag"} */ (name)]} hint=${hint} initial=${conditions.peek().get(name)} list=${/ag/.test(name) ? "filter-tags" : undefined} maxlength="400" />`;

/** @param {string} name @param {{value: string, label: string}[]} options */
function ticks(name, options) {
  const now = new Set((conditions.peek().get(name) ?? "").split(","));
  return html`<fieldset class="two"><legend>${t.filter.fields[/** @type {"tag"} */ (name)]}</legend>${options.map((each) => html`<${Tick} key=${each.value} name=${name} value=${each.value} label=${html`<bdi>${each.label}</bdi>`} initial=${now.has(each.value)} />`)}<${FieldProblems} name=${name} /></fieldset>`;
}

/** The conditions in a form; null for those without a value. @param {Values} form @returns {Record<string, string | null>} */
function given(form) {
  const found = NAMES.filter((name) => !WITHOUT_FIELD.includes(name)).map((name) => [name, LISTS.includes(name) ? form.all(name).join(",") || null : (form.text(name) ?? null)]);
  const all = Object.fromEntries(found);
  if (all.rating === "none") (all.rating = null), (all.rated = "false");
  return all;
}

/** The dialog. */
export function Filters() {
  const save = async (/** @type {Values} */ form) => {
    const all = given(form);
    await get("conversations", { ...all, view: "agent", limit: 1 }); // throws what the fields show
    setConditions(all);
    close();
  };
  const others = assignable().filter((each) => each.id !== user.value?.id);
  const assignees = [{ value: "me", label: t.you }, { value: "none", label: t.dialogs.unassigned }, ...people().teams.map((each) => ({ value: each.id, label: each.name })), ...others.map((each) => ({ value: each.id, label: each.name }))];
  const within = (/** @type {string} */ each) => t.filter.within(durationText(each));
  const before = (/** @type {string} */ each) => t.filter.before(durationText(each));
  const priorities = Object.entries(t.filter.priorities).map(([value, label]) => ({ value, label }));
  const rating = (/** @type {string} */ each) => (each === "none" ? t.filter.unrated : ratingText(each));
  return html`<${Dialog} title=${t.filter.title} class="filters" close=${close}><div class="body"><${Form} save=${save} label=${t.filter.apply} cancel=${close}>
    ${text("tag", t.filter.separated)}${text("allTags", t.filter.separated)}${text("withoutTags", t.filter.separated)}
    <datalist id="filter-tags">${tags().map((each) => html`<option key=${each.name} value=${each.name} />`)}</datalist>
    <div class="two">${choice("activeWithin", DURATIONS, within, t.filter.anyTime)}${choice("inactiveFor", DURATIONS, before, t.filter.anyTime)}
    ${choice("createdWithin", DURATIONS, within, t.filter.anyTime)}${choice("waitingFor", DURATIONS, (each) => t.filter.atLeast(durationText(each)), t.filter.any)}</div>
    ${text("contactAttribute", t.filter.attributeHint)}
    ${choice("rating", ["none", ...RATINGS], rating, t.filter.any)}
    ${ticks("priority", priorities)}
    ${["mine", "unassigned", "team"].includes(view.value.key) ? null : ticks("assignee", assignees)}
  <//></div><//>`;
}
