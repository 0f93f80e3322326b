// @ts-check
/**
 * The unpublished changes of a definition in an editor: kept over reloads, undone step by step, and compared with the version of a colleague.
 *
 * The JSON text is kept, and forms edit its value, so changing between form and JSON converts nothing.
 * The changes are encrypted in the tab's sessionStorage until they are published or discarded, also when the page is left.
 */
import { useMemo, useRef, useState } from "../vendor/preact.js";
import { project, user } from "../core/session.js";
import { FORM_PREFIX, storeDraft, storedDraft } from "../ui/form-draft.js";
import { parseJson, pretty } from "./json-text.js";

/** @typedef {{text: string, base: number}} Draft  base: the published version on which the changes began */
/**
 * @typedef {object} Definition  a definition in an editor
 * @property {string} text
 * @property {any} value  undefined if the text is not JSON
 * @property {boolean} changed  true if it differs from the published one
 * @property {boolean} found  true if the changes were made before this page was opened
 * @property {boolean} outdated  true if another version was published since the changes began
 * @property {(text: string) => void} write
 * @property {(value: any, group?: string) => void} change  changes of the same group are undone together
 * @property {(() => void)|null} undo
 * @property {(() => void)|null} redo
 * @property {() => void} discard
 * @property {(base: number) => void} rebase  the changes began on this version, from now on
 */

const STEPS_MAX = 200;

/**
 * @param {{path: string, published: any, version: number, order: (value: any) => any}} props
 *   path: of the resource; order: returns a value with its members in their order @returns {Definition}
 */
export function useDefinition({ path, published, version, order }) {
  const key = `${FORM_PREFIX}${user.peek()?.id}.${project.peek()?.id}.definition.${path}`;
  const clean = useMemo(() => pretty(order(published)), [published]);
  const [draft, setDraft] = useState(() => /** @type {Draft|null} */ (storedDraft(key)));
  const [found, setFound] = useState(draft !== null);
  const steps = useRef({ past: /** @type {string[]} */ ([]), future: /** @type {string[]} */ ([]), group: "" }).current;
  const text = draft?.text ?? clean;
  const value = useMemo(() => {
    const parsed = parseJson(text);
    return "value" in parsed ? parsed.value : undefined;
  }, [text]);
  const changed = draft !== null && (value === undefined || pretty(order(value)) !== clean);
  const put = (/** @type {string} */ next) => {
    const kept = next === clean ? null : { text: next, base: draft?.base ?? version };
    storeDraft(key, kept);
    setDraft(kept);
  };
  const step = (/** @type {string} */ next, /** @type {string} */ group) => {
    if (next === text) return;
    if (!group || group !== steps.group || steps.future.length) steps.past = [...steps.past, text].slice(-STEPS_MAX);
    Object.assign(steps, { future: [], group });
    put(next);
  };
  /** @param {"past"|"future"} from @param {"past"|"future"} to */
  const back = (from, to) => {
    const next = steps[from].at(-1);
    if (next === undefined) return null;
    return () => {
      steps[from] = steps[from].slice(0, -1);
      steps[to] = [...steps[to], text];
      steps.group = "";
      put(next);
    };
  };
  const discard = () => {
    Object.assign(steps, { past: [], future: [], group: "" });
    storeDraft(key, null);
    setDraft(null);
    setFound(false);
  };
  const rebase = (/** @type {number} */ base) => {
    const kept = { text, base };
    storeDraft(key, kept);
    setDraft(kept);
  };
  return {
    text,
    value,
    changed,
    found: found && changed,
    outdated: changed && draft.base !== version,
    write: (next) => step(next, "text"),
    change: (next, group = "") => step(pretty(order(next)), group),
    undo: back("past", "future"),
    redo: back("future", "past"),
    discard,
    rebase,
  };
}
