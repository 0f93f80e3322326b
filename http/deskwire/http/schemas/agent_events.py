"""Internal events, which agents alone are told of: the data of each type, and their envelopes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Final

from pydantic import Field

from deskwire.engine.events.project_events import EventActorType, Setting
from deskwire.engine.events.types import AGENTS
from deskwire.http.schemas.base import (
    ContactId,
    ConversationId,
    MessageId,
    Moment,
    PersonName,
    Shape,
    TicketId,
)
from deskwire.http.schemas.conversations import AgentMessage, Contact, NamedContact, ToldConversation
from deskwire.http.schemas.events import envelope
from deskwire.http.schemas.tickets import Ticket


class EventActor(Shape):
    """The author of a change, with their name at that time."""

    type: EventActorType
    id: Annotated[str, Field(examples=["usr_01KZ0000000000000000AGENT1"])] | None
    name: PersonName | None


class NoteData(Shape):
    """The note, and its conversation as agents see it."""

    message: AgentMessage
    conversation: ToldConversation


class RemovedHidden(Shape):
    """The deleted conversation, which no customer ever saw."""

    id: ConversationId


class ChangedConversationData(Shape):
    """The conversation as agents see it after the change, the fields that changed, and the author.

    `changed` is `created` or `deleted` alone for a conversation that the customer can't see. It has `messages` for a message or
    note that was redacted or deleted, whose id stands beside it.
    """

    conversation: ToldConversation | RemovedHidden
    changed: list[Annotated[str, Field(examples=["tags"])]]
    actor: EventActor
    redacted_message_ids: list[MessageId] | None = None
    deleted_message_ids: list[MessageId] | None = None


class TicketData(Shape):
    """The ticket after the change, the fields that changed, and the author."""

    ticket: Ticket
    changed: list[Annotated[str, Field(examples=["status"])]]
    actor: EventActor


class RemovedTicket(Shape):
    """The fields of a deleted ticket that a page needs to remove it, without personal data."""

    id: TicketId
    conversation_id: ConversationId | None
    contact_id: ContactId | None


class RemovedTicketData(Shape):
    """The deleted ticket, and the author of the deletion."""

    ticket: RemovedTicket
    changed: list[Annotated[str, Field(examples=["status"])]]
    actor: EventActor


class GoneMessageData(Shape):
    """The message of which something is no more, the time, and the author of that; nothing of what it held."""

    conversation_id: ConversationId
    message_id: MessageId
    at: Moment
    actor: EventActor


class ChangedContactData(Shape):
    """The contact after the change, the fields that changed, and the author."""

    contact: Contact
    changed: list[Annotated[str, Field(examples=["tags"])]]
    actor: EventActor


class MergedContactData(Shape):
    """The contact that has everything now, the one that is no more, and the author of the merge."""

    contact: Contact
    merged: NamedContact
    actor: EventActor


class MemoryData(Shape):
    """The contact of whom something is remembered, or was forgotten."""

    contact_id: ContactId
    deleted: bool


class SettingsData(Shape):
    """The kind of thing that changed, and its id; null for several things at once."""

    what: Setting
    id: Annotated[str, Field(examples=["tem_01KZ00000000000000000000M1"])] | None


DATA: Final[Mapping[str, type[Shape]]] = {
    "note.created": NoteData,
    "conversation.changed": ChangedConversationData,
    "ticket.created": TicketData,
    "ticket.changed": TicketData,
    "ticket.deleted": RemovedTicketData,
    "message.redacted": GoneMessageData,
    "message.deleted": GoneMessageData,
    "contact.changed": ChangedContactData,
    "contact.merged": MergedContactData,
    "memory.changed": MemoryData,
    "settings.changed": SettingsData,
}
"""The model of `data` for each type that agents alone are told of; a test fails for a type that is missing."""

ENVELOPES: Final[Mapping[str, type[Shape]]] = {
    kind.type: envelope(kind, DATA[kind.type]) for kind in AGENTS.values() if kind.type in DATA
}
"""The envelope of each of these types."""
