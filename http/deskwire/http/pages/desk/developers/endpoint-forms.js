// @ts-check
/** Dialogs of an endpoint: its settings, a new secret, and recovery and replay after a dry run. */
import { html, useEffect, useState } from "../vendor/preact.js";
import { t } from "./texts.js";
import { Button, Icon, notify } from "../ui/parts.js";
import { Dialog } from "../ui/dialog.js";
import { call, newKey } from "../core/api.js";
import { Field, Form, Tick } from "../ui/form.js";
import { CONTRACT, EXTENSIONS, INTERNAL, TYPING } from "./event-types.js";
import { errorText } from "./format.js";
/** @import { Values } from "../ui/form.js" */

/** Return a period in words. @param {number} hours */
const periodText = (hours) => t.again.hours[/** @type {24} */ (hours)] ?? t.again.days(hours / 24);

const GROUPS = /** @type {[string, string[]][]} */ ([[t.form.contract, CONTRACT], [t.form.typing, TYPING], [t.form.extensions, EXTENSIONS], [t.form.internal, INTERNAL]]);

/**
 * Register or change an endpoint.
 * @param {{endpoint?: any, done: (endpoint: any) => void, close: () => void}} props
 */
export function Edit({ endpoint, done, close }) {
  const [key] = useState(newKey);
  const [chosen, choose] = useState((endpoint?.events ?? []).length > 0);
  const save = async (/** @type {Values} */ form) => {
    const events = chosen ? form.all("events") : [];
    const body = { url: form.text("url") ?? "", description: form.text("description") ?? null, events, catchUp: form.on("catchUp") ? "automatic" : "off", internal: events.some((each) => INTERNAL.includes(each)) };
    const answer = endpoint ? await call("PATCH", `webhooks/${endpoint.id}`, { body }) : await call("POST", "webhooks", { body, key });
    close();
    done(answer);
  };
  return html`<${Dialog} title=${endpoint ? t.form.change : t.webhooks.register} class="wide" close=${close}><div class="body"><${Form} save=${save} label=${endpoint ? t.save : t.form.registerIt} cancel=${close}>
    <${Field} name="url" label=${t.form.url} hint=${t.form.urlHint} initial=${endpoint?.url} type="url" mono spellcheck="false" autofocus />
    <${Field} name="description" label=${t.form.description} hint=${t.form.descriptionHint} initial=${endpoint?.description} maxlength="500" />
    <fieldset><legend>${t.form.events}</legend>
      <label class="switch"><input type="radio" name="which" checked=${!chosen} onChange=${() => choose(false)} /><span>${t.form.all}<br /><span class="muted">${t.form.allText}</span></span></label>
      <label class="switch"><input type="radio" name="which" checked=${chosen} onChange=${() => choose(true)} /><span>${t.form.these}</span></label>
      ${chosen && GROUPS.map(([title, types]) => html`<fieldset key=${title}><legend>${title}</legend>${types.map((each) => html`<${Tick} key=${each} name="events" value=${each} label=${html`<span class="mono">${each}</span>`} initial=${endpoint?.events.includes(each)} />`)}</fieldset>`)}
    </fieldset>
    <${Tick} name="catchUp" label=${t.form.catchUp} hint=${t.form.catchUpText} initial=${endpoint ? endpoint.catchUp === "automatic" : true} />
  <//></div><//>`;
}

/**
 * Show the result of a dry run for `about`, and a button that sends the events.
 * @param {{about: any, find: () => Promise<any>, send: () => Promise<any>, sent: (answer: any) => void, disabled?: string}} props
 *   about: null without input. disabled: the reason why nothing can be sent
 */
