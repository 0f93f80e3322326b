// @ts-check
/**
 * Changes of a definition by its forms: reading and writing parts, the order of members, and which field has which problem.
 *
 * Nothing here changes a value in place. Unknown members and values of other types are kept.
 */

/** @typedef {(string|number)[]} Path  of a part: names of members and indexes */
/** @typedef {{path: string, code: string, message: string}} FormProblem */
/** @typedef {FormProblem & {field: string, rest: string}} PlacedProblem  field: the pointer of the form's field; rest: of the part inside it */
/** @typedef {string[] | {names: string[], members: Record<string, any>}} Order */

const NAME_MAX = 40; // characters of a name in the service's pointers

/** Return a name as the service writes it in a pointer (RFC 6901, cut). @param {string|number} name */
export const escaped = (name) => [...String(name)].slice(0, NAME_MAX).join("").replaceAll("~", "~0").replaceAll("/", "~1");

/** @param {Path} path */
export const pointerOf = (path) => path.map((each) => `/${escaped(each)}`).join("");

/** True for a JSON object. @param {any} value @returns {value is Record<string, any>} */
export const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);

/** Return a list, and an empty one for any other value. @param {any} value @returns {any[]} */
export const listed = (value) => (Array.isArray(value) ? value : []);

/** Return a part of a value; undefined if there is none. @param {any} value @param {Path} path @returns {any} */
export const get = (value, path) => path.reduce((part, name) => (part !== null && typeof part === "object" && Object.hasOwn(part, name) ? part[name] : undefined), value);

/** Return a value with another part; undefined removes it. Missing parts around it are made. @param {any} value @param {Path} path @param {any} next @returns {any} */
export function set(value, path, next) {
  const [name, ...rest] = path;
  if (name === undefined) return next;
  const part = rest.length ? set(get(value, [name]), rest, next) : next;
  if (typeof name === "number") {
    const items = listed(value);
    return part === undefined ? items.toSpliced(name, 1) : name < items.length ? items.with(name, part) : [...items, part];
  }
  const entries = Object.entries(isObject(value) ? value : {});
  if (part === undefined) return Object.fromEntries(entries.filter(([key]) => key !== name));
  return Object.fromEntries(entries.some(([key]) => key === name) ? entries.map(([key, old]) => [key, key === name ? part : old]) : [...entries, [name, part]]);
}

/** Return a list with an item at another index. @template T @param {T[]} items @param {number} from @param {number} to @returns {T[]} */
export const moved = (items, from, to) => (to < 0 || to >= items.length ? items : items.toSpliced(from, 1).toSpliced(to, 0, /** @type {T} */ (items[from])));

/** Return an object with another name of a member, in its place. @param {Record<string, any>} value @param {string} from @param {string} to */
export const renamed = (value, from, to) => Object.fromEntries(Object.entries(value).map(([name, part]) => [name === from ? to : name, part]));

/** Return an object with these members first, in this order, and the others after them. @param {any} value @param {string[]} names @returns {any} */
export function inOrder(value, names) {
  if (!isObject(value)) return value;
  const known = names.filter((name) => Object.hasOwn(value, name));
  return Object.fromEntries([...known, ...Object.keys(value).filter((name) => !known.includes(name))].map((name) => [name, value[name]]));
}

/** Return the first free id of the form `word1`. @param {string} word @param {Iterable<any>} taken */
export function freeId(word, taken) {
  const ids = new Set(taken);
  let number = 1;
  while (ids.has(`${word}${number}`)) number += 1;
  return `${word}${number}`;
}

/** Assign each problem to the field with the longest fitting pointer. @param {FormProblem[]} problems @param {Iterable<string>} fields  pointers @returns {PlacedProblem[]} */
export function placed(problems, fields) {
  const known = new Set(fields);
  return problems.map((problem) => {
    let field = problem.path;
    while (field && !known.has(field)) field = field.slice(0, field.lastIndexOf("/"));
    return { ...problem, field, rest: problem.path.slice(field.length + 1) };
  });
}

/** Return the members of an object that a form has no field for. @param {any} value @param {string[]} known */
export const unknownMembers = (value, known) => (isObject(value) ? Object.keys(value).filter((name) => !known.includes(name)) : []);

/** Return a value as the text of a field: a text itself, nothing for none, and others as JSON. @param {any} value */
export const fieldText = (value) => (typeof value === "string" ? value : value === undefined ? "" : JSON.stringify(value));

/** Return the number of a text; the text itself if it is none, and undefined if it is empty. @param {string} text @returns {number|string|undefined} */
export function numberOf(text) {
  const trimmed = text.trim();
  if (!trimmed) return undefined;
  return /^-?(\d+\.?\d*|\.\d+)$/.test(trimmed) ? Number(trimmed) : text;
}

/** Return the changed items of a list; a value that is no list, unchanged. @param {any} items @param {(item: any) => any} change */
export const eachOf = (items, change) => (Array.isArray(items) ? items.map(change) : items);

/** Return an object with its members in this order, and parts of it changed; another value, unchanged. @param {any} of @param {string[]} names @param {Record<string, (part: any) => any>} parts */
export function within(of, names, parts) {
  const sorted = inOrder(of, names);
  return isObject(sorted) ? Object.fromEntries(Object.entries(sorted).map(([name, part]) => [name, Object.hasOwn(parts, name) ? parts[name]?.(part) : part])) : sorted;
}
