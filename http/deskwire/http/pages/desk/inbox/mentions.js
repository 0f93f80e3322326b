// @ts-check
/**
 * Mentions in notes: suggestions while the author types, the people whom a note notifies, and their names in a stored note.
 *
 * A mention is an id with the name that stands behind `@` in the text. A draft keeps the mentions that its author has picked; those whose name is no
 * longer in the text are dropped.
 */
import { html, useEffect, useState } from "../vendor/preact.js";
import { t } from "../core/texts-lazy.js";
import { Avatar, Button, Icon, Kbd, announce, cx } from "../ui/parts.js";
import { people, user } from "../core/session.js";
import { fold } from "../core/folding.js";
import { splitMentions } from "./mention-text.js";
/** @import { Mention } from "../core/types.js" */

const OFFERED_MAX = 30;
const QUERY_MAX = 60;

/** Return the users and teams that a note can mention. Reads a signal. @returns {Mention[]} */
export function mentionable() {
  const { users, teams } = people();
  return [
    ...users.filter((each) => each.mentionable && each.id !== user.value?.id).map(({ id, name }) => ({ type: /** @type {const} */ ("user"), id, name })),
    ...teams.map(({ id, name }) => ({ type: /** @type {const} */ ("team"), id, name })),
  ];
}

/** Return the part of a name that is typed after `@` before the caret; null for none. @param {{value: string, selectionStart: number}} box */
export function mentionQuery({ value, selectionStart }) {
  const before = value.slice(0, selectionStart);
  const match = /(?:^|[\s([{"'«“‘])@([^\n@]*)$/u.exec(before);
  const q = match?.[1] ?? null;
  return q === null || q.length > QUERY_MAX ? null : { q, from: before.length - q.length - 1 };
}

/** Return the users and teams whose name, or a word of it, begins with these letters; null hides the list. @param {string} q @returns {Mention[] | null} */
export function offeredMentions(q) {
  const word = fold(q);
  const rank = (/** @type {Mention} */ each) => {
    const name = fold(each.name);
    return name.startsWith(word) ? 0 : name.includes(` ${word}`) ? 1 : 2;
  };
  const found = mentionable().filter((each) => rank(each) < 2).sort((a, b) => rank(a) - rank(b) || a.name.localeCompare(b.name));
  return found.length ? found.slice(0, OFFERED_MAX) : null;
}

/** Return the users and teams whose whole name is typed after `@` without being picked. @param {string} text @param {readonly Mention[]} picked @returns {Mention[]} */
export function unpicked(text, picked) {
  if (!text.includes("@")) return [];
  const others = mentionable().filter((each) => !picked.some((one) => one.id === each.id));
  const found = splitMentions(text, [...picked, ...others]).flatMap((each) => (typeof each === "string" ? [] : [each]));
  return others.filter((each) => found.includes(each));
}

/**
 * The list of suggestions. Its field names it in `aria-controls`, and the option under the cursor in `aria-activedescendant`.
 * @param {{found: Mention[], q: string, hook: any, pick: (one: Mention) => void, away: () => void}} props  hook: gets the function that handles keys
 */
export function MentionPicker({ found, q, hook, pick, away }) {
  const [at, setAt] = useState(0);
  const chosen = found[Math.min(at, found.length - 1)];
  useEffect(() => setAt(0), [q]);
  useEffect(() => announce(t.mentions.found(found.length)), [found.length]);
  hook.current = (/** @type {KeyboardEvent} */ event) => {
    if (event.key === "Escape") return (away(), true);
    if (event.key === "ArrowDown" || event.key === "ArrowUp") return (setAt((at + (event.key === "ArrowDown" ? 1 : found.length - 1)) % found.length), true);
    if ((event.key === "Enter" && !event.metaKey && !event.ctrlKey) || event.key === "Tab") return (chosen && pick(chosen), true);
    return false;
  };
  useEffect(() => {
    document.getElementById(`mention-${chosen?.id}`)?.scrollIntoView({ block: "nearest" });
    const box = document.querySelector(".composer textarea");
    if (chosen) box?.setAttribute("aria-activedescendant", `mention-${chosen.id}`);
    return () => box?.removeAttribute("aria-activedescendant");
  }, [chosen?.id]);
  return html`<div class="snippets" role="listbox" id="mentions" aria-label=${t.mentions.label}>
    ${found.map((each) => html`<div key=${each.id} id=${`mention-${each.id}`} class="option person" role="option" aria-selected=${each === chosen}
      onMouseDown=${(/** @type {Event} */ event) => (event.preventDefault(), pick(each))}>
      <span><${MentionFace} of=${each} /><bdi class="ellipsis">${each.name}</bdi>${each.type === "team" && html` <span class="muted">${t.mentions.team}</span>`}</span>${each === chosen && html`<${Kbd} keys="enter" />`}
    </div>`)}
  </div>`;
}

/** @param {{of: Mention}} props */
const MentionFace = ({ of }) => (of.type === "team" ? html`<${Icon} name="people" />` : html`<${Avatar} name=${of.name} id=${of.id} size="s" />`);

/** Below a note that is being written: whom it notifies, and whom it does not although their name is there. @param {{text: string, picked: readonly Mention[], add: (one: Mention) => void}} props */
export function NotifiedPeople({ text, picked, add }) {
  const others = unpicked(text, picked);
  if (!picked.length && !others.length) return null;
  const names = [...new Map(picked.map((each) => [each.id, each.name])).values()].join(", ");
  return html`<div class="notified">${picked.length > 0 && html`<${Icon} name="at" /><span>${t.mentions.notifies} <bdi>${names}</bdi></span>`}
    ${others.map((each) => html`<${Button} key=${each.id} class="small" kind="quiet" icon="at" label=${t.mentions.notify(each.name)} press=${() => add(each)} />`)}</div>`;
}

/** Return the present name of a user or team; the one in the text for former ones. @param {Mention} of */
function presentName(of) {
  const { users, teams } = people();
  return (of.type === "team" ? teams : users).find((each) => each.id === of.id)?.name ?? of.name;
}

/** The name of a mentioned user or team. @param {{of: Mention}} props */
export function MentionName({ of }) {
  const name = presentName(of);
  return html`<span class=${cx("mention", of.id === user.value?.id && "me")} title=${name === of.name ? undefined : t.mentions.writtenAs(of.name)}>@<bdi>${name}</bdi></span>`;
}

/** The users and teams that a note mentions without their name in the text. @param {{text: string, mentions: readonly Mention[]}} props */
export function OtherMentions({ text, mentions }) {
  const shown = splitMentions(text, mentions);
  const others = mentions.filter((each) => !shown.includes(each));
  return others.length ? html`<div class="notified"><${Icon} name="at" />${others.map((each) => html`<${MentionName} key=${each.id} of=${each} />`)}</div>` : null;
}
