// @ts-check
/** Parts of every view: icons, buttons, menus, notices, names, times, and settings of this browser. */
import { effect, html, signal, useEffect, useLayoutEffect, useRef } from "../vendor/preact.js";
import { loadModule } from "../core/api.js";
import { locale, t } from "../core/texts.js";

/** @typedef {{label: string, icon?: string, hint?: string, checked?: boolean, disabled?: boolean, danger?: boolean, pick: () => void}} Item */
/** @typedef {Item | {title: string} | "line"} Entry */

const ICONS = {
  inbox: "M2 9.5 4 3h8l2 6.5V13H2V9.5Zm0 0h3.5c.3 1.4 1.2 2 2.5 2s2.200-.6 2.500-2H14",
  clock: "M8 2a6 6 0 1 0 0 12A6 6 0 0 0 8 2Zm0 3v3.200l2 1.300",
  person: "M8 2.500a2.700 2.700 0 1 0 0 5.400 2.700 2.700 0 0 0 0-5.400ZM2.800 13.500c.4-2.400 2.400-3.600 5.200-3.600s4.800 1.200 5.200 3.600",
  unassigned: "M8 2.500a2.700 2.700 0 1 0 0 5.400 2.700 2.700 0 0 0 0-5.400ZM2.800 13.500c.4-2.400 2.400-3.600 5.200-3.600M11 11l3 3m0-3-3 3",
  people: "M6 3a2.300 2.300 0 1 0 0 4.600A2.300 2.300 0 0 0 6 3ZM1.500 13c.3-2.200 2-3.300 4.500-3.300s4.200 1.100 4.500 3.300M10.500 3.200a2.300 2.300 0 0 1 0 4.200M12 9.900c1.500.4 2.300 1.500 2.500 3.100",
  moon: "M13.500 9.700A5.800 5.800 0 0 1 6.300 2.500a5.800 5.800 0 1 0 7.200 7.200Z",
  all: "M2.500 4h11M2.500 8h11M2.500 12h11",
  at: "M8 5.500a2.500 2.500 0 1 0 0 5 2.500 2.500 0 0 0 0-5Zm2.500 0v3a1.500 1.500 0 0 0 3 0A5.500 5.500 0 1 0 11 13",
  eye: "M2 8c3-6 9-6 12 0-3 6-9 6-12 0Zm6-2a2 2 0 1 0 0 4 2 2 0 0 0 0-4Z",
  search: "M7 2.500a4.500 4.500 0 1 0 0 9 4.500 4.500 0 0 0 0-9Zm3.300 7.800 3.200 3.200",
  down: "m4.500 6.500 3.500 3.500 3.500-3.500",
  right: "m6.500 4.500 3.500 3.500-3.500 3.500",
  left: "M10 3.500 5.500 8l4.500 4.500",
  up: "M8 13V3.500M4 7.500l4-4 4 4",
  end: "M8 3v9.500M4 8.500l4 4 4-4",
  check: "m3 8.500 3.500 3.500L13 4.500",
  close: "m4 4 8 8m0-8-8 8",
  done: "M8 2a6 6 0 1 0 0 12A6 6 0 0 0 8 2ZM5.300 8.200l1.900 1.900 3.500-3.900",
  reopen: "M3 8a5 5 0 1 1 1.600 3.700M3 12.500V9.300h3.200",
  pause: "M8 2a6 6 0 1 0 0 12A6 6 0 0 0 8 2ZM6.500 6v4m3-4v4",
  tag: "M2.500 2.500h5l6 6-5 5-6-6v-5Zm3 3h.01",
  lock: "M4 7.500h8v6H4v-6Zm1.500 0V5.300a2.500 2.500 0 0 1 5 0v2.200",
  clip: "m12.800 7.600-5 5a3 3 0 0 1-4.300-4.200l5.300-5.300a2 2 0 0 1 2.900 2.800l-5.200 5.200a1 1 0 0 1-1.500-1.400l4.700-4.700",
  text: "M2.500 4h11M2.500 8h7M2.500 12h4m4-1.500 3 0m-1.500-1.500v3",
  send: "M2.500 8 13.500 2.700 10.500 13.500 7.800 9 2.500 8Zm5.300 1 2.500-2.700",
  bell: "M8 2a4 4 0 0 0-4 4v3l-1.500 2.500h11L12 9V6a4 4 0 0 0-4-4ZM6.500 13.500h3",
  bolt: "M8.500 1.800 3.500 9h4l-.5 5.200L12.500 7h-4l0-5.200Z",
  pencil: "M10.500 3.200 12.800 5.500 5.500 12.800 2.700 13.300 3.200 10.500l7.300-7.300Z",
  more: "M3.500 8h.01M8 8h.01M12.500 8h.01",
  info: "M8 2a6 6 0 1 0 0 12A6 6 0 0 0 8 2Zm0 5.200V11M8 5h.01",
  warn: "M8 2.500 14.200 13H1.800L8 2.500Zm0 4.300v2.900m0 1.800h.01",
  sort: "M4.500 3v10m0 0L2.500 11m2 2 2-2M9 4h4.500M9 8h3.500M9 12h2",
  filter: "M2.500 4h11M4.500 8h7M6.500 12h3",
  mail: "M2 4h12v8.500H2V4Zm0 .5 6 4.500 6-4.500",
  spin: "M8 2a6 6 0 1 1-6 6",
  chat: "M2.500 3h11v8H8l-3 2.500V11H2.500V3Z",
  gear: "M8 5.800a2.200 2.200 0 1 0 0 4.400 2.200 2.200 0 0 0 0-4.400ZM8 1.800v1.700m0 9v1.700M1.800 8h1.700m9 0h1.700M3.600 3.600l1.200 1.200m6.400 6.400 1.200 1.200m0-8.800-1.200 1.200M4.800 11.200l-1.200 1.200",
  out: "M6.500 2.500h-4v11h4M10 5l3 3-3 3m3-3H6",
  bot: "M3 5.500h10v7H3v-7Zm5-3v3M5.800 8.500h.01m4.400 0h.01M6 10.700h4",
  file: "M4 1.800h5.500L12.500 5v9.200H4V1.800Zm5.200 0V5h3.300",
  keys: "M1.800 4h12.400v8.500H1.800V4ZM4.500 7h.01m2.300 0h.01m2.300 0h.01m2.300 0h.01M5 10h6",
  copy: "M5.500 5.500h8v8h-8v-8Zm-2.500 5h-.5v-8h8v.5",
  plus: "M8 3v10M3 8h10",
  minus: "M3 8h10",
  wire: "M2 8h3l1.500-4 3 8L11 8h3",
  mic: "M8 1.800a2 2 0 0 0-2 2v4a2 2 0 0 0 4 0v-4a2 2 0 0 0-2-2ZM3.800 7.500a4.200 4.200 0 0 0 8.400 0M8 11.700v2.500",
  sun: "M8 5a3 3 0 1 0 0 6 3 3 0 0 0 0-6Zm0-3.500v1m0 11v1M1.500 8h1m11 0h1M3.400 3.400l.7.7m7.800 7.800.7.7m0-9.200-.7.7M4.100 11.900l-.7.7",
};

