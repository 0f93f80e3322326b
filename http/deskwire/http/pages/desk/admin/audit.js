// @ts-check
/** The audit trail of the organisation: each action with its actor, object, time and address. */
import { number } from "../core/texts.js";
import { html } from "../vendor/preact.js";
import { t } from "./texts.js";
import { Button, Empty, Name, clockTime, fullTime } from "../ui/parts.js";
import { dayOf } from "../ui/format.js";
import { go, people, project } from "../core/session.js";
import { Frame } from "../ui/frame.js";
import { ListTable } from "../ui/table.js";
import { useList } from "../ui/loading.js";
import { setQuery, query } from "../ui/link.js";
import { fromLocal, nameOf, toLocal } from "../ui/names.js";

const FILTERS = ["actor", "object", "since", "until"];

/** Return the code of an action, or the name of a field, in words: `sign_in.new_device` is *Sign in new device*. @param {string} code */
function inWords(code) {
  const words = code.replace(/[._]/g, " ").replace(/([a-z])([A-Z])/g, (_, before, next) => `${before} ${next.toLowerCase()}`);
  return words.charAt(0).toUpperCase() + words.slice(1);
}

/** Return an action in words; one of a newer service by its name. @param {string} action */
const actionText = (action) => (/** @type {Record<string, string>} */ (t.audit.actions))[action] ?? inWords(action);

/** Return a value in words. @param {any} value */
const valueText = (value) => (value === null ? t.none : typeof value === "object" ? JSON.stringify(value) : String(value));

/** The changes and details of a record. @param {{of: any}} props */
function Details({ of }) {
  const changes = Object.entries(of.changes).map(([name, { before, after }]) => `${inWords(name)}: ${valueText(before)} → ${valueText(after)}`);
  const details = Object.entries(of.details).map(([name, value]) => `${inWords(name)}: ${valueText(value)}`);
  return html`<span dir="auto">${[...changes, ...details].join("; ")}</span>`;
}

export function Page() {
  const now = query.value;
  const filter = Object.fromEntries(FILTERS.flatMap((name) => (now.get(name) ? [[name, now.get(name)]] : [])));
  const of = useList(`organisations/${project.value?.organisationId}/audit`, filter);
  const actors = [{ value: "", label: t.audit.anyActor }, ...["server_key", "machine", "operator", "system"].map((each) => ({ value: each, label: /** @type {any} */ (t.audit.actors)[each] })), ...people().users.map((each) => ({ value: each.id, label: each.name }))];
  const time = (/** @type {string} */ name, /** @type {string} */ label) => html`<label class="label"><span>${label}</span><input class="field" type="datetime-local" defaultValue=${toLocal(now.get(name))} onChange=${(/** @type {any} */ event) => setQuery({ [name]: fromLocal(event.target.value) })} /></label>`;
  const tools = html`<label class="label"><span class="sr">${t.audit.actor}</span><select class="field" onChange=${(/** @type {any} */ event) => setQuery({ actor: event.target.value })}>${actors.map((each) => html`<option key=${each.value} value=${each.value} selected=${each.value === (now.get("actor") ?? "")}>${each.label}</option>`)}</select></label>${time("since", t.audit.since)}${time("until", t.audit.until)}`;
  const columns = [
    { label: t.audit.at, cell: (/** @type {any} */ row) => html`<time datetime=${row.at} title=${fullTime(row.at)}>${dayOf(row.at)}, ${clockTime(row.at)}</time>` },
    { label: t.audit.actor, cell: (/** @type {any} */ row) => html`<${Name} name=${nameOf(row.actor.id) ?? /** @type {any} */ (t.audit.actors)[row.actor.type] ?? row.actor.type} />${row.address && html`<br /><span class="muted">${row.address}</span>`}` },
    { label: t.audit.action, cell: (/** @type {any} */ row) => html`<span title=${row.action}>${actionText(row.action)}</span>${row.count > 1 && html` <span class="chip">× ${number(row.count)}</span>`}` },
    { label: t.audit.object, less: true, cell: (/** @type {any} */ row) => html`<code class="mono">${nameOf(row.object.id)}</code>` },
    { label: t.audit.details, less: true, cell: (/** @type {any} */ row) => html`<${Details} of=${row} />` },
  ];
  const empty = Object.keys(filter).length
    ? html`<${Empty} icon="filter" title=${t.audit.noneFound} action=${html`<${Button} label=${t.clearFilters} press=${() => go("settings/audit", { replace: true })} />`} />`
    : html`<${Empty} icon="clock" title=${t.audit.none} />`;
  return html`<${Frame} title=${t.pages.audit} tools=${tools} calls=${[of.call]}><${ListTable} of=${of} caption=${t.pages.audit} columns=${columns} empty=${empty} /><//>`;
}
