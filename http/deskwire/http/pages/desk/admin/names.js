// @ts-check
/** Names of people and teams by their ids, and the choices of whom something belongs to. */
import { assignable, people, user } from "../core/session.js";
import { t } from "./texts.js";

/** The name of a user or team; the id itself of one that is gone. @param {string|null|undefined} id @returns {string|null} */
export function nameOf(id) {
  if (!id) return null;
  const { users, teams } = people();
  return [...users, ...teams].find((each) => each.id === id)?.name ?? id;
}

/** Users to choose from, the reader first. @param {string} nobody  what is shown for none */
export function userChoices(nobody) {
  const me = user.value?.id;
  const users = [...assignable()].sort((a, b) => Number(b.id === me) - Number(a.id === me));
  return [{ value: "", label: nobody }, ...users.map((each) => ({ value: each.id, label: each.id === me ? t.me(each.name) : each.name }))];
}

/** Teams to choose from. @param {string} none */
export const teamChoices = (none) => [{ value: "", label: none }, ...people().teams.map((each) => ({ value: each.id, label: each.name }))];

/** A list of a choice of the API as options. @param {Record<string, string>} of */
export const choices = (of) => Object.entries(of).map(([value, label]) => ({ value, label }));

/** Words between commas, each once. @param {string} text */
export const splitWords = (text) => [...new Set(text.split(",").map((each) => each.trim()).filter(Boolean))];

/** The time in a field of `datetime-local`, as the API has it; null for none. @param {string|undefined} local */
export const fromLocal = (local) => (local ? new Date(local).toISOString() : null);

/** A time of the API as a field of `datetime-local` has it. @param {string|null} at */
export function toLocal(at) {
  if (!at) return "";
  const date = new Date(at);
  return new Date(date.getTime() - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}