/** @param {{name: string, class?: string}} props */
export const Icon = (props) =>
  html`<svg class=${cx(`icon i-${props.name}`, props.class)} viewBox="0 0 16 16" aria-hidden="true" focusable="false"><path d=${/** @type {any} */ (ICONS)[props.name] ?? ""} /></svg>`;

/** Join class names; falsy ones are left out. @param {...(string | false | null | undefined)} names */
export const cx = (...names) => names.filter(Boolean).join(" ");

export const isMac = /Mac|iP(hone|ad|od)/.test(navigator.platform);
const KEYS = /** @type {Record<string, string>} */ ({ mod: isMac ? "⌘" : "Ctrl", shift: isMac ? "⇧" : "Shift", alt: isMac ? "⌥" : "Alt", enter: "↵", escape: "Esc", arrowdown: "↓", arrowup: "↑" });

/** The keys of a combination such as `mod+shift+enter`, or of a sequence such as `g i`. @param {{keys: string}} props */
export const Kbd = ({ keys }) =>
  html`<span class="kbds" aria-hidden="true">${keys.split(/[ +]/).map((each) => html`<kbd class="kbd">${KEYS[each.toLowerCase()] ?? (each.length === 1 ? each.toUpperCase() : each)}</kbd>`)}</span>`;

