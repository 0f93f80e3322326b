// @ts-check
/**
 * Merging drafts that were changed in several places: pure functions.
 *
 * Changes in different places of a text are both applied. Where they overlap, both texts are kept one after the other, so that no word is lost. The
 * result does not depend on the order of the arguments.
 */
import { mentionKeys, mentionsIn } from "./mention-text.js";
/** @import { Draft, Mention, OutgoingFile } from "../core/types.js" */

/** @param {string} text @param {number} at Return whether this place splits a surrogate pair. */
const splitsSurrogatePair = (text, at) => /[\ud800-\udbff]/.test(text[at - 1] ?? "") && /[\udc00-\udfff]/.test(text[at] ?? "");

/** Return the one span of a text that was replaced, and its replacement. @param {string} base @param {string} text @returns {{from: number, to: number, put: string}} */
function changedSpan(base, text) {
  const most = Math.min(base.length, text.length);
  let from = 0;
  while (from < most && base[from] === text[from]) from += 1;
  if (splitsSurrogatePair(base, from) || splitsSurrogatePair(text, from)) from -= 1;
  let same = 0;
  while (same < most - from && base[base.length - 1 - same] === text[text.length - 1 - same]) same += 1;
  if (splitsSurrogatePair(base, base.length - same) || splitsSurrogatePair(text, text.length - same)) same -= 1;
  return { from, to: base.length - same, put: text.slice(from, text.length - same) };
}

/** @param {string} text */
const paragraphs = (text) => text.split(/\n\s*\n/).map((each) => each.trim()).filter(Boolean);

const LETTER = /[\p{L}\p{N}\p{M}]/u;
/** Characters on each side of a match that are searched for the rest of a word, and the maximum number of matches examined. */
const WORD_CONTEXT_MAX = 64;
const MATCHES_MAX = 100;

/** Return whether a match consists of whole words. @param {string} text @param {number} at @param {number} size */
function isWholeWord(text, at, size) {
  const before = /\S*$/.exec(text.slice(Math.max(0, at - WORD_CONTEXT_MAX), at))?.[0] ?? "";
  const after = /^\S*/.exec(text.slice(at + size, at + size + WORD_CONTEXT_MAX))?.[0] ?? "";
  return !LETTER.test(before) && !LETTER.test(after);
}

/**
 * Return whether a text contains these words as whole words, or has a paragraph that begins with them. Equal to the service's `drafts.merge`.
 * @param {string} text @param {string} words
 */
export function containsWords(text, words) {
  if (paragraphs(text).some((each) => each.startsWith(words))) return true;
  const last = text.lastIndexOf(words);
  if (last >= 0 && isWholeWord(text, last, words.length)) return true;
  for (let at = text.indexOf(words), left = MATCHES_MAX; at >= 0 && left > 0; at = text.indexOf(words, at + 1), left -= 1) {
    if (isWholeWord(text, at, words.length)) return true;
  }
  return false;
}

/** Return both texts one after the other, without repeated paragraphs. @param {string} a @param {string} b @returns {string} */
export function joinTexts(a, b) {
  const [first, second] = a < b ? [a, b] : [b, a];
  if (second.trim() && paragraphs(first).every((each) => containsWords(second, each))) return second;
  if (paragraphs(second).every((each) => containsWords(first, each))) return first;
  return [first.trimEnd(), ...paragraphs(second).filter((each) => !containsWords(first, each))].join("\n\n");
}

/** Return the text with both changes applied. @param {string} base  the common ancestor @param {string} mine @param {string} theirs @returns {string} */
export function merge(base, mine, theirs) {
  if (mine === theirs || theirs === base) return mine;
  if (mine === base) return theirs;
  const [a, b] = [changedSpan(base, mine), changedSpan(base, theirs)];
  const [first, last] = a.from < b.from || (a.from === b.from && a.to <= b.to) ? [a, b] : [b, a];
  const meet = first.to > last.from || (first.from === last.from && first.to === last.to) || reordered(mine, theirs);
  if (meet) return joinTexts(mine, theirs);
  const both = base.slice(0, first.from) + first.put + base.slice(first.to, last.from) + last.put + base.slice(last.to);
  return losesWord(both, base, mine, theirs) || losesWord(both, base, theirs, mine) ? joinTexts(mine, theirs) : both;
}

/** @param {string} text */
const wordsOf = (text) => new Set(text.split(/\s+/).filter(Boolean));

/** Return whether a merge lacks a word of one text that the other did not remove. @param {string} both @param {string} base @param {string} one @param {string} other */
function losesWord(both, base, one, other) {
  const [kept, before, there] = [wordsOf(both), wordsOf(base), wordsOf(other)];
  return [...wordsOf(one)].some((each) => !kept.has(each) && !(before.has(each) && !there.has(each)));
}

