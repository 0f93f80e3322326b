// @ts-check
/** The list of conversations: views, filters, search, and a virtual listbox that stays fast with ten thousand rows. */
import { computed, effect, html, signal, useEffect, useLayoutEffect, useRef } from "../vendor/preact.js";
import { number, t } from "../core/texts.js";
import { Ago, Avatar, Button, Empty, Failed, Icon, Kbd, LoadingRows, Name, SideButton, ago, announce, contactName, cx, dialog, futureTime, lazy, notify, now, setting, shortName } from "../ui/parts.js";
import { isVisitor } from "../core/state.js";
import { counters, hold, list, more, reload, row, applyOrder, viewers } from "../core/store.js";
import { go, inbox, may, open, page, people, place, setInbox, user, withoutPrivate } from "../core/session.js";
import { handle, runCommand, startTypeAhead } from "../core/keys.js";
/** @import { Filter, ListView, Row, SavedView } from "../core/types.js" */

const ROW_HEIGHT = 78;
const OVERSCAN_ROWS = 6;

/** @typedef {{key: string, id?: string}} View  id: of the team or the saved view */
/** The path of the last view, for the next start, and the last query of each path. */
const kept = setting("inbox", { path: inbox.peek().split("?")[0] ?? "", queries: /** @type {Record<string, string>} */ ({}) });
if (!place.peek()) inbox.value = `${kept.peek().path}${kept.peek().queries[kept.peek().path] ?? ""}`;
const path = computed(() => inbox.value.split("?")[0] ?? "");

/** The current view. @type {import("../vendor/preact.js").ReadonlySignal<View>} */
export const view = computed(() => {
  const [, key, id] = path.value.split("/");
  return id && (key === "team" || key === "view") ? { key, id } : { key: VIEWS.some((each) => each.key === key) ? key ?? "" : "mine" };
});
/** The saved views that the user sees; null until saved-views.js has loaded them. */
export const savedViews = signal(/** @type {SavedView[] | null} */ (null));
/** The commands on views; null until saved-views.js is loaded. @type {import("../vendor/preact.js").Signal<import("./saved-views.js").ViewTools | null>} */
export const viewTools = signal(null);
/** Whether the view is a saved one, known or not. */
export const isSaved = computed(() => view.value.key === "view");
/** The saved view that is shown; undefined if none is, or if it is not known. */
export const savedView = computed(() => (isSaved.value ? savedViews.value?.find((each) => each.id === view.value.id) : undefined));

/** The filter and order of the current view: the query of its address, or else the filter of the saved view. */
export const conditions = computed(() => new URLSearchParams(inbox.value.split("?")[1] ?? savedView.value?.filter));

/** Change the conditions of the current view; null removes one. @param {Record<string, string | null>} changes */
export function setConditions(changes) {
  const next = new URLSearchParams(conditions.peek());
  for (const [name, value] of Object.entries(changes)) value === null ? next.delete(name) : next.set(name, value);
  setQuery(next.size ? `?${next}` : isSaved.peek() ? "?status=all" : "");
}
/** Remove all conditions of the view, or the changes of a saved one. */
export const clearConditions = () => setQuery("");

/** @param {string} query */
function setQuery(query) {
  if (!isSaved.peek()) kept.value = { ...kept.peek(), queries: { ...kept.peek().queries, [path.peek()]: withoutPrivate(query) } };
  setInbox(path.peek() + query);
}
/** The search text; null without a search. */
export const query = signal(/** @type {string | null} */ (null));
export const active = signal(/** @type {string | null} */ (null));
export const selection = signal(/** @type {ReadonlySet<string>} */ (new Set()));
export const wholeView = signal(false);
let anchor = /** @type {string | null} */ (null);

effect(() => void (selection.value.size || (wholeView.value = false)));
effect(() => {
  kept.value = { ...kept.peek(), path: path.value };
  clearSelection();
});

export function clearSelection() {
  query.value = active.value = anchor = null;
  selection.value = new Set();
}

/** Return the address of a view, with the filter that it had last. @param {View} view */
export function addressOfView({ key, id }) {
  const at = id ? `inbox/${key}/${id}` : `inbox/${key}`;
  return at + (kept.value.queries[at] ?? "");
}

/** Show a view. @param {View} next */
export const show = (next) => go(addressOfView(next));

