// @ts-check
/** The pages that show why a message did or did not arrive: where each is, who may open it, and its module. */
/** @import { PageEntry } from "../pages.js" */

/** @type {PageEntry[]} */
export const PAGES = [];
