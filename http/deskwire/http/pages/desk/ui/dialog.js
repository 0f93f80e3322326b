// @ts-check
/** A modal dialog that restores the focus when it closes. */
import { html, useLayoutEffect, useRef } from "../vendor/preact.js";
import { t } from "../core/texts.js";
import { Button, cx } from "./parts.js";

/** Return the first focusable part of a row or another element. @param {Element} part @returns {HTMLElement|null} */
export const firstFocusable = (part) => part.querySelector("th a, th button, a, button");

/**
 * A modal dialog, open while it is rendered. Focus starts at its first field, or at the cancel button of a deletion. On close, focus returns to its
 * previous element; if that was removed, to a neighbouring row or the heading.
 * @param {{title: string, close: () => void, class?: string, bare?: boolean, held?: boolean, children?: any}} props
 */
export function Dialog(props) {
  const box = useRef(/** @type {HTMLDialogElement | null} */ (null));
  useLayoutEffect(() => {
    const before = /** @type {HTMLElement | null} */ (document.activeElement);
    const row = before?.closest("tr");
    const near = [row, row?.nextElementSibling, row?.previousElementSibling];
    box.current?.showModal();
    /** @type {HTMLElement | null} */ (box.current?.querySelector("[autofocus]") ?? box.current?.querySelector("form :is(input, select, textarea), form .actions button"))?.focus();
    return () => {
      box.current?.close(); // while a dialog is open, no element outside of it takes focus
      const there = near.map((each) => each?.isConnected && firstFocusable(each)).find(Boolean);
      (before?.isConnected ? before : there || /** @type {HTMLElement|null} */ (document.querySelector(".page-head h1")))?.focus();
    };
  }, []);
  return html`<dialog
    ref=${box}
    class=${cx("dialog", props.class)}
    aria-label=${props.title}
    onCancel=${(/** @type {Event} */ event) => (event.preventDefault(), !props.held && props.close())}
    onMouseDown=${(/** @type {Event} */ event) => event.target === box.current && !props.held && props.close()}
  >
    ${!props.bare && html`<header><h2>${props.title}</h2>${!props.held && html`<${Button} label=${t.close} icon="close" only kind="quiet" press=${props.close} />`}</header>`}
    ${props.children}
  </dialog>`;
}