const ACTIVE = ["OPEN", "PENDING"];
const ANY = ["all", "snoozed", "mentions"];
const options = computed(() => {
  const { key } = view.value;
  const given = conditions.value;
  const status = given.get("status") ?? (given.get("archived") === "true" ? "archived" : ANY.includes(key) || isSaved.value ? "all" : "active");
  return { status: status === String(ACTIVE) ? "active" : status, sort: given.get("sort") ?? (key === "waiting" ? "waiting" : "activity"), unread: given.get("unread") === "true" };
});

/** The filter of the current view. */
export const filter = computed(() => {
  const { key, id } = view.value;
  const { status, sort, unread } = options.value;
  /** @type {any} */
  const found = { sort, order: "desc" };
  if (status === "archived") found.archived = true;
  else if (status !== "all") found.status = status === "active" ? ACTIVE : status.split(",");
  if (key === "mine") found.assignee = "me";
  if (key === "unassigned") found.assignee = "none";
  if (key === "team") found.team = id;
  if (key === "waiting" || key === "following") found[key] = true;
  if (key === "mentions") found.mentioned = true;
  if (key === "snoozed") found.snoozed = true;
  else if (!ANY.includes(key) && !isSaved.value) found.snoozed = false;
  if (unread) found.unread = true;
  const where = new URLSearchParams(conditions.value);
  for (const name of ["status", "sort", "unread"]) where.delete(name);
  if (isSaved.value) takeKnown(found, where);
  if (found.assignee || found.team) where.delete("assignee");
  if (where.size) found.where = String(where);
  return /** @type {Filter} */ (found);
});

/** Move the conditions of a saved view that this page decides itself from the query to the filter. @param {any} found @param {URLSearchParams} where */
function takeKnown(found, where) {
  const take = (/** @type {string} */ name, /** @type {(value: string) => unknown} */ read) => {
    const value = where.get(name);
    if (value === null || (name === "assignee" && value.includes(","))) return;
    found[name] = read(value);
    where.delete(name);
  };
  for (const name of ["archived", "waiting", "following", "mentioned", "snoozed"]) take(name, (value) => value === "true");
  for (const name of ["assignee", "team", "order"]) take(name, String);
  // The service's defaults for snoozed and closed conversations depend on the other conditions.
  if (found.snoozed === undefined || (found.unread && !found.status)) where.set("order", found.order);
}

/** Shown in place of a saved view that is not known. @type {ListView} */
const NO_LIST = { key: "", filter: {}, ids: [], fresh: 0, held: false, state: "loading", more: false, loadingMore: false, error: null };

/** Return the current list. @returns {ListView} */
export const shownList = () => (isSaved.value && !savedView.value ? NO_LIST : list(filter.value).value);

/** Return whether the rows are visible: a search, or a thread on a narrow screen, may replace them. */
const listVisible = () => Boolean(scroller?.isConnected && scroller.checkVisibility());
/** Return the row under the cursor; null if the list does not contain it. @returns {string | null} */
const activeRow = () => (active.value && shownList().ids.includes(active.value) ? active.value : null);

/** Return the conversations that an action applies to: the selection, the open one, or the focused row or search result. @returns {string[]} */
export function targets() {
  if (page.value) return [];
  if (selection.value.size && listVisible()) return [...selection.value];
  const focus = document.activeElement;
  const one = open.value ?? (listVisible() && focus === scroller ? activeRow() : /** @type {HTMLElement | null} */ (focus?.closest(".hits [data-id]"))?.dataset.id);
  return one ? [one] : [];
}

/** Return the targets of a key; null, with a notice, if there are none, or if their row was scrolled out of view. It is then scrolled back. @returns {string[] | null} */
export function targetsOrNotify() {
  const ids = targets();
  const [one] = ids;
  if (!one) return (notify(t.actions.notHere, { icon: "info" }), null);
  if (open.value === one || !listVisible() || selection.value.size || inSight(one)) return ids;
  scrollToActive();
  notify(t.list.revealed(shortName(row(one)?.contact)), { icon: "info" });
  return null;
}

/** @param {number} by */
function moveActive(by) {
  const { ids } = shownList();
  if (!ids.length) return;
  const at = active.value ? ids.indexOf(active.value) : -1;
  active.value = ids[Math.max(0, Math.min(ids.length - 1, at < 0 ? 0 : at + by))] ?? null;
  scrollToActive();
}

/** @param {number} by */
function extendSelection(by) {
  const { ids } = shownList();
  anchor ??= active.value;
  moveActive(by);
  const [from, to] = [ids.indexOf(anchor ?? ""), ids.indexOf(active.value ?? "")].sort((a, b) => a - b);
  selection.value = new Set(ids.slice(Math.max(0, from ?? 0), (to ?? 0) + 1));
  announce(t.list.selected(selection.value.size));
}

