// @ts-check
/** The form of a survey's definition: its fields, the order of its members, and changes that concern several of them. */
import { eachOf, escaped, freeId, get, inOrder, isObject, listed, moved, set, within } from "./form-model.js";
/** @import { Path } from "./form-model.js" */

const ORDERED = ["eq", "ne", "lt", "lte", "gt", "gte", "in"];
/**
 * The question types of the service. ops: the operators of this type alone; choices, bounds: whether it has these members; scale: lowest and highest answer
 * @type {Record<string, {ops: string[], choices?: boolean, bounds?: boolean, scale?: [number, number]}>}
 */
export const TYPES = {
  nps: { ops: ORDERED, scale: [0, 10] },
  csat: { ops: ORDERED, scale: [1, 5] },
  ces: { ops: ORDERED, scale: [1, 7] },
  rating: { ops: ORDERED, scale: [1, 5], bounds: true },
  single_choice: { ops: ["eq", "ne", "in"], choices: true },
  multiple_choice: { ops: ["contains"], choices: true, bounds: true },
  text: { ops: ["contains"], bounds: true },
  number: { ops: ORDERED, bounds: true },
  date: { ops: ORDERED },
  boolean: { ops: ["eq"] },
};
/** The operators of every type; they have no value. */
export const PRESENCE = ["answered", "not_answered"];

export const MEMBERS = ["schemaVersion", "title", "languages", "primaryLanguage", "questions", "logic", "thankYou"];
export const QUESTION_MEMBERS = ["id", "type", "title", "required", "choices", "min", "max"];
export const CHOICE_MEMBERS = ["id", "label"];
export const JUMP_MEMBERS = ["from", "to", "when"];
export const CONDITION_MEMBERS = ["op", "value"];

/** Return a definition with its members in the order of the guide, unknown ones after them. @param {any} definition @returns {any} */
export function ordered(definition) {
  if (!isObject(definition)) return definition;
  const languages = languagesOf(definition);
  const texts = (/** @type {any} */ of) => inOrder(of, languages);
  const choice = (/** @type {any} */ of) => within(of, CHOICE_MEMBERS, { label: texts });
  const question = (/** @type {any} */ of) => within(of, QUESTION_MEMBERS, { title: texts, choices: (items) => eachOf(items, choice) });
  const jump = (/** @type {any} */ of) => within(of, JUMP_MEMBERS, { when: (when) => inOrder(when, CONDITION_MEMBERS) });
  return within(definition, MEMBERS, { questions: (items) => eachOf(items, question), logic: (items) => eachOf(items, jump), thankYou: texts });
}

/** Return the declared languages, each once. @param {any} definition @returns {string[]} */
export const languagesOf = (definition) => [...new Set(listed(definition?.languages).filter((each) => typeof each === "string"))];

/** Return the languages for which a text has a field: the declared ones and its own. @param {any} definition @param {any} texts */
export const languagesShown = (definition, texts) => [...new Set([...languagesOf(definition), ...(isObject(texts) ? Object.keys(texts) : [])])];

/** True if a question's form shows a member. @param {any} question @param {"choices"|"min"|"max"} name */
export const showsMember = (question, name) => Object.hasOwn(question, name) || Boolean(TYPES[question.type]?.[name === "choices" ? "choices" : "bounds"]);

