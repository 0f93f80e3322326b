// @ts-check
/** Functions of compiled texts: the form for a number, and a sentence within another one. */
import { language } from "./texts.js";

/** Made with the first plural, because `texts.js` may import this module. @type {Intl.PluralRules | undefined} */
let rules;

/** Return the form for a number: one of its own, that of its plural category, or the last resort. @param {number} n @param {Record<string, string> & {other: string}} forms */
export const plural = (n, forms) => forms[n] ?? forms[(rules ??= new Intl.PluralRules(language)).select(n)] ?? forms.other;

/** Return a sentence as it continues another one. @param {string} sentence */
export const lower = (sentence) => sentence.charAt(0).toLowerCase() + sentence.slice(1);
