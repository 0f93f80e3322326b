// @ts-check
/** The box to answer in: a reply or a note, with files and snippets; what is written is kept as it is written. */
import { html, signal, useEffect, useLayoutEffect, useRef, useState } from "./vendor/preact.js";
import { t } from "./later-texts.js";
import { Button, Icon, Kbd, Menu, announce, cx, lazy, say, setting } from "./parts.js";
import { Text } from "./words.js";
import { row } from "./store.js";
import { writing } from "./conversation.js";
import { may, project } from "./session.js";
import { again, attach, detach, now as sendNow, outgoing, send, undo, uploads } from "./outbox.js";
import { draft, drop, keep } from "./drafts.js";
import { connection } from "./feed.js";
import { EDITOR, handle, writeAhead } from "./keys.js";
import { noteReply } from "./changes.js";
import { Snippets, wanted } from "./snippets.js";
import { tomorrow } from "./actions.js";
/** @import { Outgoing, OutgoingFile, Then } from "./types.js" */

const Voice = lazy(() => import("./learn/voice.js"), "Voice");

const MOST = 20_000;
const FILES = 10;
const LONG_REPLY = 200;
/** How long a reply can be taken back, in seconds; `auto`: five, if it is long. */
export const undoSend = setting("undoSend", /** @type {string} */ ("auto"));

/** What was taken back from the outbox, for the box of its conversation. @type {import("./vendor/preact.js").Signal<{id: string, out: Outgoing} | null>} */
const returned = signal(null);
/** Put something that was not sent into its box again. @param {string} id @param {Outgoing | null} out */
export const giveBack = (id, out) => {
  if (!out) return;
  returned.value = { id, out };
  announce(t.composer.taken);
};

/** @param {string} text */
const undoMs = (text) => (undoSend.value === "auto" ? (text.length > LONG_REPLY ? 5000 : 0) : Number(undoSend.value) * 1000);

/** The seconds in which a reply can be taken back. @param {{out: Outgoing}} props */
function Undo({ out }) {
  const [left, setLeft] = useState(0);
  useEffect(() => {
    const tick = () => setLeft(Math.max(0, Math.ceil((out.notBefore - Date.now()) / 1000)));
    tick();
    const timer = setInterval(tick, 250);
    return () => clearInterval(timer);
  }, [out.key]);
  const back = async () => giveBack(out.conversationId ?? "", await undo(out.key));
  return html`<div class="undo"><span class="grow num">${t.composer.sendingIn(left)}</span><${Button} class="small" label=${t.composer.undo} keys="u" press=${back} /><${Button} class="small" kind="quiet" label=${t.composer.now} press=${() => sendNow(out.key)} /></div>`;
}

/** The conversation moved on before this reply came: what was said, and what to do. @param {{out: Outgoing}} props */
function MovedOn({ out }) {
  const last = out.since.at(-1);
  const edit = async () => giveBack(out.conversationId ?? "", await undo(out.key));
  return html`<section class="moved" role="alert">
    <h2>${t.composer.movedOn(last?.author.name ?? "", out.since.length)}</h2>
    ${out.since.slice(-3).map((each) => html`<blockquote key=${each.id}><b><bdi>${each.author.name}</bdi></b> <${Text} text=${each.text.slice(0, 600)} /></blockquote>`)}
    <p class="mine"><b>${t.you}: </b><bdi>${(out.text ?? "").slice(0, 200)}</bdi></p>
    <div class="actions"><${Button} kind="primary" label=${t.composer.sendMineToo} press=${() => again(out.key, { ifSequence: null })} /><${Button} label=${t.composer.edit} press=${edit} /><${Button} kind="quiet" label=${t.composer.discard} press=${() => undo(out.key)} /></div>
  </section>`;
}

