// @ts-check
/** What the list of conversations shows besides its rows: search results, the toolbar for selected rows, and the empty list. */
import { html, useEffect, useState } from "../vendor/preact.js";
import { t } from "../core/texts-lazy.js";
import { Ago, Avatar, Button, Empty, Failed, Name, announce, contactName } from "../ui/parts.js";
import { counters, more, put, row } from "../core/store.js";
import { search } from "./conversation.js";
import { go, inbox, open, user } from "../core/session.js";
import { fold } from "../core/folding.js";
import { runCommand } from "../core/keys.js";
import { Link } from "../ui/link.js";
import { t as texts } from "./saved-view-texts.js";
import { t as bulk } from "./bulk-texts.js";
import { FirstSteps, useFirstSteps } from "./first-steps.js";
/** @import { ListView } from "../core/types.js" */

const SEARCH_DELAY_MS = 120;

/** Text with highlighted matches. @param {{text: string, ranges: [number, number][]}} props */
function Marked({ text, ranges }) {
  const found = [];
  let end = 0;
  for (const [from, to] of ranges ?? []) {
    found.push(text.slice(end, from), html`<mark>${text.slice(from, to)}</mark>`);
    end = to;
  }
  return html`<span class="words ellipsis" dir="auto">${found}${text.slice(end)}</span>`;
}

/** Return a hit shortened to begin near its first match. @param {any} hit */
function excerpt(hit) {
  const [first] = hit.ranges ?? [];
  const cut = first && first[0] > 30 ? first[0] - 20 : 0;
  return { text: (cut ? "… " : "") + hit.text.slice(cut), ranges: (hit.ranges ?? []).map((/** @type {number[]} */ each) => each.map((n) => n - cut + (cut ? 2 : 0))) };
}

/** Return the beginnings of a title's words that a search matches, as ranges. @param {string} text @param {string} q @returns {[number, number][]} */
function titleRanges(text, q) {
  const wanted = fold(q).match(/[\p{L}\p{N}]+/gu) ?? [];
  return [...text.matchAll(/[\p{L}\p{N}\p{M}]+/gu)].flatMap(({ 0: word, index }) => {
    const longest = Math.max(0, ...wanted.filter((each) => fold(word).startsWith(each)).map((each) => each.length));
    return longest ? [/** @type {[number, number]} */ ([index, index + Math.min(longest, word.length)])] : [];
  });
}

/** @param {{found: any, at: boolean, q: string}} props */
function Conversation({ found, at, q }) {
  const { conversation: one, hits } = found;
  const name = contactName(one.contact) || t.noTitle;
  const press = () => (put(one), go(`c/${one.id}`));
  return html`<button type="button" class=${`row ${at ? "open" : ""}`} aria-current=${at ? "true" : undefined} data-id=${one.id} onFocus=${() => put(one)} onClick=${press}>
    <${Avatar} name=${name} id=${one.contact?.id} />
    <span class="line"><${Name} class="who" name=${name} />${one.lastMessageAt && html`<${Ago} class="when" at=${one.lastMessageAt} />`}</span>
    <span class="line">${hits?.length ? html`<${Marked} ...${excerpt(hits[0])} />` : one.title ? html`<${Marked} text=${one.title} ranges=${titleRanges(one.title, q)} />` : html`<bdi class="words ellipsis">${t.noTitle}</bdi>`}</span>
    <span class="line"><span class="chips">${one.status !== "OPEN" && html`<span class="chip">${/** @type {any} */ (t.thread.status)[one.status]}</span>`}</span>${one.assignee && html`<span class="end"><${Name} name=${one.assignee.name} /><${Avatar} name=${one.assignee.name} id=${one.assignee.id} size="s" /></span>`}</span>
  </button>`;
}

/** @param {{title: string, children?: any}} props */
const Group = ({ title, children }) => (children.length ? html`<h2 class="group-title">${title}</h2>${children}` : null);

/** Move between search results by arrow keys, `j` and `k`. @param {KeyboardEvent} event */
function moveInResults(event) {
  const by = { ArrowDown: 1, ArrowUp: -1, j: 1, k: -1 }[event.key];
  if (!by) return;
  const all = [.../** @type {HTMLElement} */ (event.currentTarget).querySelectorAll("button")];
  const at = all.indexOf(/** @type {any} */ (document.activeElement)) + by;
  event.preventDefault();
  event.stopPropagation();
  (all[at] ?? (at < 0 ? /** @type {HTMLElement | null} */ (document.querySelector(".list-search input")) : null))?.focus();
}