/**
 * A button. With `only`, it shows just its icon, and the label is its tooltip.
 * @param {{label: string, icon?: string, only?: boolean, kind?: string, keys?: string, disabled?: boolean, why?: string, press: (event: any) => void,
 *   class?: string, expanded?: boolean, pressed?: boolean, popup?: string, hook?: any}} props
 */
export function Button(props) {
  const { label, icon, only, kind, keys, disabled, why, press } = props;
  const title = disabled && why ? why : only || keys ? t.withKeys(label, keys ? spoken(keys) : "") : undefined;
  return html`<button
    type="button"
    ref=${props.hook}
    class=${cx("button", kind, only && "icon-only", props.class)}
    aria-label=${only ? label : undefined}
    title=${title}
    aria-disabled=${disabled ? "true" : undefined}
    aria-expanded=${props.expanded}
    aria-pressed=${props.pressed}
    aria-haspopup=${props.popup}
    aria-keyshortcuts=${keys && !keys.includes(" ") ? keys.replace("mod", isMac ? "Meta" : "Control") : undefined}
    onClick=${(/** @type {Event} */ event) => !disabled && press(event)}
  >
    ${icon && html`<${Icon} name=${icon} />`}${!only && html`<span>${label}</span>`}${keys && !only && html`<${Kbd} keys=${keys} />`}
  </button>`;
}

/** Return a combination in words. @param {string} keys */
export const spoken = (keys) => keys.split("+").map((each) => KEYS[each.toLowerCase()] ?? each).join(isMac ? "" : "+");

/** Place a popover beside its button, inside the window. @param {HTMLElement} box @param {HTMLElement} anchor */
export function placePopover(box, anchor) {
  const at = anchor.getBoundingClientRect();
  const { offsetWidth: width, offsetHeight: height } = box;
  const below = at.bottom + 4 + height <= innerHeight - 8 || at.top - 4 - height < 8;
  const left = at.left + width <= innerWidth - 8 ? at.left : at.right - width;
  box.style.setProperty("left", `${Math.max(8, Math.min(left, innerWidth - width - 8))}px`);
  box.style.setProperty("top", `${Math.max(8, below ? Math.min(at.bottom + 4, innerHeight - height - 8) : at.top - 4 - height)}px`);
}

/**
 * A button that opens a popover. `children` is a function of `close`, called while it is open.
 * @param {{button: (open: boolean, toggle: () => void, hook: any) => any, class?: string, role?: string, label?: string, children: (close: () => void) => any}} props
 */
export function Popover(props) {
  const anchor = useRef(/** @type {HTMLElement | null} */ (null));
  const box = useRef(/** @type {any} */ (null));
  const open = useRef(signal(false)).current;
  const close = () => box.current?.hidePopover();
  const toggle = () => (open.value ? close() : ((open.value = true), undefined));
  useLayoutEffect(() => {
    if (!open.value || !box.current) return;
    box.current.showPopover();
    placePopover(box.current, /** @type {HTMLElement} */ (anchor.current));
    box.current.querySelector("[autofocus], [aria-checked=true], button, input, a")?.focus();
  }, [open.value]);
  const toggled = (/** @type {any} */ event) => {
    if (event.newState !== "closed") return;
    const inside = box.current?.contains(document.activeElement) || document.activeElement === document.body;
    open.value = false;
    if (inside) anchor.current?.focus();
  };
  return html`${props.button(open.value, toggle, anchor)}${open.value &&
  html`<div ref=${box} popover="auto" class=${props.class ?? "popover"} role=${props.role} aria-label=${props.label} onToggle=${toggled}>${props.children(close)}</div>`}`;
}

