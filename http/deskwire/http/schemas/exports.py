"""The export of a contact: all its stored data."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from deskwire.http.schemas.base import Moment, Shape, UserId
from deskwire.http.schemas.content import MemoryEntry
from deskwire.http.schemas.conversations import (
    AgentMessage,
    Contact,
    Conversation,
    ConversationActivity,
    Index,
    Message,
    NetworkLogs,
)
from deskwire.http.schemas.customers import ContactSession
from deskwire.http.schemas.surveys import SurveyResponse
from deskwire.http.schemas.tickets import Ticket, TicketActivity


class ExportedTicket(Ticket):
    """A ticket in an export. An export for agents includes its activity."""

    activity: list[TicketActivity] | None = None


class ExportedConversation(Conversation):
    """A conversation in an export, with its messages. An export for agents includes their notes, tags, followers and activity."""

    rated_at: Moment | None
    visible: bool
    contact_seen_index: Index | None
    contact_seen_at: Moment | None
    tags: Annotated[list[str], Field(examples=[["returns"]])] | None = None
    followers: list[UserId] | None = None
    snoozed_until: Moment | None = None
    activity: list[ConversationActivity] | None = None
    messages: list[
        Annotated[
            Message | AgentMessage,
            Field(
                description="A message; an export for agents includes notes.",
                json_schema_extra={"x-union": "ExportedMessage"},
            ),
        ]
    ]
    network_logs: NetworkLogs | None


class ExportedSession(ContactSession):
    """A session of the contact in a channel, live or ended. The token is not stored."""

    ended_at: Moment | None


class ContactExport(Shape):
    """The export of all stored data of a contact. It is streamed; without `complete`, it is incomplete."""

    exported_at: Moment
    contact: Contact
    memory: list[MemoryEntry]
    survey_responses: list[SurveyResponse]
    tickets: list[ExportedTicket]
    sessions: list[ExportedSession]
    conversations: list[ExportedConversation]
    complete: Annotated[bool, Field(json_schema_extra={"const": True})]