/** A file that is being attached. @param {{of: OutgoingFile, remove: () => void}} props */
function Attaching({ of, remove }) {
  const up = uploads.value.get(of.key);
  const progress = up?.progress ?? of.progress;
  const done = of.uploadId || up?.uploadId || progress >= 1;
  return html`<span class=${cx("file", up?.problem && "refused")} title=${up?.problem ? t.composer.uploadFailed(of.name, up.problem) : of.name}>
    <${Icon} name=${up?.problem ? "warn" : "file"} class=${up?.problem ? "bad" : ""} /><bdi class="ellipsis">${of.name}</bdi>
    ${!done && !up?.problem && html`<progress max="1" value=${progress} aria-label=${t.composer.uploading(of.name)}></progress>`}
    <${Button} class="small" kind="quiet" icon="close" only label=${t.composer.removeFile(of.name)} press=${remove} />
  </span>`;
}

/** Those who may only read learn why. */
const Cannot = () => html`<div class="composer"><p class="cannot"><${Icon} name="lock" />${project.value ? t.composer.cannotProject(project.value.role) : t.composer.cannot}</p></div>`;

/** @param {{id: string}} props */
export function Composer({ id }) {
  if (!may("conversations.reply")) return html`<${Cannot} />`;
  return html`<${Box} id=${id} />`;
}

