// @ts-check
/** Who is signed in, in which project, and at which place of the desk. */
import { batch, computed, signal } from "./vendor/preact.js";
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

const CHOSEN = "deskwire.project";
const others = typeof BroadcastChannel === "function" ? new BroadcastChannel("deskwire session") : null;
others?.addEventListener("message", ({ data }) => {
  if (data === "out") forget();
  else void begin().catch(() => {});
});

/** @typedef {{users: {id: string, name: string}[], teams: {id: string, name: string}[]}} People */
/** @type {Resource<People>} */
const everybody = new Resource(async () => {
  const chosen = project.peek();
  if (!chosen) return { users: [], teams: [] };
  const [users, teams] = await Promise.all([all(`organisations/${chosen.organisationId}/members`), all("teams")]);
  const named = (/** @type {any} */ { id, name, user }) => ({ id: user?.id ?? id, name: user?.name ?? name });
  return { users: users.map(named), teams: teams.map(named) };
}, { users: [], teams: [] });

/** The members of the organisation and the teams, to assign to; the first read loads them. Reads a signal. @returns {People} */
export const people = () => everybody.value;
/** Loads them anew. */
export const reloadPeople = () => everybody.load();

/** @type {Set<() => unknown>} What is done before somebody's signing out. */
const partings = new Set();

/** Registers what forgets a part of what is kept here when somebody signs out. @param {() => unknown} part */
export const parting = (part) => partings.add(part);

/** @param {{user: User|null, projects: Project[]}} session */
function take(session) {
  const wanted = project.peek()?.id ?? stored();
  const chosen = session.projects.find((each) => each.id === wanted) ?? session.projects[0] ?? null;
  credentials.project = chosen?.id ?? null;
  if (chosen) keep(chosen.id);
  batch(() => {
    projects.value = session.projects;
    project.value = chosen;
    user.value = session.user;
    signedOut.value = false;
  });
}

function stored() {
  try {
    return localStorage.getItem(CHOSEN);
  } catch {
    return null;
  }
}

/** Keeps which project is shown, also when a newer one comes before it in the list. @param {string} id */
function keep(id) {
  try {
    localStorage.setItem(CHOSEN, id);
  } catch {
    // it holds for this page then
  }
}

/**
 * Asks the server who is signed in. If nobody is where somebody was, the page stays and asks for the password.
 * Throws Offline or Problem. @returns {Promise<void>}
 */
export async function begin() {
  const session = await get("auth/session");
  if (session.user || !user.peek()) take(session);
  else signedOut.value = true;
}

/**
 * Signs in. Throws Problem: `password_change_required` asks for `newPassword`.
 * @param {string} email @param {string} password @param {string} [newPassword] @returns {Promise<void>}
 */
export async function signIn(email, password, newPassword) {
  take(await call("POST", "auth/session", { body: { email, password, newPassword } }));
  others?.postMessage("in");
}

/** Shows another project. @param {string} projectId */
export function choose(projectId) {
  const chosen = projects.value.find((each) => each.id === projectId);
  if (!chosen || chosen === project.value) return;
  credentials.project = chosen.id;
  keep(chosen.id);
  go("");
  project.value = chosen;
}

/**
 * Signs out, and forgets what is kept here: drafts, outbox. Ask first if something is in the outbox.
 * Throws Offline or Problem, and then nothing is forgotten. @returns {Promise<void>}
 */
export async function signOut() {
  await call("DELETE", "auth/session");
  await Promise.allSettled([...partings].map((part) => part()));
  others?.postMessage("out");
  forget();
}

/** Shows nothing of anybody any more. */
function forget() {
  credentials.project = null;
  go("", { replace: true });
  batch(() => {
    user.value = null;
    project.value = null;
    projects.value = [];
    signedOut.value = false;
  });
}

const here = () => location.pathname.slice(ROOT.length).replace(/^desk\/?/, "") + location.search;

/** The address, as a path below `/desk` with its query: "", "c/cnv_…", "tickets?status=OPEN". */
export const place = signal(here());

/** The conversation that is open; null if none is. */
export const open = computed(() => /^c\/(cnv_\w+)(?:\?|$)/.exec(place.value)?.[1] ?? null);

/** The path of the page that is open, e.g. `tickets/tic_…`; null in the inbox. */
export const page = computed(() => (open.value ? null : place.value.split("?")[0] || null));

/** What the open page is called, for the window's title. */
export const heading = signal("");

/** Goes to a place: `go("c/cnv_…")`, `go("")`. @param {string} where @param {{replace?: boolean}} [options] */
export function go(where, options = {}) {
  const url = ROOT + "desk" + (where && "/" + where);
  if (options.replace) history.replaceState(null, "", url);
  else history.pushState(null, "", url);
  place.value = where;
}
addEventListener("popstate", () => void (place.value = here()));
