// @ts-check
/** The text of a message that is Markdown. Loaded with the first such message; until then, and if that fails, the text is shown as it is. */
import { draw, parse } from "../desk/core/markdown.js";

// The panel's own style has none of this, because few customers get a formatted message first.
const style = new CSSStyleSheet();
style.replaceSync(`
.text > * + *, .text li > * + *, .text blockquote > * + * { margin-top: 6px; }
.text :is(p, li, blockquote) { unicode-bidi: plaintext; text-align: start; }
.text :is(ul, ol) { padding-inline-start: 22px; white-space: normal; }
.text ul { list-style: disc; }
.text :is(li, blockquote) > p { white-space: pre-wrap; }
.text blockquote { padding-inline-start: 10px; border-inline-start: 3px solid var(--line); }
.text strong { font-weight: 650; }
.text em { font-style: italic; }
.text :is(code, pre) { font: 14px/1.4 monospace; }
.text pre { white-space: pre; overflow-x: auto; direction: ltr; unicode-bidi: isolate; }
.text .host { font-size: 13px; }
`);
document.adoptedStyleSheets.push(style);

/** @param {{text: string, h: (tag: any, props: any, ...kids: any[]) => any, t: {newTab: string}}} props  h: makes an element */
export const Markup = ({ text, h, t }) => h("div", { class: "text", dir: "auto" }, ...draw(parse(text), h, ` (${t.newTab})`));
