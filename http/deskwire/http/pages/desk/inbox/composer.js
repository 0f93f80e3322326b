// @ts-check
/** The editor for replies and notes: each mode has its own text and files, and a picker inserts snippets. */
import { html, useEffect, useLayoutEffect, useRef, useState } from "../vendor/preact.js";
import { t } from "../core/texts-lazy.js";
import { Button, Icon, Kbd, Menu, contactName, cx, dialog, lazy, notify, spoken } from "../ui/parts.js";
import { Text, momentAhead, tomorrow } from "../ui/format.js";
import { row } from "../core/store.js";
import { snippets, thread, reportTyping } from "./conversation.js";
import { may, project, user } from "../core/session.js";
import { resend, outgoing, scope, send, withdraw } from "../core/outbox.js";
import { attach, detach, uploaded, uploads } from "../core/uploads.js";
import { markUploaded, draft, edit, takeForSending, ready, moveDraft, draftLocation } from "./drafts.js";
import { answerOf, returnToDraft, heldIn, holdSeconds, restoredDraft, sendNowOrNotify, cancelHeld, undoSending, useSecondsLeft, waitsForUndo } from "./held-messages.js";
import { connection } from "../core/feed.js";
import { ATTACHMENTS_MAX, MENTIONS_MAX, MESSAGE_TEXT_MAX } from "../core/limits.js";
import { EDITOR, handle, startTypeAhead } from "../core/keys.js";
import { recordReply } from "./undo.js";
import { fold } from "../core/folding.js";
import { FORMATS, continueList, formatOf, formatted, paste, replacePart } from "./formatting.js";
import { FormatBar, Markdown } from "./format-bar.js";
import { MentionPicker, NotifiedPeople, mentionQuery, offeredMentions } from "./mentions.js";
/** @import { Later } from "../core/outbox.js" */
/** @import { AgentMessage, HeldMessage, Mention, Mode, Outgoing, OutgoingFile, Then } from "../core/types.js" */

const Voice = lazy(() => import("./voice.js"), "Voice");
const ScheduledReply = lazy(() => import("./scheduled-reply.js"), "ScheduledReply");

/** True while the formatting toolbar is shown. */
let barShown = false;

/** The countdown of a held reply, with its undo button. @param {{of: HeldMessage, newest: boolean}} props */
function HeldReply({ of, newest }) {
  const left = useSecondsLeft(of);
  return html`<div class="undo"><span class="grow num">${left > 0 ? t.composer.sendingIn(left) : t.truth.sending}</span><${Button} class="small" label=${t.composer.undo} keys=${newest ? "u" : undefined} press=${() => cancelHeld(of)} /><${Button} class="small" kind="quiet" label=${t.composer.now} press=${() => sendNowOrNotify(of)} /></div>`;
}

/**
 * A reply that was not sent, with the messages before it and the possible actions.
 * @param {{title: string, since: AgentMessage[], text: string, anyway: () => unknown, edit: () => unknown, discard: () => unknown}} props
 */
function NotSentNotice({ title, since, text, anyway, edit, discard }) {
  return html`<section class="moved" role="alert">
    <h2>${title}</h2>
    ${since.slice(-3).map((each) => html`<blockquote key=${each.id}><b><bdi>${each.author.name}</bdi></b> <${Text} text=${each.text.slice(0, 600)} /></blockquote>`)}
    <p class="mine"><b>${t.you}: </b><bdi>${text.slice(0, 200)}</bdi></p>
    <div class="actions"><${Button} kind="primary" label=${t.composer.sendAnyway} press=${anyway} /><${Button} label=${t.composer.edit} press=${edit} /><${Button} kind="quiet" label=${t.composer.discard} press=${discard} /></div>
  </section>`;
}

/** A reply refused by the outbox because the conversation has new messages. @param {{out: Outgoing}} props */
function ConflictNotice({ out }) {
  const change = async () => returnToDraft(out.conversationId ?? "", await withdraw(out.key));
  return html`<${NotSentNotice} title=${t.composer.movedOn(out.since.at(-1)?.author.name ?? "", out.since.length)} since=${out.since} text=${out.text ?? ""} anyway=${() => resend(out.key, { ifSequence: null })} edit=${change} discard=${() => withdraw(out.key)} />`;
}

