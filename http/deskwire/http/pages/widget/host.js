// @ts-check
/**
 * The part of the loader that runs from the first click on: the frame of the panel, the messages with it, and `Deskwire` for the host's page.
 *
 * The panel posts `deskwire:hello` to this window and gets a port with the state. Over the port, this side sends the state again when it changes,
 * and `{answer, value, problem?}` for each `ask`. The panel sends `{unread}`, `{close}`, `{left}`, `{drafts}` and `{ask, name}`, where `name` is `identity`, or
 * `storage` if its own is blocked: then this page keeps the outbox, and serves it over a second port.
 */

/** @typedef {{id: string, enabled: boolean, colour: string, ink: string, side: string, query: string, open: string}} Settings */
/**
 * The parts that the loader has made.
 * @typedef {object} Widget
 * @property {Settings} settings
 * @property {string} base  the address of `/widget/`
 * @property {(name: string, attributes: Record<string, string>, ...children: Element[]) => any} make
 * @property {ShadowRoot} root
 * @property {HTMLElement} region
 * @property {HTMLButtonElement} button
 * @property {SVGPathElement} icon
 * @property {HTMLElement} badge
 * @property {Record<string, any>} api  the functions for the host's page
 * @property {[string, any[], (value: any) => void][]} calls  calls that wait for this module
 * @property {string} key  the beginning of all keys in the page's storage
 */

const CHAT = "M2.500 3h11v8H8l-3 2.500V11H2.500V3Z";
const CROSS = "m4 4 8 8m0-8-8 8";
const STYLE = (/** @type {string} */ side) => `iframe{position:fixed;${side}:20px;bottom:92px;width:400px;height:min(704px,100vh - 112px);border:0;border-radius:16px;box-shadow:0 4px 32px #0005;color-scheme:light dark}
@media(forced-colors:active){iframe{border:2px solid}}
@media(prefers-reduced-motion:no-preference){iframe{animation:up .16s ease-out}@keyframes up{from{opacity:0;transform:translateY(8px)}}}
@media(max-width:480px),(max-height:480px){iframe{inset:0;width:100%;height:100%;border-radius:0}button[aria-expanded=true]{z-index:1}button[aria-expanded=true][data-live]{display:none}}`;

