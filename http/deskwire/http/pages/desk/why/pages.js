// @ts-check
/** The pages that show why a message did or did not arrive: where each is, who may open it, and its module. */
import { t } from "./texts.js";
/** @import { PageEntry } from "../pages.js" */

/** @type {PageEntry[]} */
export const PAGES = [
  { path: "webhooks", group: "console", title: t.pages.webhooks, icon: "send", permission: "webhooks.manage", load: () => import("./webhooks.js") },
  { path: "consumers", group: "console", title: t.pages.consumers, icon: "wire", permission: "webhooks.manage", load: () => import("./consumers.js") },
  { path: "events", group: "console", title: t.pages.events, icon: "bolt", permission: "conversations.read", load: () => import("./events.js") },
  { path: "history", group: "console", title: t.pages.history, icon: "clock", permission: "conversations.read", load: () => import("./history.js") },
];
