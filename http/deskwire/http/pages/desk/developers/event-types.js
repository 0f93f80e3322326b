// @ts-check
/** The event types that an endpoint may list; a test compares them with the service's. */

/** Types of the contract. An endpoint that lists no types gets these. */
export const CONTRACT = [
  "conversation.created", "conversation.updated", "conversation.closed", "conversation.reopened", "conversation.assigned", "conversation.deleted",
  "message.created", "workflow.step.presented", "workflow.completed", "contact.updated",
];
/** Types of typing, sent to endpoints that list them. */
export const TYPING = ["agent.typing.started", "agent.typing.stopped"];
/** Types beyond the contract, sent to endpoints that list them. */
export const EXTENSIONS = [
  "conversations.imported", "ticket.created", "ticket.changed", "ticket.deleted", "message.redacted", "message.deleted", "message.reached", "message.seen",
  "contact.changed", "contact.merged", "contact.session.started",
  "survey.response.created", "survey.response.deleted", "survey.deleted",
  "webhook.circuit.opened", "webhook.circuit.closed", "webhook.disabled", "webhook.enabled",
];
/** Internal types, sent to endpoints that request agents' notes. */
export const INTERNAL = ["note.created"];
