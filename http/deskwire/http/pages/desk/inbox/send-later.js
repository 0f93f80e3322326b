// @ts-check
/** The dialog that asks for the time of a reply. */
import { html, useState } from "../vendor/preact.js";
import { t } from "./scheduled-texts.js";
import { Icon, clockTime, dialog } from "../ui/parts.js";
import { Dialog } from "../ui/dialog.js";
import { momentAhead, tomorrow, zoneName } from "../ui/format.js";
/** @import { Later } from "../core/outbox.js" */

const HOUR_MS = 3_600_000;
const YEAR_MS = 366 * 24 * HOUR_MS;
const MONDAY = 1;
const close = () => void (dialog.value = null);

/** Whether the last reply was to be sent only if the customer had not written. */
let condition = true;

/** Return the times to choose from; Monday is left out if it is tomorrow. @returns {{label: string, at: Date}[]} */
export function scheduleTimes() {
  const next = tomorrow();
  const monday = tomorrow();
  monday.setDate(monday.getDate() + ((MONDAY + 7 - monday.getDay()) % 7));
  const all = [{ label: t.inAnHour, at: new Date(Date.now() + HOUR_MS) }, { label: t.tomorrow, at: next }, { label: t.monday, at: monday }];
  return monday.getTime() === next.getTime() ? all.slice(0, 2) : all;
}

/** Return a moment as the value of a field for a local date and time. @param {Date} at */
function fieldValue(at) {
  const local = new Date(at.getTime() - at.getTimezoneOffset() * 60_000);
  return local.toISOString().slice(0, 16);
}

/** @param {{to: string, send: (later: Later) => void}} props */
export function SendLater({ to, send }) {
  const [at, setAt] = useState("");
  const [wrong, setWrong] = useState("");
  const [unlessReplied, setUnlessReplied] = useState(condition);
  const choose = (/** @type {Date} */ date) => {
    condition = unlessReplied;
    close();
    send({ sendAt: date.toISOString(), unlessReplied });
  };
  const submit = (/** @type {Event} */ event) => {
    event.preventDefault();
    const ahead = new Date(at).getTime() - Date.now();
    if (ahead > 0 && ahead <= YEAR_MS) return choose(new Date(at));
    setWrong(ahead > 0 ? t.tooFar : t.inPast);
  };
  const hint = (/** @type {Date} */ date) => (date.toDateString() === new Date().toDateString() ? clockTime(date.getTime()) : momentAhead(date));
  return html`<${Dialog} title=${t.title} close=${close}><div class="body">
    <div>${scheduleTimes().map((each, i) => html`<button type="button" key=${each.label} class="menu-item" autofocus=${i === 0} onClick=${() => choose(each.at)}><${Icon} name=${i ? "sun" : "clock"} /><span>${each.label}</span><span class="hint num">${hint(each.at)}</span></button>`)}</div>
    <form class="inline" noValidate onSubmit=${submit}><label class="label grow">${t.date}<input class="field" type="datetime-local" required value=${at} min=${fieldValue(new Date())} max=${fieldValue(new Date(Date.now() + YEAR_MS))} aria-invalid=${Boolean(wrong)} aria-describedby=${wrong ? "wrong-time time-zone" : "time-zone"} onInput=${(/** @type {any} */ event) => (setAt(event.target.value), setWrong(""))} /></label><button type="submit" class="button primary">${t.schedule}</button></form>
    ${wrong && html`<p class="wrong" id="wrong-time" role="alert">${wrong}</p>`}
    <p class="muted" id="time-zone">${t.zone(zoneName)}</p>
    <label class="switch"><input type="checkbox" checked=${unlessReplied} onChange=${(/** @type {any} */ event) => setUnlessReplied(event.target.checked)} /><span>${t.unlessReplied(to)}<br /><span class="muted">${t.unlessRepliedText}</span></span></label>
  </div><//>`;
}