/** Select or deselect a row. @param {string | null} id */
export function toggle(id) {
  if (!id) return;
  const next = new Set(selection.value);
  if (!next.delete(id)) next.add(id);
  wholeView.value = false;
  anchor = id;
  selection.value = next;
  announce(t.list.selected(next.size));
}

/** Open the conversation this many rows further. If the open one has left the list, start from its previous place. @param {number} by */
export function openNeighbour(by) {
  const { ids } = shownList();
  const left = open.value && !ids.includes(open.value) && activeRow();
  if (open.value && !left) active.value = open.value;
  if (!left || by < 0) moveActive(by);
  if (activeRow()) go(`c/${active.value}`);
}

/** @type {HTMLElement | null} */
let scroller = null;

/** @param {string} id */
function inSight(id) {
  const top = shownList().ids.indexOf(id) * ROW_HEIGHT;
  return Boolean(scroller && top + ROW_HEIGHT > scroller.scrollTop && top < scroller.scrollTop + scroller.clientHeight);
}

function scrollToActive() {
  const at = shownList().ids.indexOf(active.value ?? "");
  if (!scroller || at < 0) return;
  const top = at * ROW_HEIGHT;
  if (top < scroller.scrollTop) scroller.scrollTop = top;
  else if (top + ROW_HEIGHT > scroller.scrollTop + scroller.clientHeight) scroller.scrollTop = top + ROW_HEIGHT - scroller.clientHeight;
}

export function focusList() {
  const { ids } = shownList();
  active.value = activeRow() ?? (open.value && ids.includes(open.value) ? open.value : (ids[0] ?? null));
  scroller?.focus();
}

/** @param {string} key @returns {() => void} */
const showView = (key) => () => {
  show({ key });
  queueMicrotask(focusList); // after the list is rendered, and before the next key
};

handle({
  next: () => (focusList(), moveActive(1)),
  previous: () => (focusList(), moveActive(-1)),
  openRow: () => (activeRow() && document.activeElement === scroller ? (go(`c/${active.value}`), true) : false),
  extendDown: () => extendSelection(1),
  extendUp: () => extendSelection(-1),
  select: () => {
    const one = document.activeElement === scroller ? activeRow() : open.value;
    if (listVisible() && one && shownList().ids.includes(one)) toggle(one);
    else notify(t.list.notListed, { icon: "info" });
  },
  selectAll: () => (document.activeElement === scroller ? ((selection.value = new Set(shownList().ids)), true) : false),
  nextConversation: () => openNeighbour(1),
  previousConversation: () => openNeighbour(-1),
  viewMine: showView("mine"),
  viewMentions: showView("mentions"),
  viewFollowing: showView("following"),
  viewWaiting: showView("waiting"),
  viewUnassigned: showView("unassigned"),
  viewTeam: () => {
    const { teams } = people();
    const at = teams.findIndex((each) => each.id === view.value.id);
    const team = teams[(at + 1) % teams.length];
    if (team) show({ key: "team", id: team.id });
  },
  viewSnoozed: showView("snoozed"),
  viewAll: showView("all"),
  search: () => {
    if (page.value || (open.value && innerWidth < 700)) go("");
    query.value ??= "";
    startTypeAhead(".list-search input");
    requestAnimationFrame(() => /** @type {HTMLInputElement | null} */ (document.querySelector(".list-search input"))?.focus());
  },
});

/** The views with their icons and counters. @type {{key: string, icon: string, count?: (counters: any) => number}[]} */
export const VIEWS = [
  { key: "mine", icon: "inbox", count: (each) => each.mine },
  { key: "mentions", icon: "at", count: (each) => each.mentions },
  { key: "following", icon: "eye", count: (each) => each.following },
  { key: "waiting", icon: "clock", count: (each) => each.waiting },
  { key: "unassigned", icon: "unassigned", count: (each) => each.unassigned },
  { key: "snoozed", icon: "moon", count: (each) => each.snoozed },
  { key: "all", icon: "all" },
];

/** Return the name of the current view. */
export const viewName = () =>
  isSaved.value ? (savedView.value?.name ?? t.views.saved) : view.value.key === "team" ? (people().teams.find((each) => each.id === view.value.id)?.name ?? t.views.team) : /** @type {any} */ (t.views)[view.value.key];

