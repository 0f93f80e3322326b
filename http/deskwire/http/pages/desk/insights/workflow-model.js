// @ts-check
/** The flows of a workflow as its form edits them: fields, the order of members, exits of actions, and changes that concern several parts. */
import { eachOf, escaped, freeId, get, inOrder, isObject, listed, moved, renamed, set, within } from "./form-model.js";
/** @import { Path } from "./form-model.js" */

/** The members of each type of action besides `id` and `type`; an unknown type has none. @type {Record<string, string[]>} */
export const ACTIONS = Object.assign(Object.create(null), {
  message: ["text"], buttons: ["text", "options", "allowText"], form: ["text", "fields"], wait: ["seconds"], assign: ["assignee"],
  set_attributes: ["attributes"], branch: ["on", "cases", "default"], close: [], hand_off: [],
});
export const FIELD_TYPES = ["text", "email", "number", "boolean", "date"];
export const OPTION_MEMBERS = ["id", "label", "goto"];
export const FIELD_MEMBERS = ["id", "type", "label", "required"];
const ENDS = ["close", "hand_off"];

/** @param {any} action */
export const membersOf = (action) => ["id", "type", ...(ACTIONS[action?.type] ?? [])];

/** Return flows with their members in the order of the guide, unknown ones after them. @param {any} flows @returns {any} */
export function ordered(flows) {
  const parts = /** @type {Record<string, (part: any) => any>} */ ({
    options: (of) => eachOf(of, (one) => inOrder(one, OPTION_MEMBERS)),
    fields: (of) => eachOf(of, (one) => inOrder(one, FIELD_MEMBERS)),
    assignee: (of) => inOrder(of, ["type", "id"]),
  });
  const action = (/** @type {any} */ of) => within(of, membersOf(of), parts);
  return eachOf(flows, (of) => {
    const flow = inOrder(of, ["id", "actions"]);
    return isObject(flow) && Array.isArray(flow.actions) ? set(flow, ["actions"], flow.actions.map(action)) : flow;
  });
}

/** Return the actions of a flow that can be shown. @param {any} flow @returns {any[]} */
export const actionsOf = (flow) => listed(flow?.actions);

/** Return the pointers of all fields and groups of the form. @param {any} flows @returns {string[]} */
export function fieldsOf(flows) {
  const found = [""];
  listed(flows).forEach((flow, f) => {
    found.push(`/${f}`);
    if (isObject(flow)) found.push(`/${f}/id`, `/${f}/actions`);
    actionsOf(flow).forEach((action, a) => found.push(...fieldsOfAction(action, `/${f}/actions/${a}`)));
  });
  return found;
}

/** @param {any} action @param {string} at */
function fieldsOfAction(action, at) {
  if (!isObject(action)) return [at];
  const found = [at, `${at}/id`, `${at}/type`];
  for (const name of ACTIONS[action.type] ?? []) {
    const here = `${at}/${name}`;
    if (name === "options" || name === "fields") {
      found.push(here);
      listed(action[name]).forEach((one, i) => found.push(`${here}/${i}`, ...(isObject(one) ? (name === "options" ? OPTION_MEMBERS : FIELD_MEMBERS).map((member) => `${here}/${i}/${member}`) : [])));
    } else if (name === "assignee") found.push(here, `${here}/type`, `${here}/id`);
    else if (name === "attributes" || name === "cases") found.push(here, ...Object.keys(isObject(action[name]) ? action[name] : {}).map((key) => `${here}/${escaped(key)}`));
    else found.push(here);
  }
  return found;
}

/**
 * Return the exits of an action. path: of the target in the action; to: a flow, "end", or null for the next action @param {any} action
 * @returns {{path: Path, label: string, to: any}[]}
 */
export function exitsOf(action) {
  if (action?.type === "buttons") return listed(action.options).map((option, i) => ({ path: ["options", i, "goto"], label: String(option?.label || option?.id || i + 1), to: option?.goto ?? null }));
  if (action?.type !== "branch") return [];
  const cases = Object.entries(isObject(action.cases) ? action.cases : {}).map(([value, to]) => ({ path: /** @type {Path} */ (["cases", value]), label: value, to }));
  return [...cases, { path: ["default"], label: "", to: action.default ?? null }];
}

/** True if an action can continue with the next one of its flow. @param {any} action */
export function goesOn(action) {
  if (ENDS.includes(action?.type) || action?.type === "branch") return false;
  return action?.type !== "buttons" || action.allowText === true || exitsOf(action).some(({ to }) => to === null);
}

/** Return the first free id of an action. @param {any} flows */
export function freeActionId(flows) {
  const ids = listed(flows).flatMap((flow) => actionsOf(flow).map((action) => action?.id)).filter(Number.isSafeInteger);
  return Math.max(0, ...ids) + 1;
}

/** Return a new action of a type. @param {any} flows @param {string} type @returns {any} */
export function newAction(flows, type) {
  const parts = /** @type {Record<string, any>} */ ({
    text: "", options: [{ id: "option1", label: "" }], fields: [{ id: "field1", type: "text", label: "" }], seconds: 60, assignee: { type: "team", id: "" }, attributes: { attribute1: "" }, on: "", cases: { value1: "end" }, default: "end",
  });
  return { id: freeActionId(flows), type, ...Object.fromEntries((ACTIONS[type] ?? []).filter((name) => name in parts).map((name) => [name, parts[name]])) };
}

