// @ts-check
/** The pages that show what is learnt from conversations: where each is, who may open it, and its module. */
/** @import { PageEntry } from "../pages.js" */

/** @type {PageEntry[]} */
export const PAGES = [];
