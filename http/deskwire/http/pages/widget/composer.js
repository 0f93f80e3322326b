// @ts-check
/** The text field with files, and the questions to a visitor who has not written yet. */
import { html, useEffect, useRef, useState } from "../desk/vendor/preact.js";
import { IconButton, lazy } from "./parts.js";
import { isolated, numberText, settings, t } from "./texts.js";
import { valuesOf } from "./values.js";
/** @import { Customer, State } from "./customer.js" */
/** @import { Field } from "./fields.js" */
/** @import { Page } from "./page.js" */

const Fields = lazy("Fields");
const TEXT_MAX = 20_000;
const FILES_MAX = 10;
const FILE_BYTES_MAX = 10 * 1024 * 1024;
/** The user id of a visitor, or none yet. */
const VISITOR = /^(visitor-|$)/;
const DRAFTS = `deskwire.${settings.channel}.drafts`;

/** The stored drafts by conversation, and their customer. @type {{owner: string, texts: Record<string, string>}} */
let drafts = { owner: "", texts: {} };
/** The drafts from before the panel knew its customer. @type {Record<string, string>} */
let early = {};
/** The customer; empty while unknown, when no stored draft is shown: it can be another one's. */
let user = "";
/** @type {(all: string) => void} */
let keep = (all) => sessionStorage.setItem(DRAFTS, all);

/** Load the drafts of this tab, from the host's page if the browser gives the panel no storage. @param {Page | null} page */
export function loadDrafts(page) {
  let all;
  try {
    all = sessionStorage.getItem(DRAFTS);
  } catch {
    all = page?.state.drafts;
    keep = (drafts) => page?.send({ drafts });
  }
  if (all) drafts = JSON.parse(all);
}

/** Note who the customer is. Drafts of another one are deleted; a visitor who signs in keeps them. @param {string} [userId]  empty after a sign-out */
export function claimDrafts(userId = "") {
  if (userId === user) return;
  const { owner, texts } = drafts;
  const mine = userId && (owner === userId || VISITOR.test(owner));
  drafts = { owner: userId, texts: { ...(mine && texts), ...early } };
  early = {};
  user = userId;
  keep(JSON.stringify(drafts));
}

/** Return the draft of a conversation, or store it. @param {string} id @param {string} [text] */
function draft(id, text) {
  const texts = user ? drafts.texts : early;
  if (text !== undefined) {
    texts[id] = text;
    if (user) keep(JSON.stringify(drafts));
  }
  return texts[id] ?? "";
}

/** Return the questions that a visitor has not answered. @param {State} state @returns {Field[]} */
function questions({ channel, me }) {
  if (me?.verified) return [];
  const asked = (channel?.visitors.ask ?? []).map((each) => ({ id: each.replace("?", ""), required: !each.endsWith("?") }));
  const known = /** @type {any} */ (me ?? {});
  return asked.filter(({ id }) => !known[id]).map((each) => ({ ...each, type: each.id, label: /** @type {any} */ (t)[each.id] }));
}