function DryRun({ about, find, send, sent, disabled }) {
  const [found, setFound] = useState(/** @type {any} */ (null));
  const [wrong, setWrong] = useState("");
  const [busy, setBusy] = useState(false);
  useEffect(() => {
    setFound(null);
    setWrong("");
    if (about === null) return;
    let left = false;
    find().then((answer) => !left && setFound(answer), (error) => !left && setWrong(errorText(error)));
    return () => void (left = true);
  }, [JSON.stringify(about)]);
  const press = async () => {
    setBusy(true);
    try {
      sent(await send());
    } catch (error) {
      setWrong(errorText(error));
    }
    setBusy(false);
  };
  const words = found && [t.again.would(found.count), found.pending > 0 && t.again.pending(found.pending), found.notStored > 0 && t.again.notStored(found.notStored)].filter(Boolean);
  return html`<div role="status" class="dry">${about === null ? null : wrong ? html`<p class="wrong"><${Icon} name="warn" /> ${wrong}</p>` : found ? words.map((/** @type {string} */ each) => html`<p key=${each}>${each}</p>`) : html`<p class="muted">${t.again.counting}</p>`}</div>
    ${disabled && html`<p class="muted">${disabled}</p>`}
    <div class="actions"><${Button} kind="primary" label=${found?.count ? t.again.send(found.count) : t.again.sendNone} disabled=${Boolean(disabled) || busy || !found?.count} press=${press} /></div>`;
}

const HOURS = [1, 24, 168];

/** Recover dropped or skipped deliveries. @param {{endpoint: any, done: () => void, close: () => void}} props */
export function Recover({ endpoint, done, close }) {
  const [hours, setHours] = useState(24);
  const [since, setSince] = useState(() => new Date(Date.now() - 24 * 3_600_000).toISOString());
  const pick = (/** @type {number} */ each) => (setHours(each), setSince(new Date(Date.now() - each * 3_600_000).toISOString()));
  const ask = (/** @type {boolean} */ dryRun) => call("POST", `webhooks/${endpoint.id}/recover`, { body: { since, dryRun } });
  const sent = (/** @type {any} */ answer) => (notify(t.again.sent(answer.count)), close(), done());
  return html`<${Dialog} title=${t.again.recover} close=${close}><div class="body">
    <p>${t.again.recoverText}</p>
    <fieldset class="choice"><legend>${t.again.since}</legend><div class="segments">${HOURS.map((each) => html`<label key=${each}><input type="radio" name="since" checked=${each === hours} onChange=${() => pick(each)} /><span>${periodText(each)}</span></label>`)}</div></fieldset>
    <${DryRun} about=${since} find=${() => ask(true)} send=${() => ask(false)} sent=${sent} disabled=${endpoint.status === "disabled" ? t.again.disabled : undefined} />
  </div><//>`;
}

/** Replay the events of one conversation. @param {{endpoint: any, conversation: string, done: () => void, close: () => void}} props */
export function Replay({ endpoint, conversation, done, close }) {
  const [about, setAbout] = useState(/** @type {any} */ (conversation ? { conversationId: conversation } : null));
  const ask = (/** @type {boolean} */ dryRun) => call("POST", `webhooks/${endpoint.id}/replay`, { body: { ...about, dryRun } });
  const sent = (/** @type {any} */ answer) => (notify(t.again.sent(answer.count)), close(), done());
  const look = async (/** @type {Values} */ form) => {
    const next = { conversationId: conversationIn(form.raw("conversationId")), from: form.number("from"), to: form.number("to") };
    await call("POST", `webhooks/${endpoint.id}/replay`, { body: { ...next, dryRun: true } }); // a refusal names fields of this form
    setAbout(next);
  };
  return html`<${Dialog} title=${t.again.replay} close=${close}><div class="body">
    <p>${t.again.replayText}</p>
    <${Form} save=${look} label=${t.again.look} kind="">
      <${Field} name="conversationId" label=${t.again.conversation} hint=${t.again.conversationHint} initial=${conversation} mono spellcheck="false" autofocus />
      <div class="pair-of-fields"><${Field} name="from" label=${t.again.from} type="number" min="1" /><${Field} name="to" label=${t.again.to} type="number" min="1" /></div>
    <//>
    <${DryRun} about=${about} find=${() => ask(true)} send=${() => ask(false)} sent=${sent} disabled=${endpoint.status === "disabled" ? t.again.disabled : undefined} />
  </div><//>`;
}

/** Return the conversation id in a pasted id or address. @param {string} text */
export const conversationIn = (text) => /cnv_\w+/.exec(text)?.[0] ?? text.trim();
