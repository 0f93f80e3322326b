// @ts-check
/**
 * The shell: signs in, shows the top bar, finds the view for the address, and starts the rest.
 *
 * Modules before the first list are at most twelve: app, api, session, state, store, feed, outbox, keys, texts, parts, list
 * and vendor/preact. `Inbox` of list.js is what is shown below the top bar; it loads thread.js, composer.js, context.js and
 * palette.js by `import()` once the list is there.
 */
import { html, render } from "./vendor/preact.js";
import { t } from "./texts.js";

function App() {
  return html`<main><h1>${t.name}</h1></main>`;
}

render(html`<${App} />`, /** @type {HTMLElement} */ (document.getElementById("desk")));