/** A held message that the server could not send. @param {{of: HeldMessage}} props */
function RefusedHeldReply({ of }) {
  const moved = ["conversation_moved_on", "contact_replied"].includes(of.problem?.code ?? "");
  const since = moved ? thread(of.conversationId).messages.filter((each) => each.createdAt > of.createdAt && each.author.id !== user.value?.id) : [];
  const title = since.length ? t.composer.movedOn(since.at(-1)?.author.name ?? "", since.length) : t.composer.refused(of.problem?.detail ?? "");
  return html`<${NotSentNotice} title=${title} since=${since} text=${of.text} anyway=${() => sendNowOrNotify(of, { ifSequence: null })} edit=${() => cancelHeld(of)} discard=${() => cancelHeld(of, true)} />`;
}

/** A file that is being attached. @param {{of: OutgoingFile, remove: () => void}} props */
function AttachmentChip({ of, remove }) {
  const up = uploads.value.get(of.key);
  const progress = up?.progress ?? of.progress;
  const done = of.uploadId || up?.uploadId || progress >= 1;
  return html`<span class=${cx("file", up?.problem && "refused")} title=${up?.problem ? t.composer.uploadFailed(of.name, up.problem) : of.name}>
    <${Icon} name=${up?.problem ? "warn" : "file"} class=${up?.problem ? "bad" : ""} /><bdi class="ellipsis">${of.name}</bdi>
    ${!done && !up?.problem && html`<progress max="1" value=${progress} aria-label=${t.composer.uploading(of.name)}></progress>`}
    <${Button} class="small" kind="quiet" icon="close" only label=${t.composer.removeFile(of.name)} press=${remove} />
  </span>`;
}

/** The reason why the user can't reply. */
const ReadOnlyNotice = () => html`<div class="composer"><p class="cannot"><${Icon} name="lock" />${project.value ? t.composer.cannotProject(project.value.role.startsWith("rol_") ? "" : project.value.role) : t.composer.cannot}</p></div>`;

/** @param {{id: string}} props */
export function Composer({ id }) {
  if (!may("conversations.reply")) return html`<${ReadOnlyNotice} />`;
  return ready.value ? html`<${Editor} id=${id} />` : html`<div class="composer"></div>`;
}

/** Return the mode shown first: note if the last draft is one, otherwise reply. @param {string} id @returns {Mode} */
const firstMode = (id) => ((draft(id, "note")?.at ?? -1) > (draft(id, "reply")?.at ?? -1) ? "note" : "reply");

/** Replace the text of a field after a change elsewhere; the caret keeps its place. @param {HTMLTextAreaElement} el @param {string} text */
function replaceText(el, text) {
  const { value, selectionStart, selectionEnd } = el;
  let same = 0;
  while (same < value.length && value[same] === text[same]) same += 1;
  const moved = (/** @type {number} */ at) => (at <= same ? at : Math.max(same, at + text.length - value.length));
  el.value = text;
  if (document.activeElement === el) el.setSelectionRange(moved(selectionStart), moved(selectionEnd));
}

/**
 * The text field of a mode; it follows changes by other tabs and computers.
 * @param {{text: string, change: (text: string, shown: string) => void, hook: any, [more: string]: any}} props
 */
function Field({ text, change, hook, ...rest }) {
  const shown = useRef(text);
  const composing = useRef(false);
  useLayoutEffect(() => {
    const el = hook.current;
    if (!el || composing.current) return;
    if (el.value !== text) replaceText(el, text);
    shown.current = text;
    if (CSS.supports("field-sizing", "content")) return;
    el.style.setProperty("height", "auto");
    el.style.setProperty("height", `${el.scrollHeight}px`);
  });
  const typed = (/** @type {any} */ event) => {
    const before = shown.current;
    shown.current = event.target.value;
    change(event.target.value, before);
  };
  const composed = (/** @type {any} */ event) => ((composing.current = false), typed(event));
  return html`<textarea ref=${hook} dir="auto" rows="3" aria-describedby="composer-hint" onInput=${typed} onCompositionStart=${() => (composing.current = true)} onCompositionEnd=${composed} ...${rest}></textarea>`;
}

