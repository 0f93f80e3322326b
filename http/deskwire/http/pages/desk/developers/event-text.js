// @ts-check
/** Events and activity in words: actor, change and reason. */
import { html } from "../vendor/preact.js";
import { t } from "./texts.js";
import { exact } from "./format.js";
/** @import { Moment } from "./replay.js" */

/** Return an actor in words. @param {any} actor @param {Map<string, string>} names  of workflows */
function actorName(actor, names) {
  if (!actor) return null;
  if (actor.type === "bot") return t.told.workflow(names.get(actor.id) ?? actor.id);
  return actor.name ?? t.told.actors[/** @type {"key"} */ (actor.type)] ?? actor.type;
}

/** Return the name of an assignee. @param {any} assignee */
const nameOf = (assignee) => assignee?.name ?? assignee?.id;

/** The text for each changed field. @type {Record<string, (to: any, from: any) => string>} */
const FIELD_TEXTS = {
  tags: (to, from) => [...to.filter((/** @type {string} */ each) => !from?.includes(each)).map(t.told.tagged), ...(from ?? []).filter((/** @type {string} */ each) => !to.includes(each)).map(t.told.untagged)].join(", "),
  snoozedUntil: (to) => (to ? t.told.snoozed(exact(to)) : t.told.woke),
  assignee: (to) => (to ? t.told.assignedTo(nameOf(to)) : t.told.unassigned),
  status: (to) => t.told.status[/** @type {"OPEN"} */ (to)] ?? to,
  title: (to) => t.told.named(to ?? ""),
  archived: (to) => (to ? t.told.archived : t.told.unarchived),
  visible: () => t.told.shown,
  ticketId: (to) => (to ? t.told.linked : t.told.unlinked),
};

/** @param {any} activity */
const changes = (activity) => (activity?.changes ?? []).map((/** @type {any} */ each) => FIELD_TEXTS[each.field]?.(each.to, each.from)).filter(Boolean).join(", ");

/** @type {Record<string, (data: any, names: Map<string, string>) => string>} */
const EVENT_TEXTS = {
  "conversation.created": () => t.told.began,
  "conversation.reopened": () => t.told.reopened,
  "conversation.closed": (data) => t.told.closed(t.told.closers[/** @type {"bot"} */ (data.closedBy)] ?? data.closedBy),
  "conversation.assigned": (data) => (data.conversation.assignee ? t.told.assignedTo(nameOf(data.conversation.assignee)) : t.told.unassigned),
  "conversation.updated": (data) => t.told.updated((data.changed ?? []).join(", ")),
  "message.created": (data) => t.told.wrote(data.message.author.name ?? t.history.authors[/** @type {"bot"} */ (data.message.author.type)], brief(data.message.text)),
  "message.redacted": () => t.told.redacted,
  "message.deleted": () => t.told.deleted,
  "workflow.step.presented": (data, names) => t.told.asked(names.get(data.step.workflowId) ?? data.step.workflowId, brief(data.step.action?.text ?? "")),
  "workflow.completed": (data, names) => t.told.ended(names.get(data.workflowId) ?? data.workflowId, t.told.endings[/** @type {"completed"} */ (data.reason)] ?? data.reason),
};

/** @param {string} text */
const brief = (text) => (text.length > 80 ? `${text.slice(0, 79)}…` : text);

/** A moment in words: its event, its actor, and the workflow step that caused it. @param {Moment} moment @param {Map<string, string>} names  of workflows, by id */
export function eventText({ event, activity, step }, names) {
  const by = actorName(activity?.actor, names);
  const own = changes(activity) || (activity?.action === "started" ? t.told.began : "");
  const words = event ? (EVENT_TEXTS[event.type]?.(event.data, names) ?? event.type) : own || activity?.action;
  const more = event && own && !["conversation.assigned", "conversation.closed", "conversation.reopened"].includes(event.type) ? own : "";
  const why = !step ? "" : step === activity?.step ? t.told.byStep(step.actionFlowId, step.actionId, step.version) : t.told.afterStep(brief(step.action?.text ?? ""), step.actionFlowId, step.actionId);
  return html`<bdi>${words}</bdi>${more && html` <bdi class="muted">(${more})</bdi>`}${by && html` <b><bdi>${t.told.by(by)}</bdi></b>`}${why && html`<br /><bdi class="muted">${why}</bdi>`}`;
}