/** Return a counter; one at its bound stands for more. @param {number} n @param {number} bound */
export const countText = (n, bound) => (n >= bound ? t.countMore(bound) : number(n));

function viewTotal() {
  const { key, id } = view.value;
  const all = counters.value;
  const n = all && (key === "team" ? all.teams[id ?? ""] : VIEWS.find((each) => each.key === key)?.count?.(all));
  const saved = savedView.value?.count;
  return n !== null && n !== undefined ? countText(n, all?.bound ?? 1000) : saved && !inbox.value.includes("?") ? (saved.more ? t.countMore : number)(saved.value) : "";
}

function Head() {
  const total = viewTotal();
  return html`<header class="list-head">
    <${SideButton} />
    <h1 class="ellipsis">${viewName()}</h1>
    ${total && html`<span class="total">${total}</span>`}
    <span class="grow"></span>
    <${Button} label=${t.side.actions} icon="bolt" only kind="quiet" class="only-narrow" press=${() => runCommand("palette")} />
    ${may("conversations.reply") && html`<${Button} label=${t.list.start} icon="pencil" only kind="quiet" keys="c" press=${() => (dialog.value = { name: "start" })} />`}
  </header>`;
}

function Search() {
  const field = useRef(/** @type {HTMLInputElement | null} */ (null));
  const leave = () => {
    query.value = null;
    field.current?.blur();
  };
  const pressed = (/** @type {KeyboardEvent} */ event) => {
    if (event.key === "Escape") (event.preventDefault(), event.stopPropagation(), leave(), focusList());
    if (event.key === "ArrowDown" && query.value) (event.preventDefault(), /** @type {HTMLElement | null} */ (document.querySelector(".hits .row, .hits .hit"))?.focus());
  };
  return html`<search class="list-search">
    <${Icon} name="search" />
    <input ref=${field} class="field" type="search" aria-label=${t.list.searchPlaceholder} placeholder=${t.list.search} autocomplete="off" spellcheck="false" maxlength="200"
      value=${query.value ?? ""} onInput=${(/** @type {any} */ event) => (query.value = event.target.value)} onKeyDown=${pressed} />
    ${query.value ? html`<${Button} label=${t.list.clear} icon="close" only kind="quiet" class="small" press=${leave} />` : html`<${Kbd} keys="/" />`}
  </search>`;
}

/** How long a customer has been waiting. @param {{since: string}} props */
function WaitingChip({ since }) {
  const ms = now.value - Date.parse(since);
  return html`<span class=${cx("chip since", ms > 4 * 3_600_000 ? "late" : ms > 900_000 && "waits")}><${Icon} name="clock" />${t.list.waits(ms < 45_000 ? "" : ago(since, now.value))}</span>`;
}

/** @param {{last: NonNullable<Row["lastMessage"]>}} props */
function MessagePreview({ last }) {
  const mine = last.author.type === "agent" && last.author.id === user.value?.id;
  const who = mine ? t.you : last.author.type === "contact" ? null : (last.author.name ?? t.thread.bot).split(" ")[0];
  return html`${last.internal && html`<${Icon} name="lock" class="lock" />`}<span class="words ellipsis">${who && html`<b><bdi>${who}</bdi>: </b>`}<bdi>${last.text || "📎"}</bdi></span>`;
}

