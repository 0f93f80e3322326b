// @ts-check
/** Hooks that load a call or a list page by page, and a view of their states. */
import { html, useCallback, useEffect, useRef, useState } from "../vendor/preact.js";
import { t } from "./texts.js";
import { Button, Empty, clockTime } from "./parts.js";
import { Problem, call, retryRateLimited } from "../core/api.js";
import { connection } from "../core/feed.js";

/** @typedef {"loading"|"ready"|"failed"|"forbidden"|"gone"} LoadState */
/**
 * @typedef {object} Loaded
 * @property {LoadState} state
 * @property {any} data  the last known data, also during a reload
 * @property {string|null} tag  the `ETag`, for `ifMatch`
 * @property {any} error  the error of the last attempt
 * @property {number} at  when the data arrived, in ms
 * @property {() => Promise<void>} reload
 * @property {(data: any, tag?: string|null) => void} put  replaces the data with a response
 * @property {{method: string, path: string, query: Record<string, unknown>}} call  for `Frame`
 */

/** @param {any} error @returns {LoadState} */
const stateOf = (error) => (!(error instanceof Problem) ? "failed" : error.status === 403 ? "forbidden" : error.status === 404 ? "gone" : "failed");

/** The service's maximum page size. */
const LIMIT_MAX = 200;
const NOTHING = { state: /** @type {LoadState} */ ("loading"), data: /** @type {any} */ (null), tag: /** @type {string|null} */ (null), error: /** @type {any} */ (null), at: 0, key: "" };

/**
 * Load a GET, again when its path or query changes, and after a failure once the service is reachable again.
 * @param {string|null} path  below `/v3/`; null loads nothing @param {Record<string, unknown>} [query] @returns {Loaded}
 */
export function useCall(path, query = {}) {
  const [known, set] = useState(NOTHING);
  const round = useRef(0);
  const key = JSON.stringify([path, query]);
  const load = useCallback(async () => {
    if (path === null) return;
    const mine = ++round.current;
    /** @type {string|null} */
    let tag = null;
    try {
      const data = await retryRateLimited(() => call("GET", path, { query, answered: (headers) => (tag = headers.get("etag")) }));
      if (mine === round.current) set({ state: "ready", data, tag, error: null, at: Date.now(), key });
    } catch (error) {
      if (mine === round.current) set((before) => ({ ...before, state: stateOf(error), error, key }));
    }
  }, [key]);
  useEffect(() => {
    set(NOTHING);
    void load();
    return () => void round.current++;
  }, [load]);
  useRetryWhenLive(known.state, load);
  const put = (/** @type {any} */ data, /** @type {string|null} */ tag = null) => (round.current++, set({ state: "ready", data, tag, error: null, at: Date.now(), key }));
  const shown = known.key === key ? known : NOTHING; // never the data of another path or query
  return { ...shown, reload: load, put, call: { method: "GET", path: path ?? "", query } };
}

/**
 * @typedef {object} Listed
 * @property {LoadState} state
 * @property {any[]} items
 * @property {boolean} more  true if there are further pages
 * @property {string|null} searchedTo  how far back an unfinished search has looked
 * @property {boolean} loadingMore
 * @property {any} error
 * @property {number} at
 * @property {() => Promise<void>} reload  loads the first page again
 * @property {() => Promise<void>} renew  reloads the shown rows, or the searched time span; a completely loaded list also gets new rows
 * @property {number} asked  changes when the user loads the list or another page; not with `renew`
 * @property {() => Promise<void>} next  loads the next page
 * @property {(change: (items: any[]) => any[]) => void} edit  edits the shown items after a call
 * @property {{method: string, path: string, query: Record<string, unknown>}} call  for `Frame`
 */

/**
 * Load a list `{items, nextCursor}` page by page. A search that found nothing so far (`searchedTo`) continues until it does.
 * @param {string|null} path @param {Record<string, unknown>} [query] @param {number} [limit]  page size @returns {Listed}
 */
