// @ts-check
/** What a page asked the API for, as JSON and as commands for a shell. */
import { html } from "../vendor/preact.js";
import { t } from "./texts.js";
import { Dialog } from "../dialog.js";
import { address, credentials } from "../api.js";
import { Copied } from "./secret.js";
import { States, useCall } from "./loading.js";
/** @import { PageCall } from "./frame.js" */

/** A text as one word of a shell. @param {string} text */
const quoted = (text) => `'${text.replaceAll("'", `'\\''`)}'`;

/** A call as a command. @param {PageCall} call @returns {string} */
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
