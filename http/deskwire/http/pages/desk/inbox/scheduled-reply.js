// @ts-check
/** A scheduled reply above the editor, and its actions. */
import { html, useEffect } from "../vendor/preact.js";
import { t } from "./scheduled-texts.js";
import { t as desk } from "../core/texts-lazy.js";
import { Button, Icon, cx, fullTime, notify, now } from "../ui/parts.js";
import { Text, momentAhead, zoneName } from "../ui/format.js";
import { call, newKey } from "../core/api.js";
import { row } from "../core/store.js";
import { outgoingFile } from "./draft-merge.js";
import { cancelHeld, reload, returnToDraft, sendNowOrNotify } from "./held-messages.js";
/** @import { HeldMessage } from "../core/types.js" */

const OVERDUE_MS = 2_000;
const TEXT_MAX = 300;

/** Schedule a cancelled reply again. If that fails, its text becomes a draft. @param {HeldMessage} one */
async function scheduleAgain(one) {
  const { text, format, internal, sendAt, unlessReplied, then } = one;
  const body = { text, internal, sendAt, unlessReplied, attachments: one.attachments.map((each) => each.id), mentions: one.mentions.map((each) => each.id), ...(format && { format }), ...(then && { then }) };
  try {
    await call("POST", `conversations/${one.conversationId}/messages`, { body, key: newKey() });
    await reload();
  } catch (error) {
    returnToDraft(one.conversationId, { text, internal, files: one.attachments.map(outgoingFile), mentions: one.mentions });
    notify(t.notScheduled(/** @type {Error} */ (error).message), { bad: true });
  }
}

/** Cancel a scheduled reply; the notice can schedule it again. @param {HeldMessage} one */
export async function cancelScheduled(one) {
  if (await cancelHeld(one, true)) notify(t.cancelled, { as: "scheduled", action: t.undo, run: () => void scheduleAgain(one) });
}

/** Put a scheduled reply back into the editor; the notice replaces that of its scheduling. @param {HeldMessage} one @returns {Promise<boolean>} False if it was not cancelled. */
export async function editScheduled(one) {
  const done = await cancelHeld(one);
  if (done) notify(desk.composer.taken, { as: "scheduled" });
  return done;
}

/** Send a scheduled reply now, unless the conversation has messages that this page does not show yet. @param {HeldMessage} one */
export const sendScheduledNow = (one) => sendNowOrNotify(one, { ifSequence: row(one.conversationId)?.sequence ?? null });

/** Reload if the event of its end was missed. @param {HeldMessage} one @returns {boolean} True once its time has come. */
export function useIsDue({ id, endsAt, status }) {
  const due = status === "held" && now.value >= endsAt;
  const missed = due && now.value > endsAt + OVERDUE_MS;
  useEffect(() => {
    if (missed) void reload().catch(() => {});
  }, [id, missed]);
  return due;
}

/** @param {{of: HeldMessage, closed: boolean}} props */
export function ScheduledReply({ of, closed }) {
  const due = useIsDue(of);
  return html`<section class="undo scheduled" aria-label=${t.label}>
    <div class="grow"><p><${Icon} name="clock" /><time datetime=${of.sendAt} title=${fullTime(of.sendAt)}>${due ? t.sending : t.at(momentAhead(of.sendAt), zoneName)}</time></p>
      <p class="words"><${Text} text=${of.text.slice(0, TEXT_MAX)} />${of.attachments.length > 0 && html` <span class="muted">${t.files(of.attachments.length)}</span>`}</p>
      ${(closed || of.unlessReplied) && html`<p class=${cx("muted", closed && "warn")}>${closed ? t.closed : t.onlyUnless}</p>`}</div>
    <span class="does"><${Button} class="small" label=${t.now} press=${() => sendScheduledNow(of)} /><${Button} class="small" label=${t.edit} press=${() => editScheduled(of)} /><${Button} class="small" kind="quiet" label=${t.cancel} press=${() => cancelScheduled(of)} /></span>
  </section>`;
}
