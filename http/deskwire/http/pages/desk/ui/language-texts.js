// @ts-check
/** Texts in English, written by `make languages` from languages/en/ui/language-texts.ftl. */
export const t = {
label: "Language",
browser: "As the browser",
};
