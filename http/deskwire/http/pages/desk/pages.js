// @ts-check
/**
 * The pages beside the inbox: which there are, the navigation to those that a role may open, and the one that is open.
 *
 * Each group keeps its own table in `<group>/pages.js`, and each page is a module that is fetched when it is opened. It
 * exports `Page`, which gets the rest of the address as `id`: `/desk/tickets/tic_1` opens `tickets` with `tic_1`.
 */
import { html, signal, useErrorBoundary, useLayoutEffect } from "./vendor/preact.js";
import { t } from "./parts/texts.js";
import { Button, Empty, Icon, setting } from "./parts.js";
import { may, page } from "./session.js";
import { handle } from "./keys.js";
import { Link } from "./parts/link.js";
import { PAGES as RUN } from "./run/pages.js";
import { PAGES as WHY } from "./why/pages.js";
import { PAGES as LEARN } from "./learn/pages.js";

/**
 * @typedef {object} PageEntry
 * @property {string} path  below `/desk/`, without an id
 * @property {"work"|"learn"|"console"|"settings"} group  where the navigation shows it
 * @property {string} title
 * @property {string} icon
 * @property {string|null} permission  what a role needs to open it; null: whoever is signed in
 * @property {() => Promise<any>} load
 */

/** @type {PageEntry[]} */
export const PAGES = [...RUN, ...WHY, ...LEARN];

const style = document.createElement("link");
style.rel = "stylesheet";
style.href = new URL("./pages.css", import.meta.url).href;
document.head.append(style);

/** The pages that the signed-in user may open. Reads signals. @returns {PageEntry[]} */
export const places = () => PAGES.filter((each) => !each.permission || may(each.permission));

/** The page of a path, and what is left of the path. @param {string} path @returns {{entry: PageEntry, id: string|null} | null} */
export function pageOf(path) {
  const fits = PAGES.filter((each) => path === each.path || path.startsWith(`${each.path}/`));
  const entry = fits.sort((a, b) => b.path.length - a.path.length)[0];
  return entry ? { entry, id: decodeURIComponent(path.slice(entry.path.length + 1)) || null } : null;
}

const GROUPS = /** @type {const} */ (["work", "learn", "console", "settings"]);
const unfolded = setting("navigation", /** @type {Record<string, boolean>} */ ({ work: true, learn: true, console: true }));

/** The navigation to the pages, below the views. */
export function Places() {
  const all = places();
  const open = pageOf(page.value ?? "")?.entry;
  return GROUPS.map((group) => {
    const shown = all.filter((each) => each.group === group);
    if (!shown.length) return null;
    const folds = Boolean(unfolded.value[group] || open?.group === group);
    const toggled = (/** @type {any} */ event) => event.target.open !== folds && (unfolded.value = { ...unfolded.value, [group]: event.target.open });
    return html`<details class="places" key=${group} open=${folds} onToggle=${toggled}><summary title=${t.groups[group]}><span class="label-text">${t.groups[group]}</span><${Icon} name="down" /></summary>
      <ul>${shown.map((each) => html`<li key=${each.path}><${Link} to=${each.path} class="view" title=${each.title} aria-current=${each === open ? "page" : undefined}><${Icon} name=${each.icon} /><span class="label-text ellipsis">${each.title}</span><//></li>`)}</ul>
    </details>`;
  });
}

/** @type {Map<PageEntry, {shown: import("./vendor/preact.js").Signal<any>, ask: () => void}>} */
const fetched = new Map();

/** The module of a page, fetched at the first time. @param {PageEntry} entry */
function moduleOf(entry) {
  const known = fetched.get(entry);
  if (known) return known;
  const shown = signal(/** @type {any} */ (null));
  const ask = () => {
    shown.value = null;
    entry.load().then((module) => (shown.value = module.Page), (error) => (shown.value = error));
  };
  const made = { shown, ask };
  fetched.set(entry, made);
  ask();
  return made;
}

/** @param {{entry: PageEntry, id: string|null}} props */
function Opened({ entry, id }) {
  const [crash, again] = useErrorBoundary();
  const { shown, ask } = moduleOf(entry);
  const Shown = shown.value;
  if (crash) return html`<${Empty} icon="warn" title=${t.crashed} text=${html`<code class="mono">${String(crash.message)}</code>`} action=${html`<${Button} label=${t.tryAgain} press=${again} />`} />`;
  if (Shown instanceof Error) return html`<${Empty} icon="warn" title=${t.notFetched} action=${html`<${Button} label=${t.tryAgain} press=${ask} />`} />`;
  return Shown ? html`<${Shown} key=${id ?? ""} id=${id} />` : html`<div class="waiting" aria-busy="true"><h1 class="sr">${entry.title}</h1></div>`;
}

/** The page that is open. */
export function Page() {
  const found = pageOf(page.value ?? "");
  useLayoutEffect(() => handle({ back: () => (history.back(), true) }), []);
  if (!found) return html`<${Empty} icon="warn" title=${t.unknown} text=${t.unknownText} action=${html`<${Link} to="" class="button">${t.toInbox}<//>`} />`;
  const { entry, id } = found;
  if (entry.permission && !may(entry.permission)) return html`<${Empty} icon="lock" title=${t.forbidden} text=${t.forbiddenText(entry.permission)} action=${html`<${Link} to="" class="button">${t.toInbox}<//>`} />`;
  return html`<${Opened} key=${entry.path} entry=${entry} id=${id} />`;
}
