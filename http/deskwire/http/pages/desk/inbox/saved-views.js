// @ts-check
/** The saved views that the user sees: loaded with their counts, again when they or conversations change, and the commands on them. */
import { effect, untracked } from "../vendor/preact.js";
import { t } from "./saved-view-texts.js";
import { dialog, notify } from "../ui/parts.js";
import { Problem, call, get, retryRateLimited, signedOut } from "../core/api.js";
import { coalesce, known, registerPart } from "../core/store.js";
import { hrefOf, inbox, may, people, project, setInbox, user } from "../core/session.js";
import { addressOfView, clearConditions, filter, savedView, savedViews, view, viewTools } from "./list.js";
/** @import { SavedView } from "../core/types.js" */

const COUNTS_MS = 10_000;
const HIDDEN_MS = 60_000;
const RETRY_MS = 5_000;
/** Changes of these decide which views the user sees. */
const CAUSES = ["views", "teams", "members", "roles"].map((each) => `settings:${each}`);

let round = 0;
let marks = /** @type {ReadonlyMap<string, string>} */ (new Map());

/** Load the views and their counts. Until then, the old ones stay. */
export async function loadViews() {
  const mine = ++round;
  if (!project.peek() || signedOut.peek()) return;
  if (!may("conversations.read")) return void (savedViews.value = []);
  try {
    const { items } = await retryRateLimited(() => get("views", { counts: true }));
    const foreign = await foreignView(items);
    if (mine === round) setViews([...items, ...foreign]);
  } catch (error) {
    if (mine !== round) return;
    if (error instanceof Problem && error.status < 500) savedViews.value ??= []; // the user's rights have changed; the session is loaded again
    else setTimeout(() => mine === round && loadViews(), RETRY_MS);
  }
}

/** Set the views if they differ, so that equal answers render nothing. @param {SavedView[]} views */
function setViews(views) {
  if (JSON.stringify(views) !== JSON.stringify(savedViews.peek())) savedViews.value = views;
}

/** Return the view in the address, if it is of a team that the user manages without being in it. @param {SavedView[]} items @returns {Promise<SavedView[]>} */
async function foreignView(items) {
  const { key, id } = view.peek();
  if (key !== "view" || !may("projects.manage") || items.some((each) => each.id === id)) return [];
  try {
    return [{ ...(await get(`views/${encodeURIComponent(id ?? "")}`)), foreign: true }];
  } catch (error) {
    if (error instanceof Problem && error.status < 500) return [];
    throw error;
  }
}

registerPart({
  hello: () => void loadViews(),
  reloaded: () => void loadViews(),
  changed: (next) => {
    const changed = CAUSES.some((each) => marks.get(each) !== next.marks.get(each));
    marks = next.marks;
    if (changed) void loadViews();
    else if (next.touched.size && savedViews.peek()?.length) coalesce("saved views", document.hidden ? HIDDEN_MS : COUNTS_MS, loadViews);
  },
  end: () => {
    round += 1;
    savedViews.value = null;
    marks = new Map();
    queueMicrotask(loadViews); // of the next project
  },
});
marks = known.peek().marks;
let loads = true; // at first, and for a link that a manager may have followed to the view of another team
effect(() => {
  if (loads || (view.value.key === "view" && !savedView.value)) untracked(loadViews);
  loads = false;
});

/** Return whether the user may create or change a view with this visibility. The service decides. @param {{visibility: string, teamId: string|null, createdBy?: {id: string}}} of */
export function mayHave({ visibility, teamId, createdBy }) {
  if (visibility === "me") return !createdBy || createdBy.id === user.value?.id;
  if (may("projects.manage")) return true;
  const team = people().teams.find((each) => each.id === teamId);
  return visibility === "team" && may("conversations.manage") && Boolean(team?.memberIds?.includes(user.value?.id ?? ""));
}

/** Return the views in the order of the navigation. @returns {SavedView[]} */
export const listedViews = () => (savedViews.value ?? []).filter((each) => !each.foreign);

/** Return parameters of a list without the service's defaults, in a fixed order. @param {Record<string, unknown>} given @returns {Record<string, string>} */
function canonical({ team, ...given }) {
  const all = team ? { ...given, assignee: team } : given;
  const said = Object.entries(all).filter(([name, value]) => value !== undefined && !(name === "order" && value === "desc") && !(name === "sort" && value === "activity"));
  return Object.fromEntries(said.map(([name, value]) => [name, String(value)]).sort(([a], [b]) => (String(a) < String(b) ? -1 : 1)));
}

