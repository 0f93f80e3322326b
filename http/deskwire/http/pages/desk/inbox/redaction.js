// @ts-check
/** Redaction and deletion of one message, from its menu in the thread (ADR 21). */
import { html, useRef, useState } from "../vendor/preact.js";
import { t } from "../core/texts-lazy.js";
import { Button, dialog, notify } from "../ui/parts.js";
import { Dialog } from "../ui/dialog.js";
import { call, newKey } from "../core/api.js";
import { reloadThread } from "./conversation.js";
import { Form, Tick } from "../ui/form.js";
import { ConfirmDialog } from "../ui/confirm-dialog.js";
/** @import { AgentMessage } from "../core/types.js" */
/** @import { Values } from "../ui/form.js" */

const close = () => void (dialog.value = null);

/** Return an offset in code points, as the API counts, for one in UTF-16 units. @param {string} text @param {number} at */
const characterOffset = (text, at) => [...text.slice(0, at)].length;

/** @param {{message: AgentMessage, what: "redact"|"delete"}} props */
export const RewriteMessage = ({ message, what }) => (what === "delete" ? html`<${Delete} message=${message} />` : html`<${Redact} message=${message} />`);

/** @param {AgentMessage} message */
const pathOf = (message) => `conversations/${message.conversationId}/messages/${message.id}`;

/** @param {{message: AgentMessage}} props */
function Delete({ message }) {
  const run = async () => {
    await call("DELETE", pathOf(message));
    notify(t.rewrite.deleted);
    reloadThread(message.conversationId);
  };
  return html`<${ConfirmDialog} title=${t.rewrite.delete} loses=${[message.text ? t.rewrite.losesText(message.text.length > 120 ? `${message.text.slice(0, 120)}…` : message.text) : t.rewrite.losesMessage, ...message.attachments.map((each) => t.rewrite.losesFile(each.name)), t.rewrite.losesElsewhere]} stays=${t.rewrite.stays} label=${t.dialogs.delete} run=${run} close=${close} />`;
}

/** @param {{message: AgentMessage}} props */
function Redact({ message }) {
  const [key] = useState(newKey);
  const [ranges, setRanges] = useState(/** @type {{start: number, end: number, words: string}[]} */ ([]));
  const box = useRef(/** @type {HTMLTextAreaElement|null} */ (null));
  const add = () => {
    const { selectionStart: from, selectionEnd: to } = /** @type {HTMLTextAreaElement} */ (box.current);
    if (from === to) return notify(t.rewrite.selectFirst, { bad: true });
    setRanges([...ranges, { start: characterOffset(message.text, from), end: characterOffset(message.text, to), words: message.text.slice(from, to) }]);
  };
  const save = async (/** @type {Values} */ form) => {
    await call("POST", `${pathOf(message)}/redact`, { key, body: { text: form.on("text"), ranges: ranges.map(({ start, end }) => ({ start, end })), attachments: form.all("attachments") } });
    close();
    notify(t.rewrite.redacted);
    reloadThread(message.conversationId);
  };
  return html`<${Dialog} title=${t.rewrite.redact} class="wide" close=${close}><div class="body"><p>${t.rewrite.redactText}</p>
    <label class="label">${t.rewrite.text}<textarea ref=${box} class="field" readonly rows=${Math.min(12, 2 + message.text.split("\n").length)} dir="auto" defaultValue=${message.text}></textarea></label>
    <p><${Button} label=${t.rewrite.addRange} press=${add} /></p>
    ${ranges.length > 0 && html`<ul class="loses">${ranges.map((each) => html`<li key=${`${each.start} ${each.end}`}><bdi>${each.words}</bdi> <${Button} class="small" kind="quiet" label=${t.rewrite.keepRange} press=${() => setRanges(ranges.filter((one) => one !== each))} /></li>`)}</ul>`}
    <${Form} save=${save} label=${t.rewrite.redactIt} kind="danger" cancel=${close}>
      <${Tick} name="text" label=${t.rewrite.allText} />
      ${message.attachments.map((each) => html`<${Tick} key=${each.id} name="attachments" value=${each.id} label=${t.rewrite.file(each.name)} />`)}
    <//><p class="muted">${t.rewrite.forGood}</p></div><//>`;
}
