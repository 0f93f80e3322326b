// @ts-check
/** The ticket of a conversation, shown and changed beside the thread, and the contact's other tickets. */
import { html, useState } from "../vendor/preact.js";
import { t } from "../ui/ticket-texts.js";
import { Button, Icon, Menu, futureTime, notify } from "../ui/parts.js";
import { row } from "../core/store.js";
import { may } from "../core/session.js";
import { runCommand } from "../core/keys.js";
import { ConflictDialog } from "../ui/conflict.js";
import { Link } from "../ui/link.js";
import { States } from "../ui/loading.js";
import { choices, teamChoices, userChoices } from "../ui/names.js";
import { snoozeTimes } from "../ui/format.js";
import { LABELS, Priority, fieldText, useTicket } from "../ui/ticket-fields.js";
import { saveField } from "./tickets.js";

const TYPE_MAX = 50;

/** @param {{id: string, others: any[]}} props  others: tickets of the contact */
export function TicketPanel({ id, others }) {
  const ticketId = row(id)?.ticketId;
  const rest = others.filter((each) => each.id !== ticketId);
  return html`${ticketId ? html`<${Linked} key=${ticketId} id=${ticketId} />` : html`<${None} />`}
    ${rest.length > 0 && html`<h3>${t.others}</h3><div>${rest.map((each) => html`<${Link} key=${each.id} to=${`tickets/${each.id}`} class="other"><bdi class="ellipsis">${each.title}</bdi><span class="chip">${/** @type {any} */ (t.statuses)[each.status]}</span><//>`)}</div>`}`;
}

/** The ways to a ticket. */
function None() {
  if (!may("tickets.manage")) return html`<p class="muted">${t.noTicket}</p>`;
  return html`<div class="chosen"><${Button} class="small" icon="plus" label=${t.create} keys="shift+t" press=${() => runCommand("ticket")} /><${Button} class="small" kind="quiet" label=${t.linkOne} press=${() => runCommand("linkTicket")} /></div>`;
}

/** @param {{id: string}} props */
function Linked({ id }) {
  const { of, put, own } = useTicket(id, () => false, () => {});
  const [clash, setClash] = useState(/** @type {{name: string, mine: any, theirs: any, tag: string|null}|null} */ (null));
  const save = (/** @type {string} */ name, /** @type {any} */ value, base = of.data, tag = of.tag) => own(async () => {
    try {
      const saved = await saveField(base, tag, name, value);
      put(saved.ticket, saved.tag);
      setClash(saved.conflict ? { name, mine: value, theirs: saved.ticket, tag: saved.tag } : null);
      return !saved.conflict;
    } catch (error) {
      put(of.data, of.tag); // the fields show what is stored
      notify(t.failed(/** @type {Error} */ (error).message), { bad: true });
      return false;
    }
  });
  const again = () => (clash ? save(clash.name, clash.mine, clash.theirs, clash.tag) : Promise.resolve(false));
  return html`<${States} of=${of}>${(/** @type {any} */ ticket) => html`<${Shown} of=${ticket} save=${save} />`}<//>
    ${clash && html`<${ConflictDialog} fields=${[{ label: LABELS[clash.name] ?? clash.name, theirs: fieldText(clash.name, clash.theirs[clash.name]), mine: fieldText(clash.name, clash.mine) }]} keep=${() => {}} save=${again} close=${() => setClash(null)} />`}`;
}

/** The type as text, which changes by others do not overwrite while the user writes. @param {{stored: string, disabled: boolean, save: (text: string) => Promise<boolean>}} props */
function TypeField({ stored, disabled, save }) {
  const [written, setWritten] = useState(/** @type {string|null} */ (null));
  const change = async (/** @type {any} */ event) => {
    const text = event.target.value.trim();
    if (text !== stored) await save(text);
    setWritten(null);
  };
  return html`<label class="label">${LABELS.type}<input class="field" disabled=${disabled} value=${written ?? stored} maxlength=${TYPE_MAX} autocomplete="off" dir="auto" onInput=${(/** @type {any} */ event) => setWritten(event.target.value)} onChange=${change} /></label>`;
}

/** @param {{of: any, save: (name: string, value: any) => Promise<boolean>}} props */
function Shown({ of, save }) {
  const manages = may("tickets.manage");
  const select = (/** @type {string} */ name, /** @type {{value: string, label: string}[]} */ options) => html`<label class="label">${LABELS[name]}<select class="field" disabled=${!manages} value=${of[name] ?? ""} onChange=${(/** @type {any} */ event) => save(name, event.target.value || null)}>${options.map((each) => html`<option key=${each.value} value=${each.value} selected=${each.value === (of[name] ?? "")}>${each.label}</option>`)}</select></label>`;
  const sleep = () => [...snoozeTimes().map((each) => ({ label: each.label, hint: each.hint, pick: () => void save("snoozedUntil", each.at.toISOString()) })), ...(of.snoozedUntil ? [{ label: t.wake, icon: "sun", pick: () => void save("snoozedUntil", null) }] : [])];
  return html`<div class="ticket"><p><${Link} to=${`tickets/${of.id}`} class="name"><bdi>${of.title}</bdi><//></p>
    ${of.description && html`<p class="muted clip" dir="auto">${of.description}</p>`}
    <div class="chosen"><${Priority} of=${of.priority} />${of.snoozedUntil && html`<span class="chip"><${Icon} name="moon" />${t.until(futureTime(of.snoozedUntil))}</span>`}${of.tags.map((/** @type {string} */ each) => html`<span key=${each} class="chip tag"><bdi class="ellipsis">${each}</bdi></span>`)}</div>
    ${select("status", choices(t.statuses))}${select("priority", choices(t.priorities))}
    ${select("processingUser", userChoices(t.unassigned))}${select("processingTeam", teamChoices(t.noTeam))}
    <${TypeField} stored=${of.type ?? ""} disabled=${!manages} save=${(/** @type {string} */ text) => save("type", text || null)} />
    <div class="chosen">${manages && html`<${Menu} label=${t.snooze} icon="moon" class="small" entries=${sleep} />`}<${Link} to=${`tickets/${of.id}`} class="button small" aria-keyshortcuts="Shift+T"><span>${t.open}</span><//>${manages && html`<${Button} class="small" kind="quiet" label=${t.unlink} press=${() => runCommand("unlinkTicket")} />`}</div>
  </div>`;
}
