// @ts-check
/** The pages that show what is learnt from conversations: where each is, who may open it, and its module. */
import { t } from "./texts.js";
/** @import { PageEntry } from "../pages.js" */

/** @type {PageEntry[]} */
export const PAGES = [
  { path: "surveys", group: "learn", title: t.pages.surveys, icon: "check", permission: "surveys.read", load: () => import("./surveys.js") },
  { path: "reports", group: "learn", title: t.pages.reports, icon: "sort", permission: "conversations.read", load: () => import("./reports.js") },
  { path: "workflows", group: "learn", title: t.pages.workflows, icon: "bot", permission: "conversations.read", load: () => import("./workflows.js") },
  { path: "translations", group: "learn", title: t.pages.translations, icon: "text", permission: "translations.read", load: () => import("./translations.js") },
  { path: "memory", group: "learn", title: t.pages.memory, icon: "info", permission: "memory.read", load: () => import("./memory.js") },
];
