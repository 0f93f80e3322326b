// @ts-check
/** Dialogs for assignment, snooze and tags; others are fetched when they are opened. */
import { html, useState } from "../vendor/preact.js";
import { t } from "../core/texts-lazy.js";
import { Avatar, Icon, dialog, lazy, notify } from "../ui/parts.js";
import { Chooser } from "../ui/chooser.js";
import { Dialog } from "../ui/dialog.js";
import { row } from "../core/store.js";
import { assignable, people, user } from "../core/session.js";
import { assign, snooze } from "../inbox/actions.js";
import { Tags } from "../inbox/tag-dialog.js";
import { snoozeTimes } from "../ui/format.js";
import { fold } from "../core/folding.js";
import { providerFailure } from "./provider-failure.js";
import "./rights.js";

const Palette = lazy(() => import("./palette.js"), "Palette");
const NewConversation = lazy(() => import("../inbox/new-conversation.js"), "NewConversation");
const Help = lazy(() => import("./settings.js"), "Help");
const Settings = lazy(() => import("./settings.js"), "Settings");
const RewriteMessage = lazy(() => import("../inbox/redaction.js"), "RewriteMessage");
const Filters = lazy(() => import("../inbox/filters.js"), "Filters");
const SaveView = lazy(() => import("../inbox/saved-view-dialogs.js"), "SaveView");
const DeleteView = lazy(() => import("../inbox/saved-view-dialogs.js"), "DeleteView");
const Rename = lazy(() => import("../inbox/conversation-dialogs.js"), "Rename");
const Remove = lazy(() => import("../inbox/conversation-dialogs.js"), "Remove");
const SendLater = lazy(() => import("../inbox/send-later.js"), "SendLater");
const CreateTicket = lazy(() => import("../inbox/ticket-dialogs.js"), "CreateTicket");
const LinkTicket = lazy(() => import("../inbox/ticket-dialogs.js"), "LinkTicket");
const SplitOff = lazy(() => import("../inbox/split-dialog.js"), "SplitOff");
const MergeInto = lazy(() => import("../inbox/merge-dialog.js"), "MergeInto");
const Block = lazy(() => import("../inbox/conversation-dialogs.js"), "Block");
const UndecryptableTexts = lazy(() => import("./settings.js"), "UndecryptableTexts");
const SignOut = lazy(() => import("./settings.js"), "SignOut");

const failed = providerFailure(); // of a proof that the user began at a provider
if (failed) notify(failed, { bad: true });

const close = () => void (dialog.value = null);

/** @param {{ids: string[]}} props */
function Assign({ ids }) {
  const [q, setQ] = useState("");
  const [users, { teams }] = [assignable(), people()];
  const now = row(ids[0] ?? "")?.assignee?.id;
  const give = (/** @type {any} */ to) => () => (close(), assign(ids, to));
  const all = [
    ...[...users].sort((a, b) => Number(b.id === user.value?.id) - Number(a.id === user.value?.id)).map((each) => ({ key: each.id, label: each.name, hint: each.id === user.value?.id ? t.dialogs.me : "", chosen: each.id === now, face: html`<${Avatar} name=${each.name} id=${each.id} size="s" />`, pick: give({ type: "user", id: each.id, name: each.name }) })),
    ...teams.map((each) => ({ key: each.id, label: each.name, icon: "people", chosen: each.id === now, pick: give({ type: "team", id: each.id, name: each.name }) })),
    { key: "none", label: t.dialogs.unassigned, icon: "unassigned", chosen: !now, pick: give(null) },
  ].filter((each) => fold(each.label).includes(fold(q)));
  return html`<${Dialog} title=${t.dialogs.assign} close=${close}><div class="body"><${Chooser} label=${t.dialogs.filterPeople} options=${all} empty=${t.dialogs.noPeople} q=${q} type=${setQ} /></div><//>`;
}

/** @param {{ids: string[]}} props */
function Snooze({ ids }) {
  const [at, setAt] = useState("");
  const [wrong, setWrong] = useState(false);
  const until = (/** @type {Date} */ date) => (close(), snooze(ids, date));
  const submit = (/** @type {Event} */ event) => {
    event.preventDefault();
    const date = new Date(at);
    if (!(date.getTime() > Date.now())) return setWrong(true);
    until(date);
  };
  const awake = row(ids[0] ?? "")?.snoozedUntil;
  return html`<${Dialog} title=${t.dialogs.snooze} close=${close}><div class="body">
    <div>${snoozeTimes().map((each, i) => html`<button type="button" key=${each.label} class="menu-item" autofocus=${i === 0} onClick=${() => until(each.at)}><${Icon} name=${i ? "sun" : "clock"} /><span>${each.label}</span><span class="hint num">${each.hint}</span></button>`)}
    ${awake && html`<button type="button" class="menu-item" onClick=${() => (close(), snooze(ids, null))}><${Icon} name="sun" />${t.actions.wake}</button>`}</div>
    <form class="inline" onSubmit=${submit}><label class="label grow">${t.dialogs.date}<input class="field" type="datetime-local" required value=${at} aria-invalid=${wrong} aria-describedby=${wrong ? "in-past" : undefined} onInput=${(/** @type {any} */ event) => (setAt(event.target.value), setWrong(false))} /></label><button type="submit" class="button primary">${t.dialogs.snoozeIt}</button></form>
    ${wrong && html`<p class="wrong" id="in-past" role="alert">${t.dialogs.inPast}</p>`}
  </div><//>`;
}

const ALL = /** @type {Record<string, any>} */ ({ palette: Palette, assign: Assign, snooze: Snooze, tags: Tags, start: NewConversation, help: Help, settings: Settings, rewrite: RewriteMessage, rename: Rename, filter: Filters, saveView: SaveView, deleteView: DeleteView, remove: Remove, block: Block, sendLater: SendLater, merge: MergeInto, split: SplitOff, ticket: CreateTicket, linkTicket: LinkTicket, signOut: SignOut, unopened: UndecryptableTexts });

/** The open dialog. */
export function Dialogs() {
  const open = dialog.value;
  const Shown = open && ALL[open.name];
  return Shown ? html`<${Shown} key=${open.name} ...${open} />` : null;
}
