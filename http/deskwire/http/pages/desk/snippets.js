// @ts-check
/** Snippets in the composer: what was typed after `;` or `/` chooses one, and its placeholders are filled in. */
import { html, useEffect, useState } from "./vendor/preact.js";
import { t } from "./later-texts.js";
import { Kbd } from "./parts.js";
import { snippets } from "./conversation.js";
import { user } from "./session.js";
import { fold } from "./folding.js";

const MOST = 50;

/** What is typed of a snippet's name before the caret; null for nothing. @param {HTMLTextAreaElement} box */
export function wanted(box) {
  const before = box.value.slice(0, box.selectionStart);
  const match = /(?:^|\s)([;/][\p{L}\p{N}_-]*)$/u.exec(before);
  return match?.[1] ? { q: match[1].slice(1), from: before.length - match[1].length } : null;
}

/** A snippet's text with what its placeholders stand for. @param {string} text @param {any} contact */
function filled(text, contact) {
  /** @type {Record<string, string>} */
  const known = { "contact.name": contact?.name ?? "", "contact.email": contact?.email ?? "", "agent.name": user.value?.name ?? "", "agent.email": user.value?.email ?? "" };
  return text.replace(/\{\{?\s*([a-z.]+)\s*\}?\}/g, (whole, name) => known[name] ?? whole);
}

/** The snippets that fit a word. @param {string} q */
function fitting(q) {
  const word = fold(q);
  const all = snippets();
  const rank = (/** @type {any} */ each) => (fold(each.shortcut).startsWith(word) ? 0 : fold(each.title).includes(word) ? 1 : fold(each.text).includes(word) ? 2 : 3);
  return all.filter((each) => rank(each) < 3).sort((a, b) => rank(a) - rank(b) || a.shortcut.localeCompare(b.shortcut)).slice(0, MOST);
}

/** The snippets to choose from; null if no list is shown, because none fits or they are still loading. @param {string} q @returns {any[] | null} */
export function offered(q) {
  const found = fitting(q);
  return found.length || !q ? found : null;
}

/** @param {{q: string, found: any[], contact: any, hook: any, pick: (text: string) => void, away: () => void}} props */
export function Snippets({ q, found, contact, hook, pick, away }) {
  const [at, setAt] = useState(0);
  const chosen = found[Math.min(at, found.length - 1)];
  useEffect(() => setAt(0), [q]);
  hook.current = (/** @type {KeyboardEvent} */ event) => {
    if (event.key === "Escape") return (away(), true);
    if (!found.length) return false;
    if (event.key === "ArrowDown" || event.key === "ArrowUp") return (setAt((at + (event.key === "ArrowDown" ? 1 : found.length - 1)) % found.length), true);
    if ((event.key === "Enter" && !event.metaKey && !event.ctrlKey) || event.key === "Tab") return (chosen && pick(filled(chosen.text, contact)), true);
    return false;
  };
  useEffect(() => {
    document.getElementById(`snippet-${chosen?.id}`)?.scrollIntoView({ block: "nearest" });
    const box = document.querySelector(".composer textarea");
    if (chosen) box?.setAttribute("aria-activedescendant", `snippet-${chosen.id}`);
    return () => box?.removeAttribute("aria-activedescendant");
  }, [chosen?.id]);
  return html`<div class="snippets" role="listbox" id="snippets" aria-label=${t.composer.snippets}>
    ${found.length === 0 && html`<div class="option" role="option" aria-selected="false" aria-disabled="true">${t.composer.noSnippets(q)}</div>`}
    ${found.map((each) => html`<div key=${each.id} id=${`snippet-${each.id}`} class="option" role="option" aria-selected=${each === chosen}
      onMouseDown=${(/** @type {Event} */ event) => (event.preventDefault(), pick(filled(each.text, contact)))}>
      <span><b>;${each.shortcut}</b> <bdi>${each.title}</bdi></span>${each === chosen && html`<${Kbd} keys="enter" />`}<bdi class="ellipsis">${filled(each.text, contact)}</bdi>
    </div>`)}
  </div>`;
}
