// @ts-check
/** The session: signed-in user, project, and the place in the desk. */
import { batch, computed, effect, signal } from "../vendor/preact.js";
import { ROOT, Resource, all, call, credentials, get, signedOut } from "./api.js";
/** @import { User, Project } from "./types.js" */

/** The signed-in user: undefined before the first response, null if there is none. */
export const user = signal(/** @type {User|null|undefined} */ (undefined));

/** The last response about the session, with the second step of a sign-in that is under way. @type {import("../vendor/preact.js").Signal<any>} */
export const session = signal({});

/** The projects the user can open. */
export const projects = signal(/** @type {Project[]} */ ([]));

/** The current project; null if there is none. Its id is stored in this browser. */
export const project = signal(/** @type {Project|null} */ (null));

/** The user's permissions in the project, e.g. `conversations.reply`. */
export const permissions = computed(() => new Set(project.value?.permissions ?? []));

/** @param {string} permission  e.g. `conversations.reply` @returns {boolean} */
export const may = (permission) => permissions.value.has(permission);

/** True if the user has an inbox. */
export const reads = computed(() => may("conversations.read"));

/** True if the project's organisation requires a second factor that the user lacks. */
export const mustEnrol = computed(() => session.value.enrolmentRequired?.some((/** @type {any} */ each) => each.id === project.value?.organisationId));

/** The fragment of the first address, such as the token of a one-time link. It is removed from the address at once. */
export const fragment = location.hash.slice(1);
if (fragment) history.replaceState(history.state, "", location.pathname + location.search);

const PROJECT_KEY = "deskwire.project";
const SIGN_OUT_TIMEOUT_MS = 3_000;
const channel = typeof BroadcastChannel === "function" ? new BroadcastChannel("deskwire session") : null;
channel?.addEventListener("message", ({ data }) => {
  if (data === "out") forget();
  else void loadSession().catch(() => {});
});

/** @typedef {{users: {id: string, name: string, role?: string, assignable?: boolean, mentionable?: boolean}[], teams: {id: string, name: string, memberIds?: string[]}[]}} People */
/** @type {Resource<People>} */
const peopleResource = new Resource(async () => {
  const chosen = project.peek();
  if (!chosen) return { users: [], teams: [] };
  const [users, teams] = await Promise.all([all(`organisations/${chosen.organisationId}/members`), may("tickets.read") ? all("teams") : []]);
  const named = (/** @type {any} */ { id, name, user, role, assignable, mentionable, members }) => ({ id: user?.id ?? id, name: user?.name ?? name, role, assignable, mentionable, memberIds: members?.map((/** @type {any} */ each) => each.id) });
  return { users: users.map(named), teams: teams.map(named) };
}, { users: [], teams: [] });

/** Return the members of the organisation and the teams; the first read loads them. Reads a signal. @returns {People} */
export const people = () => peopleResource.value;
/** Return the users that can be assigned conversations and tickets: those whose role has `conversations.reply`. */
export const assignable = () => peopleResource.value.users.filter((each) => each.assignable);
/** Load the members and teams again. */
export const reloadPeople = () => peopleResource.load();

/** The keys that encrypt the user's data in this browser: the first encrypts, each decrypts. Held in memory only. @type {import("../vendor/preact.js").Signal<string[]>} */
export const storageKeys = signal([]);
/** How long a typing indicator lasts without a further event, in ms; set by the service. */
export const typingMs = signal(0);

/** @type {Set<() => unknown>} Handlers that run on sign-out. */
const signOutHandlers = new Set();

/** Register a handler that deletes data of this browser on sign-out. @param {() => unknown} part */
export const onSignOut = (part) => signOutHandlers.add(part);

