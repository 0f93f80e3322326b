// @ts-check
/** The types of events that an endpoint may list; a test holds them to those of the service. */

/** The types of the contract, which an endpoint is sent that lists none, typing aside. */
export const CONTRACT = [
  "conversation.created", "conversation.updated", "conversation.closed", "conversation.reopened", "conversation.assigned", "conversation.deleted",
  "message.created", "workflow.step.presented", "workflow.completed", "contact.updated",
];
/** Sent to those that list them. */
export const TYPING = ["agent.typing.started", "agent.typing.stopped"];
/** Beyond the contract, for those that list them. */
export const EXTENSIONS = [
  "conversations.imported", "ticket.created", "ticket.changed", "ticket.deleted", "message.redacted", "message.deleted", "contact.changed", "contact.merged",
  "survey.response.created", "survey.response.deleted", "survey.deleted",
  "webhook.circuit.opened", "webhook.circuit.closed", "webhook.disabled", "webhook.enabled",
];
/** For endpoints alone that ask for what agents write for agents. */
export const INTERNAL = ["note.created"];
