// @ts-check
/**
 * The table of pages outside the inbox, their navigation, and the page that is open.
 *
 * A page is a module that is fetched when it is opened. It exports `Page`, which gets the rest of the address as `id`: `/desk/tickets/tic_1` opens
 * `tickets` with `tic_1`.
 */
import { html, signal, useErrorBoundary, useLayoutEffect } from "./vendor/preact.js";
import { t } from "./ui/texts.js";
import { Button, Empty, Icon, setting } from "./ui/parts.js";
import { go, may, open, page, reads } from "./core/session.js";
import { handle } from "./core/keys.js";
import { Link, PAGES, places } from "./ui/link.js";
import "./ui/page-style.js";
import { t as admin } from "./admin/texts.js";
import { t as developers } from "./developers/texts.js";
import { t as insights } from "./insights/texts.js";
/** @import { PageEntry } from "./core/types.js" */

PAGES.push(
  { path: "tickets", group: "work", title: admin.pages.tickets, icon: "tag", permission: "tickets.read", load: () => import("./admin/tickets.js") },
  { path: "scheduled", group: "work", title: admin.pages.scheduled, icon: "clock", permission: "conversations.reply", load: () => import("./inbox/scheduled.js") },
  { path: "contacts", group: "work", title: admin.pages.contacts, icon: "person", permission: "contacts.read", load: () => import("./admin/contacts.js") },
  { path: "console", group: "console", title: admin.pages.health, icon: "wire", permission: "conversations.read", listed: "webhooks.manage", load: () => import("./admin/health.js") },
  { path: "settings/members", group: "settings", title: admin.pages.members, icon: "people", permission: "conversations.manage", listed: "members.manage", load: () => import("./admin/members.js") },
  { path: "settings/organisation", group: "settings", title: admin.pages.organisation, icon: "lock", permission: "members.manage", load: () => import("./admin/organisation.js") },
  { path: "settings/roles", group: "settings", title: admin.pages.roles, icon: "info", permission: null, listed: "members.manage", load: () => import("./admin/roles.js") },
  { path: "settings/teams", group: "settings", title: admin.pages.teams, icon: "people", permission: "tickets.read", listed: "members.manage", load: () => import("./admin/teams.js") },
  { path: "settings/snippets", group: "settings", title: admin.pages.snippets, icon: "text", permission: "conversations.read", listed: "snippets.manage", load: () => import("./admin/snippets.js") },
  { path: "settings/projects", group: "settings", title: admin.pages.projects, icon: "gear", permission: "conversations.read", listed: "projects.manage", load: () => import("./admin/projects.js") },
  { path: "settings/channels", group: "settings", title: admin.pages.channels, icon: "chat", permission: "projects.manage", load: () => import("./admin/channels.js") },
  { path: "settings/keys", group: "settings", title: admin.pages.keys, icon: "lock", permission: "projects.manage", load: () => import("./admin/keys.js") },
  { path: "settings/credentials", group: "settings", title: admin.pages.credentials, icon: "bot", permission: "projects.manage", load: () => import("./admin/credentials.js") },
  { path: "settings/audit", group: "settings", title: admin.pages.audit, icon: "clock", permission: "members.manage", load: () => import("./admin/audit.js") },
  { path: "settings/account", group: "settings", title: admin.pages.account, icon: "person", permission: null, load: () => import("./admin/account.js") },
  { path: "settings/notifications", group: "settings", title: admin.pages.notifications, icon: "bell", permission: null, load: () => import("./admin/notifications.js") },
  { path: "settings/sessions", group: "settings", title: admin.pages.sessions, icon: "out", permission: null, load: () => import("./admin/sessions.js") },
  { path: "webhooks", group: "console", title: developers.pages.webhooks, icon: "send", permission: "webhooks.manage", load: () => import("./developers/webhooks.js") },
  { path: "consumers", group: "console", title: developers.pages.consumers, icon: "wire", permission: "webhooks.manage", load: () => import("./developers/consumers.js") },
  { path: "events", group: "console", title: developers.pages.events, icon: "bolt", permission: "conversations.read", listed: "webhooks.manage", load: () => import("./developers/events.js") },
  { path: "history", group: "console", title: developers.pages.history, icon: "clock", permission: "conversations.read", listed: "webhooks.manage", load: () => import("./developers/history.js") },
  { path: "surveys", group: "insights", title: insights.pages.surveys, icon: "check", permission: "surveys.read", load: () => import("./insights/surveys.js") },
  { path: "reports", group: "insights", title: insights.pages.reports, icon: "sort", permission: "conversations.read", load: () => import("./insights/reports.js") },
  { path: "workflows", group: "insights", title: insights.pages.workflows, icon: "bot", permission: "conversations.read", listed: "projects.manage", load: () => import("./insights/workflows.js") },
  { path: "translations", group: "insights", title: insights.pages.translations, icon: "text", permission: "translations.read", listed: "translations.manage", load: () => import("./insights/translations.js") },
  { path: "memory", group: "insights", title: insights.pages.memory, icon: "info", permission: "memory.read", listed: "memory.manage", load: () => import("./insights/memory.js") },
);

