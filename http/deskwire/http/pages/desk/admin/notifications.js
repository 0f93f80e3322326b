// @ts-check
/** The user's notification settings, and the permission of this browser. */
import { html, useEffect, useState } from "../vendor/preact.js";
import { t } from "./texts.js";
import { Ago, Button, notificationsWanted, notify } from "../ui/parts.js";
import { Frame, Section } from "../ui/frame.js";
import { Table } from "../ui/table.js";
import { States, useCall } from "../ui/loading.js";
import { Field, FieldProblems, Form, Tick } from "../ui/form.js";
import { hrefOf } from "../core/session.js";
import { save as store } from "../core/notification-settings.js";
import { obstacle, permitted, playSound, show, startWorker } from "../core/notifier.js";
import { isOn, obstacle as pushObstacle, turnOff, turnOn } from "../core/push.js";
/** @import { Values } from "../ui/form.js" */
/** @import { NotificationSettings, Push } from "../core/types.js" */

const DAYS = /** @type {(keyof typeof t.notifications.weekdays)[]} */ (["mon", "tue", "wed", "thu", "fri", "sat", "sun"]);
const OWN_ZONE = new Intl.DateTimeFormat().resolvedOptions().timeZone;

/** @param {string} chosen */
const zones = (chosen) => [...new Set([chosen, OWN_ZONE, "UTC", ...Intl.supportedValuesOf("timeZone")])].sort().map((value) => ({ value, label: value }));

/** The permission of this browser. The browser's question appears after a click only. */
function ThisBrowser() {
  const [, render] = useState(0);
  const words = t.notifications;
  const why = obstacle();
  const on = permitted() && notificationsWanted.value;
  const turnOn = async () => {
    const answer = await Notification.requestPermission();
    if (answer === "granted") {
      await startWorker();
      notificationsWanted.value = true;
    } else if (answer === "default") notify(words.dismissed, { bad: true });
    render((n) => n + 1);
  };
  const example = async () => {
    playSound();
    await show({ title: words.tryTitle, body: words.tryBody, conversationId: null, eventId: null });
  };
  return html`<${Section} title=${words.browser}><p class="lead">${why ? words[why] : on ? words.isOn : words.isOff}</p>
    ${!why && html`<div class="actions">${on && html`<${Button} label=${words.try} press=${example} />`}
      ${on ? html`<${Button} label=${words.off} press=${() => void (notificationsWanted.value = false)} />` : html`<${Button} label=${words.on} kind="primary" press=${turnOn} />`}</div>`}
  <//>`;
}

/** Push notifications of this browser, for the time in which the desk is closed. */
function DeskClosed() {
  const [on, setOn] = useState(/** @type {boolean|null} */ (null));
  const words = t.notifications.closed;
  const why = pushObstacle();
  useEffect(() => void isOn().then(setOn), []);
  const change = async (/** @type {boolean} */ wanted) => {
    if (wanted && (await Notification.requestPermission()) !== "granted") return notify(t.notifications.dismissed, { bad: true });
    try {
      await (wanted ? turnOn() : turnOff());
    } catch (error) {
      if (!(error instanceof DOMException)) throw error;
      notify(words.failed, { bad: true }); // such as a browser without a connection to its push service
    }
    setOn(await isOn());
  };
  return html`<${Section} title=${words.title}><p class="lead">${why === "noPush" ? words.noPush : why ? t.notifications[why] : on ? words.isOn : words.isOff}</p>
    ${!why && html`<div class="actions">${on ? html`<${Button} label=${words.off} press=${() => change(false)} />` : html`<${Button} label=${words.on} press=${() => change(true)} />`}</div>`}
    <${Pushes} />
  <//>`;
}

/** The newest pushes, each with the reason why it was sent or not; nothing without any. */
function Pushes() {
  const of = useCall("users/me/pushes?limit=20");
  const words = t.notifications.closed;
  const rows = of.data?.items ?? of.data ?? [];
  const columns = [
    { label: words.at, cell: (/** @type {Push} */ row) => html`<a href=${hrefOf(`c/${row.conversationId}`, row.projectId)}><${Ago} at=${row.createdAt} /></a>` },
    { label: words.result, cell: (/** @type {Push} */ row) => (row.reason ? words.reasons[row.reason] : words.waiting) },
  ];
  return rows.length > 0 && html`<details><summary>${words.recent}</summary><${Table} quiet caption=${words.recent} columns=${columns} rows=${rows} /></details>`;
}

/** Return the settings in a form. @param {Values} form @returns {NotificationSettings} */
function settingsOf(form) {
  const [start, end, days] = [form.text("start") ?? null, form.text("end") ?? null, /** @type {any[]} */ (form.all("days"))];
  const quiet = start !== null || end !== null || days.length > 0;
  return {
    mine: form.on("mine"), teams: form.on("teams"), unassigned: form.on("unassigned"), mentions: form.on("mentions"),
    preview: form.on("preview"), sound: form.on("sound"),
    quietHours: quiet ? { start, end, days, timeZone: form.raw("timeZone") } : null,
  };
}

export function Page() {
  const of = useCall("users/me/notifications");
  const [edits, setEdits] = useState(0);
  const save = async (/** @type {Values} */ form) => {
    of.put(await store(settingsOf(form)));
    setEdits((n) => n + 1);
    notify(t.notifications.saved);
  };
  const words = t.notifications;
  return html`<${Frame} title=${t.pages.notifications} calls=${[of.call]}><${ThisBrowser} /><${DeskClosed} /><${States} of=${of}>${(/** @type {NotificationSettings} */ found) => {
    const quiet = found.quietHours;
    return html`<${Section} title=${words.title}><p class="lead">${words.everywhere}</p><${Form} key=${edits} save=${save} label=${t.saveChanges}>
      <fieldset><legend>${words.which}</legend>${/** @type {const} */ (["mine", "teams", "unassigned", "mentions"]).map((name) => html`<${Tick} key=${name} name=${name} label=${words[name]} initial=${found[name]} />`)}</fieldset>
      <fieldset><legend>${words.how}</legend><${Tick} name="preview" label=${words.preview} hint=${words.previewHint} initial=${found.preview} /><${Tick} name="sound" label=${words.sound} initial=${found.sound} /></fieldset>
      <fieldset><legend>${words.quiet}</legend><p class="hint">${words.quietHint}</p>
        <div class="field-row"><${Field} name="start" type="time" label=${words.start} initial=${quiet?.start} /><${Field} name="end" type="time" label=${words.end} initial=${quiet?.end} />
          <${Field} name="timeZone" label=${words.zone} options=${zones(quiet?.timeZone ?? OWN_ZONE)} initial=${quiet?.timeZone ?? OWN_ZONE} /></div>
        <${FieldProblems} name="quietHours" /></fieldset>
      <fieldset class="two"><legend>${words.days}</legend>${DAYS.map((day) => html`<${Tick} key=${day} name="days" value=${day} label=${words.weekdays[day]} initial=${quiet?.days.includes(day) ?? false} />`)}</fieldset>
    <//><//>`;
  }}<//><//>`;
}