/** Move the focus among the items of a menu. @param {KeyboardEvent} event */
export function moveInMenu(event) {
  const items = [.../** @type {HTMLElement} */ (event.currentTarget).querySelectorAll(".menu-item:not(:disabled)")];
  const now = items.indexOf(/** @type {any} */ (document.activeElement));
  const to = { ArrowDown: now + 1, ArrowUp: now - 1 + items.length, Home: 0, End: items.length - 1 }[event.key];
  if (to === undefined) {
    if (event.key.length === 1 && !event.ctrlKey && !event.metaKey) {
      const found = [...items.slice(now + 1), ...items].find((each) => each.textContent?.trim().toLowerCase().startsWith(event.key.toLowerCase()));
      /** @type {HTMLElement | undefined} */ (found)?.focus();
      event.stopPropagation();
    }
    return;
  }
  event.preventDefault();
  event.stopPropagation();
  /** @type {HTMLElement} */ (items[to % items.length])?.focus();
}

/** The entries of a menu. @param {{entries: Entry[], close: () => void}} props */
export const Items = ({ entries, close }) => entries.map((each) => entry(each, close));

/** @param {Entry} each @param {() => void} close */
function entry(each, close) {
  if (each === "line") return html`<hr role="separator" />`;
  if ("title" in each) return html`<div class="title" role="presentation">${each.title}</div>`;
  const checkable = each.checked !== undefined;
  return html`<button
    type="button"
    class=${cx("menu-item", each.danger && "bad")}
    role=${checkable ? "menuitemradio" : "menuitem"}
    aria-checked=${checkable ? String(each.checked) : undefined}
    tabindex="-1"
    disabled=${each.disabled}
    onClick=${() => (close(), each.pick())}
  >
    ${checkable && html`<span class="check">${each.checked && html`<${Icon} name="check" />`}</span>`}
    ${each.icon && html`<${Icon} name=${each.icon} />`}<span class="ellipsis">${each.label}</span>${each.hint && html`<span class="hint">${each.hint}</span>`}
  </button>`;
}

/**
 * A button with a menu.
 * @param {{label: string, icon?: string, only?: boolean, kind?: string, class?: string, disabled?: boolean, entries: () => Entry[], face?: any, faceClass?: string, caret?: boolean}} props
 */
export function Menu(props) {
  const face = (/** @type {boolean} */ open, /** @type {() => void} */ toggle, /** @type {any} */ hook) =>
    props.face
      ? html`<button type="button" ref=${hook} class=${props.faceClass} aria-haspopup="menu" aria-expanded=${open} title=${props.label} onClick=${toggle}>${props.face}<span class="sr">, ${props.label}</span></button>`
      : html`<button type="button" ref=${hook} class=${cx("button", props.kind, props.only && "icon-only", props.class)} aria-haspopup="menu" aria-expanded=${open} aria-disabled=${props.disabled ? "true" : undefined}
          aria-label=${props.only ? props.label : undefined} title=${props.only ? props.label : undefined} onClick=${() => !props.disabled && toggle()}>
          ${props.icon && html`<${Icon} name=${props.icon} />`}${!props.only && html`<span class="ellipsis">${props.label}</span>`}${props.caret && html`<${Icon} name="down" />`}
        </button>`;
  return html`<${Popover} button=${face} class="menu">
    ${(/** @type {() => void} */ close) => html`<div role="menu" aria-label=${props.label} onKeyDown=${moveInMenu}><${Items} entries=${props.entries()} close=${close} /></div>`}
  <//>`;
}

/** Opens the navigation in a narrow window. */
export const SideButton = () => html`<button type="button" class="button quiet icon-only only-narrow" popovertarget="side" aria-label=${t.views.open} title=${t.views.open}><${Icon} name="all" /></button>`;

/** @typedef {{id: number, text: string, bad: boolean, icon: string, as?: string, action?: string, run?: () => void}} Notice */
/** The notices on the screen. */
export const notices = signal(/** @type {Notice[]} */ ([]));
const status = signal("");
let last = 0;

/**
 * Show a notice for a moment, and announce it to screen readers.
 * @param {string} text @param {{action?: string, run?: () => void, ms?: number, bad?: boolean, icon?: string, as?: string}} [options]
 *   icon: default `check`, for success. as: replaces an earlier notice with the same value.
 * @returns {() => void} Removes it.
 */
