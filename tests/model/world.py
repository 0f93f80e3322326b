"""The state that the contract defines, in plain memory, and the events that are due.

It is written from the contract and the decisions, not from the service's code. Times and new ids are chosen by the
service; they are taken from its answers, or left out of the comparison.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final, Literal

from tests.model.things import (
    EXTENSIONS,
    IDENTITY,
    JSON,
    Closing,
    Contact,
    Conversation,
    Endpoint,
    Event,
    HeldMessage,
    Machine,
    Moment,
    Span,
    Survey,
    Ticket,
    about,
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
"""The workflow of conversations: it says something, asks, and notes that it has asked."""
SYSTEM: Final = {"type": "system", "id": None, "name": None}
"""The actor of consequences that no user caused directly."""


@dataclass
class World:
    """One project."""

    project: str
    agent: JSON
    workflow: str
    receiver: str
    backend: JSON
    began: datetime = field(default_factory=now)
    contacts: dict[str, Contact] = field(default_factory=dict)
    merged: list[Contact] = field(default_factory=list)
    erased: int = 0
    conversations: list[Conversation] = field(default_factory=list)
    held: list[HeldMessage] = field(default_factory=list)
    tickets: list[Ticket | None] = field(default_factory=list)
    endpoints: list[Endpoint] = field(default_factory=list)
    surveys: list[Survey] = field(default_factory=list)
    machines: list[Machine] = field(default_factory=list)
    entries: dict[str, dict[str, JSON]] = field(default_factory=dict)
    due: list[Event] = field(default_factory=list)
    log: list[Event] = field(default_factory=list)
    forgotten: set[str] = field(default_factory=set)
    lost: set[str] = field(default_factory=set)
    fading: set[str] = field(default_factory=set)
    """Responses to deleted surveys, whose events the service removes a moment later."""
    rewritten: set[str] = field(default_factory=set)

    @property
    def user(self) -> JSON:
        """The agent as an actor."""
        return {"type": "user", **self.agent}

    # --- events

    def emit(self, conversation: Conversation, kind: str, **more: Any) -> Moment:
        """Add an event about a conversation unless it is hidden; return the moment at which it happens."""
        moment = Moment()
        if conversation.visible:
            conversation.sequence += 1
            data = {"conversation": self.shown(conversation), **more}
            kept = (conversation.id,)
            self.due.append(Event(kind, conversation.sequence, data, kept, moment=moment))
        return moment

    def extend(self, kind: str, data: JSON, *kept: str | None) -> None:
        """Add an event of a type beyond the contract, which only named subscriptions receive."""
        self.due.append(Event(kind, None, data, tuple(each for each in kept if each is not None)))

    def shown(self, conversation: Conversation) -> JSON:
        """Return the conversation as every answer and event shows it."""
        return {"projectId": self.project, **conversation.view}

    def change(self, conversation: Conversation, **fields: Any) -> None:
        """Set fields; one `conversation.updated` names those that changed."""
        changed = sorted(
            name for name, value in fields.items() if not exactly(conversation.fields[name], value)
        )
        conversation.fields |= fields
        if "rating" in changed:
            conversation.milestones.rater = conversation.agent
        if changed:
            self.emit(conversation, "conversation.updated", changed=changed)

    # --- contacts

    def identify(self, user_id: str, identity: JSON, contact_id: str) -> Contact:
        """Return the contact, created or updated; an update of a known contact is announced."""
        contact = self.contacts.get(user_id)
        if contact is None:
            number = len(self.contacts) + len(self.merged) + self.erased
            contact = Contact(number, contact_id, user_id, dict.fromkeys(IDENTITY) | identity)
            self.contacts[user_id] = contact
            return contact
        self.rename(contact, identity)
        return contact

    def rename(self, contact: Contact, identity: JSON) -> None:
        """Change fields of a contact's identity and announce the change."""
        before = dict(contact.identity)
        contact.identity |= identity
        if contact.identity != before:
            self.due.append(Event("contact.updated", None, {"contact": contact.view}, (contact.id,)))

    def mark(self, contact: Contact, attributes: JSON, tags: list[str]) -> None:
        """Set a contact's attributes and tags; announce a change to subscriptions that name the type."""
        after = {"attributes": attributes, "tags": tags}
        changed = [name for name, value in after.items() if not exactly(getattr(contact, name), value)]
        contact.attributes, contact.tags = attributes, tags
        if changed:
            data = {"contact": contact.whole, "changed": changed, "actor": self.backend}
            self.extend("contact.changed", data, contact.id)

    def merge(self, source: Contact, target: Contact) -> None:
        """Move everything of a contact to another one; where both have a value, the target's stays."""
        missing = [name for name, value in target.identity.items() if value is None]
        self.rename(target, {name: source.identity[name] for name in missing})
        tags = sorted({*source.tags, *target.tags})
        self.mark(target, source.attributes | target.attributes, tags)
        target.memory = source.memory | target.memory
        for conversation in self.conversations:
            if conversation.contact is source and not conversation.gone:
                conversation.contact = target
                self.emit(conversation, "conversation.updated", changed=["contact"])
        for ticket in self.tickets:
            if ticket is not None and ticket.fields["contactId"] == source.id:
                self.change_ticket(ticket, SYSTEM, contactId=target.id)
        for response in [each for survey in self.surveys for each in survey.responses.values()]:
            if response["contact"] == {"userId": source.user_id}:
                response["contact"] = {"userId": target.user_id}
        for each in self.merged:
            each.merged_into = target if each.merged_into is source else each.merged_into
        del self.contacts[source.user_id]
        self.merged.append(source)
        source.merged_into = target
        source.identity |= dict.fromkeys(IDENTITY)
        self.due.append(Event("contact.updated", None, {"contact": source.view}, (source.id,)))
        merged = {"id": source.id, "userId": source.user_id}
        data = {"contact": target.whole, "merged": merged, "actor": self.backend}
        self.extend("contact.merged", data, target.id)

    def went(self, user_id: str) -> Contact | None:
        """Return the contact of this id that was last merged into another one."""
        found = (each for each in reversed(self.merged) if each.user_id == user_id)
        return next(found, None)

    def erase(self, contact: Contact) -> None:
        """Erase a contact and all contacts that were merged into it."""
        for conversation in self.conversations:
            if conversation.contact is contact and not conversation.gone:
                self.delete(conversation, "gdpr")
        for ticket in self.tickets:
            if ticket is not None and ticket.fields["contactId"] == contact.id:
                self.remove_ticket(ticket, SYSTEM)
        theirs = {"userId": contact.user_id}
        for survey in self.surveys:
            for response in [each for each in survey.responses.values() if each["contact"] == theirs]:
                self.remove_response(survey, response["id"])
        theirs_too = [each for each in self.merged if each.merged_into is contact]
        for each in (*sorted(theirs_too, key=lambda each: each.number), contact):
            self.forget(each.id)
            each.identity |= dict.fromkeys(IDENTITY)
            self.due.append(Event("contact.updated", None, {"contact": each.view}, ()))
            self.erased += 1
        self.merged = [each for each in self.merged if each.merged_into is not contact]
        del self.contacts[contact.user_id]

    def remove_response(self, survey: Survey, response: str) -> None:
        """Remove a response to a survey, with its events."""
        del survey.responses[response]
        self.forget(response)
        data = {"survey": {"id": survey.id}, "response": {"id": response}}
        self.extend("survey.response.deleted", data)

    # --- conversations

    def say(self, conversation: Conversation, author: JSON, text: str, message_id: str | None) -> JSON:
        """Add a visible message; one of the customer reopens the conversation and wakes its ticket."""
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
        said = self.emit(conversation, "message.created", message=message)
        self.count(conversation, author, said)
        if not conversation.visible:
            self.note(conversation)
        if author["type"] == "agent":
            self.end(conversation, "handed_off")
        return message

    def count(self, conversation: Conversation, author: JSON, said: Moment) -> None:
        """Update the figures that reports take from a message."""
        counted, kind = conversation.milestones, author["type"]
        counted.written.append((kind, author["id"] if kind == "agent" else None))
        counted.waits = {"contact": True, "system": counted.waits}.get(kind, False)
        if kind != "system":
            counted.unneeded = None
        if kind == "contact" and counted.asked is None:
            counted.asked = said
        elif kind == "agent":
            counted.writer = author["id"]
            if counted.asked is not None and counted.answered is None:
                counted.answered, counted.answerer = said, author["id"]

    def note(self, conversation: Conversation) -> None:
        """Record that an agent wrote a note, for the endpoints that subscribe to notes."""
        for endpoint in self.endpoints:
            endpoint.take_note(conversation.id)

    def rewrite(self, conversation: Conversation, message: JSON, what: str, **fields: Any) -> None:
        """Redact or delete a message, including in earlier events."""
        message |= {**fields, "redactedAt": "then"}
        self.rewritten.add(message["id"])
        if what == "deleted":
            conversation.deleted.add(message["index"])
        self.tell_of_rewriting(conversation, message, what)
        if conversation.visible:
            told = {"conversationId": conversation.id, "messageId": message["id"], "actor": self.backend}
            self.extend(f"message.{what}", {**told, "at": "then"}, conversation.id)

    def tell_of_rewriting(self, conversation: Conversation, message: JSON, what: str) -> None:
        """Announce a redaction or deletion in an event of the conversation."""
        ids = {f"{what}MessageIds": [message["id"]]}
        self.emit(conversation, "conversation.updated", changed=["messages"], **ids)

    def of_contact(self, conversation: Conversation) -> JSON:
        """Return the customer as an author."""
        contact = conversation.contact
        return {"type": "contact", "id": contact.id, "name": contact.identity["name"]}

    def close(self, conversation: Conversation, by: str) -> None:
        """Close the conversation unless it is closed."""
        if conversation.fields["status"] != "CLOSED":
            conversation.fields |= {"status": "CLOSED", "closedBy": by}
            closed, counted = (
                self.emit(conversation, "conversation.closed", closedBy=by),
                conversation.milestones,
            )
            counted.closings.append(Closing(counted.opened, closed, conversation.agent))
            counted.waits = False
            self.end(conversation, "handed_off")

    def reopen(self, conversation: Conversation) -> None:
        """Reopen the conversation if it is closed."""
        if conversation.fields["status"] == "CLOSED":
            conversation.fields |= {"status": "OPEN", "closedBy": None}
            conversation.milestones.opened = self.emit(conversation, "conversation.reopened")
            conversation.milestones.reopenings.append(conversation.agent)

    def reveal(self, conversation: Conversation) -> None:
        """Reveal a hidden conversation: announce its creation, its messages, and then its closing if it was closed."""
        conversation.visible, ends = True, {}
        if conversation.fields["status"] == "CLOSED":
            ends = {name: conversation.fields[name] for name in ("status", "closedBy", "closedAt")}
            conversation.fields |= {"status": "OPEN", "closedBy": None, "closedAt": None}
        self.emit(conversation, "conversation.created")
        for message in conversation.messages:
            if message["index"] in conversation.deleted:  # a deleted message also has a number
                self.tell_of_rewriting(conversation, message, "deleted")
            else:
                self.emit(conversation, "message.created", message=message)
        if ends:
            conversation.fields |= ends
            self.emit(conversation, "conversation.closed", closedBy=ends["closedBy"])

    def delete(self, conversation: Conversation, reason: str) -> None:
        """Delete the conversation with its events; the deletion event contains no personal data."""
        if conversation.visible:
            conversation.sequence += 1
            view = conversation.view
            kept = {name: view[name] for name in ("id", "status", "closed", "unread")}
            data = {"conversation": {**kept, "contact": {"userId": conversation.contact.user_id}}}
        self.forget(conversation.id)
        if conversation.visible:
            event = Event("conversation.deleted", conversation.sequence, {**data, "reason": reason}, ())
            self.due.append(event)
        for ticket in self.tickets:
            if ticket is not None and ticket.fields["conversationId"] == conversation.id:
                self.change_ticket(ticket, SYSTEM, conversationId=None)
        conversation.gone = True

    def forget(self, kept: str) -> None:
        """Remove the events and deliveries that a deletion takes away."""
        gone = {event.id for event in self.log if kept in event.kept}
        self.forgotten |= gone
        self.lost.add(kept)
        for endpoint in self.endpoints:
            endpoint.deliveries = {
                event: each for event, each in endpoint.deliveries.items() if event not in gone
            }
            endpoint.notes = [each for each in endpoint.notes if each != kept]
        self.log = [event for event in self.log if kept not in event.kept]
        self.due = [event for event in self.due if kept not in event.kept]

    # --- workflows

    def bot(self) -> JSON:
        """Return the workflow as an author."""
        return {"type": "bot", "id": self.workflow, "name": None}

    def start(self, conversation: Conversation) -> None:
        """Start the workflow, which says hello and asks."""
        conversation.running = True
        self.say(conversation, self.bot(), "Hello", None)
        self.say(conversation, self.bot(), QUESTION["text"], None)  # type: ignore[arg-type]
        self.emit(conversation, "workflow.step.presented", step=self.step())

    def step(self) -> JSON:
        """Return the question that waits for the customer."""
        return {
            "workflowId": self.workflow,
            "stepType": "buttons",
            "actionFlowId": "main",
            "actionId": 2,
            "action": {"id": 2, "type": "buttons", **QUESTION, "allowText": False},
        }

    def answer(self, conversation: Conversation, label: str) -> None:
        """Pick an option as the customer; the workflow ends."""
        self.say(conversation, self.of_contact(conversation), label, None)
        self.change(conversation, attributes={**conversation.fields["attributes"], "asked": True})
        self.say(conversation, self.bot(), "Bye", None)
        self.end(conversation, "completed")

    def end(self, conversation: Conversation, reason: str) -> None:
        """End the workflow, if one is running."""
        if conversation.running:
            conversation.running = False
            self.emit(conversation, "workflow.completed", workflowId=self.workflow, reason=reason)

    # --- tickets

    def wake(self, conversation: Conversation) -> None:
        """Wake the ticket that is linked to the conversation, because its customer wrote."""
        for ticket in self.tickets:
            if ticket is not None and ticket.fields["conversationId"] == conversation.id:
                self.change_ticket(ticket, SYSTEM, snooze=None)

    def change_ticket(
        self, ticket: Ticket, by: JSON, snooze: Span | Literal["as it is"] | None = "as it is", **fields: Any
    ) -> bool:
        """Change a ticket and announce it to subscriptions that name the type; return whether it changed."""
        changed = [name for name, value in fields.items() if not exactly(ticket.fields[name], value)]
        if snooze != "as it is":
            changed += [] if ticket.snooze is None and snooze is None else ["snoozedUntil"]
            ticket.snooze = snooze
        ticket.fields |= fields
        if changed:
            self.tell_of_ticket("changed", ticket, by, sorted(changed))
        return bool(changed)

    def tell_of_ticket(self, what: str, ticket: Ticket, by: JSON, changed: list[str]) -> None:
        """Add an event of a ticket, for subscriptions that name the type."""
        data = {"ticket": ticket.view, "changed": changed, "actor": by}
        self.extend(f"ticket.{what}", data, ticket.id, ticket.fields["contactId"])

    def remove_ticket(self, ticket: Ticket, by: JSON) -> None:
        """Remove a ticket, with its events."""
        self.forget(ticket.id)
        ids = {"id": ticket.id, **{name: ticket.fields[name] for name in ("conversationId", "contactId")}}
        self.extend("ticket.deleted", {"ticket": ids, "changed": [], "actor": by})
        self.tickets[self.tickets.index(ticket)] = None

    def after(self, seconds: float) -> datetime:
        """Return the time this long after the example began."""
        return self.began + timedelta(seconds=seconds)

    def link(self, ticket: Ticket, conversation: Conversation | None, by: JSON) -> None:
        """Link a ticket to a conversation, or unlink it; both sides show it."""
        self.let_go(ticket, conversation)
        contact: JSON = {} if conversation is None else {"contactId": conversation.contact.id}
        self.change_ticket(ticket, by, conversationId=conversation and conversation.id, **contact)
        if conversation is not None:
            self.change(conversation, ticketId=ticket.id)

    def let_go(self, ticket: Ticket, then: Conversation | None = None) -> None:
        """Unlink a ticket from its conversation, unless that is the new one, too."""
        before = self.conversation(ticket.fields["conversationId"])
        if before is not None and before is not then:
            self.change(before, ticketId=None)

    def conversation(self, identifier: str | None) -> Conversation | None:
        """Return the conversation of this id if it exists."""
        found = (each for each in self.conversations if each.id == identifier and not each.gone)
        return next(found, None)

    # --- webhooks

    def url(self, number: int, way: str) -> str:
        """Return a URL of the project's endpoint with this number; no other endpoint has it."""
        return f"{self.receiver}&to={self.project}&nth={number}&way={way}"

    # --- events that arrived

    def settle(self, events: list[JSON], extensions: list[JSON], *, mixed: bool = False) -> None:
        """Compare the feed's new events with the due ones. Raises AssertionError if they differ.

        Args:
            mixed: whether events about different subjects may have come in any order.
        """
        extensions = [each for each in extensions if not self.fades(each)]
        due = [each for each in self.due if each.type not in EXTENSIONS]
        beyond = [each for each in self.due if each.type in EXTENSIONS]
        beyond = self.woken(extensions, beyond)
        if mixed:
            self.take(_by_subject(due), sorted(events, key=lambda each: about(each["data"])))
            order = [each["id"] for each in events]
            due.sort(key=lambda each: order.index(each.id))
        else:
            due = _as_told(due, events)
            self.take(due, events)
        self.log += due
        self.take(_by_subject(beyond), sorted(extensions, key=lambda each: about(each["data"])))
        self.log += beyond
        self.due = []

    def take(self, due: list[Event], events: list[JSON]) -> None:
        """Match events with the due ones and pass them to the endpoints. Raises AssertionError if they differ."""
        told = [(event["type"], event["sequence"], shown(event["data"])) for event in events]
        assert [each[:2] for each in told] == [(each.type, each.sequence) for each in due], (
            "other events",
            told,
            due,
        )
        for (kind, _, data), event, envelope in zip(told, due, events, strict=True):
            if kind == "message.created" and event.data["message"]["id"] is None:
                event.data["message"]["id"] = data["message"][
                    "id"
                ]  # the id of a message that the service created
            assert exactly(seen(kind, shown(event.data)), seen(kind, data)), (kind, event.data, data)
            event.id = envelope["id"]
            event.moment.at = datetime.fromisoformat(envelope["createdAt"])
            for endpoint in self.endpoints:
                endpoint.take(event)

    def fades(self, event: JSON) -> bool:
        """Return whether an event may still be present although its survey was deleted."""
        return event["type"] == "survey.response.created" and about(event["data"]) in self.fading

    def woken(self, told: list[JSON], due: list[Event]) -> list[Event]:
        """Return the due events beyond the contract, with those of tickets that woke at a time only the service knows."""
        for ticket in (each for each in self.tickets if each is not None):
            theirs = [each for each in due if each.subject == ticket.id]
            came = [each for each in told if about(each["data"]) == ticket.id]
            for place, event in enumerate(came[: len(theirs) + 1] if len(came) > len(theirs) else ()):
                data = event["data"]
                if data.get("changed") == ["snoozedUntil"] and data["actor"] == SYSTEM:
                    ticket.wake(datetime.fromisoformat(event["createdAt"]))
                    kept = tuple(each for each in (ticket.id, ticket.fields["contactId"]) if each)
                    shown_now = {"ticket": ticket.view, "changed": ["snoozedUntil"], "actor": SYSTEM}
                    theirs.insert(place, Event("ticket.changed", None, shown_now, kept))
                    due = [*(each for each in due if each.subject != ticket.id), *theirs]
                    break
        return due


def seen(kind: str, data: JSON) -> JSON:
    """Return the predictable part of an event's data: without the end of a snooze and the time of a redaction."""
    if kind.startswith("ticket."):
        ticket = {name: value for name, value in data["ticket"].items() if name != "snoozedUntil"}
        return {**data, "ticket": ticket, "changed": sorted(data["changed"])}
    return {**data, "at": "then"} if kind.startswith("message.") and "at" in data else data


def _by_subject(events: list[Event]) -> list[Event]:
    return sorted(events, key=lambda each: each.subject)


def _as_told(due: list[Event], events: list[JSON]) -> list[Event]:
    """Return the due events, in the feed's order where any is allowed: erasures and merges of several conversations."""
    order = [about(each["data"]) for each in events]
    for named in ({"reason": "gdpr"}, {"changed": ["contact"]}):
        several = [each for each in due if named.items() <= each.data.items()]
        several.sort(key=lambda each: order.index(each.subject) if each.subject in order else len(order))
        sorted_now = iter(several)
        due = [next(sorted_now) if named.items() <= each.data.items() else each for each in due]
    return due
