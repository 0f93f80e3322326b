// @ts-check
/** Who is signed in, in which project, and at which place of the desk. */
import { batch, computed, effect, signal } from "../vendor/preact.js";
import { ROOT, Resource, all, call, credentials, get, signedOut } from "./api.js";
/** @import { User, Project } from "./types.js" */

/** Who is signed in: undefined until the server was asked, null for nobody. */
export const user = signal(/** @type {User|null|undefined} */ (undefined));

/** The projects that may be chosen. */
export const projects = signal(/** @type {Project[]} */ ([]));

/** The project that is shown; null if there is none. Its id stays in this browser. */
export const project = signal(/** @type {Project|null} */ (null));

/** What the user may do in the project, e.g. `conversations.reply`. */
export const permissions = computed(() => new Set(project.value?.permissions ?? []));

/** @param {string} permission  e.g. `conversations.reply` @returns {boolean} */
export const may = (permission) => permissions.value.has(permission);

const PROJECT_KEY = "deskwire.project";
const SIGN_OUT_TIMEOUT_MS = 3_000;
const channel = typeof BroadcastChannel === "function" ? new BroadcastChannel("deskwire session") : null;
channel?.addEventListener("message", ({ data }) => {
  if (data === "out") forget();
  else void loadSession().catch(() => {});
});

/** @typedef {{users: {id: string, name: string, role?: string}[], teams: {id: string, name: string}[]}} People */
/** @type {Resource<People>} */
const peopleResource = new Resource(async () => {
  const chosen = project.peek();
  if (!chosen) return { users: [], teams: [] };
  const [users, teams] = await Promise.all([all(`organisations/${chosen.organisationId}/members`), all("teams")]);
  const named = (/** @type {any} */ { id, name, user, role }) => ({ id: user?.id ?? id, name: user?.name ?? name, role });
  return { users: users.map(named), teams: teams.map(named) };
}, { users: [], teams: [] });

/** The members of the organisation and the teams; the first read loads them. Reads a signal. @returns {People} */
export const people = () => peopleResource.value;
/** The users that conversations and tickets can be given to: viewers can't work on them. */
export const assignable = () => peopleResource.value.users.filter((each) => each.role !== "viewer");
/** Loads them anew. */
export const reloadPeople = () => peopleResource.load();

/** The keys for what this browser keeps of the user: the first seals, each opens. In memory alone. @type {import("../vendor/preact.js").Signal<string[]>} */
export const storageKeys = signal([]);
/** How long somebody types without a further event; the service has the figure. */
export const typingMs = signal(0);

/** @type {Set<() => unknown>} What is done before somebody's signing out. */
const signOutHandlers = new Set();

/** Registers what forgets a part of what is kept here when somebody signs out. @param {() => unknown} part */
export const onSignOut = (part) => signOutHandlers.add(part);

/** What is done while there is still a session, e.g. saving what is only here. @type {Set<() => Promise<unknown>>} */
export const beforeSignOut = new Set();
/** Saves what can be saved before somebody is asked whether to sign out. */
export const saveBeforeSignOut = () => Promise.race([Promise.allSettled([...beforeSignOut].map((each) => each())), new Promise((done) => setTimeout(done, SIGN_OUT_TIMEOUT_MS))]);

/** The project that the address names though it is not among those of the user; null for none. */
export const unknownProject = signal(/** @type {string|null} */ (null));

/** @param {{user: User|null, projects: Project[], storageKeys: string[], typingSeconds: number}} session */
function applySession(session) {
  batch(() => {
    typingMs.value = session.typingSeconds * 1000;
    storageKeys.value = session.storageKeys;
    projects.value = session.projects;
    user.value = session.user;
    signedOut.value = false;
    applyAddress();
  });
}

/** Shows what the address names: its place, in its project, or in the one that was shown here before where it names none. */
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
    typedWords.value = history.state?.typed?.user === user.peek()?.id ? (history.state?.typed?.words ?? {}) : {};
    place.value = moves ? "" : where; // the store of the other project begins first
  });
  if (moves) setTimeout(() => void (place.value = parseAddress().where));
  if (!chosen) return;
  storeProject(chosen.id);
  if (!named) history.replaceState(history.state, "", hrefOf(where));
}

