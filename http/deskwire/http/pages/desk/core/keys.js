// @ts-check
/** The keyboard: which key does what, chords, and where single letters count. */
import { signal } from "../vendor/preact.js";

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
  command("useAsReply", "composer"),
  command("useAsNote", "composer"),
  command("send", "composer", "mod+enter"),
  command("sendClose", "composer", "mod+shift+enter"),
  command("snippets", "composer", ";"),
  command("undo", "anywhere", "u", "mod+z"),
  command("assignMe", "anywhere", "a"),
  command("assign", "anywhere", "shift+a"),
  command("close", "anywhere", "e"),
  command("reopen", "anywhere", "o"),
  command("pending", "anywhere", "p"),
  command("snooze", "anywhere", "z"),
  command("tag", "anywhere", "t"),
  command("unread", "anywhere", "m"),
  command("readAll", "anywhere"),
  command("context", "anywhere", "i"),
  command("timeline", "anywhere", "."),
  command("back", "anywhere", "escape"),
];

const SETTING_KEY = "deskwire.singleKeys";
const CHORD_TIMEOUT_MS = 1_500;
const MAC = typeof navigator === "object" && /Mac|iP(hone|ad)/.test(navigator.platform ?? "");

/** Whether single letters count, outside of fields; stays in this browser. */
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
      // it holds for this page then
    }
  });

/** The first part of a chord that has been pressed, e.g. `g`; empty for none. */
export const pending = signal("");
/** @type {ReturnType<typeof setTimeout>|undefined} */
let chordTimer;

// What a key means: pure.

/**
 * How a press is written in the table of commands: `e`, `shift+a`, `mod+enter`, `?`. Shift is not named where it only makes
 * another character.
 * @param {{key: string, ctrlKey: boolean, metaKey: boolean, altKey: boolean, shiftKey: boolean}} event @param {boolean} mac @returns {string}
 */
export function keyName({ key, ctrlKey, metaKey, altKey, shiftKey }, mac) {
  const name = key.length === 1 ? key.toLowerCase() : key.toLowerCase().replace(/^ $/, "space");
  const letter = name.length > 1 || name !== key || /^[a-z]$/.test(name);
  const parts = [(mac ? metaKey : ctrlKey) && "mod", (mac ? ctrlKey : metaKey) && "other", altKey && "alt", shiftKey && letter && "shift"];
  return [...parts.filter(Boolean), name].join("+");
}

/** Whether a key would write something, or move within a field: then it belongs to the field. @param {string} press @returns {boolean} */
export const typesText = (press) => !/(^|\+)(mod|other)\+/.test(press) && press !== "escape";

/**
 * The commands that a press stands for, of those that count where it was made.
 * @param {string} first  the part of a chord that was pressed before, or nothing @param {string} press
 * @param {{field: boolean, singles: boolean, where: ReadonlySet<string>}} at  where: `list`, `thread`, `composer` as the focus is in one
 * @returns {{commands: string[], pending: string}} pending: what begins a chord, if the press does.
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

const NAMES = /** @type {Record<string, string>} */ ({ enter: "↵", arrowdown: "↓", arrowup: "↑", escape: "Esc", shift: "⇧", alt: MAC ? "⌥" : "Alt" });
/** How a command's key is written on this computer, e.g. `⌘↵`; nothing for one that has none. @param {string} id @returns {string} */
export function keyLabel(id) {
  const keys = COMMANDS.find((each) => each.id === id)?.keys[0] ?? "";
  const part = (/** @type {string} */ name) => NAMES[name] ?? (name === "mod" ? (MAC ? "⌘" : "Ctrl") : name.length === 1 && keys.includes("+") ? name.toUpperCase() : name);
  return keys.split(" ").map((press) => press.split("+").map(part).join(MAC ? "" : " ")).join(" ");
}

// Who does what.

/** @typedef {Record<string, (event: KeyboardEvent|null) => void|boolean>} Handlers */
/** @type {Handlers[]} */
const handlers = [];

/**
 * Registers what commands do; the newest registration of a command goes first, and one that returns false passes it on. In a layout effect, so that a key
 * works as soon as one sees what it works on.
 * @param {Handlers} made @returns {() => void} Takes them back.
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

/** Does a command, as its key does. @param {string} id @param {KeyboardEvent|null} [event] @returns {boolean} Whether somebody did it. */
export function runCommand(id, event = null) {
  for (const each of [...handlers]) if (each[id] && each[id]?.(event) !== false) return true;
  return false;
}

// Writing before the field is there.

/**
 * Keys that were pressed after a command that opens a field, and before that has the focus. They are text for it, and never commands.
 * @typedef {{field: string, text: string, command: string|null, timer: ReturnType<typeof setTimeout>}} TypeAhead
 * field: a selector. command: one that waits for its handler.
 */
/** @type {TypeAhead|null} */
let typeAhead = null;
const TYPE_AHEAD_TIMEOUT_MS = 8_000;

/** Text that no field took, as none opened; empty for none. */
export const lostTyping = signal("");

/** The box of replies and notes, as a selector. */
export const EDITOR = ".composer textarea";

/**
 * Take the keys that follow as text until a field has the focus. Escape, Tab and the mouse end that.
 * @param {string} field  a selector: of the field, or of what is around it @param {string|null} [command]  to run as soon as somebody does it
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
  if (within("dialog")) return; // it has keys of its own
  if (typeAhead && !within(FIELDS)) return bufferKey(event, typeAhead);
  if ((event.key === "Enter" || event.key === " ") && within("button, a, summary, [role=option] input") && !within(".rows")) return;
  const where = new Set([within(".rows") && "list", within(".thread") && "thread", within(".composer") && "composer"].filter((each) => typeof each === "string"));
  const press = keyName(event, MAC);
  const scrolls = /arrow|enter/.test(press) && within(".thread, .context");
  if (!within(FIELDS) && !scrolls) where.add("list"); // the list is where one is, unless one is somewhere else
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
