// @ts-check
/** The editor of a definition: as a form or as JSON, with its problems, undo, and publication as the next version. */
import { html, useEffect, useId, useRef, useState } from "../vendor/preact.js";
import { t } from "./texts.js";
import { t as f } from "./form-texts.js";
import { Button, lazy, notify } from "../ui/parts.js";
import { query, setQuery } from "../ui/link.js";
import { ConflictDialog, useSave } from "../ui/conflict.js";
import { useProblems, verdict } from "./definition-check.js";
import { pretty } from "./json-text.js";
import { useDefinition } from "./definition-state.js";
import { Editing } from "./form-fields.js";
import { placed } from "./form-model.js";
/** @import { Loaded } from "../ui/loading.js" */
/** @import { FormProblem, PlacedProblem } from "./form-model.js" */

const Editor = lazy(() => import("./json-editor.js"), "Editor");

/**
 * @typedef {object} Kind  a kind of definition
 * @property {string} path  of the resource
 * @property {string} name  the member of the resource that is the definition, and of the body that publishes it
 * @property {string} label
 * @property {string} formLabel  of the tab with the form
 * @property {[method: string, path: string]} publish  the call that publishes
 * @property {(answer: any) => any} [shown]  selects the data to show from its answer
 * @property {(value: any) => any} order
 * @property {(value: any) => string[]} fields  pointers of the form's fields
 * @property {(value: any) => Promise<FormProblem[]>} ask  validates
 * @property {(value: any, pointer: string) => string} placeName  a field in words
 * @property {any} form  the component of the form; its prop `goal` is the field to focus
 * @property {{intro: string, publish: (n: number) => string, published: string, nothing: string}} texts
 */

/** The tabs of the editor. @param {{json: boolean, formLabel: string, panel: string}} props */
function Views({ json, formLabel, panel }) {
  const box = useRef(/** @type {HTMLElement|null} */ (null));
  const pick = (/** @type {boolean} */ next) => setQuery({ as: next ? "json" : null });
  const pressed = (/** @type {KeyboardEvent} */ event) => {
    if (!["ArrowLeft", "ArrowRight", "Home", "End"].includes(event.key)) return;
    event.preventDefault();
    const next = event.key === "End" || (event.key !== "Home" && !json);
    pick(next);
    /** @type {HTMLElement|undefined} */ (box.current?.children[next ? 1 : 0])?.focus();
  };
  const tab = (/** @type {boolean} */ own, /** @type {string} */ label) => html`<button type="button" role="tab" aria-selected=${String(own === json)} aria-controls=${panel} tabindex=${own === json ? 0 : -1} onClick=${() => pick(own)}>${label}</button>`;
  return html`<div ref=${box} class="tabs" role="tablist" aria-label=${f.views} onKeyDown=${pressed}>${tab(false, formLabel)}${tab(true, f.json)}</div>`;
}

/** The problems with links to their fields. @param {{of: PlacedProblem[], name: (pointer: string) => string, go: (pointer: string) => void}} props */
const Summary = ({ of, name, go }) => html`<ul class="problems" aria-label=${t.editor.list}>${of.map((each) => html`<li key=${each.path + each.code}><button type="button" class="link" onClick=${() => go(each.field)}>${name(each.field)}</button> <span>${each.rest && `${each.rest}: `}${each.message}</span></li>`)}</ul>`;

