// @ts-check
/** Who is signed in, in which project, and at which place of the desk. */
import { computed, signal } from "./vendor/preact.js";
import { ROOT } from "./api.js";
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

/** Asks the server who is signed in. Throws Offline or Problem. @returns {Promise<void>} */
export async function begin() {}

/**
 * Signs in. Throws Problem: `password_change_required` asks for `newPassword`.
 * @param {string} email @param {string} password @param {string} [newPassword] @returns {Promise<void>}
 */
export async function signIn(email, password, newPassword) {
  void [email, password, newPassword];
}

/** Shows another project. @param {string} projectId */
export function choose(projectId) {
  void projectId;
}

/** Signs out, and clears what is kept here: drafts, outbox. Ask first if something is in the outbox. @returns {Promise<void>} */
export async function signOut() {}

/** The address, as a path below `/desk`: "", "c/cnv_…". */
export const place = signal(location.pathname.slice(ROOT.length).replace(/^desk\/?/, ""));

/** The conversation that is open; null if none is. */
export const open = computed(() => /^c\/(cnv_\w+)$/.exec(place.value)?.[1] ?? null);

/** Goes to a place: `go("c/cnv_…")`, `go("")`. @param {string} where @param {{replace?: boolean}} [options] */
export function go(where, options = {}) {
  const url = ROOT + "desk" + (where && "/" + where);
  if (options.replace) history.replaceState(null, "", url);
  else history.pushState(null, "", url);
  place.value = where;
}
addEventListener("popstate", () => {
  place.value = location.pathname.slice(ROOT.length).replace(/^desk\/?/, "");
});