/** Return the filter of the current list in the form of a saved view. @returns {Record<string, string>} */
export function shownFilter() {
  const { where, ...given } = filter.value;
  return canonical({ ...given, ...Object.fromEntries(new URLSearchParams(where)) });
}

/** Return whether the shown list differs from its saved view. */
export const isChanged = () => Boolean(savedView.value && inbox.value.includes("?") && JSON.stringify(shownFilter()) !== JSON.stringify(canonical(savedView.value.filter)));

/** Change a view; the answer is shown at once. Throws Offline or Problem. @param {string} id @param {object} body */
export async function changeView(id, body) {
  const changed = await call("PATCH", `views/${id}`, { body });
  savedViews.value = savedViews.peek()?.map((each) => (each.id === id ? { ...each, ...changed } : each)) ?? null;
  await loadViews();
  return changed;
}

/** @param {() => Promise<unknown>} change @param {string} done */
async function orNotify(change, done) {
  try {
    await change();
    notify(done);
  } catch (error) {
    notify(t.failed(/** @type {Error} */ (error).message), { bad: true });
    void loadViews();
  }
}

/** Save the changed filter in the view. @param {SavedView} of */
export const saveChanges = (of) =>
  orNotify(async () => {
    await changeView(of.id, { filter: shownFilter() });
    if (savedView.peek()?.id === of.id) clearConditions();
  }, t.saved(of.name));

/** Move a view among those of its visibility. @param {SavedView} of @param {-1 | 1} by */
function move(of, by) {
  const beside = listedViews().filter((each) => each.visibility === of.visibility);
  const at = beside.findIndex((each) => each.id === of.id);
  const after = beside[by < 0 ? at - 2 : at + 1]?.id ?? null;
  return orNotify(() => changeView(of.id, { after }), by < 0 ? t.movedUp(of.name) : t.movedDown(of.name));
}

async function copyLink() {
  try {
    await navigator.clipboard.writeText(location.origin + hrefOf(`inbox/view/${savedView.peek()?.id}`));
    notify(t.linkCopied);
  } catch {
    notify(t.linkNotCopied, { bad: true });
  }
}

/** @typedef {{label: string, icon: string, danger?: boolean, pick: () => void}} Command */

/** Return the commands that apply to the view that is shown. @returns {Command[]} */
export function viewCommands() {
  const of = savedView.value;
  const create = { label: of ? t.saveAsNew : t.save, icon: "plus", pick: () => void (dialog.value = { name: "saveView" }) };
  if (!of) return view.value.key === "view" ? [] : [create];
  const [changed, allowed] = [isChanged(), mayHave(of)];
  const beside = listedViews().filter((each) => each.visibility === of.visibility);
  const at = beside.findIndex((each) => each.id === of.id);
  return [
    ...(changed && allowed ? [{ label: t.saveChanges, icon: "check", pick: () => void saveChanges(of) }] : []),
    ...(changed ? [{ label: t.discard, icon: "reopen", pick: clearConditions }] : []),
    create,
    { label: t.copyLink, icon: "copy", pick: () => void copyLink() },
    ...(allowed ? [{ label: t.edit, icon: "pencil", pick: () => void (dialog.value = { name: "saveView", of }) }] : []),
    ...(allowed && at > 0 ? [{ label: t.moveUp, icon: "up", pick: () => void move(of, -1) }] : []),
    ...(allowed && at >= 0 && at < beside.length - 1 ? [{ label: t.moveDown, icon: "down", pick: () => void move(of, 1) }] : []),
    ...(allowed ? [{ label: t.delete, icon: "close", danger: true, pick: () => void (dialog.value = { name: "deleteView", of }) }] : []),
  ];
}

const tools = { isChanged, mayHave, saveChanges, viewCommands };
/** @typedef {typeof tools} ViewTools */
viewTools.value = tools;

/** Leave a view that is gone; an open conversation stays open. @param {string} id */
export function leaveView(id) {
  if (view.peek().id === id) setInbox(addressOfView({ key: "mine" }));
}

