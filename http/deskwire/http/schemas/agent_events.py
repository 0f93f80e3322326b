"""Internal events, sent to agents only: the data of each type, and their envelopes."""

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
from deskwire.http.schemas.conversations import (
    AgentConversationSnapshot,
    AgentMessage,
    Contact,
    Conversation,
    Index,
    NamedContact,
)
from deskwire.http.schemas.customers import StartedSession
from deskwire.http.schemas.events import envelope
from deskwire.http.schemas.tickets import Ticket


class EventActor(Shape):
    """The author of a change, with the name at that time."""

    type: EventActorType
    id: Annotated[str, Field(examples=["usr_01KZ0000000000000000AGENT1"])] | None
    name: PersonName | None


class NoteData(Shape):
    """The note, its conversation in the agents' view, and the users whom it mentions, alone or as members of a team.

    The author is not among `mentioned`. `followers` of the conversation has those who follow it since this note.
    """

    message: AgentMessage
    conversation: AgentConversationSnapshot
    mentioned: list[Annotated[str, Field(examples=["usr_01KZ0000000000000000AGENT1"])]]


class ReceivedMessageData(Shape):
    """The newest message that a client of the contact has received or shown, with its index, and the conversation."""

    conversation: Conversation
    message_id: MessageId | None
    index: Index
    at: Moment


class RemovedHidden(Shape):
    """The deleted conversation, which the customer never saw."""

    id: ConversationId


class ChangedConversationData(Shape):
    """The conversation in the agents' view after the change, the fields that changed, and the author.

    For a conversation that the customer can't see, `changed` can be only `created` or `deleted`. After a redaction or deletion of a
    message or note, `changed` has `messages`, and `redactedMessageIds` or `deletedMessageIds` has the id.
    """

    conversation: AgentConversationSnapshot | RemovedHidden
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


class RemovedMessageData(Shape):
    """The redacted or deleted message, the time and the author, without the removed content."""

    conversation_id: ConversationId
    message_id: MessageId
    at: Moment
    actor: EventActor


class ChangedContactData(Shape):
    """The contact after the change, the fields that changed, and the author."""

    contact: Contact
    changed: list[Annotated[str, Field(examples=["tags"])]]
    actor: EventActor


class StartedSessionData(Shape):
    """The contact, and its session in a channel that was stored."""

    contact: Contact
    session: StartedSession


class MergedContactData(Shape):
    """The contact that has all data now, the removed contact, and the author of the merge."""

    contact: Contact
    merged: NamedContact
    actor: EventActor


class MemoryData(Shape):
    """The contact whose memory changed."""

    contact_id: ContactId
    deleted: bool


class SettingsData(Shape):
    """The kind and id of the changed object; null for several objects at once."""

    what: Setting
    id: Annotated[str, Field(examples=["tem_01KZ00000000000000000000M1"])] | None


DATA: Final[Mapping[str, type[Shape]]] = {
    "note.created": NoteData,
    "conversation.changed": ChangedConversationData,
    "ticket.created": TicketData,
    "ticket.changed": TicketData,
    "ticket.deleted": RemovedTicketData,
    "message.reached": ReceivedMessageData,
    "message.seen": ReceivedMessageData,
    "message.redacted": RemovedMessageData,
    "message.deleted": RemovedMessageData,
    "contact.changed": ChangedContactData,
    "contact.session.started": StartedSessionData,
    "contact.merged": MergedContactData,
    "memory.changed": MemoryData,
    "settings.changed": SettingsData,
}
"""The model of `data` for each type for agents only; a test fails for a missing type."""

ENVELOPES: Final[Mapping[str, type[Shape]]] = {
    kind.type: envelope(kind, DATA[kind.type]) for kind in AGENTS.values() if kind.type in DATA
}
"""The envelope of each of these types."""
