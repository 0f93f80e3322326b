// @ts-check
/**
 * Drafts: one for each user, project and conversation, kept in this browser, encrypted, as it is written. The key names all three, so none
 * is ever shown in another conversation or to somebody else.
 */
import { signal } from "./vendor/preact.js";
import { parting, project, user } from "./session.js";
import { canSeal, isSealed, open, seal } from "./seal.js";
/** @import { Draft } from "./types.js" */

const PREFIX = "deskwire.draft.";
/** Grows with each change, here and in other tabs. */
const version = signal(0);
/** What this browser could not keep, sealed as there. @type {Map<string, string>} */
const memory = new Map();

const scope = () => `${PREFIX}${user.peek()?.id}.${project.peek()?.id}.`;

/** @param {string} key @returns {Draft|null} */
function read(key) {
  try {
    const kept = memory.get(key) ?? localStorage.getItem(key) ?? "null";
    if (isSealed(kept)) return open(kept, key);
    const plain = JSON.parse(kept);
    if (plain) localStorage.setItem(key, seal(plain, key)); // an older version has kept it as it was written
    return plain;
  } catch {
    return null; // it is not there, or opens under no key: `unopenable` says so
  }
}

/** The draft of a conversation, null if there is none. Reads a signal. @param {string} conversationId @returns {Draft|null} */
export function draft(conversationId) {
  void version.value;
  return read(scope() + conversationId);
}

/**
 * Keeps a draft at once; an empty one is forgotten.
 * @param {string} conversationId @param {Omit<Draft, "at">} written @returns {boolean} False if this browser can't keep it beyond this page: say so.
 */
export function keep(conversationId, written) {
  if (!written.text && !written.files.length) return drop(conversationId), true;
  const key = scope() + conversationId;
  const draft = { ...written, at: Date.now() };
  const known = read(key) !== null;
  if (!canSeal()) return false; // nobody is signed in: nothing is kept that others could read
  const sealed = seal(draft, key);
  try {
    localStorage.setItem(key, sealed);
    memory.delete(key);
    return true;
  } catch {
    memory.set(key, sealed);
    return false;
  } finally {
    if (!known) version.value += 1;
  }
}

/** Forgets it. @param {string} conversationId */
export function drop(conversationId) {
  const key = scope() + conversationId;
  memory.delete(key);
  try {
    localStorage.removeItem(key);
  } catch {
    // then it was not kept either
  }
  version.value += 1;
}

/** @param {string} prefix @returns {string[]} The keys that begin so. */
function keys(prefix) {
  try {
    return [...memory.keys(), ...Object.keys(localStorage)].filter((key) => key.startsWith(prefix));
  } catch {
    return [...memory.keys()];
  }
}

/** The conversations with a draft. Reads a signal. @returns {Set<string>} */
export function drafted() {
  void version.value;
  const prefix = scope();
  return new Set(keys(prefix).map((key) => key.slice(prefix.length)));
}

parting(() => {
  for (const key of keys(`${PREFIX}${user.peek()?.id}.`)) {
    memory.delete(key);
    localStorage.removeItem(key);
  }
});
if (typeof addEventListener === "function") addEventListener("storage", (event) => void (event.key?.startsWith(PREFIX) && (version.value += 1)));
