// @ts-check
/** The logic of a survey, by the same rules as the service's. */
import { fold } from "./folding.js";

/** @typedef {{id: string, type: string, title: Record<string, string>, required?: boolean, choices?: {id: string, label: Record<string, string>}[], min?: number, max?: number}} Question */
/** @typedef {{languages: string[], primaryLanguage: string, questions: Question[], thankYou?: Record<string, string>, logic?: {from: string, to: string, when?: {op: string, value?: any}}[]}} Definition */

/** True if an answer meets the condition of a jump. The same rules as the service's. @param {{op: string, value?: any} | undefined} when @param {any} answer */
export function holds(when, answer) {
  if (!when) return true;
  const given = answer !== undefined;
  const { op, value } = when;
  if (op === "answered" || op === "not_answered") return given === (op === "answered");
  if (!given) return false;
  if (op === "contains") return Array.isArray(answer) ? answer.includes(value) : fold(String(answer)).includes(fold(String(value)));
  const tests = /** @type {Record<string, boolean>} */ ({ eq: answer === value, ne: answer !== value, lt: answer < value, lte: answer <= value, gt: answer > value, gte: answer >= value });
  return op === "in" ? value.includes(answer) : (tests[op] ?? false);
}

/** Return the index of the question after this one. @param {Definition} definition @param {number} at @param {any} answer */
export function following({ questions, logic = [] }, at, answer) {
  const jump = logic.find(({ from, when }) => from === questions[at]?.id && holds(when, answer));
  if (!jump) return at + 1;
  return jump.to === "end" ? questions.length : questions.findIndex(({ id }) => id === jump.to);
}

const TEXT_MAX = 20_000; // characters

/**
 * Return the least and the greatest size of an answer that is too small or too large: choices of a question with several, characters of a text. Null if
 * it is neither. The browser checks the other types.
 * @param {Question} question @param {any} answer @returns {[number, number] | null}
 */
export function brokenBounds({ type, required, choices, min, max }, answer) {
  if (type !== "multiple_choice" && type !== "text") return null;
  const low = Math.max(min ?? 0, 1);
  const high = max ?? choices?.length ?? TEXT_MAX;
  const size = answer === undefined ? 0 : [...answer].length; // characters as the service counts them, not UTF-16 units
  return (size || required) && (size < low || size > high) ? [low, high] : null;
}