/** Return flows with a new action at an index of a flow. @param {any} flows @param {number} f @param {number} a @param {string} type */
export const withAction = (flows, f, a, type) => set(flows, [f, "actions"], actionsOf(flows[f]).toSpliced(a, 0, newAction(flows, type)));

/** Return flows without an action. @param {any} flows @param {number} f @param {number} a */
export const withoutAction = (flows, f, a) => set(flows, [f, "actions"], actionsOf(flows[f]).toSpliced(a, 1));

/** Return flows with an action at another index of its flow. @param {any} flows @param {number} f @param {number} from @param {number} to */
export const withMoved = (flows, f, from, to) => set(flows, [f, "actions"], moved(actionsOf(flows[f]), from, to));

/** Return flows with an action at the end of another flow. @param {any} flows @param {number} f @param {number} a @param {number} to */
export const withActionIn = (flows, f, a, to) => set(withoutAction(flows, f, a), [to, "actions"], [...actionsOf(flows[to]), actionsOf(flows[f])[a]]);

/** Return flows with a new one at the end, and its id. @param {any} flows @param {string} [type]  of its action @returns {[flows: any, id: string]} */
export function withFlow(flows, type = "message") {
  const id = freeId("flow", listed(flows).map((flow) => flow?.id));
  return [[...listed(flows), { id, actions: [newAction(flows, type)] }], id];
}

/** Return flows without one. Targets that name it stay, for the user to decide. @param {any} flows @param {number} f */
export const withoutFlow = (flows, f) => listed(flows).toSpliced(f, 1);

/** Return flows with each action changed. @param {any} flows @param {(action: any) => any} change */
const eachAction = (flows, change) => listed(flows).map((flow) => (isObject(flow) && Array.isArray(flow.actions) ? set(flow, ["actions"], flow.actions.map(change)) : flow));

/** Return flows with another id of a flow, also where it is a target, unless the id is taken. @param {any} flows @param {number} f @param {string} id */
export function withFlowId(flows, f, id) {
  const before = flows[f]?.id;
  const ids = listed(flows).map((flow) => flow?.id);
  const next = set(flows, [f, "id"], id);
  if (typeof before !== "string" || !before || ids.includes(id) || ids.filter((one) => one === before).length > 1) return next;
  return eachAction(next, (action) => exitsOf(action).reduce((all, exit) => (exit.to === before ? set(all, exit.path, id) : all), action));
}

/** Return flows with another id of an action, also in the branches on its answer, unless the id is taken. @param {any} flows @param {number} f @param {number} a @param {any} id */
export function withActionId(flows, f, a, id) {
  const before = get(flows, [f, "actions", a, "id"]);
  const next = set(flows, [f, "actions", a, "id"], id);
  const ids = listed(flows).flatMap((flow) => actionsOf(flow).map((action) => action?.id));
  if (!Number.isSafeInteger(before) || !Number.isSafeInteger(id) || ids.includes(id) || ids.filter((one) => one === before).length > 1) return next;
  const old = `answers.${before}`;
  return eachAction(next, (action) => {
    const on = action?.on;
    return typeof on === "string" && (on === old || on.startsWith(`${old}.`)) ? set(action, ["on"], `answers.${id}${on.slice(old.length)}`) : action;
  });
}

/**
 * Return flows with another type of an action. Members that the type has not are left out.
 * @param {any} flows @param {number} f @param {number} a @param {string} type @param {Record<string, any>} [earlier]  members of earlier types, which are put back; it is changed
 */
export function withType(flows, f, a, type, earlier = {}) {
  const path = /** @type {Path} */ ([f, "actions", a]);
  const action = get(flows, path);
  const own = ACTIONS[action.type] ?? [];
  const names = ACTIONS[type] ?? [];
  for (const name of own) if (!names.includes(name) && action[name] !== undefined) earlier[name] = action[name];
  const blank = newAction(flows, type);
  const kept = Object.fromEntries(Object.entries(action).filter(([name]) => !own.includes(name) || names.includes(name)));
  return set(flows, path, { ...blank, ...Object.fromEntries(names.filter((name) => name in earlier).map((name) => [name, earlier[name]])), ...kept, type });
}

/** Return flows with another target of an exit; undefined for the next action, null for a new flow. @param {any} flows @param {Path} path  of the target @param {string|null|undefined} to */
export function connected(flows, path, to) {
  if (to !== null) return set(flows, path, to);
  const [next, id] = withFlow(flows);
  return set(next, path, id);
}

/** Return an object with another key of a member, unless it is taken. @param {any} of @param {string} from @param {string} to */
export const withKey = (of, from, to) => (to === from || Object.hasOwn(of, to) ? of : renamed(of, from, to));

/** Return the sources of a branch: the answers of all actions, and the attributes that the workflow sets. @param {any} flows @returns {string[]} */
export function operands(flows) {
  const found = listed(flows).flatMap((flow) => actionsOf(flow).flatMap((action) => {
    if (action?.type === "buttons") return [`answers.${action.id}`];
    if (action?.type === "form") return listed(action.fields).map((field) => `answers.${action.id}.${field?.id}`);
    return action?.type === "set_attributes" && isObject(action.attributes) ? Object.keys(action.attributes).map((key) => `attributes.${key}`) : [];
  }));
  return [...new Set(found)];
}

/** Return a value of an attribute as the text of a field, and back. A text that reads as JSON is quoted. @param {any} value */
export function attributeText(value) {
  if (typeof value !== "string") return JSON.stringify(value);
  return attributeValue(value) === value ? value : JSON.stringify(value);
}

/** @param {string} text @returns {any} */
export function attributeValue(text) {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