/** @param {{id: string}} props */
function Editor({ id }) {
  const [mode, setMode] = useState(() => firstMode(id));
  const [over, setOver] = useState(false);
  const [bar, setBar] = useState(barShown);
  const [preview, setPreview] = useState(false);
  const [speaks, setSpeaks] = useState(/** @type {Mode | null} */ (null));
  const [snippet, setSnippet] = useState(/** @type {{q: string, from: number} | null} */ (null));
  const [mention, setMention] = useState(/** @type {{q: string, from: number} | null} */ (null));
  const box = useRef(/** @type {HTMLTextAreaElement | null} */ (null));
  const picker = useRef(/** @type {HTMLInputElement | null} */ (null));
  const options = useRef(/** @type {any} */ (null));
  const focusNext = useRef(false);
  const latest = useRef(mode);
  latest.current = mode;
  const one = row(id);
  const choices = snippet && offeredSnippets(snippet.q);
  const internal = mode === "note";
  const offered = internal && mention && offeredMentions(mention.q);
  const { text, files, mentions } = draft(id, mode) ?? { text: "", files: /** @type {OutgoingFile[]} */ ([]), mentions: /** @type {Mention[]} */ ([]) };
  const other = draft(id, internal ? "reply" : "note");
  const out = outgoing(id).filter((each) => each.kind === "message");
  const moved = out.find((each) => each.state === "conflict");
  const held = heldIn(id);
  const newest = held.findLast(waitsForUndo);
  const offline = connection.value.state === "offline" || out.some((each) => each.waitsFor === "offline");

  const store = (/** @type {{text?: string, files?: OutgoingFile[], mentions?: Mention[]}} */ change, /** @type {string | undefined} */ shown = undefined, to = mode) => {
    edit(id, to, { ...change, baseSequence: one?.sequence ?? null }, shown);
    if (change.text !== undefined) reportTyping(id, Boolean(change.text), to === "note");
  };
  const focus = () => (box.current?.focus(), box.current?.setSelectionRange(box.current.value.length, box.current.value.length));
  const show = (/** @type {Mode} */ to) => {
    setSnippet(null);
    setMention(null);
    if (to === latest.current) return void focus();
    reportTyping(id, false, internal);
    focusNext.current = true;
    latest.current = to;
    setMode(to);
  };
  useLayoutEffect(() => {
    if (!focusNext.current) return;
    focusNext.current = false;
    focus();
  });
  useEffect(() => {
    if (restoredDraft.value?.id !== id) return;
    const to = restoredDraft.value.mode;
    restoredDraft.value = null;
    show(to);
    requestAnimationFrame(focus);
  }, [restoredDraft.value]);
  useEffect(() => () => reportTyping(id, false, false), [id]);
  useEffect(() => {
    for (const each of /** @type {Mode[]} */ (["reply", "note"])) for (const file of draft(id, each)?.files ?? []) if (!file.uploadId) put(each, file);
  }, [id]);
  const where = draftLocation(id, mode);
  useEffect(() => {
    if (where === "nowhere") notify(t.composer.draftLost, { bad: true });
  }, [where]);

  const uploading = files.some((each) => !each.uploadId && (uploads.value.get(each.key)?.progress ?? each.progress) < 1 && !uploads.value.get(each.key)?.problem);
  const empty = !text.trim() && !files.length;
  const name = contactName(one?.contact);
  const tooLong = text.length > MESSAGE_TEXT_MAX;
  const submit = async (/** @type {Then | null} */ then = null, /** @type {Later | null} */ later = null) => {
    const to = latest.current;
    const { text, files, mentions } = draft(id, to) ?? { text: "", files: [], mentions: [] };
    if ((!text.trim() && !files.length) || text.length > MESSAGE_TEXT_MAX) return void focus();
    if (files.length > ATTACHMENTS_MAX) return void notify(t.composer.tooMany, { bad: true });
    const note = to === "note";
    if (note && mentions.length > MENTIONS_MAX) return void notify(t.mentions.tooMany, { bad: true });
    const lifted = takeForSending(id, to);
    setSnippet(null);
    setMention(null);
    reportTyping(id, false, note);
    try {
      const out = await send(id, { text: text.trim(), format: formatOf(text.trim()), internal: note, files, mentions: note ? mentions : [], ifSequence: note ? null : (one?.sequence ?? null), then: note ? null : then, holdSeconds: note ? 0 : holdSeconds(text), later, draftVersion: lifted.taken.base.version });
      if (later) void answerOf(out.key).then((answer) => answer && notify(t.composer.scheduled(momentAhead(later.sendAt)), { as: "scheduled", icon: "clock", action: t.composer.undo, run: () => void undoSending(out) }));
      else recordReply(out, one);
    } catch (error) {
      lifted.failed();
      return void notify(t.composer.refused(/** @type {Error} */ (error).message), { bad: true });
    }
    lifted.done();
    document.querySelector(".log")?.scrollTo({ top: 0 });
    focus();
  };
  const sendLater = () => {
    const blank = !text.trim() && !files.length;
    if (internal || blank) (show("reply"), notify(t.composer.writeFirst, { icon: "info" }));
    else if (text.length <= MESSAGE_TEXT_MAX) dialog.value = { name: "sendLater", to: name, send: (/** @type {Later} */ later) => submit(null, later) };
    return true;
  };
  const put = (/** @type {Mode} */ to, /** @type {OutgoingFile} */ file) => void uploaded(file).then((uploadId) => markUploaded(id, to, file.key, uploadId), () => {});
  const append = (/** @type {Iterable<File>} */ more) => {
    const to = latest.current;
    return [...more].reduce(async (before, file) => {
      await before;
      const there = draft(id, to)?.files ?? [];
      if (there.length >= ATTACHMENTS_MAX) return void notify(t.composer.tooMany, { bad: true });
      try {
        const kept = await attach(file, file.name || "pasted.png", scope ?? "");
        store({ files: [...(draft(id, to)?.files ?? []), kept] }, undefined, to);
        put(to, kept);
      } catch (error) {
        notify(t.composer.uploadFailed(file.name, /** @type {Error} */ (error).message), { bad: true });
      }
    }, Promise.resolve());
  };
  const remove = (/** @type {OutgoingFile} */ file) => {
    detach(file.key);
    store({ files: files.filter((each) => each.key !== file.key) });
    focus();
  };
  const insert = (/** @type {string} */ words, to = latest.current) => {
    const text = draft(id, to)?.text ?? "";
    if (to !== latest.current) return void edit(id, to, { text: [text, words].filter(Boolean).join("\n\n") });
    const from = snippet?.from ?? box.current?.selectionStart ?? text.length;
    const end = box.current?.selectionStart ?? text.length;
    setSnippet(null);
    if (box.current) replacePart(box.current, from, end, words);
    requestAnimationFrame(() => box.current?.focus());
  };
  const pick = (/** @type {Mention} */ one) => {
    const now = draft(id, "note");
    const before = now?.text ?? "";
    const from = mention?.from ?? before.length;
    const end = Math.max(from, box.current?.selectionStart ?? before.length);
    const put = `@${one.name} `;
    store({ text: before.slice(0, from) + put + before.slice(end).replace(/^ /, ""), mentions: [...(now?.mentions ?? []), one] });
    setMention(null);
    requestAnimationFrame(() => (box.current?.focus(), box.current?.setSelectionRange(from + put.length, from + put.length)));
  };
  const beginMention = () => {
    const at = box.current?.selectionStart ?? text.length;
    const space = at > 0 && !/\s$/.test(text.slice(0, at)) ? " " : "";
    store({ text: `${text.slice(0, at)}${space}@${text.slice(at)}` });
    setSnippet(null);
    setMention({ q: "", from: at + space.length });
    requestAnimationFrame(() => (box.current?.focus(), box.current?.setSelectionRange(at + space.length + 1, at + space.length + 1)));
  };
  const swap = () => {
    const to = internal ? "reply" : "note";
    moveDraft(id, mode, to);
    show(to);
  };
  const format = (/** @type {keyof typeof FORMATS} */ name) => (box.current && document.activeElement === box.current && formatted.value ? (FORMATS[name](box.current, t.formatting.words), true) : false);
  const formats = { bold: () => format("bold"), italic: () => format("italic"), code: () => format("code"), link: () => box.current?.selectionStart !== box.current?.selectionEnd && format("link") };
  useLayoutEffect(() => handle({ reply: () => (startTypeAhead(EDITOR), show("reply")), note: () => (startTypeAhead(EDITOR), show("note")), useAsReply: () => internal && !empty && (swap(), true), useAsNote: () => !internal && !empty && (swap(), true), ...formats, send: () => void submit(), sendClose: () => void submit({ close: true }), sendLater, snippets: () => document.activeElement !== box.current && (startTypeAhead(EDITOR), setSnippet({ q: "", from: text.length }), focus(), true) }));
  const typed = (/** @type {string} */ value, /** @type {string} */ shown) => (store({ text: value }, shown, latest.current), box.current && (setSnippet(snippetQuery(box.current)), setMention(latest.current === "note" ? mentionQuery(box.current) : null)));
  const pressed = (/** @type {KeyboardEvent} */ event) => {
    if ((choices || offered) && options.current?.(event)) return void (event.preventDefault(), event.stopPropagation());
    const plain = !(event.ctrlKey || event.metaKey || event.altKey || event.shiftKey || event.isComposing);
    if (event.key === "Enter" && plain && formatted.value && box.current && continueList(box.current)) return void event.preventDefault();
    if (event.key === "Escape") (event.preventDefault(), event.stopPropagation(), snippet || mention ? (setSnippet(null), setMention(null)) : /** @type {HTMLElement | null} */ (document.querySelector(".log"))?.focus());
  };
  const pasted = (/** @type {ClipboardEvent} */ event) => {
    if (event.clipboardData?.files.length) (event.preventDefault(), append([...event.clipboardData.files]));
    else if (event.clipboardData && box.current && paste(box.current, event.clipboardData)) event.preventDefault();
  };
  const dropped = (/** @type {DragEvent} */ event) => (event.preventDefault(), setOver(false), event.dataTransfer && append([...event.dataTransfer.files]));
  const ways = () => [
    { label: t.composer.sendLater, icon: "clock", hint: spoken("mod+alt+enter"), pick: sendLater },
    { label: t.composer.sendClose, icon: "done", pick: () => submit({ close: true }) },
    { label: t.composer.sendPending, icon: "pause", pick: () => submit({ status: "PENDING" }) },
    { label: t.composer.sendSnooze, icon: "moon", pick: () => submit({ snoozedUntil: tomorrow().toISOString() }) },
    { label: t.composer.useAsNote, icon: "lock", pick: swap },
  ];
  const left = MESSAGE_TEXT_MAX - text.length;
  const about = tooLong ? html`<span class="bad">${t.composer.over(-left)}</span>` : left < 1000 ? t.composer.left(left) : offline && text ? html`<span class="warn">${t.composer.offline}</span>` : uploading ? t.composer.waitFiles : one?.status === "CLOSED" && !internal && text ? t.composer.reopens : "";
  const kept = where && html`<span class=${cx(where === "nowhere" && "bad")}>${t.composer.keptIn[where]}</span>`;
  const kind = internal ? "note" : "primary";
  const blocked = empty || tooLong;
  const button = (/** @type {Mode} */ of, /** @type {string} */ icon, /** @type {string} */ keys) =>
    html`<button type="button" class="mode" aria-pressed=${mode === of} onClick=${() => show(of)}><${Icon} name=${icon} />${t.composer[of]}${mode !== of && other && html`<span class="begun" title=${t.list.draft}><span class="sr"> ${t.list.draft}</span></span>`}<${Kbd} keys=${keys} /></button>`;
  const label = internal ? t.composer.writeNote : t.composer.replyTo(name);
  return html`<div class=${cx("composer", internal && "is-note")}>
    ${moved && html`<${ConflictNotice} key=${moved.key} out=${moved} />`}${held.map((each) => (each.status === "refused" ? html`<${RefusedHeldReply} key=${each.id} of=${each} />` : each.scheduled ? html`<${ScheduledReply} key=${each.id} of=${each} closed=${one?.status === "CLOSED" && String(one.closedAt) >= each.createdAt} />` : html`<${HeldReply} key=${each.id} of=${each} newest=${each === newest} />`))}
    ${speaks && html`<${Voice} id=${id} insert=${(/** @type {string} */ words) => insert(words, speaks)} close=${() => (setSpeaks(null), focus())} />`}
    <div class="box">
      ${offered && html`<${MentionPicker} found=${offered} q=${mention?.q ?? ""} hook=${options} pick=${pick} away=${() => setMention(null)} />`}
      ${!offered && snippet && choices && html`<${SnippetPicker} q=${snippet.q} found=${choices} contact=${one?.contact} hook=${options} pick=${insert} away=${() => setSnippet(null)} />`}
      <div class=${cx("card", over && "over")} onDragOver=${(/** @type {DragEvent} */ event) => (event.preventDefault(), setOver(true))} onDragLeave=${() => setOver(false)} onDrop=${dropped}>
        <div class="modes" role="group" aria-label=${t.composer.label}>
          ${button("reply", "chat", "r")}${button("note", "lock", "n")}
          ${internal && !empty && html`<${Button} class="small" kind="quiet" label=${t.composer.useAsReply} press=${swap} />`}
          <span class="audience">${internal && html`<${Icon} name="lock" />`}${over ? t.composer.dropHere : internal ? t.composer.onlyAgents : t.composer.toCustomer}</span>
        </div>
        <${Field} key=${mode} text=${text} change=${typed} hook=${box} placeholder=${label} aria-label=${label} aria-controls=${offered ? "mentions" : choices ? "snippets" : undefined} aria-autocomplete=${offered || choices ? "list" : undefined}
          onKeyDown=${pressed} onPaste=${pasted} onBlur=${() => setTimeout(() => document.activeElement !== box.current && (setSnippet(null), setMention(null)), 150)} />
        ${internal && html`<${NotifiedPeople} text=${text} picked=${mentions} add=${(/** @type {Mention} */ one) => (store({ mentions: [...mentions, one] }), focus())} />`}
        ${files.length > 0 && html`<div class="files">${files.map((each) => html`<${AttachmentChip} key=${each.key} of=${each} remove=${() => remove(each)} />`)}</div>`}
        ${bar && html`<${FormatBar} box=${box} preview=${preview} setPreview=${setPreview} />`}
        ${bar && preview && text.trim() && html`<div class="preview" role="region" aria-label=${t.formatting.previewOf} tabindex="0">${formatted.value ? html`<${Markdown} text=${text} />` : html`<p class="muted">${t.formatting.plain}</p><${Text} text=${text} />`}</div>`}
        <div class="foot">
          <input ref=${picker} type="file" multiple hidden onChange=${(/** @type {any} */ event) => (append([...event.target.files]), (event.target.value = ""))} />
          <${Button} label=${t.composer.attach} icon="clip" only kind="quiet" press=${() => picker.current?.click()} />
          <button type="button" class="button quiet icon-only formats-shown" aria-label=${t.formatting.show} title=${t.formatting.show} aria-expanded=${bar} onClick=${() => setBar((barShown = !bar))}>Aa</button>
          <${Button} label=${t.composer.snippet} icon="text" only kind="quiet" keys=";" press=${() => (setSnippet({ q: "", from: box.current?.selectionStart ?? text.length }), box.current?.focus())} />
          ${internal && html`<${Button} label=${t.mentions.mention} icon="at" only kind="quiet" keys="@" press=${beginMention} />`}
          <${Button} label=${t.composer.speak} icon="mic" only kind="quiet" expanded=${Boolean(speaks)} press=${() => setSpeaks(speaks ? null : mode)} />
          <span class="hint num" id="composer-hint">${about}${about && kept && " · "}${kept}</span>
          <span class="split"><${Button} kind=${kind} label=${internal ? t.composer.addNote : offline ? t.composer.keep : t.composer.send} keys="mod+enter" disabled=${blocked} press=${() => submit()} />
          ${internal ? null : html`<${Menu} label=${t.composer.sendMore} icon="down" only kind=${kind} disabled=${blocked} entries=${ways} />`}</span>
        </div>
      </div>
    </div>
  </div>`;
}