/** @param {{id: string, index: number, total: number, isActive: boolean, isOpen: boolean, selected: boolean, selecting: boolean}} props */
export function ConversationRow({ id, index, total, isActive, isOpen, selected, selecting }) {
  const one = row(id);
  if (!one) return html`<div class="row grey" role="option" aria-selected="false"><span class="avatar"></span><span class="bar"></span><span class="bar"></span></div>`;
  const seen = viewers(id);
  const name = contactName(one.contact);
  const unread = one.mine.unread > 0;
  return html`<div id=${`row-${id}`} role="option" class=${cx("row", unread && "unread", isActive && "active", isOpen && "open")} aria-selected=${selected} aria-current=${isOpen ? "true" : undefined}
    aria-setsize=${total} aria-posinset=${index + 1} data-id=${id}>
    ${unread && html`<span class="dot unread"><span class="sr">${t.list.unreadRow}</span></span>`}
    <span class=${cx("box", selecting && "shown")} title=${t.list.selectRow}><${Icon} name="check" /></span>
    <${Avatar} name=${name} id=${one.contact.id} />
    <div class="line"><${Name} class="who" name=${name} />${isVisitor(one.contact) && html`<span class="chip">${t.list.visitor}</span>`}${seen.length > 0 && html`<${Viewers} of=${seen} id=${id} />`}${(one.lastMessageAt ?? one.createdAt) && html`<${Ago} class="when" at=${one.lastMessageAt ?? one.createdAt} />`}</div>
    <div class="line">${(one.title ?? !one.lastMessage) && html`<bdi class="subject ellipsis">${one.title ?? t.noTitle}</bdi>`}${one.lastMessage && html`<${MessagePreview} last=${one.lastMessage} />`}</div>
    <div class="line">
      <span class="chips">
        ${one.mine.unseenMentions > 0 && html`<span class="chip accent"><${Icon} name="at" />${t.list.mentioned}</span>`}
        ${one.snoozedUntil ? html`<span class="chip"><${Icon} name="moon" />${t.list.snoozed(futureTime(one.snoozedUntil))}</span>` : one.waitingSince && html`<${WaitingChip} since=${one.waitingSince} />`}
        ${one.status !== "OPEN" && html`<span class="chip">${/** @type {any} */ (t.thread.status)[one.status]}</span>`}
        ${one.tags.slice(0, 3).map((each) => html`<span class="chip tag"><bdi class="ellipsis">${each}</bdi></span>`)}
      </span>
      ${one.assignee && html`<span class="end"><span class="ellipsis">${one.assignee.id === user.value?.id ? t.you : one.assignee.name.split(" ")[0]}</span><${Avatar} name=${one.assignee.name} id=${one.assignee.id} size="s" /></span>`}
    </div>
  </div>`;
}

/** Colleagues who are viewing a conversation. @param {{of: import("../core/types.js").Presence[], id: string}} props */
export function Viewers({ of, id }) {
  const writing = of.find((each) => each.composing === id);
  const words = writing ? `${writing.name} ${t.list.writes}` : of.map((each) => each.name).join(", ");
  return html`<span class=${cx("presence", writing && "writes")} title=${words}><span class="faces">${of.slice(0, 3).map((each) => html`<${Avatar} name=${each.name} id=${each.id} size="s" />`)}</span>${writing && t.list.writes}<span class="sr">${words}</span></span>`;
}

/** @param {{of: ListView}} props */
function Rows({ of }) {
  const box = useRef(/** @type {HTMLElement | null} */ (null));
  const space = useRef(/** @type {HTMLElement | null} */ (null));
  const window_ = useRef(/** @type {HTMLElement | null} */ (null));
  const at = useRef(signal({ first: 0, count: 24 })).current;
  const held = useRef({ pointer: false, focus: false });
  const { ids } = of;
  const measure = () => {
    const el = box.current;
    if (!el) return;
    const first = Math.max(0, Math.floor(el.scrollTop / ROW_HEIGHT) - OVERSCAN_ROWS);
    const count = Math.ceil(el.clientHeight / ROW_HEIGHT) + 2 * OVERSCAN_ROWS;
    if (count !== at.value.count || Math.abs(first - at.value.first) >= OVERSCAN_ROWS / 2 || first === 0) if (first !== at.value.first || count !== at.value.count) at.value = { first, count };
    holding();
  };
  const holding = () => hold(filter.value, held.current.pointer || held.current.focus || (box.current?.scrollTop ?? 0) > ROW_HEIGHT);
  const { first, count } = at.value;
  const start = Math.min(first, Math.max(0, ids.length - count));
  useLayoutEffect(() => {
    scroller = box.current;
    measure();
    const watched = new ResizeObserver(measure);
    if (box.current) watched.observe(box.current);
    return () => watched.disconnect();
  }, []);
  // When a row leaves, the cursor moves to the row in its place, and the selection drops it.
  const place = useRef(0);
  useLayoutEffect(() => {
    const left = active.value !== null && !ids.includes(active.value);
    if (left) active.value = ids[Math.min(place.current, ids.length - 1)] ?? null;
    if ([...selection.value].some((each) => !ids.includes(each))) selection.value = new Set([...selection.value].filter((each) => ids.includes(each)));
  }, [ids]);
  useLayoutEffect(() => void (place.current = Math.max(0, ids.indexOf(active.value ?? ""))));
  useLayoutEffect(() => space.current?.style.setProperty("height", `${ids.length * ROW_HEIGHT + (of.more ? ROW_HEIGHT : 0)}px`), [ids.length, of.more]);
  useLayoutEffect(() => window_.current?.style.setProperty("transform", `translateY(${start * ROW_HEIGHT}px)`), [start]);
  useEffect(() => {
    if (of.more && !of.loadingMore && of.state === "ready" && start + count >= ids.length - 12) more(filter.value).catch(() => {});
  }, [start, count, ids.length, of.more]);
  const using = (/** @type {"pointer" | "focus"} */ how, /** @type {boolean} */ yes) => () => ((held.current[how] = yes), holding());
  const pressed = (/** @type {MouseEvent} */ event) => {
    const hit = /** @type {HTMLElement} */ (event.target).closest(".row");
    const id = /** @type {HTMLElement | null} */ (hit)?.dataset.id;
    if (!id) return;
    if (event.shiftKey) return ((anchor ??= active.value), (active.value = id), extendSelection(0));
    active.value = id;
    if (/** @type {HTMLElement} */ (event.target).closest(".box") || event.metaKey || event.ctrlKey) return toggle(id);
    go(`c/${id}`);
  };
  return html`<div ref=${box} class="rows" role="listbox" tabindex="0" aria-label=${viewName()} aria-multiselectable="true" aria-activedescendant=${active.value && ids.includes(active.value) ? `row-${active.value}` : undefined}
    onScroll=${measure} onClick=${pressed} onPointerEnter=${using("pointer", true)} onPointerLeave=${using("pointer", false)}
    onFocus=${() => ((active.value = activeRow() ?? ids[0] ?? null), using("focus", true)())} onBlur=${using("focus", false)}>
    <div class="space" ref=${space} role="presentation"><div class="window" ref=${window_} role="presentation">
      ${ids.slice(start, start + count).map((id, i) => html`<${ConversationRow} key=${id} id=${id} index=${start + i} total=${of.more ? -1 : ids.length} isActive=${id === active.value} isOpen=${id === open.value} selected=${selection.value.has(id)} selecting=${selection.value.size > 0} />`)}
      ${of.more && start + count >= ids.length && html`<div class="row grey" role="presentation"><span class="avatar"></span><span class="bar"></span><span class="bar"></span></div>`}
    </div></div>
  </div>`;
}

