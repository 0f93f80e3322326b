// @ts-check
/** Events and activity in words: actor, change and reason. */
import { html } from "../vendor/preact.js";
import { t } from "./texts.js";
import { exact } from "./format.js";
/** @import { Moment } from "./replay.js" */

/** Return an actor in words. @param {any} actor @param {Map<string, string>} names  of workflows */
function actorName(actor, names) {
  if (!actor) return null;
  if (actor.type === "bot") return t.eventText.workflow(names.get(actor.id) ?? actor.id);
  return actor.name ?? t.eventText.actors[/** @type {"key"} */ (actor.type)] ?? actor.type;
}

/** Return the name of an assignee. @param {any} assignee */
const nameOf = (assignee) => assignee?.name ?? assignee?.id;

/** The text for each changed field. @type {Record<string, (to: any, from: any) => string>} */
const FIELD_TEXTS = {
  tags: (to, from) => [...to.filter((/** @type {string} */ each) => !from?.includes(each)).map(t.eventText.tagged), ...(from ?? []).filter((/** @type {string} */ each) => !to.includes(each)).map(t.eventText.untagged)].join(", "),
  snoozedUntil: (to) => (to ? t.eventText.snoozed(exact(to)) : t.eventText.woke),
  noAnswerNeededSince: (to) => (to ? t.eventText.unneeded : t.eventText.needed),
  assignee: (to) => (to ? t.eventText.assignedTo(nameOf(to)) : t.eventText.unassigned),
  status: (to) => t.eventText.status[/** @type {"OPEN"} */ (to)] ?? to,
  title: (to) => t.eventText.named(to ?? ""),
  archived: (to) => (to ? t.eventText.archived : t.eventText.unarchived),
  visible: () => t.eventText.shown,
  ticketId: (to) => (to ? t.eventText.linked : t.eventText.unlinked),
};

/** @param {any} activity */
const changes = (activity) => (activity?.changes ?? []).map((/** @type {any} */ each) => FIELD_TEXTS[each.field]?.(each.to, each.from)).filter(Boolean).join(", ");

/** @type {Record<string, (data: any, names: Map<string, string>) => string>} */
const EVENT_TEXTS = {
  "conversation.created": () => t.eventText.began,
  "conversation.reopened": () => t.eventText.reopened,
  "conversation.closed": (data) => t.eventText.closed(t.eventText.closers[/** @type {"bot"} */ (data.closedBy)] ?? data.closedBy),
  "conversation.assigned": (data) => (data.conversation.assignee ? t.eventText.assignedTo(nameOf(data.conversation.assignee)) : t.eventText.unassigned),
  "conversation.updated": (data) => t.eventText.updated((data.changed ?? []).join(", ")),
  "message.created": (data) => t.eventText.wrote(data.message.author.name ?? t.history.authors[/** @type {"bot"} */ (data.message.author.type)], brief(data.message.text)),
  "message.redacted": () => t.eventText.redacted,
  "message.deleted": () => t.eventText.deleted,
  "message.reached": (data) => t.eventText.reached(data.index + 1),
  "message.seen": (data) => t.eventText.seen(data.index + 1),
  "workflow.step.presented": (data, names) => t.eventText.asked(names.get(data.step.workflowId) ?? data.step.workflowId, brief(data.step.action?.text ?? "")),
  "workflow.completed": (data, names) => t.eventText.ended(names.get(data.workflowId) ?? data.workflowId, t.eventText.endings[/** @type {"completed"} */ (data.reason)] ?? data.reason),
};

/** @param {string} text */
const brief = (text) => (text.length > 80 ? `${text.slice(0, 79)}…` : text);

/** A moment in words: its event, its actor, and the workflow step that caused it. @param {Moment} moment @param {Map<string, string>} names  of workflows, by id */
export function eventText({ event, activity, step }, names) {
  const by = actorName(activity?.actor, names);
  const own = changes(activity) || (activity?.action === "started" ? t.eventText.began : "");
  const words = event ? (EVENT_TEXTS[event.type]?.(event.data, names) ?? event.type) : own || activity?.action;
  const more = event && own && !["conversation.assigned", "conversation.closed", "conversation.reopened"].includes(event.type) ? own : "";
  const why = !step ? "" : step === activity?.step ? t.eventText.byStep(step.actionFlowId, String(step.actionId), step.version === null ? null : String(step.version)) : t.eventText.afterStep(brief(step.action?.text ?? ""), step.actionFlowId, String(step.actionId));
  return html`<bdi>${words}</bdi>${more && html` <bdi class="muted">(${more})</bdi>`}${by && html` <b><bdi>${t.eventText.by(by)}</bdi></b>`}${why && html`<br /><bdi class="muted">${why}</bdi>`}`;
}
