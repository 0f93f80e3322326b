// @ts-check
/** Secrets that are shown once, and texts with a copy button. */
import { html, useRef } from "../vendor/preact.js";
import { t } from "./texts.js";
import { Button, notify } from "./parts.js";
import { Dialog } from "./dialog.js";

/** Copy a text, or select it where the browser denies access to the clipboard. @param {string} text @param {HTMLElement|null} [box] */
export async function copy(text, box = null) {
  try {
    await navigator.clipboard.writeText(text);
    notify(t.copied);
  } catch {
    if (box) getSelection()?.selectAllChildren(box); // browsers deny the clipboard to pages on plain http
  }
}

/** A text with a button that copies it. @param {{text: string, label: string}} props */
export function Copied({ text, label }) {
  const box = useRef(/** @type {HTMLElement|null} */ (null));
  return html`<div class="copied"><pre ref=${box} class="mono" tabindex="0" role="region" aria-label=${label}>${text}</pre><${Button} icon="copy" label=${t.copy} press=${() => copy(text, box.current)} /></div>`;
}

/** The dialog with a new secret. Only its button closes it, not Esc. @param {{title: string, secret: string, text?: any, close: () => void}} props */
export const Secret = ({ title, secret, text, close }) => html`<${Dialog} title=${title} held close=${close}><div class="body">
  ${secret.includes("…") /* a repeated response masks it */ ? html`<p role="alert">${t.secretLost}</p>` : html`<p><strong>${t.secretOnce}</strong></p>${text && html`<p>${text}</p>`}<${Copied} text=${secret} label=${t.secret} />`}
  <div class="actions"><${Button} label=${t.close} kind="primary" press=${close} /></div>
</div><//>`;