/** @param {{id: string}} props */
function Box({ id }) {
  const kept = useRef(draft(id)).current;
  const [text, setText] = useState(kept?.text ?? "");
  const [internal, setInternal] = useState(kept?.internal ?? false);
  const [files, setFiles] = useState(/** @type {OutgoingFile[]} */ (kept?.files ?? []));
  const [over, setOver] = useState(false);
  const [speaks, setSpeaks] = useState(false);
  const [snippet, setSnippet] = useState(/** @type {{q: string, from: number} | null} */ (null));
  const box = useRef(/** @type {HTMLTextAreaElement | null} */ (null));
  const picker = useRef(/** @type {HTMLInputElement | null} */ (null));
  const options = useRef(/** @type {any} */ (null));
  const latest = useRef({ text, internal, files });
  latest.current = { text, internal, files };
  const one = row(id);
  const out = outgoing(id).filter((each) => each.kind === "message");
  const held = out.find((each) => each.state === "held");
  const moved = out.find((each) => each.state === "conflict");
  const offline = connection.value.state === "offline" || out.some((each) => each.waitsFor === "offline");

  const store = (/** @type {Partial<typeof latest.current>} */ change) => {
    const next = { ...latest.current, ...change };
    latest.current = next;
    if (change.text !== undefined) setText(change.text);
    if (change.internal !== undefined) setInternal(change.internal);
    if (change.files !== undefined) setFiles(change.files);
    if (change.text !== undefined) writing(id, Boolean(next.text), next.internal);
    if (!next.text && !next.files.length) drop(id);
    else if (!keep(id, { ...next, baseSequence: one?.sequence ?? null })) say(t.composer.draftLost, { bad: true });
  };
  const focus = () => (box.current?.focus(), box.current?.setSelectionRange(latest.current.text.length, latest.current.text.length));

  useEffect(() => {
    if (returned.value?.id !== id) return;
    const back = returned.value.out;
    returned.value = null;
    const before = latest.current.text.trim();
    store({ text: (back.text ?? "") + (before ? `\n\n${before}` : ""), internal: back.internal, files: [...back.files, ...latest.current.files] });
    requestAnimationFrame(focus);
  }, [returned.value]);
  useEffect(() => () => writing(id, false, false), [id]);
  useLayoutEffect(() => {
    const el = box.current;
    if (!el || CSS.supports("field-sizing", "content")) return;
    el.style.setProperty("height", "auto");
    el.style.setProperty("height", `${el.scrollHeight}px`);
  }, [text]);

  const uploading = files.some((each) => !each.uploadId && (uploads.value.get(each.key)?.progress ?? each.progress) < 1 && !uploads.value.get(each.key)?.problem);
  const empty = !text.trim() && !files.length;
  const tooLong = text.length > MOST;
  const submit = async (/** @type {Then | null} */ then = null) => {
    const { text, internal, files } = latest.current; // what was typed last may not be drawn yet
    if ((!text.trim() && !files.length) || text.length > MOST) return void focus();
    latest.current = { text: "", internal, files: [] };
    setText("");
    setFiles([]);
    setSnippet(null);
    writing(id, false, internal);
    try {
      const out = await send(id, { text: text.trim(), internal, files, ifSequence: internal ? null : (one?.sequence ?? null), then, undoMs: internal ? 0 : undoMs(text) });
      noteReply(out, one);
    } catch (error) {
      store({ text: text + latest.current.text, files });
      return void say(t.composer.refused(/** @type {Error} */ (error).message), { bad: true });
    }
    if (!latest.current.text && !latest.current.files.length) drop(id);
    document.querySelector(".log")?.scrollTo({ top: 0 });
    focus();
  };
  const add = async (/** @type {Iterable<File>} */ more) => {
    for (const file of more) {
      if (latest.current.files.length >= FILES) return void say(t.composer.tooMany, { bad: true });
      try {
        const kept = await attach(file, file.name || "pasted.png");
        store({ files: [...latest.current.files, kept] });
      } catch (error) {
        say(t.composer.uploadFailed(file.name, /** @type {Error} */ (error).message), { bad: true });
      }
    }
  };
  const remove = (/** @type {OutgoingFile} */ file) => {
    detach(file.key);
    store({ files: latest.current.files.filter((each) => each.key !== file.key) });
    focus();
  };
  const mode = (/** @type {boolean} */ note) => () => (store({ internal: note }), writeAhead(EDITOR), void requestAnimationFrame(focus));
  const insert = (/** @type {string} */ words) => {
    const { text } = latest.current;
    const from = snippet?.from ?? box.current?.selectionStart ?? text.length;
    const to = box.current?.selectionStart ?? text.length;
    store({ text: text.slice(0, from) + words + text.slice(to) });
    setSnippet(null);
    requestAnimationFrame(() => (box.current?.focus(), box.current?.setSelectionRange(from + words.length, from + words.length)));
  };
  useLayoutEffect(() => handle({ reply: mode(false), note: mode(true), send: () => void submit(), sendClose: () => void submit({ close: true }), snippets: () => document.activeElement !== box.current && (writeAhead(EDITOR), setSnippet({ q: "", from: text.length }), focus(), true) }));
  const typed = (/** @type {any} */ event) => (store({ text: event.target.value }), setSnippet(wanted(event.target)));
  const pressed = (/** @type {KeyboardEvent} */ event) => {
    if (snippet && options.current?.(event)) return void (event.preventDefault(), event.stopPropagation());
    if (event.key === "z" && (event.metaKey || event.ctrlKey) && held && !latest.current.text) return void (event.preventDefault(), undo(held.key).then((out) => giveBack(id, out)));
    if (event.key === "Escape") (event.preventDefault(), event.stopPropagation(), snippet ? setSnippet(null) : /** @type {HTMLElement | null} */ (document.querySelector(".log"))?.focus());
  };
  const pasted = (/** @type {ClipboardEvent} */ event) => {
    if (event.clipboardData?.files.length) (event.preventDefault(), add([...event.clipboardData.files]));
  };
  const dropped = (/** @type {DragEvent} */ event) => (event.preventDefault(), setOver(false), event.dataTransfer && add([...event.dataTransfer.files]));
  const name = one?.contact.name || one?.contact.email || one?.contact.userId || "";
  const ways = () => [
    { label: t.composer.sendClose, icon: "done", pick: () => submit({ close: true }) },
    { label: t.composer.sendPending, icon: "pause", pick: () => submit({ status: "PENDING" }) },
    { label: t.composer.sendSnooze, icon: "moon", pick: () => submit({ snoozedUntil: tomorrow().toISOString() }) },
  ];
  const left = MOST - text.length;
  const hint = tooLong ? html`<span class="bad">${t.composer.over(-left)}</span>` : left < 1000 ? t.composer.left(left) : offline ? html`<span class="warn">${t.composer.offline}</span>` : one?.status === "CLOSED" && !internal && text ? t.composer.reopens : text ? t.composer.draftKept : "";
  const kind = internal ? "note" : "primary";
  const blocked = empty || tooLong;
  return html`<div class=${cx("composer", internal && "is-note")}>
    ${moved && html`<${MovedOn} key=${moved.key} out=${moved} />`}${held && html`<${Undo} key=${held.key} out=${held} />`}
    ${speaks && html`<${Voice} id=${id} insert=${insert} close=${() => (setSpeaks(false), focus())} />`}
    <div class="box">
      ${snippet && html`<${Snippets} q=${snippet.q} contact=${one?.contact} hook=${options} pick=${insert} away=${() => setSnippet(null)} />`}
      <div class=${cx("card", over && "over")} onDragOver=${(/** @type {DragEvent} */ event) => (event.preventDefault(), setOver(true))} onDragLeave=${() => setOver(false)} onDrop=${dropped}>
        <div class="modes" role="group" aria-label=${t.composer.label}>
          <button type="button" class="mode" aria-pressed=${!internal} onClick=${mode(false)}><${Icon} name="chat" />${t.composer.reply}<${Kbd} keys="r" /></button>
          <button type="button" class="mode" aria-pressed=${internal} onClick=${mode(true)}><${Icon} name="lock" />${t.composer.note}<${Kbd} keys="n" /></button>
          <span class="audience">${internal && html`<${Icon} name="lock" />`}${over ? t.composer.dropHere : internal ? t.composer.onlyAgents : t.composer.toCustomer}</span>
        </div>
        <textarea ref=${box} dir="auto" rows="3" value=${text} placeholder=${internal ? t.composer.writeNote : t.composer.replyTo(name)} aria-label=${internal ? t.composer.writeNote : t.composer.replyTo(name)}
          aria-controls=${snippet ? "snippets" : undefined} aria-autocomplete=${snippet ? "list" : undefined} aria-describedby="composer-hint"
          onInput=${typed} onKeyDown=${pressed} onPaste=${pasted} onBlur=${() => setTimeout(() => document.activeElement !== box.current && setSnippet(null), 150)}></textarea>
        ${files.length > 0 && html`<div class="files">${files.map((each) => html`<${Attaching} key=${each.key} of=${each} remove=${() => remove(each)} />`)}</div>`}
        <div class="foot">
          <input ref=${picker} type="file" multiple hidden onChange=${(/** @type {any} */ event) => (add([...event.target.files]), (event.target.value = ""))} />
          <${Button} label=${t.composer.attach} icon="clip" only kind="quiet" press=${() => picker.current?.click()} />
          <${Button} label=${t.composer.snippet} icon="text" only kind="quiet" keys=";" press=${() => (setSnippet({ q: "", from: box.current?.selectionStart ?? text.length }), box.current?.focus())} />
          <${Button} label=${t.composer.speak} icon="mic" only kind="quiet" expanded=${speaks} press=${() => setSpeaks(!speaks)} />
          <span class="hint num" id="composer-hint">${uploading ? t.composer.waitFiles : hint}</span>
          <span class="split"><${Button} kind=${kind} label=${internal ? t.composer.addNote : offline ? t.composer.keep : t.composer.send} keys="mod+enter" disabled=${blocked} press=${() => submit()} />
          ${internal ? null : html`<${Menu} label=${t.composer.sendMore} icon="down" only kind=${kind} disabled=${blocked} entries=${ways} />`}</span>
        </div>
      </div>
    </div>
  </div>`;
}
