// @ts-check
/**
 * The shell: start-up, sign-in, and the layout of the panes.
 *
 * Static imports delay the first list, so a test limits their number and size. Everything else is fetched by `lazy`.
 */
import { html, render, signal, effect, useEffect, useErrorBoundary } from "./vendor/preact.js";
import { t } from "./core/texts.js";
import { Button, Empty, Icon, Notices, clearNotices, contextShown, dialog, lazy, notify, theme } from "./ui/parts.js";
import * as session from "./core/session.js";
import * as store from "./core/store.js";
import * as outbox from "./core/outbox.js";
import { connection } from "./core/feed.js";
import { proof, signedOut } from "./core/api.js";
import { List, clearSelection, shownList, targetsOrNotify, targets } from "./inbox/list.js";
import { EDITOR, handle, runCommand, lostTyping, startTypeAhead } from "./core/keys.js";

const SignIn = lazy(() => import("./shell/sign-in.js"), "SignIn");
const Thread = lazy(() => import("./inbox/thread.js"), "Thread");
const Context = lazy(() => import("./inbox/context.js"), "Context");
const Dialogs = lazy(() => import("./shell/dialogs.js"), "Dialogs");
const Page = lazy(() => import("./pages.js"), "Page");
const Side = lazy(() => import("./shell/side.js"), "Side");
const NoProject = lazy(() => import("./shell/no-project.js"), "NoProject");
const Enrolment = lazy(() => import("./shell/enrolment.js"), "Enrolment");
const OneTimeLink = lazy(() => import("./shell/one-time-link.js"), "OneTimeLink");
const StepUp = lazy(() => import("./shell/step-up.js"), "StepUp");
const Banner = lazy(() => import("./shell/connection.js"), "Banner");
const Actions = lazy(() => import("./inbox/actions.js"), "Actions");
const Notifications = lazy(() => import("./shell/notifications.js"), "Notifications");

effect(() => {
  const root = document.documentElement;
  if (theme.value === "system") delete root.dataset.theme;
  else root.dataset.theme = theme.value;
});

/** Open a dialog. Keys typed before it appears go to its first field. @param {{name: string, [more: string]: any}} which */
const ask = (which) => ((dialog.value = which), startTypeAhead("dialog"));
/** Open a dialog about the conversations that a key applies to. @param {string} name */
const askAbout = (name) => () => {
  const ids = targetsOrNotify();
  if (ids && !session.may("conversations.manage")) notify(t.actions.notAllowed, { bad: true });
  else if (ids) ask({ name, ids });
};
/** Start a reply or a note in the conversation that a key applies to. @param {string} command */
const write = (command) => () => {
  const [one] = targetsOrNotify() ?? [];
  if (!one) return;
  if (store.gone(one)) notify(t.actions.notHere, { icon: "info" });
  else if (!session.may("conversations.reply")) notify(t.actions.notAllowed, { bad: true });
  else {
    startTypeAhead(EDITOR, command);
    if (session.open.value !== one) session.go(`c/${one}`);
  }
};

// Registered at once: the user types text after these commands. The others come with actions.js.
handle({
  start: () => ask({ name: "start" }),
  palette: () => ask({ name: "palette", ids: targets() }),
  filter: () => ask({ name: "filter" }),
  help: () => void (dialog.value = { name: "help" }),
  assign: askAbout("assign"),
  snooze: askAbout("snooze"),
  tag: askAbout("tags"),
  reply: write("reply"),
  note: write("note"),
  signOut: () => void leave(),
});
effect(() => {
  if (lostTyping.value) notify(t.actions.unplaced(lostTyping.value), { bad: true });
});

const failure = signal(/** @type {any} */ (null));

/** Load the session, and retry until the server answers. */
async function start() {
  failure.value = null;
  try {
    await session.loadSession();
  } catch (error) {
    failure.value = error;
    setTimeout(start, 5000);
  }
}

