// @ts-check
/**
 * The button on the host's page. At the first click, or the first call that needs the panel, it imports `host.js`, which makes the frame.
 *
 * The service puts the channel's settings in place of `SETTINGS`. The script works under a policy of the host that allows scripts and frames of
 * this origin only: it makes elements and a constructed style sheet, no markup of text and no style attributes.
 */
(() => {
  /** @type {import("./host.js").Settings} */
  const settings = /** @type {any} */ ("SETTINGS");
  const page = /** @type {any} */ (window);
  const queued = page.Deskwire ?? [];
  if (queued.open) return;
  const base = new URL(".", /** @type {HTMLScriptElement} */ (document.currentScript).src).href;

  /** @param {string} name @param {Record<string, string>} attributes @param {Element[]} children @returns {any} */
  const make = (name, attributes, ...children) => {
    const element = document.createElementNS(`http://www.w3.org/${/svg|path/.test(name) ? "2000/svg" : "1999/xhtml"}`, name);
    for (const each in attributes) element.setAttribute(each, /** @type {string} */ (attributes[each]));
    element.append(...children);
    return element;
  };
  const badge = make("b", {});
  const icon = make("path", { d: "M2.500 3h11v8H8l-3 2.500V11H2.500V3Z" });
  const button = make("button", { "aria-label": settings.open, "aria-expanded": "false" }, make("svg", { viewBox: "0 0 16 16" }, icon), badge);
  const region = make("section", { "aria-label": settings.open }, button);
  const host = make("deskwire-widget", {});
  const root = host.attachShadow({ mode: "open" });
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(`:host{all:initial!important;position:fixed!important;z-index:2147483000!important}
button{position:fixed;${settings.side}:20px;bottom:20px;width:56px;height:56px;padding:12px;border:0;border-radius:50%;background:${settings.colour};color:${settings.ink};box-shadow:0 4px 24px #0004;cursor:pointer}
button:focus-visible{outline:3px solid ${settings.ink};box-shadow:0 0 0 6px ${settings.colour}}
svg{fill:none;stroke:currentColor}
b{position:absolute;top:-4px;right:-4px;min-width:10px;padding:0 6px;border-radius:11px;background:#b3243a;color:#fff;font:700 13px/22px system-ui}
b:empty,[hidden]{display:none}
@media(forced-colors:active){button{border:2px solid}}
@media print{*{display:none}}`);

  /** @type {any} */
  const api = {};
  /** @type {any[]} */
  const calls = [];
  const key = "deskwire." + settings.id;
  /** @type {Promise<void> | undefined} */
  let started;
  const start = () =>
    (started ??= import(base + "host.js").then(
      (module) => module.start({ settings, base, make, root, region, button, icon, badge, api, calls, key }),
      () => (started = undefined),
    ));
  for (const name of ["open", "close", "identify", "context", "on", "signOut"])
    api[name] = (/** @type {any[]} */ ...given) =>
      new Promise((done) => {
        calls.push([name, given, done]);
        if (/open|signOut/.test(name)) start();
      });
  api.push = (/** @type {any[]} */ ...more) => more.forEach(([name, ...given]) => api[name](...given));
  button.onclick = () => api.open();
  button.onpointerenter = button.onfocus = start;
  button.hidden = !settings.enabled;
  root.adoptedStyleSheets = [sheet];
  root.append(region);
  document.documentElement.append(host);
  page.Deskwire = api;
  api.push(...queued);
  try {
    // Only a customer who has written before has unread messages to load.
    const unread = localStorage.getItem(key);
    badge.textContent = Number(unread) ? unread : "";
    if (unread) setTimeout(start, 1000);
  } catch {}
})();