/** Return the pointers of all fields and groups of the form. @param {any} definition @returns {string[]} */
export function fieldsOf(definition) {
  if (!isObject(definition)) return [""];
  const found = ["", "/schemaVersion", "/title", "/languages", "/primaryLanguage", "/questions", "/logic", "/thankYou"];
  const texts = (/** @type {string} */ at, /** @type {any} */ of) => found.push(at, ...languagesShown(definition, of).map((each) => `${at}/${escaped(each)}`));
  listed(definition.languages).forEach((_, i) => found.push(`/languages/${i}`));
  listed(definition.questions).forEach((question, i) => {
    const at = `/questions/${i}`;
    found.push(at);
    if (!isObject(question)) return;
    found.push(...["id", "type", "required"].map((name) => `${at}/${name}`));
    texts(`${at}/title`, question.title);
    for (const name of /** @type {const} */ (["choices", "min", "max"])) if (showsMember(question, name)) found.push(`${at}/${name}`);
    if (showsMember(question, "choices"))
      listed(question.choices).forEach((choice, j) => {
        found.push(`${at}/choices/${j}`);
        if (!isObject(choice)) return;
        found.push(`${at}/choices/${j}/id`);
        texts(`${at}/choices/${j}/label`, choice.label);
      });
  });
  listed(definition.logic).forEach((jump, i) => {
    found.push(`/logic/${i}`);
    if (!isObject(jump)) return;
    const names = ["from", "to", "when/op", ...(PRESENCE.includes(jump.when?.op) ? [] : ["when/value"])];
    found.push(...names.map((name) => `/logic/${i}/${name}`));
  });
  if (definition.thankYou !== undefined) texts("/thankYou", definition.thankYou);
  return found;
}

const idsOf = (/** @type {any} */ items) => listed(items).map((each) => each?.id);
/** A text in each language, still empty. @param {any} definition */
export const emptyTexts = (/** @type {any} */ definition) => Object.fromEntries(languagesOf(definition).map((each) => [each, ""]));
const newChoice = (/** @type {any} */ definition, /** @type {any} */ choices) => ({ id: freeId("choice", idsOf(choices)), label: emptyTexts(definition) });

/** Return a definition with a new question at an index. @param {any} definition @param {number} at @param {string} type */
export function withQuestion(definition, at, type) {
  const question = { id: freeId("question", idsOf(definition.questions)), type, title: emptyTexts(definition), ...(TYPES[type]?.choices && { choices: [newChoice(definition, [])] }) };
  return set(definition, ["questions"], listed(definition.questions).toSpliced(at, 0, question));
}

/** Return a definition with a copy of a question after it. @param {any} definition @param {number} at */
export function withCopy(definition, at) {
  const questions = listed(definition.questions);
  const { id } = questions[at];
  const copy = { ...questions[at], id: freeId(typeof id === "string" ? `${id}-` : "question", idsOf(questions)) };
  return set(definition, ["questions"], questions.toSpliced(at + 1, 0, copy));
}

/** Return a definition without a question and the jumps from it. Jumps to it stay, for the user to decide. @param {any} definition @param {number} at */
export function withoutQuestion(definition, at) {
  const questions = listed(definition.questions);
  const { id } = questions[at] ?? {};
  const unique = typeof id === "string" && idsOf(questions).filter((each) => each === id).length === 1;
  const rest = set(definition, ["questions"], questions.toSpliced(at, 1));
  return unique && Array.isArray(rest.logic) ? set(rest, ["logic"], rest.logic.filter((/** @type {any} */ jump) => jump?.from !== id)) : rest;
}

/** Return a definition with a question at another index. @param {any} definition @param {number} from @param {number} to */
export const withMoved = (definition, from, to) => set(definition, ["questions"], moved(listed(definition.questions), from, to));

/** Return a definition with another id of a question, also in its jumps, unless the id is taken. @param {any} definition @param {number} at @param {string} id */
export function withId(definition, at, id) {
  const before = get(definition, ["questions", at, "id"]);
  const ids = idsOf(definition.questions);
  const next = set(definition, ["questions", at, "id"], id);
  if (typeof before !== "string" || ids.includes(id) || ids.filter((each) => each === before).length > 1 || !Array.isArray(next.logic)) return next;
  const jump = (/** @type {any} */ of) => ["from", "to"].reduce((all, name) => (all?.[name] === before ? set(all, [name], id) : all), of);
  return set(next, ["logic"], next.logic.map(jump));
}

/**
 * Return a definition with another type of a question, without the members that the type does not have.
 * @param {any} definition @param {number} at @param {string} type @param {Record<string, any>} [earlier]  members of earlier types, which are put back; it is changed
 */
