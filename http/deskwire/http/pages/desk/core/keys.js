// @ts-check
/** Keyboard commands: keys, chords, and when single letters act. */
import { signal } from "../vendor/preact.js";

/**
 * @typedef {object} Command
 * @property {string} id  e.g. `close`; handlers are registered under it
 * @property {string[]} keys  e.g. `["e"]`, `["g i"]`, `["mod+enter"]`, `["shift+a"]`; mod is ⌘ on a Mac and Ctrl elsewhere
 * @property {"list"|"thread"|"composer"|"anywhere"} where
 */
/** @type {(id: string, where: Command["where"], ...keys: string[]) => Command} */
const command = (id, where, ...keys) => ({ id, where, keys });

/** @type {Command[]} All commands. Their names are in texts-lazy.js under `commands`. */
export const COMMANDS = [
  command("link", "composer", "mod+k"), // passed on to the palette if nothing is selected
  command("palette", "anywhere", "mod+k"),
  command("search", "anywhere", "/"),
  command("help", "anywhere", "?"),
  command("filter", "anywhere", "f"),
  command("start", "anywhere", "c"),
  command("viewMine", "anywhere", "g i"),
  command("viewMentions", "anywhere", "g m"),
  command("viewFollowing", "anywhere", "g f"),
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
  command("useAsReply", "composer"),
  command("useAsNote", "composer"),
  command("send", "composer", "mod+enter"),
  command("sendClose", "composer", "mod+shift+enter"),
  command("sendLater", "composer", "mod+alt+enter"),
  command("snippets", "composer", ";"),
  command("bold", "composer", "mod+b"),
  command("italic", "composer", "mod+i"),
  command("code", "composer", "mod+e"),
  command("undo", "anywhere", "u", "mod+z"),
  command("assignMe", "anywhere", "a"),
  command("assign", "anywhere", "shift+a"),
  command("close", "anywhere", "e"),
  command("noAnswer", "anywhere", "w"),
  command("reopen", "anywhere", "o"),
  command("pending", "anywhere", "p"),
  command("snooze", "anywhere", "z"),
  command("tag", "anywhere", "t"),
  command("ticket", "anywhere", "shift+t"),
  command("linkTicket", "anywhere"),
  command("unlinkTicket", "anywhere"),
  command("unread", "anywhere", "m"),
  command("follow", "anywhere", "shift+f"),
  command("rename", "anywhere"),
  command("merge", "anywhere"),
  command("split", "anywhere"),
  command("archive", "anywhere"),
  command("unarchive", "anywhere"),
  command("copyLink", "anywhere"),
  command("block", "anywhere"),
  command("remove", "anywhere"),
  command("readAll", "anywhere"),
  command("context", "anywhere", "i"),
  command("timeline", "anywhere", "."),
  command("back", "anywhere", "escape"),
];

const SETTING_KEY = "deskwire.singleKeys";
const CHORD_TIMEOUT_MS = 1_500;
const MAC = typeof navigator === "object" && /Mac|iP(hone|ad)/.test(navigator.platform ?? "");

/** True if single letters act as commands outside of fields. Stored in this browser. */
export const singleKeys = signal(storedSetting());
function storedSetting() {
  try {
    return localStorage.getItem(SETTING_KEY) !== "off";
  } catch {
    return true;
  }
}
if (typeof localStorage === "object")
  singleKeys.subscribe((on) => {
    try {
      localStorage.setItem(SETTING_KEY, on ? "on" : "off");
    } catch {
      // then it applies to this page only
    }
  });

/** The first part of a chord that was pressed, e.g. `g`; empty for none. */
export const pending = signal("");
/** @type {ReturnType<typeof setTimeout>|undefined} */
let chordTimer;

// Keys to commands: pure functions.

/**
 * Return a key press in the notation of the table: `e`, `shift+a`, `mod+enter`, `?`. Shift is left out where it produces another character.
 * @param {{key: string, ctrlKey: boolean, metaKey: boolean, altKey: boolean, shiftKey: boolean}} event @param {boolean} mac @returns {string}
 */
export function keyName({ key, ctrlKey, metaKey, altKey, shiftKey }, mac) {
  const name = key.length === 1 ? key.toLowerCase() : key.toLowerCase().replace(/^ $/, "space");
  const letter = name.length > 1 || name !== key || /^[a-z]$/.test(name);
  const parts = [(mac ? metaKey : ctrlKey) && "mod", (mac ? ctrlKey : metaKey) && "other", altKey && "alt", shiftKey && letter && "shift"];
  return [...parts.filter(Boolean), name].join("+");
}

/** True if a key types text or moves within a field, so that it belongs to the field. @param {string} press @returns {boolean} */
export const typesText = (press) => !/(^|\+)(mod|other)\+/.test(press) && press !== "escape";

/**
 * Return the commands of a key press that apply where it was made.
 * @param {string} first  the first part of a chord, or an empty string @param {string} press
 * @param {{field: boolean, singles: boolean, where: ReadonlySet<string>}} at  where: `list`, `thread` or `composer`, by focus
 * @returns {{commands: string[], pending: string}} pending: the press, if it begins a chord.
 */
export function commandsFor(first, press, { field, singles, where }) {
  if (field && typesText(press)) return { commands: [], pending: "" };
  const single = /^(shift\+)?[^+]$/.test(press) || press === "+";
  if (single && !singles) return { commands: [], pending: "" };
  const whole = first ? `${first} ${press}` : press;
  const counts = COMMANDS.filter((each) => each.where === "anywhere" || where.has(each.where));
  const commands = counts.filter((each) => each.keys.includes(whole)).map((each) => each.id);
  const begins = !first && counts.some((each) => each.keys.some((key) => key.startsWith(`${press} `)));
  return { commands, pending: commands.length || !begins ? "" : press };
}

