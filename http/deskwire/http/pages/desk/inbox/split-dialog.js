// @ts-check
/** The dialog in which an agent chooses the messages that a new conversation starts with, and its subject. */
import { html, useRef, useState } from "../vendor/preact.js";
import { t } from "./split-texts.js";
import { contactName, dialog } from "../ui/parts.js";
import { newKey } from "../core/api.js";
import { row } from "../core/store.js";
import { Dialog } from "../ui/dialog.js";
import { Field, Form } from "../ui/form.js";
import { thread } from "./conversation.js";
import { MESSAGES_MAX, messagesFrom } from "./split-choice.js";
import { split } from "./splitting.js";
/** @import { AgentMessage } from "../core/types.js" */
/** @import { Values } from "../ui/form.js" */

const SUBJECT_MAX = 500;
const WORDS_MAX = 160;
const close = () => void (dialog.value = null);

/** @param {{message: AgentMessage}} props */
export function SplitOff({ message }) {
  const id = message.conversationId;
  const one = row(id);
  const name = contactName(one?.contact);
  const { free, taken } = messagesFrom(thread(id).messages, message, one?.merged);
  const [later, setLater] = useState(message.internal);
  const sent = useRef({ words: "", key: "" });
  const chosen = later ? free.slice(0, MESSAGES_MAX) : [message];
  const seen = chosen.some((each) => !each.internal);
  const save = async (/** @type {Values} */ form) => {
    if (!seen) throw new Error(t.notesOnly(name));
    const body = { messageIds: chosen.map((each) => each.id), title: form.text("title") ?? null };
    const words = JSON.stringify(body);
    if (sent.current.words !== words) sent.current = { words, key: newKey() }; // a repeated call after a lost response has the same key, another choice has another
    await split(id, body, sent.current.key);
    close();
  };
  const words = [...message.text].length > WORDS_MAX ? `${[...message.text].slice(0, WORDS_MAX).join("")}…` : message.text;
  return html`<${Dialog} title=${t.title} class="wide" close=${close}><div class="body">
    <p class="muted">${t.about(name)}</p>
    <${Form} save=${save} label=${t.start} cancel=${close}>
      <${Field} name="title" label=${t.subject} maxlength=${SUBJECT_MAX} dir="auto" autofocus />
      <fieldset><legend>${t.which}</legend>
        <${Choice} checked=${!later} disabled=${message.internal} choose=${() => setLater(false)} label=${t.only} hint=${message.internal ? t.onlyNote(name) : words || t.noText} />
        ${free.length > 1 && html`<${Choice} checked=${later} choose=${() => setLater(true)} label=${t.later(free.length)} hint=${[free.length > MESSAGES_MAX && t.tooMany(MESSAGES_MAX, free.length), taken > 0 && t.leftOut(taken)].filter(Boolean).join(" ")} />`}
      </fieldset>
    <//>
  </div><//>`;
}

/** @param {{checked: boolean, disabled?: boolean, choose: () => void, label: string, hint: string}} props */
const Choice = ({ checked, disabled, choose, label, hint }) =>
  html`<label class="switch"><input type="radio" name="which" checked=${checked} disabled=${disabled} onChange=${choose} /><span>${label}${hint && html`<br /><bdi class="muted">${hint}</bdi>`}</span></label>`;
