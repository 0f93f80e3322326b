// @ts-check
/** The code that puts a channel on a website, and the check of such a site. */
import { html, useState } from "../vendor/preact.js";
import { t } from "./channel-texts.js";
import { Icon } from "../ui/parts.js";
import { ROOT, call } from "../core/api.js";
import { Field, Form } from "../ui/form.js";
import { Copied } from "../ui/secret.js";
/** @import { Values } from "../ui/form.js" */

/** Return the two lines that put a channel on a page. Calls before the loader has come wait in the list of the first. @param {any} channel @returns {string} */
export function snippet(channel) {
  const loader = new URL(`${ROOT}widget/${channel.id}.js`, location.href).href;
  return `<script>window.Deskwire = window.Deskwire || []</script>\n<script async src="${loader}"></script>`;
}

/** The line that signs a site's customers in. The address is the site's own. */
const IDENTITY = `<script>Deskwire.push(["identify", async () => (await fetch("/chat-identity")).text()])</script>`;

/** @param {{channel: any}} props */
export function Install({ channel }) {
  const signs = channel.identity.mode !== "none";
  return html`<p>${t.installText}</p><${Copied} text=${snippet(channel)} label=${t.install} />${signs && html`<p class="follows">${t.installIdentity}</p><${Copied} text=${IDENTITY} label=${t.identity} />`}`;
}

/** @param {{channel: any}} props */
export function SiteCheck({ channel }) {
  const [found, setFound] = useState(/** @type {any} */ (null));
  const check = async (/** @type {Values} */ form) => {
    setFound(null);
    setFound(await call("POST", `channels/${channel.id}/check`, { body: { url: form.raw("url").trim() } }));
  };
  const example = channel.origins.find((/** @type {string} */ each) => !each.includes("*"));
  return html`<h3>${t.check}</h3><${Form} save=${check} label=${t.checkIt} kind="">
      <${Field} name="url" type="url" label=${t.checkUrl} initial=${example ? `${example}/` : ""} mono required spellcheck=${false} />
    <//>
    <div role="status">${found && html`<${Findings} of=${found} />`}</div>`;
}

/** The findings of a check; an error keeps the widget from working. @param {{of: any}} props */
function Findings({ of }) {
  const errors = of.findings.filter((/** @type {any} */ each) => each.severity === "error").length;
  return html`<p class=${of.ok ? "lead good" : "lead warn"}>${errors ? t.checkErrors(errors) : of.findings.length ? t.checkWarnings : t.checkGood} <span class="mono"><bdi>${of.url}</bdi></span></p>
    ${of.findings.length > 0 && html`<ul class="findings">${of.findings.map((/** @type {any} */ each) => html`<li key=${each.code}><${Icon} name=${each.severity === "error" ? "warn" : "info"} class=${each.severity === "error" ? "bad" : "warn"} /><span><span class="sr">${t.severities[/** @type {"error"} */ (each.severity)] ?? each.severity}: </span><bdi>${each.message}</bdi></span></li>`)}</ul>`}`;
}
