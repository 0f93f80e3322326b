// @ts-check
/** Mentions in a text: pure functions. */
/** @import { Mention } from "../core/types.js" */

/** @param {string} text */
const quoted = (text) => text.replace(/[.*+?^${}()|[\]\\/]/g, "\\$&");

/**
 * Split a text at the names of mentions. The longest name wins, and a name ends where its word ends. If two people have the same name, their places
 * follow the order of the mentions.
 * @template {{name: string}} T @param {string} text @param {readonly T[]} mentions @returns {(string | T)[]}
 */
export function splitMentions(text, mentions) {
  if (!mentions.length || !text.includes("@")) return text ? [text] : [];
  const names = [...new Set(mentions.map((each) => each.name))].sort((a, b) => b.length - a.length);
  const pattern = new RegExp(`@(${names.map(quoted).join("|")})(?![\\p{L}\\p{N}_])`, "gu");
  const used = /** @type {Map<string, number>} */ (new Map());
  /** @type {(string | T)[]} */
  const found = [];
  let end = 0;
  for (const match of text.matchAll(pattern)) {
    const alike = mentions.filter((each) => each.name === match[1]);
    const n = used.get(match[1] ?? "") ?? 0;
    used.set(match[1] ?? "", n + 1);
    found.push(text.slice(end, match.index), /** @type {T} */ (alike[Math.min(n, alike.length - 1)]));
    end = match.index + match[0].length;
  }
  return [...found, text.slice(end)].filter((each) => each !== "");
}

/** Return the mentions of all lists whose name is in the text, each once. @param {string} text @param {...readonly Mention[]} lists @returns {Mention[]} */
export function mentionsIn(text, ...lists) {
  const all = new Map(lists.flat().map((each) => [`${each.id} ${each.name}`, each]));
  const names = new Set(splitMentions(text, [...all.values()]).flatMap((each) => (typeof each === "string" ? [] : [each.name])));
  return [...all.values()].filter((each) => names.has(each.name));
}

/** Return a comparable form of mentions. @param {readonly Mention[] | undefined} mentions */
export const mentionKeys = (mentions) => (mentions ?? []).map((each) => `${each.id} ${each.name}`).sort().join("\n");