/** Return whether two texts have the same paragraphs in another order. @param {string} a @param {string} b */
const reordered = (a, b) => paragraphs(a).sort().join("\n\n") === paragraphs(b).sort().join("\n\n");

/** The server's version of a draft it does not have. @type {Draft["base"]} */
export const NOTHING_ON_SERVER = { version: 0, text: "", files: [], mentions: [] };
/** @type {Draft} */
export const EMPTY = { text: "", files: [], mentions: [], baseSequence: null, at: 0, base: NOTHING_ON_SERVER, sent: [] };

/** @param {Draft} one */
export const empty = (one) => !one.text && !one.files.length;
/** Return the ids of uploaded files. @param {readonly OutgoingFile[]} files */
export const ids = (files) => files.flatMap((each) => each.uploadId ?? []);
/** Return whether the draft has changes that can be saved to the server. @param {Draft} one */
export const differs = (one) => one.text !== one.base.text || ids(one.files).join() !== one.base.files.join() || mentionKeys(one.mentions) !== mentionKeys(one.base.mentions);
/** Return whether the server has the whole draft. @param {Draft} one */
export const saved = (one) => !differs(one) && one.files.every((each) => each.uploadId);

/** @param {OutgoingFile} a @param {OutgoingFile} b */
const sameFile = (a, b) => a.key === b.key || (a.uploadId !== null && (a.uploadId === b.uploadId || a.uploadId === b.key)) || b.uploadId === a.key;

/** Return the merged files: all but those that one side removed. @param {readonly string[]} base  keys or upload ids @param {readonly OutgoingFile[]} mine @param {readonly OutgoingFile[]} theirs */
export function mergeFiles(base, mine, theirs) {
  const known = (/** @type {OutgoingFile} */ each) => base.includes(each.key) || (each.uploadId !== null && base.includes(each.uploadId));
  const left = mine.filter((each) => !known(each) || theirs.some((other) => sameFile(each, other)));
  const newer = left.map((each) => (each.uploadId ? each : { ...each, uploadId: theirs.find((other) => sameFile(each, other))?.uploadId ?? null }));
  return [...newer, ...theirs.filter((each) => !known(each) && !mine.some((other) => sameFile(each, other)))];
}

/** Return a draft after a change in another tab. Mentions that either has stay as long as the text has their name. @param {Draft} mine @param {{text: string, files: OutgoingFile[]}} from @param {Draft} theirs @returns {Draft} */
export function mergeFromTab(mine, from, theirs) {
  const base = mine.base.version > theirs.base.version && theirs.base.version ? mine.base : theirs.base;
  const merged = merge(from.text, mine.text, theirs.text);
  const text = theirs.text || merged === mine.text ? merged : merged.trimStart();
  return { ...theirs, text, base, files: mergeFiles(from.files.flatMap((each) => [each.key, each.uploadId ?? each.key]), mine.files, theirs.files), mentions: mentionsIn(text, mine.mentions, theirs.mentions ?? []) };
}

/** @param {any} of  an attachment of the API @returns {OutgoingFile} */
export const outgoingFile = (of) => ({ key: of.id, name: of.name, type: of.type ?? "", size: of.size, progress: 1, uploadId: of.id });

/**
 * @typedef {object} Given
 * @property {string} [sent]  the text that this response confirms
 * @property {boolean} [returned]  the user has taken a message back: an empty editor shows it, also if the server did not know yet that it was emptied
 */
/**
 * Return a draft merged with the server's version.
 * @param {Draft} mine @param {any} given  a `Draft` of the API; null for none @param {Given} [how] @returns {Draft} The same object if nothing changes.
 */
export function mergeFromServer(mine, given, { sent, returned = false } = {}) {
  if (given && given.version < mine.base.version) return mine;
  if (!given && !mine.base.version && !mine.sent.length) return mine;
  const theirs = { text: given?.text ?? "", files: (given?.attachments ?? []).map(outgoingFile), mentions: /** @type {Mention[]} */ (given?.mentions ?? []) };
  const shown = returned && empty(mine);
  const ours = !shown && !saved(mine) && mine.sent.includes(theirs.text);
  const merged = ours ? mine.text : merge(shown ? "" : (sent ?? mine.base.text), mine.text, theirs.text);
  const text = given || merged === mine.text ? merged : merged.trimStart();
  const base = given ? { version: given.version, text: theirs.text, files: ids(theirs.files), mentions: theirs.mentions } : NOTHING_ON_SERVER;
  const files = mergeFiles(shown ? [] : mine.base.files, mine.files, theirs.files);
  return { ...mine, text, files, mentions: mentionsIn(text, mine.mentions, theirs.mentions), base, sent: [], baseSequence: given?.baseSequence ?? mine.baseSequence };
}
