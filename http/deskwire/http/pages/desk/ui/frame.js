// @ts-check
/** The frame of a page: title, link to its list, actions, and its API calls as JSON and as curl. */
import { html, useEffect, useLayoutEffect, useRef, useState } from "../vendor/preact.js";
import { t } from "./texts.js";
import { Icon, Menu, SideButton } from "./parts.js";
import { heading } from "../core/session.js";
import { Link } from "./link.js";
import { Dialog } from "./dialog.js";
import { address, credentials } from "../core/api.js";
import { Copied } from "./secret.js";
import { States, useCall } from "./loading.js";

/** @typedef {{method: string, path: string, query?: Record<string, unknown>, body?: unknown}} PageCall */

/**
 * @param {{title: string, face?: any, up?: {to: string, label: string}, actions?: any, tools?: any, calls?: PageCall[], children?: any}} props
 *   face: the content of the title, if it is more than text. up: the list of which this is an item. tools: filters below the header.
 *   calls: the page's API calls
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
  return html`<header class="page-head">
      <${SideButton} />
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

/** A part of a page with its own heading. @param {{title: string, actions?: any, class?: string, children?: any}} props */
export const Section = ({ title, actions, children, ...rest }) => html`<section class=${`part ${rest.class ?? ""}`}><header><h2>${title}</h2><span class="grow"></span>${actions}</header>${children}</section>`;

/** Names with their values. @param {{of: [string, any][]}} props */
export const Pairs = ({ of }) => html`<dl class="pairs wide">${of.map(([name, value]) => html`<dt key=${name}>${name}</dt><dd>${value ?? t.empty}</dd>`)}</dl>`;

/** Quote a text as one word of a shell. @param {string} text */
const quoted = (text) => `'${text.replaceAll("'", `'\\''`)}'`;

/** Return a call as a curl command. @param {PageCall} call @returns {string} */
export function curl({ method, path, query, body }) {
  const lines = [`curl -s${method === "GET" ? "" : ` -X ${method}`} ${quoted(location.origin + address(path, query))}`, '-H "Authorization: Bearer $DESKWIRE_TOKEN"'];
  if (credentials.project) lines.push(`-H ${quoted(`project: ${credentials.project}`)}`);
  if (body !== undefined) lines.push("-H 'Content-Type: application/json'", `-d ${quoted(JSON.stringify(body))}`);
  return lines.join(" \\\n  ");
}

/** @param {{call: PageCall}} props */
function Json({ call }) {
  const of = useCall(call.path, call.query);
  return html`<h3 class="mono">${`GET ${address(call.path, call.query)}`}</h3><${States} of=${of}>${(/** @type {any} */ data) => html`<${Copied} text=${JSON.stringify(data, null, 2)} label=${t.asJson} />`}<//>`;
}

/** @param {{as: "json"|"curl", calls: PageCall[], close: () => void}} props */
export const Calls = ({ as, calls, close }) => html`<${Dialog} title=${as === "json" ? t.asJson : t.asCurl} class="wide" close=${close}><div class="body">
  ${as === "json"
    ? calls.filter((each) => each.method === "GET").map((each) => html`<${Json} key=${each.path} call=${each} />`)
    : html`<p>${t.asCurlText}</p>${calls.map((each) => html`<${Copied} key=${each.method + each.path} text=${curl(each)} label=${`${each.method} ${each.path}`} />`)}`}
</div><//>`;
