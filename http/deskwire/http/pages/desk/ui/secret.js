// @ts-check
/** A secret that is shown once, and what copies text. */
import { html, useRef } from "../vendor/preact.js";
import { t } from "./texts.js";
import { Button, notify } from "./parts.js";
import { Dialog } from "./dialog.js";

/** Copies a text, or selects it where the browser does not let pages copy. @param {string} text @param {HTMLElement|null} [box] */
export async function copy(text, box = null) {
  try {
    await navigator.clipboard.writeText(text);
    notify(t.copied);
  } catch {
    if (box) getSelection()?.selectAllChildren(box); // plain http on a network: the browser keeps the clipboard from pages
  }
}

/** A text in a box with a button that copies it. @param {{text: string, label: string}} props */
export function Copied({ text, label }) {
  const box = useRef(/** @type {HTMLElement|null} */ (null));
  return html`<div class="copied"><pre ref=${box} class="mono" tabindex="0" role="region" aria-label=${label}>${text}</pre><${Button} icon="copy" label=${t.copy} press=${() => copy(text, box.current)} /></div>`;
}

/** The dialog that shows a new secret. Esc does not close it: only its button does. @param {{title: string, secret: string, text?: any, close: () => void}} props */
export const Secret = ({ title, secret, text, close }) => html`<${Dialog} title=${title} held close=${close}><div class="body">
  ${secret.includes("…") /* a repeated answer masks it */ ? html`<p role="alert">${t.secretLost}</p>` : html`<p><strong>${t.secretOnce}</strong></p>${text && html`<p>${text}</p>`}<${Copied} text=${secret} label=${t.secret} />`}
  <div class="actions"><${Button} label=${t.close} kind="primary" press=${close} /></div>
</div><//>`;