/** Functions that run while the session is still valid, e.g. to save drafts. @type {Set<() => Promise<unknown>>} */
export const beforeSignOut = new Set();
/** Save unsaved work before sign-out, as far as a short timeout allows. */
export const saveBeforeSignOut = () => Promise.race([Promise.allSettled([...beforeSignOut].map((each) => each())), new Promise((done) => setTimeout(done, SIGN_OUT_TIMEOUT_MS))]);

/** The project in the address, if it is none of the user's; null otherwise. */
export const unknownProject = signal(/** @type {string|null} */ (null));

/** @param {{user: User|null, projects: Project[], storageKeys: string[], typingSeconds: number}} found */
function applySession(found) {
  batch(() => {
    session.value = found;
    typingMs.value = found.typingSeconds * 1000;
    storageKeys.value = found.storageKeys;
    projects.value = found.projects;
    user.value = found.user;
    signedOut.value = false;
    applyAddress();
  });
}

/** Show the place and project of the address. Without a project in it, the last one is shown. */
function applyAddress() {
  const { named, where } = parseAddress();
  const before = project.peek();
  const wanted = named ?? before?.id ?? storedProject();
  const chosen = projects.peek().find((each) => each.id === wanted) ?? (named ? null : (projects.peek()[0] ?? null));
  credentials.project = chosen?.id ?? null;
  const moves = before && before.id !== chosen?.id;
  batch(() => {
    unknownProject.value = user.peek() && !chosen ? named : null;
    project.value = chosen;
    const kept = history.state?.user === user.peek()?.id ? history.state : null;
    typedWords.value = kept?.words ?? {};
    if (chosen) inbox.value = /** @type {string | undefined} */ (kept?.inbox) ?? (IN_INBOX.test(where) ? where : moves ? FIRST_VIEW : inbox.peek());
    place.value = moves ? "" : where; // the store of the other project begins first
  });
  if (moves) setTimeout(() => void (place.value = parseAddress().where));
  if (!chosen) return;
  storeProject(chosen.id);
  if (!named || !where) history.replaceState(history.state, "", addressOf(where || inbox.peek()));
  if (!where && !moves) place.value = inbox.peek();
}

function storedProject() {
  try {
    return localStorage.getItem(PROJECT_KEY);
  } catch {
    return null;
  }
}

/** Store the current project, so that it stays selected when a newer one precedes it. @param {string} id */
function storeProject(id) {
  try {
    localStorage.setItem(PROJECT_KEY, id);
  } catch {
    // then it applies to this page only
  }
}

/**
 * Load the session. If it has ended, the page stays and asks to sign in again. Throws Offline or Problem.
 * @returns {Promise<void>}
 */
export async function loadSession() {
  const found = await get("auth/session");
  if (found.user || !user.peek()) return applySession(found);
  session.value = found;
  signedOut.value = true;
}

/** Apply the response of a sign-in, in all tabs. @param {any} found */
export function signedIn(found) {
  if (!found.user) return void (session.value = found);
  applySession(found);
  channel?.postMessage("in");
}

/** Show another project. @param {string} projectId */
export function openProject(projectId) {
  if (projectId === project.peek()?.id) return;
  history.pushState(null, "", hrefOf("", projectId));
  applyAddress();
}

/**
 * Sign out, and delete the user's drafts and outbox in this browser. Throws Offline or Problem; then nothing is deleted.
 * @returns {Promise<void>}
 */
export async function signOut() {
  await saveBeforeSignOut();
  await call("DELETE", "auth/session");
  await Promise.allSettled([...signOutHandlers].map((part) => part()));
  channel?.postMessage("out");
  forget();
}

// Without a session, the page keeps no data: the same user gets it back by signing in, another user never does.
effect(() => {
  if (!signedOut.value) return;
  credentials.project = null;
  batch(() => {
    project.value = null;
    unknownProject.value = null;
    projects.value = storageKeys.value = [];
    heading.value = "";
    typedWords.value = {};
  });
  peopleResource.forget();
});