/** Return the page of a path, and the rest of the path. @param {string} path @returns {{entry: PageEntry, id: string|null} | null} */
export function pageOf(path) {
  const fits = PAGES.filter((each) => path === each.path || path.startsWith(`${each.path}/`));
  const entry = fits.sort((a, b) => b.path.length - a.path.length)[0];
  return entry ? { entry, id: decodeURIComponent(path.slice(entry.path.length + 1)) || null } : null;
}

const GROUPS = /** @type {const} */ (["work", "insights", "console", "settings"]);
const unfolded = setting("navigation", /** @type {Record<string, boolean>} */ ({}));

/** The navigation to the pages, below the views. */
export function Places() {
  const all = places();
  const open = pageOf(page.value ?? "")?.entry;
  return GROUPS.map((group) => {
    const shown = all.filter((each) => each.group === group);
    if (!shown.length) return null;
    const folds = Boolean((unfolded.value[group] ?? group !== "settings") || open?.group === group);
    const toggled = (/** @type {any} */ event) => event.target.open !== folds && (unfolded.value = { ...unfolded.value, [group]: event.target.open });
    return html`<details class="places" key=${group} open=${folds} onToggle=${toggled}><summary title=${t.groups[group]}><span class="label-text">${t.groups[group]}</span><${Icon} name="down" /></summary>
      <ul>${shown.map((each) => html`<li key=${each.path}><${Link} to=${each.path} class="view" title=${each.title} aria-current=${each === open ? "page" : undefined}><${Icon} name=${each.icon} /><span class="label-text ellipsis">${each.title}</span><//></li>`)}</ul>
    </details>`;
  });
}

/** @type {Map<PageEntry, {shown: import("./vendor/preact.js").Signal<any>, ask: () => void}>} */
const fetched = new Map();

/** Return the module of a page; the first call fetches it. @param {PageEntry} entry */
function moduleOf(entry) {
  const known = fetched.get(entry);
  if (known) return known;
  const shown = signal(/** @type {any} */ (null));
  const ask = () => {
    shown.value = null;
    entry.load().then((module) => (shown.value = module.Page), (error) => (shown.value = error));
  };
  const made = { shown, ask };
  fetched.set(entry, made);
  ask();
  return made;
}

/** @param {{entry: PageEntry, id: string|null}} props */
function Opened({ entry, id }) {
  const [crash, again] = useErrorBoundary();
  const { shown, ask } = moduleOf(entry);
  const Shown = shown.value;
  if (crash) return html`<${Empty} icon="warn" title=${t.crashed} text=${html`<code class="mono">${String(crash.message)}</code>`} action=${html`<${Button} label=${t.tryAgain} press=${again} />`} />`;
  if (Shown instanceof Error) return html`<${Empty} icon="warn" title=${t.notFetched} action=${html`<${Button} label=${t.tryAgain} press=${ask} />`} />`;
  return Shown ? html`<${Shown} key=${id ?? ""} id=${id} />` : html`<div class="waiting" aria-busy="true"><h1 class="sr">${entry.title}</h1></div>`;
}

/** The first page of the navigation, for a user without an inbox. */
const firstPage = () => GROUPS.flatMap((group) => places().filter((each) => each.group === group))[0]?.path ?? "settings/account";

const ToStart = () => (reads.value ? html`<${Link} to="" class="button">${t.toInbox}<//>` : html`<${Link} to=${firstPage()} class="button">${t.toFirst}<//>`);

/** @param {{permission: string}} props */
const Forbidden = ({ permission }) => html`<${Empty} icon="lock" title=${t.forbidden} text=${t.forbiddenText(permission)} action=${html`<${ToStart} />`} />`;

/** The page that is open. */
export function Page() {
  const found = pageOf(page.value ?? "");
  const noInbox = !page.value && !open.value;
  useLayoutEffect(() => handle({ back: () => (history.back(), true) }), []);
  useLayoutEffect(() => void (noInbox && go(firstPage(), { replace: true })), [noInbox]);
  if (noInbox) return null;
  if (open.value) return html`<${Forbidden} permission="conversations.read" />`;
  if (!found) return html`<${Empty} icon="warn" title=${t.unknown} text=${t.unknownText} action=${html`<${ToStart} />`} />`;
  const { entry, id } = found;
  if (entry.permission && !may(entry.permission)) return html`<${Forbidden} permission=${entry.permission} />`;
  return html`<${Opened} key=${entry.path} entry=${entry} id=${id} />`;
}
