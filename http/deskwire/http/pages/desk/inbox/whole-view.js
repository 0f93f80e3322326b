// @ts-check
/** Whether an action is about all conversations of a view, and the view as parameters of the service's list. */
import { selection, wholeView } from "./list.js";
/** @import { Filter } from "../core/types.js" */

/** Return whether an action on these conversations applies to all of the view. @param {readonly string[]} ids */
export const isWholeView = (ids) => wholeView.peek() && ids.length > 0 && ids.length === selection.peek().size && ids.every((id) => selection.peek().has(id));

/** Return the query parameters with which the store requests the list of a filter. @param {Filter} filter @returns {Record<string, string>} */
export function conditionsOf({ status, where, ...rest }) {
  const given = { ...(rest.mentioned ? {} : { archived: false }), ...rest, ...(status ? { status: status.join(",") } : {}) };
  return { ...Object.fromEntries(Object.entries(given).map(([name, value]) => [name, String(value)])), ...Object.fromEntries(new URLSearchParams(where)) };
}