const FilterBar = lazy(() => import("./filter-bar.js"), "FilterBar");
const FilterChips = lazy(() => import("./filter-bar.js"), "FilterChips");
const BulkToolbar = lazy(() => import("./list-states.js"), "BulkToolbar");
const BulkJobs = lazy(() => import("./bulk-jobs.js"), "BulkJobs");
const EmptyList = lazy(() => import("./list-states.js"), "EmptyList");
const UnknownView = lazy(() => import("./list-states.js"), "UnknownView");
const SearchResults = lazy(() => import("./list-states.js"), "SearchResults");

export function List() {
  const of = shownList();
  const searching = Boolean(query.value?.trim());
  const unknown = of === NO_LIST && savedViews.value;
  useEffect(() => {
    if (of.state === "failed" && of.ids.length) notify(t.list.failed, { bad: true });
  }, [of.state]);
  return html`<section class="list" aria-label=${t.list.label}>
    <${Head} /><${Search} />
    ${searching ? html`<${SearchResults} query=${query} />` : unknown ? html`<${UnknownView} />` : html`${selection.value.size ? html`<${BulkToolbar} selection=${selection} whole=${wholeView} all=${of.more && of.ids.every((id) => selection.value.has(id))} total=${viewTotal()} />` : html`<div class="list-bar"><${FilterBar} options=${options.value} change=${setConditions} tools=${viewTools.value} /></div><${FilterChips} conditions=${conditions.value} change=${setConditions} clear=${clearConditions} focusList=${focusList} isSaved=${isSaved.value} saved=${savedView.value} tools=${viewTools.value} />`}<${BulkJobs} /><div class="list-box">
      ${of.fresh > 0 && html`<div class="news"><${Button} label=${t.list.fresh(of.fresh)} icon="up" class="small" press=${() => (applyOrder(filter.value), scroller && (scroller.scrollTop = 0))} /></div>`}
      ${of.ids.length ? html`<${Rows} key=${of.key} of=${of} />` : of.state === "loading" ? html`<${LoadingRows} />` : of.state === "failed" ? html`<${Failed} error=${of.error} title=${t.list.failed} again=${() => reload(filter.value)} />` : html`<${EmptyList} view=${view} of=${of} filtered=${inbox.value.includes("?")} clear=${clearConditions} />`}
    </div>`}
  </section>`;
}
