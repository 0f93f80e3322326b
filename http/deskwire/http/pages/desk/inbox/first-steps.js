// @ts-check
/** The check list of a new project, in place of an empty list of conversations. */
import { html, useEffect } from "../vendor/preact.js";
import { t } from "./first-steps-texts.js";
import { Button, Icon, cx, setting } from "../ui/parts.js";
import { may, user } from "../core/session.js";
import { counters } from "../core/store.js";
import { Link } from "../ui/link.js";
import { useCall } from "../ui/loading.js";
import { useEvents } from "../ui/auto-refresh.js";

/** The users who have put the list away in this browser, by user and project. */
const hidden = setting("firstSteps", /** @type {Record<string, boolean>} */ ({}));

/** The page on which each step is done. @type {Record<string, string>} */
const PLACES = { chat: "settings/channels", colleague: "settings/members", history: "settings/keys", webhook: "webhooks", secondFactor: "settings/account" };

/**
 * Return the steps of the signed-in user; null if there is nothing to show. Events of the stream that can finish a step load them again.
 * @param {string} project @returns {{steps: {name: string, done: boolean}[], hide: () => void} | null}
 */
export function useFirstSteps(project) {
  const key = `${user.value?.id} ${project}`;
  const of = useCall(hidden.value[key] || !may("conversations.read") ? null : "setup");
  const again = () => void of.reload();
  useEvents((events) => events.some(({ type }) => type === "settings.changed" || type === "conversation.created") && again(), again);
  useEffect(() => {
    addEventListener("focus", again); // a second factor or the chat of a website has no event here
    return () => removeEventListener("focus", again);
  }, [key]);
  const steps = /** @type {{name: string, done: boolean}[]} */ (of.data?.steps ?? []);
  const all = counters.value;
  const manages = steps.some((each) => each.name !== "secondFactor"); // others see their step only in a desk without work
  if (hidden.value[key] || steps.every((each) => each.done) || (!manages && (!all || all.open + all.pending + all.snoozed > 0))) return null;
  return { steps, hide: () => void (hidden.value = { ...hidden.value, [key]: true }) };
}

/** @param {{of: NonNullable<ReturnType<typeof useFirstSteps>>}} props */
export function FirstSteps({ of: { steps, hide } }) {
  const left = steps.filter((each) => !each.done).length;
  return html`<section class="first-steps" aria-label=${t.title}><h2>${t.title}</h2><p class="muted">${t.left(left, steps.length)}</p>
    <ul>${steps.map(({ name, done }) => html`<li key=${name} class=${cx(done && "done")}><${Icon} name=${done ? "done" : "right"} class=${done ? "good" : ""} />
      <div><${Link} to=${PLACES[name]} class="name">${t.steps[name]?.title ?? name}${done && html`<span class="sr">, ${t.done}</span>`}<//>${!done && html`<p class="muted">${t.steps[name]?.text}</p>`}</div></li>`)}</ul>
    <${Button} class="small" kind="quiet" label=${t.hide} press=${hide} /></section>`;
}