export function notify(text, options = {}) {
  const { action, run, bad = false, as } = options;
  const one = { id: ++last, text, bad, icon: options.icon ?? (bad ? "warn" : "check"), as, action, run };
  const away = () => void (notices.value = notices.value.filter((each) => each.id !== one.id));
  const at = notices.value.findIndex((each) => as && each.as === as);
  const others = notices.value.filter((each) => each.text !== text);
  notices.value = at >= 0 ? notices.value.with(at, one) : [...others.slice(-1), one];
  status.value = text;
  setTimeout(away, options.ms ?? (bad || action ? 9000 : 4000));
  return away;
}

/** Remove all notices. */
export const clearNotices = () => void ((notices.value = []), (status.value = ""));

/** Announce a text to screen readers only. @param {string} text */
export const announce = (text) => void (status.value = text);

export function Notices() {
  const away = (/** @type {number} */ id) => (notices.value = notices.value.filter((each) => each.id !== id));
  return html`<div class="sr" role="status" aria-live="polite">${status.value}</div>
    <section class="toasts" aria-label=${notices.value.length ? t.notices : undefined}>
      ${notices.value.map(
        (each) => html`<div key=${each.id} class=${cx("toast", each.bad ? "bad" : each.icon !== "check" && "neutral")}>
          <${Icon} name=${each.icon} /><span>${each.text}</span>
          ${each.action && html`<button type="button" onClick=${() => (away(each.id), each.run?.())}>${each.action}</button>`}
        </div>`,
      )}
    </section>`;
}

/** Initials on a colour derived from the id or name. @param {{name?: string | null, id?: string | null, size?: string, bot?: boolean}} props */
export function Avatar({ name, id, size, bot }) {
  const words = (name ?? "").replace(/[^\p{L}\p{N} ]/gu, "").trim().split(/\s+/);
  const initials = ([...(words[0] ?? "")][0] ?? "") + (words.length > 1 ? ([...(words.at(-1) ?? "")][0] ?? "") : "");
  let hash = 7;
  for (const each of id ?? name ?? "") hash = (hash * 31 + (each.codePointAt(0) ?? 0)) >>> 0;
  return html`<span class=${cx("avatar", size, bot ? "bot" : `h${(hash % 6) + 1}`)} aria-hidden="true">${bot ? html`<${Icon} name="bot" />` : initials.toUpperCase() || "?"}</span>`;
}

/** The current time in ms, updated four times a minute. */
export const now = signal(Date.now());
setInterval(() => (now.value = Date.now()), 15_000);

/** Return the time since a moment, in short form. @param {string | number | Date} at @param {number} from ms */
export function ago(at, from) {
  const s = Math.max(0, (from - new Date(at).getTime()) / 1000);
  if (s < 45) return t.now;
  if (s < 3570) return t.minutes(Math.max(1, Math.round(s / 60)));
  if (s < 86_400) return t.hours(Math.round(s / 3600));
  if (s < 7 * 86_400) return t.days(Math.round(s / 86_400));
  return new Date(at).toLocaleDateString(locale, { day: "numeric", month: "short", ...(s > 300 * 86_400 ? { year: "2-digit" } : {}) });
}

const clock = new Intl.DateTimeFormat(locale, { hour: "2-digit", minute: "2-digit" });
const full = new Intl.DateTimeFormat(locale, { dateStyle: "full", timeStyle: "medium" });
/** @param {string | number} at */
export const clockTime = (at) => clock.format(new Date(at));
/** @param {string | number} at */
export const fullTime = (at) => full.format(new Date(at));

/** Return a future time in short form: 18:00, Tue 09:00, 3 Dec 09:00. @param {string} at */
export function futureTime(at) {
  const ms = Date.parse(at) - now.value;
  if (ms < 20 * 3_600_000 && new Date(at).getDate() === new Date(now.value).getDate()) return clockTime(at);
  return `${new Date(at).toLocaleDateString(locale, ms < 6 * 86_400_000 ? { weekday: "short" } : { day: "numeric", month: "short" })} ${clockTime(at)}`;
}

/** The time since a moment; it updates itself. @param {{at: string, class?: string, plain?: boolean}} props */
export const Ago = (props) => html`<time class=${props.class} datetime=${props.at} title=${fullTime(props.at)}>${ago(props.at, now.value)}</time>`;

