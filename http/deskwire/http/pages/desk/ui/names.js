// @ts-check
/** Names of users and teams, choices for forms, and dates of input fields. */
import { assignable, people, user } from "../core/session.js";
import { t } from "./texts.js";

/** Return the name of a user or team; its id if it was deleted. @param {string|null|undefined} id @returns {string|null} */
export function nameOf(id) {
  if (!id) return null;
  const { users, teams } = people();
  return [...users, ...teams].find((each) => each.id === id)?.name ?? id;
}

/** Return the users to choose from, the current user first. @param {string} unassigned  the label of no user */
export function userChoices(unassigned) {
  const me = user.value?.id;
  const users = [...assignable()].sort((a, b) => Number(b.id === me) - Number(a.id === me));
  return [{ value: "", label: unassigned }, ...users.map((each) => ({ value: each.id, label: each.id === me ? t.me(each.name) : each.name }))];
}

/** Return the teams to choose from. @param {string} none */
export const teamChoices = (none) => [{ value: "", label: none }, ...people().teams.map((each) => ({ value: each.id, label: each.name }))];

/** Return the values of an enumeration as options. @param {Record<string, string>} of */
export const choices = (of) => Object.entries(of).map(([value, label]) => ({ value, label }));

/** Split words at commas; each is returned once. @param {string} text */
export const splitWords = (text) => [...new Set(text.split(",").map((each) => each.trim()).filter(Boolean))];

/** Return the time of a `datetime-local` field for the API; null for none. @param {string|undefined} local */
export const fromLocal = (local) => (local ? new Date(local).toISOString() : null);

/** Return a time of the API for a `datetime-local` field. @param {string|null} at */
export function toLocal(at) {
  if (!at) return "";
  const date = new Date(at);
  return new Date(date.getTime() - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}
