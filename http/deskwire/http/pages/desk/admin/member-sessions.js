// @ts-check
/** The dialog with the sessions of a member, which an administrator ends. */
import { html, useState } from "../vendor/preact.js";
import { t } from "./texts.js";
import { Button, notify } from "../ui/parts.js";
import { Dialog } from "../ui/dialog.js";
import { call } from "../core/api.js";
import { ListTable } from "../ui/table.js";
import { useList } from "../ui/loading.js";
import { clientName } from "../ui/format.js";
import { ConfirmDialog } from "../ui/confirm-dialog.js";
import { SESSION_COLUMNS } from "./session-list.js";

/** @param {{path: string, member: any, close: () => void}} props  path: of the member */
export function MemberSessions({ path, member, close }) {
  const of = useList(`${path}/sessions`);
  const [ends, setEnds] = useState(/** @type {"all"|any} */ (null));
  const end = async () => {
    await call("DELETE", ends === "all" ? `${path}/sessions` : `${path}/sessions/${ends.id}`);
    notify(ends === "all" ? t.members.sessionsEnded : t.sessions.ended);
    await of.reload();
  };
  const columns = [...SESSION_COLUMNS, { label: t.actions, silent: true, cell: (/** @type {any} */ row) => html`<${Button} class="small" label=${t.sessions.end} press=${() => setEnds(row)} />` }];
  return html`<${Dialog} title=${t.members.sessionsOf(member.name)} class="wide" close=${close}><div class="body">
    <${ListTable} quiet of=${of} caption=${t.members.sessionsOf(member.name)} columns=${columns} empty=${html`<p class="muted">${t.sessions.none}</p>`} />
    ${of.items.length > 0 && html`<div class="actions"><${Button} kind="danger" label=${t.members.endSessions} press=${() => setEnds("all")} /></div>`}
    ${ends && html`<${ConfirmDialog} deletes=${false} title=${ends === "all" ? t.members.endSessions : t.sessions.endOne} loses=${[ends === "all" ? t.members.losesSessions(member.name) : t.members.losesSession(clientName(ends.client))]} stays=${[t.members.staysTokens]} label=${t.sessions.end} run=${end} close=${() => setEnds(null)} />`}
  </div><//>`;
}
