// @ts-check
/** The pages that a project is run with: where each is, who may open it, and its module. */
import { t } from "./texts.js";
/** @import { PageEntry } from "../pages.js" */

/** @type {PageEntry[]} */
export const PAGES = [
  { path: "tickets", group: "work", title: t.pages.tickets, icon: "tag", permission: "tickets.read", load: () => import("./tickets.js") },
  { path: "contacts", group: "work", title: t.pages.contacts, icon: "person", permission: "contacts.read", load: () => import("./contacts.js") },
  { path: "console", group: "console", title: t.pages.health, icon: "wire", permission: "conversations.read", load: () => import("./health.js") },
  { path: "settings/members", group: "settings", title: t.pages.members, icon: "people", permission: "conversations.manage", load: () => import("./members.js") },
  { path: "settings/roles", group: "settings", title: t.pages.roles, icon: "info", permission: null, load: () => import("./roles.js") },
  { path: "settings/teams", group: "settings", title: t.pages.teams, icon: "people", permission: "tickets.read", load: () => import("./teams.js") },
  { path: "settings/snippets", group: "settings", title: t.pages.snippets, icon: "text", permission: "conversations.read", load: () => import("./snippets.js") },
  { path: "settings/projects", group: "settings", title: t.pages.projects, icon: "gear", permission: "conversations.read", load: () => import("./projects.js") },
  { path: "settings/keys", group: "settings", title: t.pages.keys, icon: "lock", permission: "projects.manage", load: () => import("./keys.js") },
  { path: "settings/credentials", group: "settings", title: t.pages.credentials, icon: "bot", permission: "projects.manage", load: () => import("./credentials.js") },
  { path: "settings/audit", group: "settings", title: t.pages.audit, icon: "clock", permission: "members.manage", load: () => import("./audit.js") },
  { path: "settings/account", group: "settings", title: t.pages.account, icon: "person", permission: null, load: () => import("./account.js") },
  { path: "settings/sessions", group: "settings", title: t.pages.sessions, icon: "out", permission: null, load: () => import("./sessions.js") },
];