export function useList(path, query = {}, limit = 50) {
  const first = { state: /** @type {LoadState} */ ("loading"), items: /** @type {any[]} */ ([]), cursor: /** @type {string|null} */ (null), searchedTo: /** @type {string|null} */ (null), loadingMore: false, error: /** @type {any} */ (null), at: 0, asked: 0 };
  const [known, set] = useState(first);
  const round = useRef(0);
  const asking = useRef(/** @type {Promise<unknown>} */ (Promise.resolve()));
  const extent = useRef(limit);
  const reached = useRef(/** @type {string|null} */ (null));
  reached.current = known.searchedTo;
  extent.current = known.at && known.cursor === null ? known.items.length + LIMIT_MAX : Math.max(limit, known.items.length);
  const key = JSON.stringify([path, query, limit]);
  const load = useCallback(async (/** @type {string|null} */ cursor) => {
    if (path === null) return;
    const mine = ++round.current;
    if (cursor) set((before) => ({ ...before, loadingMore: true }));
    try {
      const page = await retryRateLimited(() => call("GET", path, { query: { ...query, limit, cursor } }));
      if (mine !== round.current) return;
      set((before) => ({ state: "ready", items: cursor ? [...before.items, ...page.items] : page.items, cursor: page.nextCursor ?? null, searchedTo: page.searchedTo ?? null, loadingMore: false, error: null, at: Date.now(), asked: mine }));
      if (page.searchedTo && !page.items.length) await load(page.nextCursor);
    } catch (error) {
      if (mine === round.current) set((before) => ({ ...before, state: stateOf(error), loadingMore: false, error }));
    }
  }, [key]);
  const begin = useCallback((/** @type {string|null} */ cursor) => (asking.current = load(cursor)), [load]);
  const reload = useCallback(() => begin(null), [begin]);
  const renew = useCallback(async () => {
    await asking.current; // a request in flight may have been read before the change
    const mine = round.current;
    const items = /** @type {any[]} */ ([]);
    let cursor = /** @type {string|null} */ (null);
    let searchedTo = /** @type {string|null} */ (null);
    try {
      do {
        const page = await retryRateLimited(() => call("GET", path ?? "", { query: { ...query, limit: Math.min(LIMIT_MAX, extent.current - items.length), cursor } }));
        items.push(...page.items);
        cursor = page.nextCursor ?? null;
        searchedTo = page.searchedTo ?? null;
      } while (cursor && items.length < extent.current && !(searchedTo && reached.current && searchedTo <= reached.current) && mine === round.current);
      if (mine === round.current) set((before) => ({ ...before, state: "ready", items, cursor, searchedTo, error: null, at: Date.now() }));
    } catch (error) {
      if (mine === round.current) set((before) => ({ ...before, state: stateOf(error), error }));
    }
  }, [key]);
  useEffect(() => {
    set((before) => (before.items.length || before.error ? { ...before, state: "loading" } : before));
    void reload();
    return () => void round.current++;
  }, [reload]);
  useRetryWhenLive(known.state, reload);
  const edit = (/** @type {(items: any[]) => any[]} */ change) => set((before) => ({ ...before, items: change(before.items) }));
  return { state: known.state, items: known.items, more: known.cursor !== null, searchedTo: known.searchedTo, loadingMore: known.loadingMore, error: known.error, at: known.at, asked: known.asked, reload, renew, next: () => begin(known.cursor), edit, call: { method: "GET", path: path ?? "", query: { ...query, limit } } };
}

/** Load again once the service is reachable. @param {LoadState} state @param {() => unknown} load */
function useRetryWhenLive(state, load) {
  const live = connection.value.state === "live";
  const was = useRef(live);
  useEffect(() => {
    if (live && !was.current && state === "failed") void load();
    was.current = live;
  }, [live]);
}

/**
 * Show the loaded data or its state. `children` is called with the data.
 * @param {{of: Loaded|Listed, empty?: any, title?: string, children: (data: any) => any}} props  empty: shown for an empty list
 */
export function States({ of, empty, title, children }) {
  const data = "items" in of ? of.items : of.data;
  const has = "items" in of ? of.at > 0 : data !== null;
  if (of.state === "forbidden") return html`<${Empty} icon="lock" title=${t.forbidden} text=${of.error.message} />`;
  if (of.state === "gone") return html`<${Empty} icon="warn" title=${t.gone} text=${t.goneText} />`;
  if (of.state === "failed" && !has) return html`<${Failure} error=${of.error} title=${title ?? t.failed} again=${of.reload} />`;
  if (!has) return html`<${LoadingLines} />`;
  return html`${of.state === "failed" && html`<p class="stale" role="status">${t.asOf(clockTime(of.at))} ${of.error?.message} <${Button} class="small" label=${t.tryAgain} press=${of.reload} /></p>`}
    ${"items" in of && !of.items.length && empty ? empty : children(data)}`;
}

/** @param {{error: any, title: string, again: () => void}} props */
const Failure = ({ error, title, again }) =>
  html`<${Empty} icon="warn" title=${title} text=${html`${error?.message}${error?.requestId && html`<br /><span class="mono">${error.requestId}</span>`}`} action=${html`<${Button} label=${t.tryAgain} press=${again} />`} />`;

/** Placeholder lines, shown after a moment. */
export const LoadingLines = () => html`<div class="waiting" aria-busy="true"><span class="sr">${t.loading}</span>${[..."123456"].map((each) => html`<span key=${each} class="bar" aria-hidden="true"></span>`)}</div>`;