/** @param {{customer: Customer, state: State, conversation: string | null, sent: (id: string) => void}} props */
export function Composer({ customer, state, conversation, sent }) {
  // A conversation keeps this name when the service has stored it and it gets its id.
  const id = (conversation && (state.conversations.get(conversation)?.clientId ?? conversation)) || "";
  /** Whether a message is being sent, or held until the questions are shown. @type {{current: "" | "sending" | "held"}} */
  const submitted = useRef("");
  const field = useRef(/** @type {any} */ (null));
  const picker = useRef(/** @type {any} */ (null));
  const [files, setFiles] = useState(/** @type {{file: File, url: string}[]} */ ([]));
  const [problem, setProblem] = useState("");
  const [over, setOver] = useState(false);
  const refused = state.outbox.filter((each) => each.conversation === conversation && each.state === "refused");
  // A first message from before the questions were known can be refused: then they are asked beside it.
  const asked = conversation && !(refused[0] && conversation.startsWith("client:")) ? [] : questions(state);
  const [shown, setShown] = useState(false);
  const ready = conversation || state.connection === "offline" || (state.channel && (shown || !asked[0]));
  const user = state.me?.userId ?? "";
  useEffect(() => {
    field.current.value = draft(id);
  }, [id, user]);
  // The next customer gets no files of the previous one.
  useEffect(() => () => void (VISITOR.test(user) || setFiles([])), [user]);
  // A message that was submitted before the questions were shown is submitted again, so that the form asks for the answers.
  useEffect(() => {
    if (submitted.current === "held" && ready) {
      submitted.current = "";
      conversation || field.current.form.requestSubmit();
    }
  });
  useEffect(() => () => files.forEach(({ url }) => URL.revokeObjectURL(url)), [files]);

  const add = (/** @type {Iterable<File>} */ given) => {
    const chosen = [...given];
    const large = chosen.find((each) => each.size > FILE_BYTES_MAX);
    const kept = [...files.map(({ file }) => file), ...chosen.filter((each) => each !== large)];
    setProblem(large ? t.tooLarge(isolated(large.name)) : kept.length > FILES_MAX ? t.tooMany(numberText(FILES_MAX)) : "");
    setFiles(kept.slice(0, FILES_MAX).map((file) => ({ file, url: URL.createObjectURL(file) })));
  };
  const submit = async (/** @type {any} */ event) => {
    event.preventDefault();
    const text = field.current.value.trim();
    if (submitted.current || !(text || files.length || refused[0])) return;
    if (!ready) return void (submitted.current = "held");
    if (text.length > TEXT_MAX) return setProblem(t.tooLong(numberText(TEXT_MAX)));
    const given = valuesOf(event.currentTarget, asked);
    submitted.current = "sending";
    try {
      if (Object.keys(given).length) {
        await customer.updateMe(given);
        refused.map((each) => customer.retry(each.clientId));
      }
      if (text || files.length) {
        const kept = await customer.send({ conversation, text, attachments: files.map(({ file }) => file) });
        // Text typed while the browser stored the message stays.
        const rest = field.current.value.replace(text, "").trimStart();
        draft(id, "");
        field.current.value = draft(conversation ? id : kept.conversation.replace("client:", ""), rest);
        setFiles([]);
        setProblem("");
        customer.typing(kept.conversation, false);
        sent(kept.conversation);
      }
    } catch {
      setProblem(t.notKept);
    }
    submitted.current = "";
  };
  const typed = () => {
    draft(id, field.current.value);
    if (conversation) customer.typing(conversation, field.current.value !== "");
  };
  const pressed = (/** @type {KeyboardEvent} */ event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing || matchMedia("(pointer:coarse)").matches) return;
    event.preventDefault();
    field.current.form.requestSubmit();
  };
  const hold = (/** @type {any} */ event) => {
    event.preventDefault();
    setOver(event.type === "dragover");
    if (event.type === "drop") add(event.dataTransfer.files);
  };
  const paste = (/** @type {any} */ event) => {
    const { files } = event.clipboardData;
    if (!files.length) return;
    event.preventDefault();
    add(files);
  };
  return html`<form class=${over ? "composer over" : "composer"} onSubmit=${submit} onDragOver=${hold} onDragLeave=${hold} onDrop=${hold}>
    ${asked.length > 0 && html`<fieldset class="ask"><legend>${t.ask}</legend><${Fields} fields=${asked} shown=${setShown} /></fieldset>`}
    <p role="alert" class="bad">${problem}</p>
    ${files.length > 0 && html`<ul class="files">${files.map(({ file, url }, at) => html`<li key=${url}>${file.type.startsWith("image/") ? html`<img src=${url} alt=${file.name} />` : html`<bdi>${file.name}</bdi>`}<${IconButton} name="close" label=${t.remove(isolated(file.name))} press=${() => setFiles(files.filter((_, other) => other !== at))} /></li>`)}</ul>`}
    <div class="line">
      <${IconButton} name="clip" label=${t.attach} press=${() => picker.current.click()} />
      <input ref=${picker} type="file" multiple hidden onChange=${(/** @type {any} */ event) => (add(event.currentTarget.files), (event.currentTarget.value = ""))} />
      <textarea ref=${field} rows="1" dir="auto" aria-label=${t.write} placeholder=${settings.own.placeholder || t.write} onInput=${typed} onKeyDown=${pressed} onPaste=${paste}></textarea>
      <${IconButton} name="send" label=${t.send} type="submit" class="solid" />
    </div>
  </form>`;
}