const SHORT_NAME_MAX = 40;
const VISITOR_ID = /^visitor-\w{22}(\w{4})$/;
/** Return a contact's name, email or external id; of a nameless visitor the end of the id. @param {{name?: string|null, email?: string|null, userId?: string|null} | null | undefined} contact @returns {string} */
export const contactName = (contact) => contact?.name || contact?.email || (contact?.userId ?? "").replace(VISITOR_ID, (_, end) => t.visitor(end));

/** Return a contact's name for use in a sentence: shortened, without characters that change the text direction. @param {{name?: string|null, email?: string|null, userId?: string|null} | undefined} contact */
export function shortName(contact) {
  const name = contactName(contact).replace(/[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, "");
  const letters = [...name];
  return letters.length > SHORT_NAME_MAX ? `${letters.slice(0, SHORT_NAME_MAX).join("")}…` : name;
}

/** Another person's name, isolated from the direction of the surrounding text. @param {{name: string, class?: string}} props */
export const Name = (props) => html`<bdi class=${cx("ellipsis", props.class)}>${props.name}</bdi>`;

/** The content of an empty view. @param {{icon: string, title: string, text?: any, action?: any}} props */
export const Empty = (props) => html`<div class="empty"><${Icon} name=${props.icon} /><h2>${props.title}</h2>${props.text && html`<p>${props.text}</p>`}${props.action}</div>`;

/** Placeholder rows. */
export const LoadingRows = () => html`<div class="rows" aria-busy="true"><span class="sr">${t.list.loading}</span>${[..."12345678"].map((each) => html`<div key=${each} class="row grey" aria-hidden="true"><span class="avatar"></span><span class="bar"></span><span class="bar"></span></div>`)}</div>`;

/** @param {{error: any, title: string, again: () => void}} props */
export function Failed({ error, title, again }) {
  const why = html`${error?.message}${error?.requestId && html`<br /><span class="mono">${t.request(error.requestId)}</span>`}`;
  return html`<${Empty} icon="warn" title=${title} text=${why} action=${html`<${Button} label=${t.tryAgain} press=${again} />`} />`;
}

/**
 * Return a component of a module that is fetched when it is first shown. Until then, it renders nothing.
 * @param {() => Promise<any>} load @param {string} name @returns {(props: any) => any}
 */
export function lazy(load, name) {
  const loaded = signal(/** @type {any} */ (null));
  /** @type {Promise<void>|undefined} */
  let loading;
  return (props) => {
    loading ??= loadModule(load).then((module) => void (loaded.value = module[name]));
    return loaded.value && html`<${loaded.value} ...${props} />`;
  };
}

/** Load a module that a click needs, and use it; notify the user if it can't be loaded. @template T @param {() => Promise<T>} load @param {(module: T) => unknown} use @returns {Promise<void>} */
export const withModule = (load, use) =>
  load().then(async (module) => void (await use(module)), () => void notify(t.moduleFailed, { bad: true }));

/** The open dialog: its name and parameters. @type {import("../vendor/preact.js").Signal<{name: string, [more: string]: any} | null>} */
export const dialog = signal(null);

/** Return a setting as a signal. It is stored in this browser. @template T @param {string} name @param {T} otherwise @returns {import("../vendor/preact.js").Signal<T>} */
export function setting(name, otherwise) {
  const key = `deskwire.${name}`;
  let kept = otherwise;
  try {
    kept = JSON.parse(localStorage.getItem(key) ?? "null") ?? otherwise;
  } catch {
    /* without storage, the default applies */
  }
  const value = signal(kept);
  let first = true;
  effect(() => {
    const now = JSON.stringify(value.value);
    if (first) return void (first = false);
    try {
      localStorage.setItem(key, now);
    } catch {
      /* then it applies to this page only */
    }
  });
  return value;
}

/** Light, dark, or like the system. */
export const theme = setting("theme", "system");
/** Whether this browser shows notifications of the system, once the user has permitted them. */
export const notificationsWanted = setting("notifications", true);
/** True if the context panel is shown; undefined: if there is room. */
export const contextShown = setting("context", /** @type {boolean | undefined} */ (undefined));
