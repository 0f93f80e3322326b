// @ts-check
/** The command palette: actions with their keys, places and assignees. */
import { html, useEffect, useMemo, useState } from "../vendor/preact.js";
import { t } from "../core/texts-lazy.js";
import { Avatar, Icon, Kbd, dialog, theme } from "../ui/parts.js";
import { Dialog } from "../ui/dialog.js";
import { row } from "../core/store.js";
import { assignable, go, may, open, page, people, user } from "../core/session.js";
import { COMMANDS, runCommand } from "../core/keys.js";
import { show } from "../inbox/list.js";
import { listedViews, viewCommands } from "../inbox/saved-views.js";
import "../pages.js"; // fills the table of pages
import { places as pages } from "../ui/link.js";
import { assign, commandName, mayAct, mergeApplies, noAnswerApplies, oppositeApplies, snooze, ticketCommands } from "../inbox/actions.js";
import { splitApplies } from "../inbox/splitting.js";
import { snoozeTimes } from "../ui/format.js";
import { fold } from "../core/folding.js";

/** @typedef {{group: string, label: string, icon?: string, face?: any, keys?: string, press: () => void}} Choice */

const ICONS = /** @type {Record<string, string>} */ ({
  search: "search", filter: "filter", help: "keys", start: "pencil", viewMine: "inbox", viewWaiting: "clock", viewUnassigned: "unassigned", viewTeam: "people", viewSnoozed: "moon", viewAll: "all",
  nextConversation: "right", previousConversation: "left", reply: "chat", note: "lock", useAsReply: "chat", useAsNote: "lock", sendLater: "clock", assignMe: "person", assign: "people", close: "done", noAnswer: "check", waitAgain: "clock", reopen: "reopen", pending: "pause",
  snooze: "moon", tag: "tag", ticket: "tag", linkTicket: "tag", unlinkTicket: "tag", unread: "mail", merge: "right", split: "plus", follow: "eye", unfollow: "eye", viewMentions: "at", viewFollowing: "eye", rename: "pencil", archive: "inbox", unarchive: "inbox", copyLink: "copy", remove: "close", block: "lock", context: "info", timeline: "clock", readAll: "check", undo: "reopen", select: "check",
});
const TICKETS = ["ticket", "linkTicket", "unlinkTicket"];
const HERE = ["reply", "note", "sendLater", "useAsReply", "useAsNote", "assignMe", "assign", "close", "noAnswer", "waitAgain", "reopen", "pending", "snooze", "tag", "ticket", "linkTicket", "unlinkTicket", "unread", "follow", "unfollow", "rename", "split", "merge", "archive", "unarchive", "copyLink", "block", "remove", "select", "context", "timeline"];
const ALONE = new Set(["sendLater", "rename", "split", "merge", "copyLink", "block", "remove", ...TICKETS]);
const WRITES = new Set(["reply", "note", "sendLater", "useAsReply", "useAsNote", "assignMe", "assign", "close", "reopen", "pending", "snooze", "tag", "unread", "rename", "split", "merge", "archive", "unarchive", "start"]);
const GO = ["filter", "viewMine", "viewMentions", "viewFollowing", "viewWaiting", "viewUnassigned", "viewSnoozed", "viewAll", "nextConversation", "previousConversation", "search"];

