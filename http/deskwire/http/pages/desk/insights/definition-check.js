// @ts-check
/** The check of a definition by the service, shortly after each change. */
import { useEffect, useState } from "../vendor/preact.js";
import { t } from "./texts.js";
import { lineAt, linesOf, parseJson } from "./json-text.js";

/** @typedef {{line: number, path: string, code: string, message: string}} LineProblem */
/** @typedef {{problems: LineProblem[], checking: boolean, failed: any}} Checked */

const CHECK_DELAY_MS = 300;

/**
 * Check a text shortly after each change.
 * @param {string} text @param {(value: any) => Promise<{path: string, code: string, message: string}[]>} ask  returns the problems of a value @returns {Checked}
 */
export function useProblems(text, ask) {
  const [known, set] = useState({ text: /** @type {string|null} */ (null), problems: /** @type {LineProblem[]} */ ([]), failed: /** @type {any} */ (null) });
  useEffect(() => {
    const found = parseJson(text);
    if ("message" in found) return set({ text, problems: [{ line: found.line, path: "", code: "not_json", message: found.message }], failed: null });
    let left = false;
    const timer = setTimeout(async () => {
      try {
        const errors = await ask(found.value);
        const lines = linesOf(text);
        if (!left) set({ text, problems: errors.map((each) => ({ ...each, line: lineAt(lines, each.path) })), failed: null });
      } catch (failed) {
        if (!left) set({ text, problems: [], failed });
      }
    }, CHECK_DELAY_MS);
    return () => ((left = true), clearTimeout(timer));
  }, [text]);
  return { problems: known.problems, failed: known.failed, checking: known.text !== text };
}

/** True if the service has found no problem in the present text. @param {Checked} of */
export const isSound = ({ problems, checking, failed }) => !problems.length && !checking && !failed;

/** Return the result of a check in words. @param {Checked} of */
export function verdict({ checking, failed, problems }) {
  if (failed) return failed.message;
  if (checking && !problems.length) return t.editor.checking;
  return problems.length ? t.editor.problems(problems.length) : t.editor.sound;
}