const SNIPPETS_MAX = 50;

/** Return the part of a snippet's name that is typed before the caret; null for none. @param {HTMLTextAreaElement} box */
export function snippetQuery(box) {
  const before = box.value.slice(0, box.selectionStart);
  const match = /(?:^|\s)([;/][\p{L}\p{N}_-]*)$/u.exec(before);
  return match?.[1] ? { q: match[1].slice(1), from: before.length - match[1].length } : null;
}

/** Return a snippet's text with its placeholders filled in. @param {string} text @param {any} contact */
function fillPlaceholders(text, contact) {
  /** @type {Record<string, string>} */
  const known = { "contact.name": contact?.name ?? "", "contact.email": contact?.email ?? "", "agent.name": user.value?.name ?? "", "agent.email": user.value?.email ?? "" };
  return text.replace(/\{\{?\s*([a-z.]+)\s*\}?\}/g, (whole, name) => known[name] ?? whole);
}

/** Return the snippets that match a word. @param {string} q */
function matchingSnippets(q) {
  const word = fold(q);
  const all = snippets();
  const rank = (/** @type {any} */ each) => (fold(each.shortcut).startsWith(word) ? 0 : fold(each.title).includes(word) ? 1 : fold(each.text).includes(word) ? 2 : 3);
  return all.filter((each) => rank(each) < 3).sort((a, b) => rank(a) - rank(b) || a.shortcut.localeCompare(b.shortcut)).slice(0, SNIPPETS_MAX);
}