/** @type {string | null} */
let begun = null;
effect(() => {
  const wanted = session.user.value && session.project.value && !session.mustEnrol.value ? `${session.user.value.id} ${session.project.value.id} ${session.reads.value}` : null;
  if (wanted === begun) return;
  queueMicrotask(() => {
    if (wanted === begun) return;
    if (begun) (store.end(), outbox.end(), clearSelection(), clearNotices());
    if (begun && signedOut.peek()) dialog.value = null;
    begun = wanted;
    if (wanted) (store.begin(), outbox.begin());
  });
});

/** Sign out, after a question if unsent work would be discarded. */
async function leave() {
  await session.saveBeforeSignOut();
  if (outbox.unsent() + outbox.unsaved.value) dialog.value = { name: "signOut" };
  else await session.signOut();
}

// In a narrow window the navigation is a popover, and its links close it.
const pressed = (/** @type {any} */ { target, currentTarget }) => target.closest("li .view") && currentTarget.hidePopover();
const SIDE = html`<nav class="side" id="side" popover aria-label=${t.views.label} onClick=${pressed}><${Side} /></nav>`;

function Panes() {
  const open = session.open.value;
  const wide = contextShown.value ?? innerWidth >= 1180;
  if (session.page.value || !session.reads.value) return html`<div class="panes" data-pane="page">${SIDE}<main class="page" id="conversation" tabindex="-1"><${Page} /></main></div>`;
  return html`<div class="panes" data-pane=${open ? "thread" : "list"}>
    ${SIDE}
    <main><${List} /><section class="thread" id="conversation" tabindex="-1">${open ? html`<${Thread} key=${open} id=${open} />` : html`<${Empty} icon="chat" title=${t.thread.none} text=${shownList().ids.length > 0 && t.thread.noneText} />`}</section></main>
    ${open && wide && !store.gone(open) && html`<${Context} key=${open} id=${open} />`}
  </div>`;
}

/** @param {{title: string, text: any, action?: any}} props */
const Alone = (props) => html`<main class="sign-in"><div class="card"><span class="mark"><${Icon} name="wire" /></span><h1>${props.title}</h1><p>${props.text}</p>${props.action}</div></main>`;

function App() {
  const [crash] = useErrorBoundary();
  const { user, project } = session;
  const heading = session.heading.value;
  const fresh = store.arrivals.value;
  useEffect(() => {
    if (connection.value.state === "gap") notify(t.connection.gapBanner, { ms: 12_000 });
  }, [connection.value.state]);
  useEffect(() => {
    const title = signedOut.value ? null : session.open.value ? store.row(session.open.value)?.contact.name : heading;
    document.title = `${fresh ? `(${fresh}) ` : ""}${title ? `${title} · ` : ""}${t.name}`;
  });
  if (crash) return html`<${Alone} title=${t.signIn.crashed} text=${html`${t.signIn.crashedText} <code class="mono">${String(crash.message)}</code>`} action=${html`<${Button} kind="primary" label=${t.signIn.reload} press=${() => location.reload()} />`} />`;
  if (session.page.value === "link") return html`<${OneTimeLink} />`;
  if (user.value === undefined) return failure.value ? html`<${Alone} title=${t.name} text=${t.signIn.offline} action=${html`<${Button} kind="primary" label=${t.tryAgain} press=${start} />`} />` : html`<main aria-busy="true"><h1 class="sr">${t.signIn.starting}</h1></main>`;
  if (user.value === null) return html`<${SignIn} />`;
  if (signedOut.value) return html`<main class="sign-in"><h1 class="sr">${t.name}</h1></main><${SignIn} over />`;
  if (!project.value) return html`<${NoProject} />`;
  if (session.mustEnrol.value) return html`<${Enrolment} />`;
  return html`<div class="desk">
    <a class="skip" href="#conversation" onClick=${(/** @type {Event} */ event) => (event.preventDefault(), document.getElementById("conversation")?.focus())}>${t.skip}</a>
    <div><${Banner} /></div><${Panes} />
    <${Actions} /><${Dialogs} /><${Notifications} /><${Notices} />
  </div>`;
}

render(html`<${App} /><${() => proof.value && html`<${StepUp} />`} />`, /** @type {HTMLElement} */ (document.getElementById("desk")));
start();
