// @ts-check
/** The panel: it joins the customer's side (`customer.js`), the host's page, and the views. */
import { html, render, useEffect, useLayoutEffect, useRef, useState } from "../desk/vendor/preact.js";
import { claimDrafts, loadDrafts } from "./composer.js";
import { createCustomer } from "./customer.js";
import { List } from "./list.js";
import { connectPage } from "./page.js";
import { IconButton, ROOT } from "./parts.js";
import { loadTexts, numberText, problemText, settings, t } from "./texts.js";
import { Thread } from "./thread.js";
/** @import { Customer } from "./customer.js" */
/** @import { Page, PageState } from "./page.js" */

/** Problems under which nothing can be written. */
const BLOCKING = new Set(["identity_required", "origin_not_allowed", "channel_disabled", "channel_not_found"]);

/** True while the panel is visible. */
let shown = true;
/** True if the page has got a number of unread conversations. */
let counted = false;
/** Show the panel again: the conversation of this id, if there is one, once `ready` has loaded the list. @type {(conversation: string | null | undefined, ready?: Promise<void>) => void} */
let showPanel = () => {};

/** @param {{customer: Customer, page: Page | null, ready: Promise<void>}} props */
function Panel({ customer, page, ready }) {
  const [state, setState] = useState(customer.state);
  const [known, setKnown] = useState(false);
  const [view, setView] = useState(/** @type {"list" | "thread"} */ ("list"));
  const title = useRef(/** @type {any} */ (null));
  const { open, conversations, unread, listed } = state;
  // Without the list, only a visitor without a session is known to have no conversation: a signed-in customer may have written on another device.
  const fresh = !conversations.size && (listed || (known && !state.me && !page?.state.identities));
  const thread = view === "thread" || fresh;

  const go = (/** @type {string | null} */ id) => {
    setView("thread");
    if (id) void customer.open(id).catch(() => {});
    else customer.close();
  };
  const back = () => {
    setView("list");
    customer.close();
  };
  const close = () => page?.send({ close: true });
  const load = (/** @type {Promise<void>} */ ready) => void ready.then(() => setKnown(true));

  useEffect(() => {
    if (shown) load(ready); // a hidden panel has loaded the unread count only
    showPanel = (conversation, again) => {
      setKnown(!again);
      if (again) load(again);
      if (conversation) go(conversation);
      focusFirst(title.current);
    };
    return customer.subscribe(setState);
  }, []);
  useEffect(() => {
    // Null for a customer without conversations, perhaps the next one: then other pages load no panel for a number.
    // Also at a sign-out in another tab, whose page may have removed the number before this one stored it.
    if (listed || counted) page?.send({ unread: unread || (conversations.size ? 0 : null) });
    counted = listed;
  }, [unread, conversations.size > 0, listed]);
  // A conversation that has begun here has no thread before the service has stored it.
  useEffect(() => void (open?.startsWith("cnv_") && !state.loaded.has(open) && customer.open(open).catch(() => {})), [open]);
  // The first message makes a list, but the customer stays in the conversation.
  useLayoutEffect(() => void (fresh && setView("thread")), [fresh]);
  useLayoutEffect(() => focusFirst(title.current), [thread, known]);

  const { problem, connection } = state;
  const banner = problem ? problemText(problem) : connection === "offline" ? settings.own.offline || t.offline : known ? "" : t.connecting;
  return html`<div class="panel" onKeyDown=${(/** @type {KeyboardEvent} */ event) => event.key === "Escape" && !event.isComposing && close()}>
    <header>
      ${thread && !fresh && html`<${IconButton} name="back" label=${t.back + (unread ? ` (${numberText(unread)})` : "")} press=${back} />`}
      <h1 ref=${title} tabindex="-1"><bdi>${(thread && conversations.get(open ?? "")?.assignee?.name) || settings.own.title || settings.name}</bdi></h1>
      ${page && html`<${IconButton} name="close" label=${t.close} press=${close} />`}
    </header>
    <p role="status" class=${problem ? "banner bad" : "banner"}>${banner}</p>
    ${state.storage === "page" && known && html`<p class="banner">${t.pageOnly}</p>`}
    ${!(problem && BLOCKING.has(problem.code)) && (thread ? html`<${Thread} customer=${customer} state=${state} conversation=${open} sent=${go} />` : html`<${List} customer=${customer} state=${state} open=${go} />`)}
  </div>`;
}

/** Move the focus to the text field, or where a keyboard would cover the view, to its title. @param {HTMLElement} title */
function focusFirst(title) {
  if (!shown) return;
  const field = matchMedia("(pointer:coarse)").matches ? null : document.querySelector("textarea");
  /** @type {HTMLElement} */ (field ?? title)?.focus();
}

/** True if a conversation waits for its answer, or a message has not been sent. @param {Customer} customer */
const isWaiting = ({ state }) => state.outbox.length > 0 || [...state.conversations.values()].some((each) => !each.closed && each.lastMessage?.author.self);

/** The conversation that was open when the panel was hidden. @type {string | null} */
let left = null;

/** Apply the new state of the host's page: show or hide the panel, sign in, or sign out. @param {Customer} customer @param {Page} page @param {PageState} before */
async function follow(customer, page, before) {
  const now = page.state;
  customer.context({ ...now.page, custom: now.custom });
  shown = now.shown;
  if (now.leave && !before.leave) {
    page.send({ left: await customer.signOut() });
    if (shown) showPanel(null, customer.start());
  } else if (now.identities && now.identities !== before.identities) void customer.identify(() => page.ask("identity")).catch(() => {});
  else if (now.shown && !before.shown) showPanel(now.conversation ?? left, customer.start());
  else if (now.conversation) showPanel(now.conversation);
  else if (before.shown && !now.shown) {
    left = customer.state.open; // a hidden panel marks nothing as seen
    customer.close();
    if (!isWaiting(customer)) customer.stop();
  }
}

async function begin() {
  /** @type {Customer | undefined} */
  let customer;
  /** @type {Page | null} */
  let page = null;
  // The state can also change before there is a customer, while the texts are loaded.
  const connected = connectPage((before) => customer && void follow(customer, /** @type {Page} */ (page), before));
  for (const [name, value] of Object.entries(settings.colours)) document.documentElement.style.setProperty(`--${name}`, value);
  const texts = loadTexts();
  const host = (page = await connected);
  loadDrafts(host);
  await texts;
  const state = host?.state;
  shown = state?.shown ?? true;
  customer = createCustomer({
    baseUrl: ROOT.href,
    channelId: settings.channel,
    identity: host && state?.identities ? () => host.ask("identity") : null,
    hostPort: host ? () => host.ask("storage") : null,
  });
  customer.subscribe(({ me }) => claimDrafts(me?.userId)); // before the views show one
  if (state) customer.context({ ...state.page, custom: state.custom });
  const ready = customer.start({ passive: !shown });
  render(html`<${Panel} customer=${customer} page=${host} ready=${ready} />`, /** @type {HTMLElement} */ (document.getElementById("panel")));
  if (host && state?.leave) void follow(customer, host, /** @type {any} */ ({})); // the page has loaded the panel to sign out
}

void begin();
