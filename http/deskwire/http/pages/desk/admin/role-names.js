// @ts-check
/** The organisation's roles: their names, the choices for a member, and the permissions by area. */
import { useEffect, useState } from "../vendor/preact.js";
import { t } from "./texts.js";
import { all } from "../core/api.js";
import { may, permissions, project } from "../core/session.js";
import { useRefreshOnEvents } from "../ui/auto-refresh.js";

/** @typedef {{id: string, name: string, description: string, permissions: string[], builtIn: boolean, members: number}} Role */

/** All permissions, by area. */
export const PERMISSIONS = Object.keys(t.roles.means);

/** The areas of the permissions, each with its own. @type {[string, string[]][]} */
export const AREAS = [...new Set(PERMISSIONS.map((each) => areaOf(each)))].map((area) => [area, PERMISSIONS.filter((each) => areaOf(each) === area)]);

/** @param {string} permission */
function areaOf(permission) {
  return /** @type {string} */ (permission.split(".")[0]);
}

/** The path of the organisation's roles. */
export const rolesPath = () => `organisations/${project.value?.organisationId}/roles`;

/** Return the organisation's roles, built-in ones first; none until they are loaded. They follow changes. @returns {Role[]} */
export function useRoles() {
  const path = rolesPath();
  const [roles, setRoles] = useState(/** @type {Role[]} */ ([]));
  const load = () => all(path).then(setRoles, () => {}); // a role that is not known by name is shown by its id
  useEffect(() => void load(), [path]);
  useRefreshOnEvents((event) => event.type === "settings.changed" && event.data.what === "roles", load);
  return roles;
}

/** Return the name of a role. @param {Role[]} roles @param {string} id @returns {string} */
export const roleName = (roles, id) => /** @type {Record<string, string>} */ (t.members.roles)[id] ?? roles.find((each) => each.id === id)?.name ?? id;

/** Return whether the user has each permission of a role, so that the user can give and change it. @param {Role} role */
export const holds = (role) => role.permissions.every((each) => permissions.value.has(each));

/** Return whether the user can change the role. @param {Role} role */
export const changes = (role) => may("members.manage") && !role.builtIn && holds(role);

/** Return the roles that the user can give as options. @param {Role[]} roles @param {string} [present] the member's, which is always one of them */
export function roleChoices(roles, present) {
  const owner = project.value?.role === "owner";
  return roles.filter((each) => each.id === present || (holds(each) && (each.id !== "owner" || owner))).map((each) => ({ value: each.id, label: roleName(roles, each.id) }));
}
