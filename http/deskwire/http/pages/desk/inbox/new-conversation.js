// @ts-check
/** The dialog for a new conversation. */
import { html, useEffect, useRef, useState } from "../vendor/preact.js";
import { t } from "../core/texts-lazy.js";
import { Avatar, Button, Icon, contactName, cx, dialog } from "../ui/parts.js";
import { Dialog } from "../ui/dialog.js";
import { call, get, newKey } from "../core/api.js";
import { MESSAGE_TEXT_MAX } from "../core/limits.js";
import { go } from "../core/session.js";
import { put } from "../core/store.js";
import { useFormDraft } from "../ui/form-draft.js";

const SEARCH_DELAY_MS = 150;
const close = () => void (dialog.value = null);

/** @param {{contact: any, choose: (contact: any) => void}} props */
function ContactPicker({ contact, choose }) {
  const [q, setQ] = useState("");
  const [found, setFound] = useState(/** @type {any[]} */ ([]));
  const [at, setAt] = useState(0);
  useEffect(() => {
    if (!q.trim()) return setFound([]);
    const abort = new AbortController();
    const timer = setTimeout(() => get("contacts", { q: q.trim(), limit: 8 }, abort.signal).then((answer) => setFound(answer.items), () => setFound([])), SEARCH_DELAY_MS);
    return () => (clearTimeout(timer), abort.abort());
  }, [q]);
  if (contact)
    return html`<div class="label">${t.dialogs.to}<span class="file"><${Avatar} name=${contactName(contact)} id=${contact.id} size="s" /><bdi class="ellipsis">${contactName(contact)}</bdi><${Button} class="small" kind="quiet" icon="close" only label=${t.dialogs.removeTag(contactName(contact))} press=${() => choose(null)} /></span></div>`;
  const options = [...found, ...(q.trim() && !found.some((each) => each.userId === q.trim()) ? [{ userId: q.trim(), isNew: true }] : [])];
  const now = Math.min(at, options.length - 1);
  const pressed = (/** @type {KeyboardEvent} */ event) => {
    if ((event.key === "ArrowDown" || event.key === "ArrowUp") && options.length) (event.preventDefault(), setAt((now + (event.key === "ArrowDown" ? 1 : options.length - 1)) % options.length));
    if (event.key === "Enter") (event.preventDefault(), options[now] && choose(options[now]));
  };
  return html`<label class="label">${t.dialogs.to}<input class="field" type="text" role="combobox" autofocus autocomplete="off" placeholder=${t.dialogs.findContact} aria-expanded=${options.length > 0} aria-controls="found-contacts" aria-activedescendant=${options.length ? `found-${now}` : undefined}
    value=${q} onInput=${(/** @type {any} */ event) => (setQ(event.target.value), setAt(0))} onKeyDown=${pressed} /></label>
    <div class="choices" role="listbox" id="found-contacts" aria-label=${t.list.contacts}>${options.map((each, i) => html`<div key=${each.id ?? "new"} id=${`found-${i}`} class=${cx("menu-item", i === now && "active")} role="option" aria-selected=${Boolean(i === now)} onClick=${() => choose(each)}>
      ${each.isNew ? html`<${Icon} name="plus" /><bdi class="ellipsis">${t.dialogs.newContact(each.userId)}</bdi>` : html`<${Avatar} name=${contactName(each)} id=${each.id} size="s" /><bdi class="ellipsis">${contactName(each)}</bdi><span class="hint ellipsis">${each.email ?? each.userId}</span>`}
    </div>`)}</div>`;
}

export function NewConversation() {
  const [contact, choose] = useState(/** @type {any} */ (null));
  const [wrong, setWrong] = useState("");
  const [busy, setBusy] = useState(false);
  const [key] = useState(newKey);
  const box = useRef(/** @type {HTMLFormElement|null} */ (null));
  useFormDraft(box);
  const submit = async (/** @type {any} */ event) => {
    event.preventDefault();
    if (!contact) return setWrong(t.dialogs.chooseContact);
    const given = new FormData(event.target);
    const text = (/** @type {string} */ name) => String(given.get(name) ?? "").trim() || undefined;
    const message = text("message");
    setBusy(true);
    try {
      const made = await call("POST", "conversations", { key, body: { contact: contact.id ? { id: contact.id } : { userId: contact.userId }, title: text("title"), message: message && { text: message } } });
      put(made);
      close();
      go(`c/${made.id}`);
    } catch (error) {
      setWrong(t.dialogs.startFailed(/** @type {Error} */ (error).message));
      setBusy(false);
    }
  };
  return html`<${Dialog} title=${t.dialogs.start} close=${close}><form ref=${box} class="body" onSubmit=${submit}>
    <${ContactPicker} contact=${contact} choose=${(/** @type {any} */ one) => (choose(one), setWrong(""))} />
    <label class="label">${t.dialogs.subject}<input class="field" name="title" type="text" maxlength="200" autocomplete="off" /></label>
    <label class="label">${t.dialogs.message}<textarea class="field" name="message" rows="5" maxlength=${MESSAGE_TEXT_MAX} dir="auto"></textarea></label>
    ${wrong && html`<p class="wrong" role="alert">${wrong}</p>`}
    <div class="actions"><${Button} label=${t.cancel} kind="quiet" press=${close} /><button type="submit" class="button primary" aria-disabled=${busy ? "true" : undefined}>${t.dialogs.startIt}</button></div>
  </form><//>`;
}