/** @param {{of: Loaded, kind: Kind, edits: boolean}} props */
export function DefinitionEditor({ of, kind, edits }) {
  const version = of.data.version;
  const definition = useDefinition({ path: kind.path, published: of.data[kind.name], version, order: kind.order });
  const { text, value } = definition;
  const json = query.value.get("as") === "json";
  const panel = useId();
  const [busy, setBusy] = useState(false);
  const [compares, compare] = useState(false);
  const [goal, setGoal] = useState(/** @type {{pointer: string}|null} */ (null));
  useEffect(() => void (json && setGoal(null)), [json]); // the form of a later change of tabs must not take the focus
  const saving = useSave(of, kind.shown);
  const checked = useProblems(text, kind.ask);
  const problems = placed(value === undefined ? [] : checked.problems, kind.fields(value));
  const why = !definition.changed ? kind.texts.nothing : checked.problems.length ? t.editor.problems(checked.problems.length) : "";

  /** Publish by a call, which resolves to false after a conflict. @param {() => Promise<boolean>} send */
  const save = async (send) => {
    setBusy(true);
    try {
      const done = await send();
      if (done) {
        if (latest.current.text === text) definition.discard();
        else latest.current.rebase(Math.max(of.data.version, version + 1)); // changed while it was published
        notify(kind.texts.published);
      }
      return done;
    } finally {
      setBusy(false);
    }
  };
  const send = () => saving.save(...kind.publish, { [kind.name]: kind.order(value) });
  const publish = () => (definition.outdated ? compare(true) : void save(send).catch((error) => notify(error.message, { bad: true })));
  const pressed = (/** @type {KeyboardEvent} */ event) => {
    if (!(event.ctrlKey || event.metaKey) || event.key.toLowerCase() !== "z" || /** @type {HTMLElement} */ (event.target).matches("input:not([type=checkbox]), textarea, select")) return;
    const act = event.shiftKey ? definition.redo : definition.undo;
    if (act) (event.preventDefault(), act());
  };
  const conflict = saving.conflict;
  const earlier = useRef(/** @type {Record<string, Record<string, any>>} */ (Object.create(null))).current; // ids are any text
  const latest = useRef(definition); // a notice outlives the state in which it was made
  latest.current = definition;
  const undo = (/** @type {any} */ after) => (latest.current.text === pretty(kind.order(after)) ? latest.current.undo?.() : notify(f.undoLater));
  const theirs = conflict?.fields({ [kind.name]: "" })[0]?.theirs;
  useEffect(() => {
    // The response to an earlier try was lost: the published definition is this one.
    if (conflict && pretty(kind.order(theirs)) === pretty(kind.order(value))) (definition.discard(), conflict.keep(), notify(kind.texts.published));
  }, [conflict]);
  const byField = Map.groupBy(problems, (each) => each.field);
  return html`<div class="definition" onKeyDown=${pressed}>
    <p class="muted">${kind.texts.intro}</p>
    ${definition.found && !definition.outdated && html`<p class="alert info" role="status">${f.found} <button type="button" class="link" onClick=${definition.discard}>${t.editor.back}</button></p>`}
    ${definition.outdated && !busy && html`<p class="alert" role="alert">${f.outdated(version)} <button type="button" class="link" onClick=${() => compare(true)}>${f.compare}</button></p>`}
    <div class="part-tools"><${Views} json=${json} formLabel=${kind.formLabel} panel=${panel} />
      ${edits && html`<${Button} label=${f.undo} kind="quiet" disabled=${!definition.undo} press=${() => definition.undo?.()} /><${Button} label=${f.redo} kind="quiet" disabled=${!definition.redo} press=${() => definition.redo?.()} />`}
      ${!json && html`<span class=${checked.problems.length || checked.failed ? "wrong" : "muted"} role="status">${verdict(checked)}</span>`}
      ${edits && html`<span class="publish"><${Button} label=${t.editor.back} disabled=${!definition.changed && !definition.found} press=${definition.discard} />
        <${Button} kind="primary" label=${busy ? t.doing : kind.texts.publish(version + 1)} disabled=${busy || checked.checking || Boolean(why) || value === undefined} why=${why} press=${publish} /></span>`}</div>
    ${!json && problems.length > 0 && html`<${Summary} of=${problems} name=${(/** @type {string} */ pointer) => kind.placeName(value, pointer)} go=${(/** @type {string} */ pointer) => setGoal({ pointer })} />`}
    <div role="tabpanel" id=${panel} aria-label=${json ? f.json : kind.formLabel}>
      ${json ? html`<${Editor} label=${kind.label} text=${text} change=${edits ? definition.write : undefined} of=${checked} />`
      : value === undefined ? html`<p class="wrong">${f.notJson} ${checked.problems[0]?.message} <button type="button" class="link" onClick=${() => setQuery({ as: "json" })}>${f.toJson}</button></p>`
      : html`<${Editing.Provider} value=${{ value, change: edits ? definition.change : () => {}, problems: byField, undo, edits, earlier }}>
          <${kind.form} goal=${goal} checked=${checked} edits=${edits} /><//>`}
    </div>
    ${conflict && html`<${ConflictDialog} fields=${conflict.fields({ [kind.name]: kind.label }).map(({ theirs, ...rest }) => ({ ...rest, theirs: kind.order(theirs) }))} keep=${() => (definition.discard(), conflict.keep())} save=${() => save(conflict.save)} close=${conflict.close} />`}
    ${compares && !conflict && html`<${ConflictDialog} fields=${[{ label: kind.label, theirs: kind.order(of.data[kind.name]), mine: value ?? text }]} keep=${definition.discard} save=${() => (value === undefined ? Promise.resolve(true) : save(send))} close=${() => compare(false)} />`}
  </div>`;
}

const FRAMES_MAX = 30;

/** Focus an element once it is rendered: it can be in a part that is folded, or not loaded yet. @param {() => HTMLElement|null|undefined} find @param {ScrollLogicalPosition} block @returns {() => void}  stops waiting */
export function focusSoon(find, block) {
  let frame = 0;
  const look = (/** @type {number} */ left) => {
    const there = find();
    if (!there && left) return void (frame = requestAnimationFrame(() => look(left - 1)));
    there?.focus();
    there?.scrollIntoView({ block });
  };
  look(FRAMES_MAX);
  return () => cancelAnimationFrame(frame);
}

/** Focus the field of a problem when it is selected. @param {{pointer: string}|null} goal @param {() => HTMLElement|null} box  contains the fields */
export function useGoal(goal, box) {
  useEffect(() => (goal ? focusSoon(() => /** @type {HTMLElement|null|undefined} */ (box()?.querySelector(`[data-at="${CSS.escape(goal.pointer)}"]`)), "center") : undefined), [goal]);
}