/** @param {string[]} ids @returns {Choice[]} */
function choices(ids) {
  const one = ids.length === 1 ? row(ids[0] ?? "") : undefined;
  const writes = mayAct();
  const from = (/** @type {string[]} */ list, /** @type {string} */ group) =>
    list.filter((id) => writes || !WRITES.has(id)).filter((id) => (id !== "remove" || may("conversations.delete")) && (id !== "block" || may("contacts.manage")) && (!ALONE.has(id) || ids.length < 2) && (id !== "sendLater" || open.value === ids[0]) && !(one && id === (one.archived ? "archive" : "unarchive")))
      .filter((id) => id !== "noAnswer" || ids.some((each) => noAnswerApplies(row(each))))
      .filter((id) => !["waitAgain", "unfollow"].includes(id) || oppositeApplies(id, ids))
      .filter((id) => id !== "merge" || mergeApplies(one))
      .filter((id) => id !== "split" || splitApplies(one))
      .filter((id) => !TICKETS.includes(id) || (one && ticketCommands(one).includes(id)))
      .filter((id) => !(one && ((id === "close" && one.status === "CLOSED") || (id === "reopen" && one.status === "OPEN"))))
      .map((id) => ({ group, label: commandName(id, one), icon: ICONS[id], keys: COMMANDS.find((each) => each.id === id)?.keys[0], press: () => void runCommand(id) }));
  const here = ids.length ? from(HERE, ids.length > 1 ? t.palette.selection(ids.length) : t.palette.here) : [];
  const [users, { teams }] = [assignable(), people()];
  const places = teams.map((each) => ({ group: t.palette.go, label: each.name, icon: "people", press: () => show({ key: "team", id: each.id }) }));
  const saved = listedViews().map((each) => ({ group: t.palette.go, label: each.name, icon: "filter", press: () => show({ key: "view", id: each.id }) }));
  const view = page.value ? [] : viewCommands().map(({ label, icon, pick }) => ({ group: t.palette.view, label, icon, press: pick }));
  const beside = pages().map((each) => ({ group: t.palette.go, label: each.title, icon: each.icon, press: () => go(each.path) }));
  const assignees = !ids.length || !writes ? [] : [
    ...users.map((each) => ({ group: t.palette.assign, label: each.id === user.value?.id ? `${each.name} (${t.dialogs.me})` : each.name, face: html`<${Avatar} name=${each.name} id=${each.id} size="s" />`, press: () => void assign(ids, { type: "user", id: each.id, name: each.name }) })),
    ...teams.map((each) => ({ group: t.palette.assign, label: each.name, icon: "people", press: () => void assign(ids, { type: "team", id: each.id, name: each.name }) })),
  ];
  const later = !ids.length || !writes ? [] : snoozeTimes().map((each) => ({ group: t.dialogs.snooze, label: `${t.dialogs.snooze}: ${each.label}`, icon: "moon", press: () => void snooze(ids, each.at) }));
  const desk = [...from(["start", "readAll", "undo", "help"], t.palette.desk), { group: t.palette.desk, label: t.side.settings, icon: "gear", press: () => void (dialog.value = { name: "settings" }) }, { group: t.palette.desk, label: t.side.signOut, icon: "out", press: () => void runCommand("signOut") }];
  const looks = Object.entries(t.dialogs.themes).map(([key, label]) => ({ group: t.palette.desk, label: `${t.dialogs.theme}: ${label}`, icon: key === "dark" ? "moon" : "sun", press: () => void (theme.value = key) }));
  return [...here, ...view, ...from(GO, t.palette.go), ...saved, ...places, ...beside, ...later, ...assignees, ...desk, ...looks];
}

/** Return how well words match, lower is better; null for no match. @param {string} label @param {string} q */
function rankOf(label, q) {
  const text = fold(label);
  let worst = 0;
  for (const word of fold(q).split(/\s+/).filter(Boolean)) {
    const at = text.indexOf(word);
    if (at < 0) return null;
    worst += at === 0 ? 0 : text[at - 1] === " " ? 1 : 3;
  }
  return worst;
}

/** @param {{ids: string[]}} props */
export function Palette({ ids }) {
  const [q, setQ] = useState("");
  const [at, setAt] = useState(0);
  const all = useMemo(() => choices(ids), [ids]);
  const found = useMemo(() => {
    if (!q.trim()) return all.filter((each) => each.group !== t.palette.assign && each.group !== t.dialogs.snooze);
    return all.map((each) => ({ each, rank: rankOf(each.label, q) ?? rankOf(`${each.group} ${each.label}`, q) })).filter((each) => each.rank !== null).sort((a, b) => Number(a.rank) - Number(b.rank)).map((each) => each.each);
  }, [all, q]);
  const close = () => void (dialog.value = null);
  const pick = (/** @type {Choice | undefined} */ choice) => {
    if (!choice) return;
    close();
    setTimeout(choice.press);
  };
  useEffect(() => document.getElementById(`command-${at}`)?.scrollIntoView({ block: "nearest" }), [at]);
  const pressed = (/** @type {KeyboardEvent} */ event) => {
    const to = { ArrowDown: at + 1, ArrowUp: at - 1 + found.length, Home: 0, End: found.length - 1 }[event.key];
    if (to !== undefined && found.length && !(event.key === "Home" || event.key === "End") ) (event.preventDefault(), setAt(to % found.length));
    if (event.key === "Enter") (event.preventDefault(), pick(found[at]));
  };
  let group = "";
  return html`<${Dialog} title=${t.palette.label} class="palette" bare close=${close}>
    <input type="text" role="combobox" autofocus autocomplete="off" spellcheck="false" aria-label=${t.palette.placeholder} placeholder=${t.palette.placeholder} aria-expanded="true" aria-controls="commands"
      aria-activedescendant=${found.length ? `command-${at}` : undefined} value=${q} onInput=${(/** @type {any} */ event) => (setQ(event.target.value), setAt(0))} onKeyDown=${pressed} />
    ${found.length === 0 && html`<p class="nothing" role="status">${t.palette.nothing}</p>`}
    <div role="listbox" id="commands" aria-label=${t.palette.label}>
      ${found.map((each, i) => {
        const title = !q.trim() && each.group !== group && html`<div class="group" role="presentation">${(group = each.group)}</div>`;
        return html`${title}<div key=${`${each.group} ${each.label}`} id=${`command-${i}`} class="option" role="option" aria-selected=${i === at} onMouseMove=${() => i !== at && setAt(i)} onClick=${() => pick(each)}>
          ${each.face ?? html`<${Icon} name=${each.icon ?? "bolt"} />`}<bdi class="ellipsis">${each.label}</bdi>${each.keys && html`<${Kbd} keys=${each.keys} />`}
        </div>`;
      })}
    </div>
  <//>`;
}