// Handlers of commands.

/** @typedef {Record<string, (event: KeyboardEvent|null) => void|boolean>} Handlers */
/** @type {Handlers[]} */
const handlers = [];

/**
 * Register handlers for commands. The newest one runs first; one that returns false passes the command on. Call it in a layout effect, so that keys
 * work as soon as the view is visible.
 * @param {Handlers} made @returns {() => void} Unregisters them.
 */
export function handle(made) {
  handlers.unshift(made);
  const wanted = typeAhead?.command;
  if (wanted && made[wanted]) {
    typeAhead = { .../** @type {TypeAhead} */ (typeAhead), command: null };
    queueMicrotask(() => runCommand(wanted));
  }
  return () => {
    const at = handlers.indexOf(made);
    if (at >= 0) handlers.splice(at, 1);
  };
}

/** Run a command, as its key does. @param {string} id @param {KeyboardEvent|null} [event] @returns {boolean} True if a handler ran. */
export function runCommand(id, event = null) {
  for (const each of [...handlers]) if (each[id] && each[id]?.(event) !== false) return true;
  return false;
}

// Typing before the field appears.

/**
 * Keys pressed after a command that opens a field, and before the field has focus. They are text for it, never commands.
 * @typedef {{field: string, text: string, command: string|null, timer: ReturnType<typeof setTimeout>}} TypeAhead
 * field: a selector. command: runs as soon as a handler registers.
 */
/** @type {TypeAhead|null} */
let typeAhead = null;
const TYPE_AHEAD_TIMEOUT_MS = 8_000;

/** Typed text that was lost because no field opened; empty for none. */
export const lostTyping = signal("");

/** The selector of the editor for replies and notes. */
export const EDITOR = ".composer textarea";

/**
 * Buffer the keys that follow as text until a field has focus. Escape, Tab and the mouse end it.
 * @param {string} field  the selector of the field or its container @param {string|null} [command]  to run as soon as it has a handler
 */
export function startTypeAhead(field, command = null) {
  const text = typeAhead?.field === field ? typeAhead.text : "";
  endTypeAhead();
  if (document.activeElement?.closest(field)) return;
  const timer = setTimeout(() => {
    lostTyping.value = typeAhead?.text ?? "";
    typeAhead = null;
  }, TYPE_AHEAD_TIMEOUT_MS);
  typeAhead = { field, text, command, timer };
}

function endTypeAhead() {
  clearTimeout(typeAhead?.timer);
  typeAhead = null;
}

/** @param {KeyboardEvent} event @param {TypeAhead} to */
function bufferKey(event, to) {
  const { key } = event;
  if (key === "Escape" || key === "Tab") return endTypeAhead();
  const writes = event.getModifierState("AltGraph") || !(event.ctrlKey || event.metaKey || (event.altKey && !MAC));
  if (!writes) return;
  event.preventDefault();
  if (key === "Backspace") to.text = [...to.text].slice(0, -1).join("");
  else if (key === "Enter" && to.field === EDITOR) to.text += "\n";
  else if ([...key].length === 1) to.text += key;
}

/** @param {Event} event */
function onFocus(event) {
  const target = /** @type {HTMLInputElement} */ (event.target);
  if (!typeAhead || !target.closest?.(typeAhead.field)) return;
  const { text } = typeAhead;
  endTypeAhead();
  if (!text || !target.matches(FIELDS)) return;
  target.setRangeText(text, target.value.length, target.value.length, "end");
  target.dispatchEvent(new Event("input", { bubbles: true }));
}

const FIELDS = "input:not([type=checkbox], [type=radio], [type=button], [type=submit]), textarea, select, [contenteditable]";

/** @param {KeyboardEvent} event */
function onKeyDown(event) {
  if (event.defaultPrevented || event.isComposing || ["Shift", "Control", "Alt", "Meta"].includes(event.key)) return;
  const target = /** @type {Element} */ (event.target);
  const within = (/** @type {string} */ selector) => Boolean(target.closest?.(selector));
  if (within("dialog")) return; // a dialog has its own keys
  if (event.key === "Escape" && document.querySelector(":popover-open")) return; // it closes the popover
  if (typeAhead && (typeAhead.field === "dialog" || !within(FIELDS))) return bufferKey(event, typeAhead); // also from a draft that has the focus until then
  if ((event.key === "Enter" || event.key === " ") && within("button, a, summary, [role=option] input") && !within(".rows")) return;
  const where = new Set([within(".rows") && "list", within(".thread") && "thread", within(".composer") && "composer"].filter((each) => typeof each === "string"));
  const press = keyName(event, MAC);
  const scrolls = /arrow|enter/.test(press) && within(".thread, .context");
  if (!within(FIELDS) && !scrolls) where.add("list"); // keys go to the list, unless they type or scroll elsewhere
  const found = commandsFor(pending.peek(), press, { field: within(FIELDS), singles: singleKeys.peek(), where });
  clearTimeout(chordTimer);
  pending.value = found.pending;
  if (found.pending) chordTimer = setTimeout(() => (pending.value = ""), CHORD_TIMEOUT_MS);
  if (found.pending || found.commands.some((id) => runCommand(id, event))) event.preventDefault();
}
if (typeof document === "object") {
  document.addEventListener("keydown", onKeyDown);
  document.addEventListener("focusin", onFocus);
  document.addEventListener("pointerdown", endTypeAhead, true);
}