function storedProject() {
  try {
    return localStorage.getItem(PROJECT_KEY);
  } catch {
    return null;
  }
}

/** Keeps which project is shown, also when a newer one comes before it in the list. @param {string} id */
function storeProject(id) {
  try {
    localStorage.setItem(PROJECT_KEY, id);
  } catch {
    // it holds for this page then
  }
}

/**
 * Asks the server who is signed in. If nobody is where somebody was, the page stays and asks for the password.
 * Throws Offline or Problem. @returns {Promise<void>}
 */
export async function loadSession() {
  const session = await get("auth/session");
  if (session.user || !user.peek()) applySession(session);
  else signedOut.value = true;
}

/**
 * Signs in. Throws Problem: `password_change_required` asks for `newPassword`.
 * @param {string} email @param {string} password @param {string} [newPassword] @returns {Promise<void>}
 */
export async function signIn(email, password, newPassword) {
  applySession(await call("POST", "auth/session", { body: { email, password, newPassword } }));
  channel?.postMessage("in");
}

/** Shows another project. @param {string} projectId */
export function openProject(projectId) {
  if (projectId === project.peek()?.id) return;
  history.pushState(null, "", hrefOf("", projectId));
  applyAddress();
}

/**
 * Signs out, and forgets what is kept here: drafts, outbox. Ask first if something is in the outbox.
 * Throws Offline or Problem, and then nothing is forgotten. @returns {Promise<void>}
 */
export async function signOut() {
  await saveBeforeSignOut();
  await call("DELETE", "auth/session");
  await Promise.allSettled([...signOutHandlers].map((part) => part()));
  channel?.postMessage("out");
  forget();
}

// Once nobody is signed in, nothing of the page stays: who it belonged to gets it back, somebody else never.
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

/** Shows nothing of anybody any more. */
function forget() {
  credentials.project = null;
  batch(() => {
    user.value = null;
    project.value = null;
    storageKeys.value = [];
    unknownProject.value = null;
    go("", { replace: true });
    projects.value = [];
    signedOut.value = false;
  });
}

const ADDRESS = /^desk(?:\/(prj_\w+))?(?:\/|$)/;

/** What the address names: a project, if it does, and the place. */
function parseAddress() {
  const path = location.pathname.slice(ROOT.length);
  const [start, named] = ADDRESS.exec(path) ?? ["desk/"];
  return { named: named ?? null, where: path.slice(start.length) + location.search };
}

/** The address, as a path below `/desk` and the project, with its query: "", "c/cnv_…", "tickets?status=OPEN". */
export const place = signal(parseAddress().where);

/**
 * Words that were typed to narrow the list at this place, such as a customer's name. They are kept with the history's entry and not in the
 * address, because the browser's list of visited pages keeps addresses after signing out. @type {import("../vendor/preact.js").Signal<Record<string, string>>}
 */
export const typedWords = signal({});

/** The address of a place, for those who copy it: it names the project. Reads a signal. @param {string} where @param {string|undefined} [of] */
export const hrefOf = (where, of = project.value?.id) => [`${ROOT}desk`, of, where].filter(Boolean).join("/");

/** The conversation that is open; null if none is. */
export const open = computed(() => /^c\/(cnv_\w+)(?:\?|$)/.exec(place.value)?.[1] ?? null);

/** The path of the page that is open, e.g. `tickets/tic_…`; null in the inbox. */
export const page = computed(() => (open.value ? null : place.value.split("?")[0] || null));

/** What the open page is called, for the window's title. */
export const heading = signal("");

/** Goes to a place: `go("c/cnv_…")`, `go("")`. @param {string} where @param {{replace?: boolean, words?: Record<string, string>}} [options]  words: those that were typed there */
export function go(where, { replace = false, words = {} } = {}) {
  const url = hrefOf(where, project.peek()?.id);
  const state = Object.keys(words).length ? { typed: { user: user.peek()?.id, words } } : null;
  if (replace) history.replaceState(state, "", url);
  else history.pushState(state, "", url);
  batch(() => {
    typedWords.value = words;
    place.value = where;
  });
}
addEventListener("popstate", applyAddress);
