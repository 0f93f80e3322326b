"""What the contract says is there, in plain memory, and the events that are due.

Written from the contract and the decisions, not from the service's code. Times and new ids are the service's own;
they are taken from its answers, or left out of the comparison.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

from tests.model.things import (
    IDENTITY,
    JSON,
    Contact,
    Conversation,
    Endpoint,
    Event,
    Survey,
    Ticket,
    exactly,
    now,
    shown,
)

QUESTION: Final = {"text": "Yes?", "options": [{"id": "yes", "label": "Yes"}, {"id": "no", "label": "No"}]}
FLOWS: Final = [
    {
        "id": "main",
        "actions": [
            {"id": 1, "type": "message", "text": "Hello"},
            {"id": 2, "type": "buttons", **QUESTION},
            {"id": 3, "type": "set_attributes", "attributes": {"asked": True}},
            {"id": 4, "type": "message", "text": "Bye"},
        ],
    }
]
"""The workflow that conversations are given: it says something, asks, and notes that it has asked."""


@dataclass
class World:
    """One project."""

    project: str
    agent: JSON
    workflow: str
    receiver: str
    began: datetime = field(default_factory=now)
    contacts: dict[str, Contact] = field(default_factory=dict)
    conversations: list[Conversation] = field(default_factory=list)
    tickets: list[Ticket | None] = field(default_factory=list)
    endpoints: list[Endpoint] = field(default_factory=list)
    surveys: list[Survey] = field(default_factory=list)
    entries: dict[str, dict[str, JSON]] = field(default_factory=dict)
    due: list[Event] = field(default_factory=list)
    log: list[Event] = field(default_factory=list)

    # --- events

    def emit(self, conversation: Conversation, kind: str, **more: Any) -> None:
        """An event about a conversation, with its next number; none while it is hidden."""
        if conversation.visible:
            conversation.sequence += 1
            data = {"conversation": self.shown(conversation), **more}
            self.due.append(Event(kind, conversation.sequence, data, conversation.id))

    def shown(self, conversation: Conversation) -> JSON:
        """The conversation as every answer and event shows it."""
        return {"projectId": self.project, **conversation.view}

    def change(self, conversation: Conversation, **fields: Any) -> None:
        """Set fields; those that had another value are in one `conversation.updated`."""
        changed = sorted(
            name for name, value in fields.items() if not exactly(conversation.fields[name], value)
        )
        conversation.fields |= fields
        if changed:
            self.emit(conversation, "conversation.updated", changed=changed)

    # --- contacts

    def identify(self, user_id: str, identity: JSON, contact_id: str) -> Contact:
        """The contact, new or brought up to date; a change of one that was known is announced."""
        contact = self.contacts.get(user_id)
        if contact is None:
            contact = self.contacts[user_id] = Contact(
                contact_id, user_id, dict.fromkeys(IDENTITY) | identity
            )
            return contact
        before = dict(contact.identity)
        contact.identity |= identity
        if contact.identity != before:
            self.due.append(Event("contact.updated", None, {"contact": contact.view}, contact.id))
        return contact

    def erase(self, contact: Contact) -> None:
        """Everything of a contact goes."""
        for conversation in self.conversations:
            if conversation.contact is contact and not conversation.gone:
                self.delete(conversation, "gdpr")
        self.tickets = [
            None if each is not None and each.fields["contactId"] == contact.id else each
            for each in self.tickets
        ]
        theirs = {"userId": contact.user_id}
        for survey in self.surveys:
            kept = {each: said for each, said in survey.responses.items() if said["contact"] != theirs}
            survey.responses = kept
        self.forget(contact.id)
        contact.identity |= dict.fromkeys(IDENTITY)
        self.due.append(Event("contact.updated", None, {"contact": contact.view}, ""))
        del self.contacts[contact.user_id]

    # --- conversations

    def say(self, conversation: Conversation, author: JSON, text: str, message_id: str | None) -> JSON:
        """A message that the customer sees; one of the customer opens what is not open, and wakes its ticket."""
        if author["type"] == "contact":
            if conversation.fields["status"] == "CLOSED":
                self.reopen(conversation)
            self.change(conversation, status="OPEN")
            self.wake(conversation)
        message: JSON = {
            "id": message_id,
            "conversationId": conversation.id,
            "index": len(conversation.messages),
            "author": author,
            "text": text,
            "attachments": [],
            "redactedAt": None,
        }
        conversation.messages.append(message)
        conversation.fields["unread"] = author["type"] != "contact"
        self.emit(conversation, "message.created", message=message)
        if author["type"] == "agent":
            self.end(conversation, "handed_off")
        return message

    def of_contact(self, conversation: Conversation) -> JSON:
        """The customer as an author."""
        contact = conversation.contact
        return {"type": "contact", "id": contact.id, "name": contact.identity["name"]}

    def close(self, conversation: Conversation, by: str) -> None:
        """Close it, if it is not."""
        if conversation.fields["status"] != "CLOSED":
            conversation.fields |= {"status": "CLOSED", "closedBy": by}
            self.emit(conversation, "conversation.closed", closedBy=by)
            self.end(conversation, "handed_off")

    def reopen(self, conversation: Conversation) -> None:
        """Open it, if it is closed."""
        if conversation.fields["status"] == "CLOSED":
            conversation.fields |= {"status": "OPEN", "closedBy": None}
            self.emit(conversation, "conversation.reopened")

    def reveal(self, conversation: Conversation) -> None:
        """Let the customer see what has been hidden: its creation, then its messages."""
        conversation.visible = True
        self.emit(conversation, "conversation.created")
        for message in conversation.messages:
            self.emit(conversation, "message.created", message=message)

    def delete(self, conversation: Conversation, reason: str) -> None:
        """Remove it with its events; the deletion carries nothing of anybody."""
        if conversation.visible:
            conversation.sequence += 1
            view = conversation.view
            kept = {name: view[name] for name in ("id", "status", "closed", "unread")}
            data = {"conversation": {**kept, "contact": {"userId": conversation.contact.user_id}}}
            self.forget(conversation.id)
            event = Event("conversation.deleted", conversation.sequence, {**data, "reason": reason}, "")
            self.due.append(event)
        for ticket in self.tickets:
            if ticket is not None and ticket.fields["conversationId"] == conversation.id:
                ticket.fields["conversationId"] = None
        conversation.gone = True

    def forget(self, kept: str) -> None:
        """The events that a deletion takes away, with their deliveries."""
        for event in self.log:
            for endpoint in self.endpoints if event.kept == kept else ():
                endpoint.deliveries.pop(event.id, None)
        self.log = [event for event in self.log if event.kept != kept]
        self.due = [event for event in self.due if event.kept != kept]

    # --- workflows

    def bot(self) -> JSON:
        """The workflow as an author."""
        return {"type": "bot", "id": self.workflow, "name": None}

    def start(self, conversation: Conversation) -> None:
        """The workflow says hello and asks."""
        conversation.running = True
        self.say(conversation, self.bot(), "Hello", None)
        self.say(conversation, self.bot(), QUESTION["text"], None)  # type: ignore[arg-type]
        self.emit(conversation, "workflow.step.presented", step=self.step())

    def step(self) -> JSON:
        """The question that waits for the customer."""
        return {
            "workflowId": self.workflow,
            "stepType": "buttons",
            "actionFlowId": "main",
            "actionId": 2,
            "action": {"id": 2, "type": "buttons", **QUESTION, "allowText": False},
        }

    def answer(self, conversation: Conversation, label: str) -> None:
        """The customer picks an option; the workflow comes to its end."""
        self.say(conversation, self.of_contact(conversation), label, None)
        self.change(conversation, attributes={**conversation.fields["attributes"], "asked": True})
        self.say(conversation, self.bot(), "Bye", None)
        self.end(conversation, "completed")

    def end(self, conversation: Conversation, reason: str) -> None:
        """The workflow's end, if one runs."""
        if conversation.running:
            conversation.running = False
            self.emit(conversation, "workflow.completed", workflowId=self.workflow, reason=reason)

    # --- tickets

    def wake(self, conversation: Conversation) -> None:
        """What the customer writes wakes the ticket that is linked to the conversation."""
        for ticket in self.tickets:
            if ticket is not None and ticket.fields["conversationId"] == conversation.id:
                ticket.snooze = None

    def after(self, seconds: float) -> datetime:
        """The time so long after the example began."""
        return self.began + timedelta(seconds=seconds)

    def link(self, ticket: Ticket, conversation: Conversation | None) -> None:
        """Link a ticket to a conversation, or to none; both sides show it."""
        before = self.conversation(ticket.fields["conversationId"])
        if before is not None and before is not conversation:
            self.change(before, ticketId=None)
        ticket.fields["conversationId"] = conversation and conversation.id
        if conversation is not None:
            ticket.fields["contactId"] = conversation.contact.id
            self.change(conversation, ticketId=ticket.id)

    def conversation(self, identifier: str | None) -> Conversation | None:
        """The conversation of this id, if it is there."""
        found = (each for each in self.conversations if each.id == identifier and not each.gone)
        return next(found, None)

    # --- webhooks

    def url(self, number: int, way: str) -> str:
        """A URL of the endpoint that was made as this one of the project; no other one has it."""
        return f"{self.receiver}&to={self.project}&nth={number}&way={way}"

    # --- what came

    def settle(self, events: list[JSON]) -> None:
        """Hold what the feed has against what is due. Raises AssertionError if they differ."""
        told = [(event["type"], event["sequence"], shown(event["data"])) for event in events]
        order = [data.get("conversation", {}).get("id") for _, _, data in told]
        deletions = [event for event in self.due if event.data.get("reason") == "gdpr"]  # in any order
        deletions.sort(key=lambda event: _place(order, event.data["conversation"]["id"]))
        sorted_now = iter(deletions)
        self.due = [next(sorted_now) if event in deletions else event for event in self.due]
        wanted = [(event.type, event.sequence, event.data) for event in self.due]
        assert [each[:2] for each in told] == [each[:2] for each in wanted], "other events"
        for (kind, _, data), event, envelope in zip(told, self.due, events, strict=True):
            if kind == "message.created" and event.data["message"]["id"] is None:
                event.data["message"]["id"] = data["message"]["id"]  # the service's own message: known now
            assert exactly(shown(event.data), data), (kind, event.data, data)
            event.id = envelope["id"]
            for endpoint in self.endpoints:
                endpoint.take(event)
        self.log += self.due
        self.due = []


def _place(order: list[str | None], identifier: str) -> int:
    return order.index(identifier) if identifier in order else len(order)
