// @ts-check
/** The code that puts a channel on a website, and the check of such a site. */
import { html, useState } from "../vendor/preact.js";
import { t } from "./channel-texts.js";
import { Icon } from "../ui/parts.js";
import { ROOT, call } from "../core/api.js";
import { Field, Form } from "../ui/form.js";
import { Copied } from "../ui/secret.js";
/** @import { Values } from "../ui/form.js" */

/** Return the lines for the pages of a website. @param {any} channel @returns {string} */
export function snippet(channel) {
  const loader = `<script async src="${new URL(`${ROOT}widget/${channel.id}.js`, location.href).href}"></script>`;
  const identity = `<script>(window.Deskwire ||= []).push(["identify", () => fetch("/chat-identity").then((answer) => answer.text())])</script>`;
  return channel.identity.mode === "none" ? loader : `${loader}\n${identity}`;
}

/** @param {{channel: any}} props */
export function Install({ channel }) {
  const signs = channel.identity.mode !== "none";
  return html`<p>${signs ? t.installText : t.installOne}</p><${Copied} text=${snippet(channel)} label=${t.install} />${signs && html`<p class="muted">${t.installIdentity}</p>`}`;
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
      <${Field} name="url" type="url" label=${t.checkUrl} initial=${example ? `${example}/` : ""} mono required spellcheck="false" />
    <//>
    <div role="status">${found && html`<${Findings} of=${found} />`}</div>`;
}

/** @param {{of: any}} props */
function Findings({ of }) {
  return html`<ul class="findings">${of.items.map((/** @type {any} */ each) => html`<li key=${each.code}><${Icon} name=${each.ok ? "check" : "warn"} class=${each.ok ? "good" : "bad"} /><span><bdi>${each.detail}</bdi>${each.next && html`<br /><b><bdi>${each.next}</bdi></b>`}</span></li>`)}</ul>`;
}
