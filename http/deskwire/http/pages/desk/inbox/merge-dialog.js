// @ts-check
/** The dialog in which an agent chooses the conversation to merge into, among those of the same contact. */
import { html, useEffect, useState } from "../vendor/preact.js";
import { t } from "./merge-texts.js";
import { contactName, dialog } from "../ui/parts.js";
import { all } from "../core/api.js";
import { fold } from "../core/folding.js";
import { row } from "../core/store.js";
import { Chooser } from "../ui/chooser.js";
import { Dialog } from "../ui/dialog.js";
import { dayOf } from "../ui/format.js";
import { merge, subjectOf } from "./merging.js";
/** @import { Row } from "../core/types.js" */

const close = () => void (dialog.value = null);

/** Return the last words of a conversation and their day. @param {Row} one */
const lastOf = (one) => t.last(one.title ? (one.lastMessage?.text ?? "").split("\n", 1)[0]?.slice(0, 60) ?? "" : "", dayOf(one.lastMessageAt ?? one.createdAt));

/** @param {{id: string}} props */
export function MergeInto({ id }) {
  const [q, setQ] = useState("");
  const [found, setFound] = useState(/** @type {Row[]|null} */ (null));
  const [wrong, setWrong] = useState("");
  const [busy, setBusy] = useState(false);
  const contact = row(id)?.contact;
  useEffect(() => {
    all("conversations", { view: "agent", contact: contact?.id }).then((rows) => setFound(rows.filter((/** @type {Row} */ each) => each.id !== id && each.visible)), (error) => setWrong(t.failed(error.message)));
  }, [id]);
  const pick = async (/** @type {Row} */ into) => {
    if (busy) return;
    setBusy(true);
    try {
      await merge(id, into);
      close();
    } catch (error) {
      setWrong(t.failed(/** @type {Error} */ (error).message));
    }
    setBusy(false);
  };
  const options = (found ?? [])
    .filter((each) => fold(`${each.title ?? ""} ${each.lastMessage?.text ?? ""}`).includes(fold(q)))
    .map((each) => ({ key: each.id, icon: each.status === "CLOSED" ? "done" : "chat", label: subjectOf(each), hint: lastOf(each), pick: () => void pick(each) }));
  return html`<${Dialog} title=${t.title} class="wide" close=${close}><div class="body">
    <p class="muted">${t.about(contactName(contact))}</p>
    <${Chooser} label=${t.find} options=${options} empty=${!found ? (wrong ? "" : t.loading) : found.length ? t.noMatch : t.none} q=${q} type=${setQ} />
    ${wrong && html`<p class="wrong" role="alert">${wrong}</p>`}
  </div><//>`;
}
