// @ts-check
/** Texts in German, written by `make languages` from languages/de/ui/language-texts.ftl. */
/** @type {typeof import("../../../ui/language-texts.js").t} */
export const t = {
label: "Sprache",
browser: "Wie im Browser",
};
