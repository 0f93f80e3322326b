// @ts-check
/** Bulk jobs of the user: their start for all conversations of the view, progress, cancellation, result and undo. */
import { effect, html, signal, useState } from "../vendor/preact.js";
import { number } from "../core/texts.js";
import { t } from "./bulk-texts.js";
import { Button, announce, notify, setting } from "../ui/parts.js";
import { Link } from "../ui/link.js";
import { Problem, call, get, newKey, signedOut } from "../core/api.js";
import { refreshLists, registerPart } from "../core/store.js";
import { may, project } from "../core/session.js";
import { recordUndo } from "./undo.js";

const { doing, what } = /** @type {Record<"doing" | "what", Record<string, (n: number) => string>>} */ (t);
const { done, reasons, stopped } = /** @type {Record<"done" | "reasons" | "stopped", Record<string, string>>} */ (t);

/** @typedef {{reason: string, count: number, conversationIds: string[]}} Group */
/** @typedef {{type: string, assignee?: {type: string, id: string} | null, add?: string[], remove?: string[], until?: string | null}} BulkAction */
/** @typedef {{id: string, status: string, reason: string | null, action: BulkAction, total: number, done: number, changed: number, skipped: Group[], undone: number, kept: Group[], endedAt: string | null}} Job */

const POLL_INTERVAL_MS = 1_500;
/** How long the result of a job is shown after a reload. */
const SHOWN_MS = 3_600_000;

/** The user's newest job; null if there is none to show. */
const newest = signal(/** @type {Job | null} */ (null));
/** The status at which the user has dismissed a job in this browser. */
const dismissed = setting("bulkJob", "");
const stamp = (/** @type {Job} */ job) => `${job.id} ${job.status}`;
let round = 0;
/** @type {any} */
let timer = null;

const inProgress = (/** @type {Job | null} */ job) => job?.status === "running" || job?.status === "undoing";
/** The key of an action's texts. @param {BulkAction} action */
const wordsOf = ({ type, assignee, until }) => (type === "assign" && !assignee ? "unassign" : type === "snooze" && !until ? "wake" : type);
const sum = (/** @type {Group[]} */ groups) => groups.reduce((n, each) => n + each.count, 0);

/** Load the newest job, or the job of this id. While it is in progress, load it repeatedly. @param {string} [id] */
async function load(id) {
  const mine = ++round;
  clearTimeout(timer);
  if (!project.peek() || signedOut.peek() || !may("conversations.read")) return void (newest.value = null);
  try {
    const found = id ? await get(`bulk-jobs/${id}`) : (await get("bulk-jobs")).items[0] ?? null;
    if (mine === round) show(found);
  } catch (error) {
    if (mine === round && !(error instanceof Problem && error.status < 500)) timer = setTimeout(load, POLL_INTERVAL_MS, id);
  }
}

/** @param {Job | null} job */
function show(job) {
  const before = newest.peek();
  newest.value = job;
  if (!job) return;
  if (inProgress(job)) timer = setTimeout(load, POLL_INTERVAL_MS, job.id);
  else if (before?.id === job.id && inProgress(before)) {
    announce(resultOf(job));
    if (job.action.type === "unread") refreshLists(); // a busy page may have missed some of the changed read positions
  }
}

registerPart({
  hello: () => void load(),
  reloaded: () => void load(),
  events: (events) => events.some((each) => each.type === "settings.changed" && each.data.what === "bulk_jobs") && void load(),
  end: () => {
    round += 1;
    clearTimeout(timer);
    newest.value = null;
    queueMicrotask(() => void load()); // of the next project
  },
});
effect(() => void load());

/** Start a job for all conversations of a view, given by its conditions; return whether it has started. @param {Record<string, string>} conditions @param {BulkAction} action */
export async function startJob(conditions, action) {
  const key = newKey();
  try {
    const job = await call("POST", "bulk-jobs", { body: { filter: conditions, action }, key });
    recordUndo(what[wordsOf(action)]?.(job.total) ?? "", () => change(job, "undo"));
    round += 1;
    clearTimeout(timer);
    show(job);
    announce(doing[wordsOf(action)]?.(job.total) ?? "");
    return true;
  } catch (error) {
    notify(t.failed(/** @type {Error} */ (error).message), { bad: true });
    return false;
  }
}

/** @param {Job} job @param {"undo" | "cancel"} what */
async function change(job, what) {
  const changed = await call("POST", `bulk-jobs/${job.id}/${what}`);
  round += 1;
  clearTimeout(timer);
  show(changed);
}

/** @param {Job} job @param {"undo" | "cancel"} what */
const tryToChange = (job, what) => change(job, what).catch((/** @type {Error} */ error) => (notify(t.failed(error.message), { bad: true }), load()));

/** Return the result of an ended job in words. @param {Job} job */
function resultOf(job) {
  const skipped = sum(job.skipped);
  const left = job.total - job.changed - skipped;
  const parts = job.status === "undone" ? [t.undone(job.undone), sum(job.kept) && t.kept(sum(job.kept))] : [`${number(job.changed)} ${done[wordsOf(job.action)] ?? ""}`, skipped && t.skipped(skipped), left > 0 && t.left(left)];
  const head = job.status === "cancelled" ? `${t.cancelled}: ` : job.status === "stopped" ? `${stopped[job.reason ?? ""] ?? t.stop}: ` : "";
  return head + parts.filter(Boolean).join(", ");
}

/** @param {{groups: Group[]}} props */
const Reasons = ({ groups }) => html`<ul class="muted">${groups.map((each) => html`<li key=${each.reason}>${number(each.count)}: ${reasons[each.reason] ?? each.reason}${each.conversationIds[0] && html` <${Link} to=${`c/${each.conversationIds[0]}`}>${t.example}<//>`}</li>`)}</ul>`;

/** The bar of the newest job, above the list. */
export function BulkJobs() {
  const [why, setWhy] = useState(false);
  const job = newest.value;
  if (!job || dismissed.value === stamp(job) || (job.endedAt && Date.now() - Date.parse(job.endedAt) > SHOWN_MS)) return null;
  const words = wordsOf(job.action);
  if (inProgress(job)) {
    const text = job.status === "undoing" ? t.undoing(what[words]?.(job.changed) ?? "") : (doing[words]?.(job.total) ?? "");
    const total = job.status === "undoing" ? job.changed : job.total;
    return html`<div class="filter-chips" role="group" aria-label=${t.bar}><span class="grow">${text}: <span class="num">${t.progress(job.done)}</span></span>
      <progress class="grow" max=${Math.max(total, 1)} value=${job.done} aria-label=${text}></progress>
      ${job.status === "running" && html`<${Button} label=${t.cancel} kind="quiet" class="small" press=${() => tryToChange(job, "cancel")} />`}</div>`;
  }
  const groups = job.status === "undone" ? job.kept : job.skipped;
  return html`<div class="filter-chips" role="group" aria-label=${t.bar}><span class="grow">${resultOf(job)}</span>
    ${groups.length > 0 && html`<button type="button" class="button quiet small" aria-expanded=${why} onClick=${() => setWhy(!why)}>${t.why}</button>`}
    ${job.status !== "undone" && job.changed > 0 && html`<${Button} label=${t.undo} kind="quiet" class="small" press=${() => tryToChange(job, "undo")} />`}
    <${Button} label=${t.dismiss} icon="close" only kind="quiet" class="small" press=${() => (dismissed.value = stamp(job))} />
    ${why && groups.length > 0 && html`<${Reasons} groups=${groups} />`}</div>`;
}
