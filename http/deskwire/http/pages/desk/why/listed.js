// @ts-check
/** Why the open conversation is in the list beside it, or is not, and the way to its past. */
import { html } from "../vendor/preact.js";
import { t as desk } from "../later-texts.js";
import { t } from "./words-of-lists.js";
import { Icon, clockTime } from "../parts.js";
import { dayOf } from "../words.js";
import { row } from "../store.js";
import { people, user } from "../session.js";
import { filter, view } from "../list.js";
import { Link } from "../parts/link.js";
import { reasons } from "./reasons.js";

const time = (/** @type {string} */ at) => `${dayOf(at)}, ${clockTime(at)}`;

/** @param {{id: string}} props */
export function Listed({ id }) {
  const one = row(id);
  if (!one) return null;
  const team = people().teams.find((each) => each.id === view.value.team)?.name;
  const found = reasons(one, filter.value, user.value?.id ?? "", { team, time });
  const name = view.value.key === "team" ? (team ?? desk.views.team) : /** @type {any} */ (desk.views)[view.value.key];
  const holds = found.every((each) => each.holds);
  return html`<div class="listed"><h3>${holds ? t.in(name) : t.notIn(name)}</h3>
    ${found.length ? html`<ul>${found.filter((each) => each.holds === holds).map((each) => html`<li key=${each.text}><${Icon} name=${holds ? "check" : "close"} /><bdi>${each.text}</bdi></li>`)}</ul>` : html`<p class="muted">${t.all}</p>`}
    <p><${Link} to=${`history/${id}`} class="button small"><${Icon} name="clock" /><span>${t.travel}</span><//></p></div>`;
}
