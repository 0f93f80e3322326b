// @ts-check
/** Parts of all views: icons, buttons, text with links, attachments. */
import { html, useEffect, useState } from "../desk/vendor/preact.js";
import { sizeText, t } from "./texts.js";
/** @import { Attachment } from "./customer.js" */

const ICONS = {
  back: "M10 3.5 5.5 8l4.5 4.5",
  close: "m4 4 8 8m0-8-8 8",
  clip: "m12.8 7.6-5 5a3 3 0 0 1-4.3-4.2l5.3-5.3a2 2 0 0 1 2.9 2.8l-5.2 5.2a1 1 0 0 1-1.5-1.4l4.7-4.7",
  send: "M8 13V3.5M4 7.5l4-4 4 4",
};
const LINK = /https?:\/\/[^\s<>"]*[^\s<>"'.,:;!?)\]}]/g;
const PICTURES = /^image\/(png|jpeg|gif|webp|avif)$/;

/** The service's address, above `/widget/`. */
export const ROOT = new URL("..", location.href);

/** @param {{name: keyof typeof ICONS, label: string, class?: string, type?: string, press?: () => void}} props */
export const IconButton = ({ name, label, press, type = "button", ...rest }) =>
  html`<button type=${type} class=${`icon ${rest.class ?? ""}`} aria-label=${label} title=${label} onClick=${press}><svg class=${name} viewBox="0 0 16 16" aria-hidden="true"><path d=${ICONS[name]} /></svg></button>`;

/** A text with its links. Nothing of it becomes markup. @param {{text: string}} props */
export function Text({ text }) {
  const parts = [];
  let end = 0;
  for (const { 0: link, index } of text.matchAll(LINK)) {
    parts.push(text.slice(end, index), html`<a href=${link} target="_blank" rel="noopener noreferrer nofollow">${link}<span class="hidden"> (${t.newTab})</span></a>`);
    end = index + link.length;
  }
  return html`<p class="text" dir="auto">${parts}${text.slice(end)}</p>`;
}

/** Return the address of an upload on this origin; null if it is none. Its path is signed for any host name. @param {string} url */
function uploadUrl(url) {
  const [, path] = url?.split("/v3/uploads/") ?? [];
  return path && new URL(`v3/uploads/${path}`, ROOT).href;
}

/** @param {{of: Attachment}} props */
export function AttachmentLink({ of }) {
  const href = uploadUrl(of.url);
  const picture = href && PICTURES.test(of.type);
  const body = picture ? html`<img src=${href} alt=${of.name} loading="lazy" />` : html`<bdi>${of.name}</bdi> <small>${sizeText(of.size)}</small>`;
  return html`<a class=${picture ? "picture" : "file"} href=${href} target="_blank" rel="noopener">${body}<span class="hidden"> (${t.newTab})</span></a>`;
}

/** Return a view of `later.js` or `markup.js`, which is loaded when the first of them is shown. @param {"Fields" | "Rating" | "WorkflowStep" | "Markup"} name @param {any} [plain]  the view until then, for that of `markup.js` */
export function lazy(name, plain) {
  /** @type {any} */
  let View;
  return (/** @type {any} */ props) => {
    const [, draw] = useState(false);
    useEffect(() => {
      const load = () => (plain ? import("./markup.js") : import("./later.js")).then((/** @type {any} */ module) => ((View = module[name]), draw(true)), () => void setTimeout(load, 2000));
      if (!View) void load();
    }, []);
    const Shown = View ?? plain;
    return Shown && html`<${Shown} ...${props} />`;
  };
}
