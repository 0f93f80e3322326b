// @ts-check
/** The dialog for the tags of one or several conversations; a tag that only some of them have is shown as mixed. */
import { html, useMemo, useState } from "../vendor/preact.js";
import { t } from "../core/texts-lazy.js";
import { Button, Icon, announce, dialog } from "../ui/parts.js";
import { Chooser } from "../ui/chooser.js";
import { Dialog } from "../ui/dialog.js";
import { row } from "../core/store.js";
import { fold, foldName } from "../core/folding.js";
import { tags } from "./conversation.js";
import { tag } from "./actions.js";
import { isWholeView } from "./whole-view.js";
import { t as bulk } from "./bulk-texts.js";

/** @typedef {boolean | "mixed"} State  whether all, no or some conversations have a tag */
/** @typedef {{name: string, count: number, before: State}} TagState  count: of the conversations that have it */

const close = () => void (dialog.value = null);

/** Return the tags that are not among others, by their folded names. @param {readonly string[]} names @param {readonly string[]} others @returns {string[]} */
function without(names, others) {
  const keys = new Set(others.map(foldName));
  return names.filter((each) => !keys.has(foldName(each)));
}

/** Return the tags that any of the conversations has: first those of all, then those of most. @param {readonly (readonly string[])[]} all @returns {TagState[]} */
export function tagStates(all) {
  const found = /** @type {Map<string, {name: string, count: number}>} */ (new Map());
  for (const name of all.flat()) {
    const key = foldName(name);
    const one = found.get(key) ?? { name, count: 0 };
    found.set(key, { ...one, count: one.count + 1 });
  }
  return [...found.values()].sort((a, b) => b.count - a.count || a.name.localeCompare(b.name)).map((each) => ({ ...each, before: each.count === all.length || /** @type {const} */ ("mixed") }));
}

/** Return the state after a press: a mixed tag goes to all, then to none, then is left as it was. @param {State} now @param {State} before @returns {State} */
export const pressed = (now, before) => (now === "mixed" ? true : now === true ? false : before === "mixed" ? "mixed" : true);

/** @param {{ids: string[]}} props */
export function Tags({ ids }) {
  const [q, setQ] = useState("");
  const whole = useMemo(() => isWholeView(ids), [ids]);
  const many = ids.length > 1 || whole;
  const present = useMemo(() => tagStates(ids.flatMap((id) => (row(id) ? [row(id)?.tags ?? []] : []))), [ids]);
  const [changed, setChanged] = useState(/** @type {ReadonlyMap<string, {name: string, state: State}>} */ (new Map()));
  const total = useMemo(() => ids.filter((id) => row(id)).length, [ids]);
  // Of all in the view only some are loaded, so no tag is known to be on all or on none.
  const before = (/** @type {string} */ name) => (whole ? "mixed" : (present.find((each) => foldName(each.name) === foldName(name))?.before ?? false));
  const stateOf = (/** @type {string} */ name) => changed.get(foldName(name))?.state ?? before(name);
  const set = (/** @type {string} */ name, /** @type {State} */ state) => {
    setChanged(new Map(changed).set(foldName(name), { name, state }));
    setQ("");
    announce(t.dialogs.tagState(name, String(state), many));
  };
  const done = () => {
    close();
    const changes = [...changed.values()].filter((each) => each.state !== before(each.name));
    const [added, removed] = [true, false].map((state) => changes.filter((each) => each.state === state).map((each) => each.name));
    if (changes.length) tag(ids, (one) => [...without(one.tags, removed ?? []), ...without(added ?? [], one.tags)], { add: added ?? [], remove: removed ?? [] });
  };
  const typed = q.trim();
  const here = present.map((each) => each.name);
  const fresh = without([...changed.values()].map((each) => each.name), here);
  const shown = [...here, ...fresh, ...without(tags().map((each) => each.name), [...here, ...fresh])];
  const option = (/** @type {string} */ name) => {
    const [state, count] = [stateOf(name), present.find((each) => each.name === name)?.count ?? 0];
    return { key: name, label: name, checked: state, hint: state === "mixed" && !whole ? t.dialogs.tagOnSome(count, total) : "", pick: () => set(name, pressed(state, before(name))) };
  };
  const options = [
    ...shown.filter((each) => fold(each).includes(fold(typed))).map(option),
    ...(typed && without([typed], shown).length ? [{ key: " new", label: t.dialogs.createTag(typed), icon: "plus", pick: () => set(typed, true) }] : []),
  ];
  const chosen = many ? [] : [...here, ...fresh].filter((each) => stateOf(each) === true);
  return html`<${Dialog} title=${whole ? bulk.tagsOfAll : many ? t.dialogs.tagsOf(total) : t.dialogs.tags} close=${close}><div class="body">
    ${chosen.length > 0 && html`<div class="chosen">${chosen.map((each) => html`<span key=${each} class="chip tag"><bdi class="ellipsis">${each}</bdi><button type="button" aria-label=${t.dialogs.removeTag(each)} onClick=${() => set(each, false)}><${Icon} name="close" /></button></span>`)}</div>`}
    <${Chooser} label=${t.dialogs.tagPlaceholder} options=${options} empty=${t.dialogs.noTags} q=${q} type=${setQ} multiple submit=${done} />
    <div class="actions"><${Button} label=${t.cancel} kind="quiet" press=${close} /><${Button} label=${t.save} kind="primary" press=${done} /></div>
  </div><//>`;
}
