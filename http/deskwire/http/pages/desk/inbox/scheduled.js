// @ts-check
/** The page with all scheduled replies of the user, and those that were not sent. */
import { html, useEffect, useState } from "../vendor/preact.js";
import { t } from "./scheduled-texts.js";
import { t as desk } from "../core/texts-lazy.js";
import { Button, Empty, Failed, Icon, contactName, fullTime } from "../ui/parts.js";
import { Text, momentAhead, zoneName } from "../ui/format.js";
import { Frame, Section } from "../ui/frame.js";
import { Link } from "../ui/link.js";
import { fetchRow, row } from "../core/store.js";
import { go } from "../core/session.js";
import { cancelHeld, reload, scheduledMessages, sendNowOrNotify } from "./held-messages.js";
import { cancelScheduled, editScheduled, sendScheduledNow, useIsDue } from "./scheduled-reply.js";
/** @import { HeldMessage } from "../core/types.js" */

const TEXT_MAX = 300;
const CALLS = [{ method: "GET", path: "held-messages" }];

/** Put a reply back into the editor of its conversation. @param {HeldMessage} one */
const edit = async (one) => {
  if (await editScheduled(one)) go(`c/${one.conversationId}`);
};

/** @param {{of: HeldMessage}} props */
function Scheduled({ of }) {
  const due = useIsDue(of);
  const one = row(of.conversationId);
  useEffect(() => {
    if (!one) void fetchRow(of.conversationId);
  }, [of.conversationId]);
  const refused = of.status === "refused";
  const name = contactName(one?.contact) || desk.thread.loading;
  return html`<li class="scheduled">
    <div class="grow"><p><${Link} to=${`c/${of.conversationId}`}><b><bdi>${name}</bdi></b>${one?.title && html` <bdi class="muted">${one.title}</bdi>`}<//></p>
      <p class="words"><${Text} text=${of.text.slice(0, TEXT_MAX)} />${of.attachments.length > 0 && html` <span class="muted">${t.files(of.attachments.length)}</span>`}</p>
      ${refused ? html`<p class="bad"><${Icon} name="warn" /> ${of.problem?.detail}</p>` : html`<p class="muted"><${Icon} name="clock" /> <time datetime=${of.sendAt} title=${fullTime(of.sendAt)}>${due ? t.sending : momentAhead(of.sendAt)}</time>${of.unlessReplied && ` · ${t.onlyUnless}`}${one?.status === "CLOSED" && html` · <span class="warn">${t.closed}</span>`}</p>`}</div>
    <span class="does"><${Button} class="small" label=${refused ? desk.composer.sendAnyway : t.now} press=${() => (refused ? sendNowOrNotify(of, { ifSequence: null }) : sendScheduledNow(of))} /><${Button} class="small" label=${t.edit} press=${() => edit(of)} /><${Button} class="small" kind="quiet" label=${refused ? desk.composer.discard : t.cancel} press=${() => (refused ? cancelHeld(of, true) : cancelScheduled(of))} /></span>
  </li>`;
}

export function Page() {
  const [state, setState] = useState(/** @type {"loading"|"ready"|Error} */ ("loading"));
  const load = () => {
    setState("loading");
    reload().then(() => setState("ready"), setState);
  };
  useEffect(load, []);
  const all = scheduledMessages();
  const [refused, next] = [all.filter((each) => each.status === "refused"), all.filter((each) => each.status === "held")];
  const part = (/** @type {string} */ title, /** @type {HeldMessage[]} */ of) => of.length > 0 && html`<${Section} title=${title}><ul class="scheduled-list">${of.map((each) => html`<${Scheduled} key=${each.id} of=${each} />`)}</ul><//>`;
  return html`<${Frame} title=${t.page} calls=${CALLS}>
    ${state instanceof Error && html`<${Failed} error=${state} title=${t.failed} again=${load} />`}
    ${state === "loading" && !all.length && html`<p class="muted" aria-busy="true">${t.loading}</p>`}
    ${state === "ready" && !all.length && html`<${Empty} icon="clock" title=${t.none} text=${t.noneText} />`}
    ${part(t.refused, refused)}${part(t.next, next)}
    ${next.length > 0 && html`<p class="muted">${t.zone(zoneName)}</p>`}
  <//>`;
}