/** Serve the widget's calls, those that waited first. @param {Widget} widget */
export function start(widget) {
  const { settings, base, make, root, region, button, icon, badge, api, calls, key } = widget;
  const panel = new URL(`${settings.id}?${settings.query}`, base);
  /** @type {Map<string, Set<(value?: any) => void>>} */
  const listeners = new Map();
  /** @type {((value: any) => void)[]} */
  const leaving = [];
  /** @type {HTMLIFrameElement | undefined} */
  let frame;
  /** @type {MessagePort | undefined} */
  let port;
  /** @type {(() => Promise<string | null>) | null} */
  let identity = null;
  let context = {};
  let shown = false;
  let identities = 0;
  let unread = 0;
  /** Return a text that this page has stored, or store it; null removes. @param {"localStorage" | "sessionStorage"} place @param {string | null} [text] */
  function stored(place, text) {
    try {
      if (text === null) window[place].removeItem(key);
      else if (text !== undefined) window[place].setItem(key, text);
      return window[place].getItem(key);
    } catch {
      return null; // the browser gives this page no storage
    }
  }
  const before = stored("localStorage");
  unread = Number(before);

  /** Keep the number for the next page; null for a customer who is signed out. @param {number | null} count */
  function keepUnread(count) {
    showUnread(count ?? 0);
    stored("localStorage", count === null ? null : String(count));
  }
  function showUnread(/** @type {number} */ count) {
    unread = count;
    draw();
    notify("unread", unread);
  }

  /** @param {string} name @param {any} [value] */
  const notify = (name, value) => listeners.get(name)?.forEach((each) => each(value));

  /** Return the state of this page for the panel. The address has no query and no fragment, which can contain secrets. */
  const state = () => ({
    page: {
      url: location.origin + location.pathname,
      title: document.title,
      referrer: document.referrer.replace(/[?#].*/, ""),
      language: document.documentElement.lang || navigator.language,
      timezone: Intl.DateTimeFormat().resolvedOptions().timeZone,
    },
    custom: context,
    shown,
    identities,
    leave: leaving.length > 0,
  });
  const send = (/** @type {any} */ more) => port?.postMessage({ ...state(), ...more });

  function draw() {
    icon.setAttribute("d", shown ? CROSS : CHAT);
    button.setAttribute("aria-expanded", String(shown));
    button.setAttribute("aria-label", settings.open + (unread && !shown ? ` (${unread})` : ""));
    badge.textContent = shown || !unread ? "" : unread > 99 ? "99+" : String(unread);
    if (frame) frame.hidden = !shown;
  }

  function load() {
    if (frame) return;
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(STYLE(settings.side));
    root.adoptedStyleSheets.push(sheet);
    frame = make("iframe", { title: settings.open, src: panel.href, referrerpolicy: "origin", allow: "clipboard-write", hidden: "" });
    region.prepend(/** @type {HTMLIFrameElement} */ (frame));
  }

  /** @param {boolean} on @param {string} [conversation] */
  function show(on, conversation) {
    if (on) load();
    const changed = shown !== on;
    const inside = root.activeElement === frame;
    shown = on;
    draw();
    if (changed || conversation) send({ conversation });
    if (on) frame?.focus();
    else if (inside) button.focus();
    if (changed) notify(on ? "open" : "close");
  }

  /** @param {{ask: number, name: string}} question */
  async function answer({ ask, name }) {
    const channel = new MessageChannel();
    try {
      if (name === "storage") {
        const { serveStorage } = await import("./host-storage.js");
        serveStorage(channel.port1, settings.id);
        port?.postMessage({ answer: ask }, [channel.port2]);
      } else port?.postMessage({ answer: ask, value: (await identity?.()) ?? null });
    } catch (error) {
      port?.postMessage({ answer: ask, problem: String(error) });
    }
  }

  /** @param {MessageEvent} event */
  function receive({ data }) {
    if (data.ask) void answer(data);
    if (data.close) show(false);
    if (data.drafts) stored("sessionStorage", data.drafts);
    if (data.unread !== undefined) keepUnread(data.unread);
    if (!data.left) return;
    keepUnread(null);
    leaving.splice(0).forEach((done) => done(data.left));
  }

  addEventListener("storage", ({ key: changed, newValue, storageArea }) => {
    // Another tab has read the messages, or its customer has signed out.
    if (changed === key && storageArea === localStorage) showUnread(Number(newValue));
  });
  addEventListener("message", ({ source, origin, data }) => {
    if (data !== "deskwire:hello" || origin !== panel.origin || !frame || source !== frame.contentWindow) return;
    const channel = new MessageChannel();
    port = channel.port1;
    port.onmessage = receive;
    button.dataset.live = ""; // the panel has a button of its own to close it
    frame.contentWindow?.postMessage({ deskwire: { ...state(), drafts: stored("sessionStorage") } }, origin, [channel.port2]);
  });

  Object.assign(api, {
    open: async (/** @type {string | undefined} */ conversation) => show(true, conversation),
    close: async () => show(false),
    identify: async (/** @type {() => Promise<string | null>} */ ask) => {
      identity = ask;
      identities++;
      send({});
    },
    context: async (/** @type {Record<string, unknown>} */ values) => {
      context = structuredClone({ ...context, ...values });
      send({});
    },
    on: async (/** @type {string} */ name, /** @type {(value?: any) => void} */ listener) => {
      listeners.set(name, (listeners.get(name) ?? new Set()).add(listener));
    },
    signOut: () =>
      new Promise((done) => {
        identity = null;
        identities = 0;
        keepUnread(null);
        leaving.push(done);
        load();
        send({});
      }),
  });
  button.onclick = () => show(!shown);
  region.onkeydown = (event) => {
    if (event.key === "Escape") show(false);
  };
  for (const [name, given, done] of calls.splice(0)) done(api[name]?.(...given));
  draw();
  if (before !== null) load();
}