/** Clear all data of the user from the page. */
function forget() {
  credentials.project = null;
  batch(() => {
    user.value = null;
    project.value = null;
    storageKeys.value = [];
    unknownProject.value = null;
    inbox.value = FIRST_VIEW;
    go("", { replace: true });
    projects.value = [];
    signedOut.value = false;
  });
}

const ADDRESS = /^desk(?:\/(prj_\w+))?(?:\/|$)/;

/** Return the project in the address, if any, and the place. */
function parseAddress() {
  const path = location.pathname.slice(ROOT.length);
  const [start, named] = ADDRESS.exec(path) ?? ["desk/"];
  return { named: named ?? null, where: path.slice(start.length) + location.search };
}

/** The address as a path below `/desk` and the project, with its query: "", "c/cnv_…", "tickets?status=OPEN". */
export const place = signal(parseAddress().where);

/**
 * Filter text typed on the current page, such as a customer's name. It is kept in the history entry and not in the address,
 * because the browser's history keeps addresses after sign-out.
 * @type {import("../vendor/preact.js").Signal<Record<string, string>>}
 */
export const typedWords = signal({});

/** Return the full address of a place, with its project. Reads a signal. @param {string} where @param {string|undefined} [of] */
export const hrefOf = (where, of = project.value?.id) => [`${ROOT}desk`, of, where].filter(Boolean).join("/");

const CONVERSATION = /^c\/(cnv_\w+)(?:\/m\/(msg_\w+))?(?:\?|$)/;
/** The open conversation; null for none. */
export const open = computed(() => CONVERSATION.exec(place.value)?.[1] ?? null);
/** The message of the open conversation to which the address leads; null for none. */
export const linkedMessage = computed(() => CONVERSATION.exec(place.value)?.[2] ?? null);

const FIRST_VIEW = "inbox/mine";
const IN_INBOX = /^inbox(?:[/?]|$)/;
/** The address of the inbox's view, e.g. `inbox/waiting?status=all`. It is kept in the history entries of conversations and pages. */
export const inbox = signal(IN_INBOX.test(place.peek()) ? place.peek() : FIRST_VIEW);

/** The path of the open page, e.g. `tickets/tic_…`; null in the inbox. */
export const page = computed(() => (open.value || IN_INBOX.test(place.value) ? null : place.value.split("?")[0] || null));

/** The name of the open page, for the window's title. */
export const heading = signal("");

/** A condition of a view whose value may be personal, such as an attribute of contacts. Like typed words, it is not in the address. */
const PRIVATE = /([?&])contactAttribute=[^&]*&?/;
/** Return an address without the values that the browser must not keep. @param {string} where */
export const withoutPrivate = (where) => where.replace(PRIVATE, "$1").replace(/[?&]$/, "");
const addressOf = (/** @type {string} */ where) => hrefOf(withoutPrivate(where), project.peek()?.id);

/** Change the view of the inbox in place; an open conversation stays open. @param {string} where */
export function setInbox(where) {
  if (IN_INBOX.test(place.peek())) return go(where, { replace: true });
  history.replaceState({ ...history.state, inbox: (inbox.value = where) }, "");
}

/** Go to a place: `go("c/cnv_…")`, and with "" to the inbox. @param {string} where @param {{replace?: boolean, words?: Record<string, string>}} [options]  words: the typed filter */
export function go(where, { replace = false, words = {} } = {}) {
  if (project.peek()) where ||= inbox.peek();
  batch(() => {
    if (IN_INBOX.test(where)) inbox.value = where;
    const state = { user: user.peek()?.id, words, inbox: inbox.peek() };
    history[replace ? "replaceState" : "pushState"](state, "", addressOf(where));
    typedWords.value = words;
    place.value = where;
  });
}

/** Show an address of the desk, as after a click on a notification. @param {string} path */
export function visit(path) {
  if (path !== location.pathname) history.pushState(null, "", path);
  applyAddress();
}
addEventListener("popstate", applyAddress);
