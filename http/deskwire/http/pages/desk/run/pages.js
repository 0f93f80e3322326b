// @ts-check
/** The pages that a project is run with: where each is, who may open it, and its module. */
import { t } from "./texts.js";
/** @import { PageEntry } from "../pages.js" */

/** @type {PageEntry[]} */
export const PAGES = [{ path: "settings/sessions", group: "settings", title: t.pages.sessions, icon: "lock", permission: null, load: () => import("./sessions.js") }];
