// @ts-check
/** Splits of conversations: the request with its undo, the messages that can go along, and the lines that link the two conversations. */
import { html, useEffect } from "../vendor/preact.js";
import { t } from "./split-texts.js";
import { dialog, notify } from "../ui/parts.js";
import { Link } from "../ui/link.js";
import { call } from "../core/api.js";
import { applyOrder, fetchRow, gone, known, row } from "../core/store.js";
import { go, linkedMessage, may, open } from "../core/session.js";
import { filter } from "./list.js";
import { subjectOf } from "./merging.js";
import { isTaken } from "./split-choice.js";
import { recordUndo } from "./undo.js";
/** @import { AgentMessage, Row } from "../core/types.js" */

/** Return whether a new conversation can start with messages of a conversation. @param {Row | undefined} one */
export const splitApplies = (one) => Boolean(one?.visible && !one.mergedInto && open.value === one.id);

/** Return whether a new conversation can start with a message: it belongs to the open conversation, and no other one shows it. @param {AgentMessage} message */
function canGo(message) {
  const one = row(message.conversationId);
  return may("conversations.manage") && splitApplies(one) && !isTaken(message, one?.merged);
}

/** Return the entries of a message's menu. @param {AgentMessage} message @returns {import("../ui/parts.js").Entry[]} */
export const splitEntries = (message) => (canGo(message) ? [{ label: t.here, icon: "plus", pick: () => void (dialog.value = { name: "split", message }) }] : []);

/** Ask what a new conversation starts with: the message with the focus or of the address, otherwise the customer's newest. @param {string} id */
export function askForSplit(id) {
  const fit = (known.peek().threads.get(id)?.messages ?? []).filter(canGo);
  const named = (/** @type {string | null | undefined} */ messageId) => fit.find((each) => each.id === messageId);
  const message = named(document.activeElement?.closest(".message")?.id) ?? named(linkedMessage.peek()) ?? fit.findLast((each) => each.author.type === "contact");
  if (message) dialog.value = { name: "split", message };
  else notify(t.noMessage, { icon: "info" });
}

/** Start a conversation with messages of another one, and open it. Throws Offline or Problem. @param {string} id @param {{messageIds: string[], title: string | null}} body @param {string} key */
export async function split(id, body, key) {
  const made = await call("POST", `conversations/${id}/split`, { key, body });
  const back = () => undo(made.id, id);
  recordUndo(t.what, back);
  notify(t.started(body.messageIds.length), { icon: "check", action: t.undo, run: () => void back(), ms: 10_000 });
  void refresh(id, made.id);
  if (open.peek() === id) go(`c/${made.id}`);
}

/** Merge the new conversation into the one it was started from, and show whether that worked. @param {string} id @param {string} into */
async function undo(id, into) {
  try {
    await call("POST", `conversations/${id}/merge`, { body: { into } });
    notify(t.undone, { icon: "check" });
    if (open.peek() === id) go(`c/${into}`);
  } catch (error) {
    notify(t.notUndone(/** @type {Error} */ (error).message), { bad: true });
  }
  await refresh(id, into);
}

/** Show the present state of both conversations in the list at once. @param {string[]} ids */
const refresh = (...ids) => Promise.all(ids.map(fetchRow)).then(() => applyOrder(filter.peek()));

/** Return the row of another conversation, which is loaded if it is unknown; null if it is gone. Reads signals. @param {string | undefined} id */
function useRow(id) {
  const one = id ? row(id) : undefined;
  const away = id ? gone(id) : null;
  useEffect(() => {
    if (id && !row(id) && !gone(id)) void fetchRow(id);
  }, [id]);
  return away ? null : one;
}

/** Below a message, the link to the other conversation that shows it. @param {{id: string}} props */
export function AlsoIn({ id }) {
  const one = useRow(id);
  const here = open.value;
  if (one === null || !here || id === here || row(here)?.merged?.includes(id)) return null;
  return html`<p class="truth"><${Link} to=${`c/${id}`} class="ellipsis"><bdi>${one ? t.also(subjectOf(one)) : t.alsoInAnother}</bdi><//></p>`;
}

/** At the beginning of a thread, the link to the conversation that it was started from, at its first message. @param {{id: string, first?: AgentMessage, shown: boolean}} props  id: the open conversation; shown: false until the thread is loaded to its beginning */
export function StartedFrom({ id, first, shown }) {
  const from = row(id)?.splitFrom;
  const one = useRow(from);
  if (!from || one === null || !shown) return null;
  const to = first?.conversationId === from ? `c/${from}/m/${first.id}` : `c/${from}`;
  return html`<p class="settled"><${Link} to=${to} class="ellipsis"><bdi>${one ? t.from(subjectOf(one)) : t.fromAnother}</bdi><//></p>`;
}
