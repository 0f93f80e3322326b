// @ts-check
/** The keyboard: which key does what, chords, and where single letters count. */
import { signal } from "./vendor/preact.js";

/**
 * @typedef {object} Command
 * @property {string} id  e.g. `close`; what handlers are registered by
 * @property {string[]} keys  e.g. `["e"]`, `["g i"]`, `["mod+enter"]`, `["shift+a"]`; mod is ⌘ on a Mac and Ctrl elsewhere
 * @property {"list"|"thread"|"composer"|"anywhere"} where
 */
/** @type {(id: string, where: Command["where"], ...keys: string[]) => Command} */
const command = (id, where, ...keys) => ({ id, where, keys });

/** @type {Command[]} All commands; their names are in texts.js under `commands`. */
export const COMMANDS = [
  command("palette", "anywhere", "mod+k"),
  command("search", "anywhere", "/"),
  command("help", "anywhere", "?"),
  command("start", "anywhere", "c"),
  command("viewMine", "anywhere", "g i"),
  command("viewWaiting", "anywhere", "g w"),
  command("viewUnassigned", "anywhere", "g u"),
  command("viewTeam", "anywhere", "g t"),
  command("viewSnoozed", "anywhere", "g z"),
  command("viewAll", "anywhere", "g a"),
  command("next", "list", "j", "arrowdown"),
  command("previous", "list", "k", "arrowup"),
  command("openRow", "list", "enter"),
  command("nextConversation", "anywhere", "]"),
  command("previousConversation", "anywhere", "["),
  command("select", "anywhere", "x"),
  command("extendDown", "list", "shift+j", "shift+arrowdown"),
  command("extendUp", "list", "shift+k", "shift+arrowup"),
  command("selectAll", "list", "mod+a"),
  command("reply", "anywhere", "r"),
  command("note", "anywhere", "n"),
  command("send", "composer", "mod+enter"),
  command("sendClose", "composer", "mod+shift+enter"),
  command("snippets", "composer", ";"),
  command("undo", "anywhere", "u"),
  command("assignMe", "anywhere", "a"),
  command("assign", "anywhere", "shift+a"),
  command("close", "anywhere", "e"),
  command("reopen", "anywhere", "o"),
  command("pending", "anywhere", "p"),
  command("snooze", "anywhere", "z"),
  command("tag", "anywhere", "t"),
  command("unread", "anywhere", "m"),
  command("context", "anywhere", "i"),
  command("timeline", "anywhere", "."),
  command("back", "anywhere", "escape"),
];

/** Whether single letters count, outside of fields; stays in this browser. */
export const singleKeys = signal(true);

/**
 * Registers what commands do; the newest registration of a command goes first, and one that returns false passes it on.
 * @param {Record<string, (event: KeyboardEvent|null) => void|boolean>} handlers @returns {() => void} Takes them back.
 */
export function handle(handlers) {
  void handlers;
  return () => {};
}
/** Does a command, as its key does. @param {string} id @returns {boolean} Whether somebody did it. */
export function run(id) {
  void id;
  return false;
}
/** How a command's key is written on this computer, e.g. `⌘↵`. @param {string} id @returns {string} */
export function shown(id) {
  void id;
  return "";
}
/** The first part of a chord that has been pressed, e.g. `g`; empty for none. */
export const pending = signal("");