/** Return the snippets to offer; null hides the list, because none matches or they are still loading. @param {string} q @returns {any[] | null} */
export function offeredSnippets(q) {
  const found = matchingSnippets(q);
  return found.length || !q ? found : null;
}

/** @param {{q: string, found: any[], contact: any, hook: any, pick: (text: string) => void, away: () => void}} props */
export function SnippetPicker({ q, found, contact, hook, pick, away }) {
  const [at, setAt] = useState(0);
  const chosen = found[Math.min(at, found.length - 1)];
  useEffect(() => setAt(0), [q]);
  hook.current = (/** @type {KeyboardEvent} */ event) => {
    if (event.key === "Escape") return (away(), true);
    if (!found.length) return false;
    if (event.key === "ArrowDown" || event.key === "ArrowUp") return (setAt((at + (event.key === "ArrowDown" ? 1 : found.length - 1)) % found.length), true);
    if ((event.key === "Enter" && !event.metaKey && !event.ctrlKey) || event.key === "Tab") return (chosen && pick(fillPlaceholders(chosen.text, contact)), true);
    return false;
  };
  useEffect(() => {
    document.getElementById(`snippet-${chosen?.id}`)?.scrollIntoView({ block: "nearest" });
    const box = document.querySelector(".composer textarea");
    if (chosen) box?.setAttribute("aria-activedescendant", `snippet-${chosen.id}`);
    return () => box?.removeAttribute("aria-activedescendant");
  }, [chosen?.id]);
  return html`<div class="snippets" role="listbox" id="snippets" aria-label=${t.composer.snippets}>
    ${found.length === 0 && html`<div class="option" role="option" aria-selected="false" aria-disabled="true">${t.composer.noSnippets(q)}</div>`}
    ${found.map((each) => html`<div key=${each.id} id=${`snippet-${each.id}`} class="option" role="option" aria-selected=${each === chosen}
      onMouseDown=${(/** @type {Event} */ event) => (event.preventDefault(), pick(fillPlaceholders(each.text, contact)))}>
      <span><b>;${each.shortcut}</b> <bdi>${each.title}</bdi></span>${each === chosen && html`<${Kbd} keys="enter" />`}<bdi class="ellipsis">${fillPlaceholders(each.text, contact)}</bdi>
    </div>`)}
  </div>`;
}