/** @param {{query: import("../vendor/preact.js").Signal<string|null>}} props */
export function SearchResults({ query }) {
  const q = (query.value ?? "").trim();
  const [found, setFound] = useState(/** @type {any} */ (null));
  const [failed, setFailed] = useState(/** @type {any} */ (null));
  const [round, setRound] = useState(0);
  useEffect(() => {
    const abort = new AbortController();
    const timer = setTimeout(async () => {
      try {
        const answer = await search(q, abort.signal);
        setFailed(null);
        setFound({ q, ...answer });
        announce(`${t.list.conversations}: ${answer?.conversations?.length ?? 0}`);
      } catch (error) {
        if (!abort.signal.aborted) setFailed(error);
      }
    }, SEARCH_DELAY_MS);
    return () => (clearTimeout(timer), abort.abort());
  }, [q, round]);
  if (failed) return html`<${Failed} error=${failed} title=${t.list.searchFailed} again=${() => setRound(round + 1)} />`;
  if (!found) return html`<div class="rows hits" aria-busy="true"></div>`;
  const { conversations = [], contacts = [], tickets = [] } = found;
  if (!conversations.length && !contacts.length && !tickets.length) return html`<${Empty} icon="search" title=${t.list.noneFound(found.q)} text=${t.list.noneFoundText} />`;
  return html`<div class="rows hits" onKeyDown=${moveInResults}>
    <${Group} title=${t.list.conversations}>${conversations.map((/** @type {any} */ each) => html`<${Conversation} key=${each.conversation.id} found=${each} at=${open.value === each.conversation.id} q=${found.q} />`)}<//>
    <${Group} title=${t.list.contacts}>${contacts.map((/** @type {any} */ each) => contact(each.contact ?? each, (name) => (query.value = name)))}<//>
    <${Group} title=${t.list.tickets}>${tickets.map((/** @type {any} */ each) => ticket(each.ticket ?? each, found.q))}<//>
  </div>`;
}

/** @param {any} each @param {(name: string) => unknown} search */
function contact(each, search) {
  const name = contactName(each);
  const press = () => search(name);
  return html`<button type="button" key=${each.id} class="hit" onClick=${press}><${Avatar} name=${name} id=${each.id} size="s" /><${Name} name=${name} /><span class="muted ellipsis">${each.email ?? each.userId}</span></button>`;
}

/** @param {any} each @param {string} q */
function ticket(each, q) {
  const press = () => go(`tickets/${each.id}`);
  return html`<button type="button" key=${each.id} class="hit" onClick=${press}><${Marked} text=${each.title} ranges=${titleRanges(each.title, q)} /><span class="chip">${String(each.status ?? "").toLowerCase().replaceAll("_", " ")}</span></button>`;
}

/**
 * The tools for selected rows.
 * @param {{selection: import("../vendor/preact.js").Signal<ReadonlySet<string>>, whole: import("../vendor/preact.js").Signal<boolean>, all: boolean, total: string}} props
 *   whole: whether the selection stands for the whole view; all: whether all loaded rows are selected, and the view has more
 */
export function BulkToolbar({ selection, whole, all, total: size }) {
  const total = inbox.value.includes("?") ? "" : size; // the size is that of the view without a filter
  const takeAll = () => {
    whole.value = true;
    announce(bulk.allSelected(total));
  };
  const act = (/** @type {string} */ id) => () => runCommand(id);
  const tool = (/** @type {string} */ id, /** @type {string} */ icon, /** @type {string} */ keys, label = /** @type {any} */ (t.commands)[id]) =>
    html`<${Button} label=${label} icon=${icon} only kind="quiet" class="small" keys=${keys} press=${act(id)} />`;
  const followed = [...selection.value].every((id) => row(id)?.followers.includes(user.value?.id ?? ""));
  const text = whole.value ? bulk.allSelected(total) : t.list.selected(selection.value.size);
  return html`<div class="list-bar bulk" role="toolbar" aria-label=${text}>
    <strong>${text}</strong>
    ${tool("assignMe", "person", "a")}${tool("assign", "people", "shift+a")}${tool("tag", "tag", "t")}${tool("snooze", "moon", "z")}${tool("pending", "pause", "p")}${tool("noAnswer", "check", "w")}${tool("unread", "mail", "m")}${tool("follow", "eye", "shift+f", followed ? t.commands.unfollow : t.commands.follow)}${tool("close", "done", "e")}
    <${Button} label=${t.list.selectNone} icon="close" only kind="quiet" class="small" press=${() => (selection.value = new Set())} />
  </div>${all && !whole.value && html`<div class="filter-chips"><${Button} label=${bulk.selectAll(total)} kind="quiet" class="small" press=${takeAll} /></div>`}`;
}

/** In place of a saved view that was deleted, or that is not shared with the user. */
export const UnknownView = () => html`<${Empty} icon="filter" title=${texts.unknown} text=${texts.unknownText} action=${html`<${Link} to="inbox/mine" class="button">${texts.goToMine}<//>`} />`;

/** @param {{view: import("../vendor/preact.js").ReadonlySignal<{key: string}>, of: ListView, filtered: boolean, clear: () => void}} props */
export function EmptyList({ view, of, filtered, clear }) {
  const { key } = view.value;
  const first = useFirstSteps();
  const empty = /** @type {any} */ (t.list);
  if (of.more) return html`<${Empty} icon="search" title=${t.list.noneYet} text=${t.list.noneYetText} action=${html`<${Button} label=${of.loadingMore ? t.list.looking : t.list.keepLooking} disabled=${of.loadingMore} press=${() => more(of.filter)} />`} />`;
  if (filtered) return html`<${Empty} icon="filter" title=${t.list.filtered} action=${html`<${Button} label=${key === "view" ? texts.discard : t.list.clearFilters} press=${clear} />`} />`;
  const snoozed = key !== "snoozed" && key !== "all" && key !== "view" ? (counters.value?.snoozed ?? 0) : 0;
  return html`<${Empty} icon=${key === "mine" || key === "waiting" ? "done" : "inbox"} title=${empty.empty[key]} text=${snoozed ? `${empty.emptyText[key]} ${t.list.snoozedToo(snoozed)}` : empty.emptyText[key]} />${first && html`<${FirstSteps} of=${first} />`}`;
}
