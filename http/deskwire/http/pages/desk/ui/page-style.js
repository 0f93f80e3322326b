// @ts-check
/** Loads the style of pages outside the inbox, once. */
const style = document.createElement("link");
style.rel = "stylesheet";
style.href = new URL("../pages.css", import.meta.url).href;
document.head.append(style);