export function withType(definition, at, type, earlier = {}) {
  const path = /** @type {Path} */ (["questions", at]);
  let question = set(get(definition, path), ["type"], type);
  for (const name of /** @type {const} */ (["choices", "min", "max"])) {
    const fits = Boolean(TYPES[type]?.[name === "choices" ? "choices" : "bounds"]);
    if (!fits && question[name] !== undefined) ((earlier[name] = question[name]), (question = set(question, [name], undefined)));
    else if (fits && question[name] === undefined && earlier[name] !== undefined) question = set(question, [name], earlier[name]);
  }
  if (TYPES[type]?.choices && question.choices === undefined) question = set(question, ["choices"], [newChoice(definition, [])]);
  return set(definition, path, question);
}

/** Return a definition with another choice of a question. @param {any} definition @param {number} at */
export function withChoice(definition, at) {
  const path = /** @type {Path} */ (["questions", at, "choices"]);
  const choices = listed(get(definition, path));
  return set(definition, path, [...choices, newChoice(definition, choices)]);
}

/** Return a definition with another jump from a question, after the others. @param {any} definition @param {number} at */
export function withJump(definition, at) {
  const { id } = definition.questions[at];
  const jump = { from: id, to: "end", when: { op: "answered" } };
  const logic = listed(definition.logic);
  const last = logic.findLastIndex((each) => each?.from === id);
  return set(definition, ["logic"], logic.toSpliced(last < 0 ? logic.length : last + 1, 0, jump));
}

/** Return a definition with the change to all of its texts. @param {any} definition @param {(texts: any) => any} change */
function eachText(definition, change) {
  const texts = (/** @type {any} */ of, /** @type {string} */ name) => (isObject(of?.[name]) ? set(of, [name], change(of[name])) : of);
  const question = (/** @type {any} */ of) => {
    const titled = texts(of, "title");
    return Array.isArray(titled?.choices) ? set(titled, ["choices"], titled.choices.map((/** @type {any} */ each) => texts(each, "label"))) : titled;
  };
  const next = texts(definition, "thankYou");
  return Array.isArray(next.questions) ? set(next, ["questions"], next.questions.map(question)) : next;
}

/** Return a definition with a further language, in which its texts are still empty. @param {any} definition @param {string} language */
export function withLanguage(definition, language) {
  const next = set(definition, ["languages"], [...listed(definition.languages), language]);
  return eachText(next, (texts) => (Object.hasOwn(texts, language) ? texts : set(texts, [language], "")));
}

/** Return a definition without a language and its texts. @param {any} definition @param {number} at */
export function withoutLanguage(definition, at) {
  const languages = listed(definition.languages);
  const gone = languages[at];
  const left = languages.toSpliced(at, 1);
  let next = set(definition, ["languages"], left);
  if (typeof gone === "string" && !left.includes(gone)) next = eachText(next, (texts) => set(texts, [gone], undefined));
  return next.primaryLanguage === gone && left.length ? set(next, ["primaryLanguage"], left[0]) : next;
}

/** Return the jumps from a question with their indexes. @param {any} definition @param {any} id @returns {number[]} */
export const jumpsFrom = (definition, id) => listed(definition.logic).flatMap((jump, i) => (isObject(jump) && jump.from === id ? [i] : []));

/** Return the indexes of jumps that begin at no question, or at one whose id an earlier question has. @param {any} definition */
export function looseJumps(definition) {
  const ids = new Set(idsOf(definition.questions).filter((each) => typeof each === "string"));
  return listed(definition.logic).flatMap((jump, i) => (isObject(jump) && ids.has(jump.from) ? [] : [i]));
}

/** Return the index of the first question with this one's id. The jumps are in its form. @param {any} definition @param {number} at */
export const firstWithId = (definition, at) => idsOf(definition.questions).indexOf(idsOf(definition.questions)[at]);
