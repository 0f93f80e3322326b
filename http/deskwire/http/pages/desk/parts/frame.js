// @ts-check
/** The frame of a page: its name, the way back up, its actions, and its calls as JSON and as curl. */
import { html, useEffect, useLayoutEffect, useRef, useState } from "../vendor/preact.js";
import { t } from "./texts.js";
import { Icon, Menu, lazy } from "../parts.js";
import { go, heading } from "../session.js";
import { Link } from "./link.js";
import { places } from "../pages.js";

const Calls = lazy(() => import("./calls.js"), "Calls");

/** @typedef {{method: string, path: string, query?: Record<string, unknown>, body?: unknown}} PageCall */

/**
 * @param {{title: string, face?: any, up?: {to: string, label: string}, actions?: any, tools?: any, calls?: PageCall[], children?: any}} props
 *   face: what is shown as the title, if it is more than the words. up: the list that this is a part of. tools: filters, below the head.
 *   calls: what the page asked the API for
 */
export function Frame({ title, face, up, actions, tools, calls = [], children }) {
  const head = useRef(/** @type {HTMLElement|null} */ (null));
  const [shown, show] = useState(/** @type {"json"|"curl"|null} */ (null));
  useLayoutEffect(() => {
    const within = document.activeElement === document.body || document.activeElement?.closest(".side, .page");
    if (within && !document.querySelector("dialog[open]")) head.current?.focus({ preventScroll: true });
    return () => void (heading.value = "");
  }, []);
  useEffect(() => void (heading.value = title), [title]);
  const entries = () => [{ label: t.asJson, icon: "file", pick: () => show("json") }, { label: t.asCurl, icon: "copy", pick: () => show("curl") }];
  const elsewhere = () => [{ label: t.toInbox, icon: "inbox", pick: () => go("") }, /** @type {"line"} */ ("line"), ...places().map((each) => ({ label: each.title, icon: each.icon, pick: () => go(each.path) }))];
  return html`<header class="page-head">
      <${Menu} label=${t.pages} icon="all" only kind="quiet" class="only-narrow" entries=${elsewhere} />
      ${up && html`<${Link} to=${up.to} class="up"><${Icon} name="left" /><span>${up.label}</span><//>`}
      <h1 ref=${head} tabindex="-1" class="ellipsis">${face ?? title}</h1>
      <span class="grow"></span>
      ${actions}
      ${calls.length > 0 && html`<${Menu} label=${t.calls} icon="more" only kind="quiet" entries=${entries} />`}
    </header>
    ${tools && html`<div class="page-tools">${tools}</div>`}
    <div class="page-body">${children}</div>
    ${shown && html`<${Calls} key=${shown} as=${shown} calls=${calls} close=${() => show(null)} />`}`;
}

/** A part of a page with a name of its own. @param {{title: string, actions?: any, class?: string, children?: any}} props */
export const Section = ({ title, actions, children, ...rest }) => html`<section class=${`part ${rest.class ?? ""}`}><header><h2>${title}</h2><span class="grow"></span>${actions}</header>${children}</section>`;

/** Names with their values. @param {{of: [string, any][]}} props */
export const Pairs = ({ of }) => html`<dl class="pairs wide">${of.map(([name, value]) => html`<dt key=${name}>${name}</dt><dd>${value ?? t.empty}</dd>`)}</dl>`;
