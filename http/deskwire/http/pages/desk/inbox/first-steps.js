// @ts-check
/** The check list of a new project, in place of an empty list of conversations. */
import { html, useEffect } from "../vendor/preact.js";
import { t } from "./first-steps-texts.js";
import { Button, Icon, cx, notify } from "../ui/parts.js";
import { call } from "../core/api.js";
import { may } from "../core/session.js";
import { counters } from "../core/store.js";
import { Link } from "../ui/link.js";
import { useCall } from "../ui/loading.js";
import { useEvents } from "../ui/auto-refresh.js";

const stepTexts = /** @type {Record<string, {title: string, text: string}>} */ (t.steps);

// Earlier versions hid the list in one user's browser. That choice must not hide the list from the others, so it is dropped.
try {
  localStorage.removeItem("deskwire.firstSteps");
} catch {
  /* without storage, there is nothing to remove */
}

/** The page on which each step is done. @type {Record<string, string>} */
const PLACES = { chat: "settings/channels", colleague: "settings/members", history: "settings/keys", webhook: "webhooks", secondFactor: "settings/account" };

/** @typedef {{hidden: boolean, steps: {name: string, done: boolean}[]}} Setup */

/** Hide the list from all members of the project, or show it again. @param {boolean} hidden @param {(found: Setup) => void} put  gets the changed list */
async function setHidden(hidden, put) {
  try {
    put(await call("PUT", "setup", { body: { hidden } }));
    if (hidden) notify(t.hidden, { action: t.undo, run: () => void setHidden(false, put) });
    else notify(t.shown);
  } catch (error) {
    notify(t.failed(/** @type {Error} */ (error).message), { bad: true });
  }
}

/**
 * Return the steps of the signed-in user; null if there is nothing to show. Events of the stream that can finish a step, or hide the list, load them again.
 * @returns {{steps: {name: string, done: boolean}[], hide: (() => void) | null} | null}  hide: null for users who may not hide the list
 */
export function useFirstSteps() {
  const of = useCall(may("conversations.read") ? "setup" : null);
  const found = /** @type {Setup | null} */ (of.data);
  const hidden = found?.hidden ?? false;
  const again = () => void of.reload();
  useEvents((events) => events.some(({ type }) => type === "settings.changed" || (type === "conversation.created" && !hidden)) && again(), again);
  useEffect(() => {
    addEventListener("focus", again); // a second factor or the chat of a website has no event here
    return () => removeEventListener("focus", again);
  }, [of.reload]);
  const steps = found?.steps ?? [];
  const all = counters.value;
  const manages = steps.some((each) => each.name !== "secondFactor"); // others see their step only in a desk without work
  if (hidden || steps.every((each) => each.done) || (!manages && (!all || all.open + all.pending + all.snoozed > 0))) return null;
  return { steps, hide: may("projects.manage") ? () => void setHidden(true, of.put) : null };
}

/** @param {{of: NonNullable<ReturnType<typeof useFirstSteps>>}} props */
export function FirstSteps({ of: { steps, hide } }) {
  const left = steps.filter((each) => !each.done).length;
  return html`<section class="first-steps" aria-label=${t.title}><h2>${t.title}</h2><p class="muted">${t.left(steps.length - left, steps.length)}</p>
    <ul>${steps.map(({ name, done }) => html`<li key=${name} class=${cx(done && "done")}><${Icon} name=${done ? "done" : "right"} class=${done ? "good" : ""} />
      <div><${Link} to=${PLACES[name]} class="name">${stepTexts[name]?.title ?? name}${done && html`<span class="sr">, ${t.done}</span>`}<//>${!done && html`<p class="muted">${stepTexts[name]?.text}</p>`}</div></li>`)}</ul>
    ${hide && html`<${Button} class="small" kind="quiet" label=${t.hide} press=${hide} />`}</section>`;
}
