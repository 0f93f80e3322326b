// @ts-check
/** The permissions of each role. Roles are fixed; a test compares this table with the service's. */
import { html } from "../vendor/preact.js";
import { t } from "./texts.js";
import { project } from "../core/session.js";
import { Frame } from "../ui/frame.js";
import { Table } from "../ui/table.js";

const READ = ["conversations.read", "tickets.read", "surveys.read", "translations.read", "contacts.read", "memory.read"];
const AGENT = [...READ, "conversations.reply", "conversations.manage", "tickets.manage", "contacts.manage", "memory.manage", "snippets.manage"];
const ADMIN = [...AGENT, "conversations.delete", "surveys.manage", "translations.manage", "webhooks.manage", "projects.manage", "members.manage"];

/** The permissions of each role. @type {Record<string, string[]>} */
export const ROLES = { viewer: READ, agent: AGENT, admin: ADMIN, owner: ADMIN };

export function Page() {
  const role = project.value?.role ?? "viewer";
  const names = /** @type {Record<string, string>} */ (t.members.roles);
  const columns = [
    { label: t.roles.permission, cell: (/** @type {any} */ row) => html`<code class="mono">${row.id}</code> <span class="muted">${/** @type {any} */ (t.roles.means)[row.id]}</span>` },
    ...Object.keys(ROLES).map((each) => ({ label: names[each] ?? each, cell: (/** @type {any} */ row) => (ROLES[each]?.includes(row.id) ? html`<span class="good"><span aria-hidden="true">✓</span><span class="sr">${t.roles.yes}</span></span>` : html`<span class="muted"><span aria-hidden="true">–</span><span class="sr">${t.roles.no}</span></span>`) })),
  ];
  return html`<${Frame} title=${t.pages.roles}><p class="lead">${t.roles.lead(names[role] ?? role)}</p><${Table} caption=${t.pages.roles} columns=${columns} rows=${ADMIN.map((id) => ({ id }))} /><p class="muted">${t.roles.owner}</p><//>`;
}
