// @ts-check
/** The keyboard: which key does what, chords, and where single letters count. */
import { signal } from "./vendor/preact.js";

/**
 * @typedef {object} Command
 * @property {string} id  e.g. `close`; what handlers are registered by
 * @property {string[]} keys  e.g. `["e"]`, `["g i"]`, `["mod+enter"]`, `["shift+a"]`; mod is ⌘ on a Mac and Ctrl elsewhere
 * @property {"list"|"thread"|"composer"|"anywhere"} where
 */
/** @type {Command[]} All commands; their names are in texts.js under `commands`. */
export const COMMANDS = [];

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
