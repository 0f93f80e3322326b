// @ts-check
/** Merges of conversations: the requests with their undo, the banner of a merged one, and where a message comes from. */
import { html, useEffect } from "../vendor/preact.js";
import { t } from "./merge-texts.js";
import { Button, Icon, Menu, notify } from "../ui/parts.js";
import { call } from "../core/api.js";
import { applyOrder, fetchRow, row } from "../core/store.js";
import { go, may, open } from "../core/session.js";
import { dayOf } from "../ui/format.js";
import { context } from "./conversation.js";
import { filter } from "./list.js";
import { recordUndo } from "./undo.js";

/** Return the subject of a conversation, or its last words. @param {{title: string|null, lastMessage?: {text: string}|null} | undefined} one */
export const subjectOf = (one) => one?.title || one?.lastMessage?.text.split("\n", 1)[0] || t.untitled;

/** Merge a conversation into another one, and open that. Throws Offline or Problem. @param {string} id @param {{id: string, title: string|null, lastMessage?: {text: string}|null}} into */
export async function merge(id, into) {
  await call("POST", `conversations/${id}/merge`, { body: { into: into.id } });
  const back = () => unmerge(id);
  recordUndo(t.what, back);
  notify(t.merged(subjectOf(into)), { icon: "check", action: t.undo, run: () => void back(), ms: 10_000 });
  void Promise.all([fetchRow(id), fetchRow(into.id)]).then(() => applyOrder(filter.peek())); // it leaves the list at once
  if (open.peek() === id) go(`c/${into.id}`);
}

/** Undo a merge, and show whether that worked. @param {string} id */
export async function unmerge(id) {
  try {
    await call("POST", `conversations/${id}/unmerge`, { body: {} });
    notify(t.undone, { icon: "check" });
  } catch (error) {
    notify(t.notUndone(/** @type {Error} */ (error).message), { bad: true });
  }
  await fetchRow(id);
  applyOrder(filter.peek()); // it is listed again at once
}

/** In place of the composer of a merged conversation: the way to the other one. @param {{id: string, into: string}} props */
export function MergedBanner({ id, into }) {
  const at = (context(id)?.activity ?? []).find((/** @type {any} */ each) => each.changes.some((/** @type {any} */ change) => change.field === "mergedInto" && change.to === into))?.at;
  return html`<div class="banner info merged" role="status"><${Icon} name="info" /><span>${t.banner(at ? dayOf(at) : "")}</span>
    <${Button} class="small" kind="primary" label=${t.openOther} press=${() => go(`c/${into}`)} />
    ${may("conversations.manage") && html`<${Button} class="small" label=${t.undoMerge} press=${() => unmerge(id)} />`}</div>`;
}

/** The conversations that are merged into the open one, each with its page. @param {{ids: readonly string[]}} props */
export function MergedHere({ ids }) {
  useEffect(() => {
    for (const id of ids) if (!row(id)) void fetchRow(id);
  }, [ids.join()]);
  return html`<${Menu} label=${t.shows(ids.length)} icon="chat" class="small" entries=${() => ids.map((id) => ({ label: subjectOf(row(id)), icon: "chat", pick: () => go(`c/${id}`) }))} />`;
}

/** The words that say from which other conversation a message comes; nothing for one of the open conversation. @param {{id: string}} props  id: the conversation of the message */
export function MergedFrom({ id }) {
  const here = open.value;
  const shown = here ? row(here) : undefined;
  if (!shown || here === id || (shown.splitFrom !== id && !shown.merged?.some((each) => each === id || row(each)?.splitFrom === id))) return null;
  const one = row(id);
  return html`<bdi class="from ellipsis">${one ? t.from(subjectOf(one)) : t.fromAnother}</bdi>`;
}
