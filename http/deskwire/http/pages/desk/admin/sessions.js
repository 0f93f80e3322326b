// @ts-check
/** The user's own sessions, and how to end the others. */
import { html, useState } from "../vendor/preact.js";
import { t } from "./texts.js";
import { Button, Empty, notify } from "../ui/parts.js";
import { clientName } from "../ui/format.js";
import { call } from "../core/api.js";
import { Frame } from "../ui/frame.js";
import { ListTable } from "../ui/table.js";
import { useList } from "../ui/loading.js";
import { ConfirmDialog } from "../ui/confirm-dialog.js";
import { SESSION_COLUMNS } from "./session-list.js";

export function Page() {
  const of = useList("users/me/sessions");
  const [ends, setEnds] = useState(/** @type {"others"|any} */ (null));
  const end = async () => {
    if (ends === "others") await call("DELETE", "users/me/sessions", { query: { others: true } });
    else await call("DELETE", `users/me/sessions/${ends.id}`);
    notify(t.sessions.ended);
    await of.reload();
  };
  const others = of.items.some((each) => !each.current);
  const columns = [
    ...SESSION_COLUMNS,
    { label: t.actions, silent: true, cell: (/** @type {any} */ row) => !row.current && html`<${Button} class="small" label=${t.sessions.end} press=${() => setEnds(row)} />` },
  ];
  return html`<${Frame} title=${t.pages.sessions} calls=${[of.call]} actions=${others && html`<${Button} label=${t.sessions.endOthers} press=${() => setEnds("others")} />`}>
    <${ListTable} of=${of} caption=${t.pages.sessions} columns=${columns} empty=${html`<${Empty} icon="lock" title=${t.sessions.none} />`} />
    ${ends && html`<${ConfirmDialog} deletes=${false} title=${ends === "others" ? t.sessions.endOthers : t.sessions.endOne} loses=${ends === "others" ? t.sessions.losesOthers : t.sessions.losesOne(clientName(ends.client))} stays=${t.sessions.stays} label=${t.sessions.end} run=${end} close=${() => setEnds(null)} />`}
  <//>`;
}
