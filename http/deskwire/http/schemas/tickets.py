"""Tickets, teams, uploads and voice replies in the API (decisions 7)."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from deskwire.engine.tickets.activity import Action, TicketActorType
from deskwire.engine.tickets.ticket import Priority, Status
from deskwire.engine.voice.prompts import Mode
from deskwire.http.schemas.base import (
    ActivityId,
    ContactId,
    ConversationId,
    Count,
    Moment,
    PersonName,
    Shape,
    TeamId,
    TicketId,
    UploadId,
    UserId,
)


class Ticket(Shape):
    """A ticket."""

    id: TicketId
    title: Annotated[str, Field(examples=["Parcel lost"])]
    description: Annotated[str, Field(examples=["It was to arrive on Monday."])] | None
    type: Annotated[str, Field(examples=["delivery"])] | None
    status: Status
    priority: Priority
    processing_user: UserId | None
    processing_team: TeamId | None
    snoozed_until: Moment | None
    conversation_id: ConversationId | None
    contact_id: ContactId | None
    tags: list[Annotated[str, Field(examples=["lost"])]]
    created_at: Moment
    updated_at: Moment
    last_activity_at: Moment


class BulkOutcome(Shape):
    """The result of a bulk change. `matched` is the sum of `updated` and `unchanged`."""

    matched: Count
    updated: Count
    unchanged: Annotated[int, Field(ge=0, examples=[0])]
    not_found: list[Annotated[str, Field(examples=["tkt_01KZ00000000000000000000T9"])]]


class TicketActor(Shape):
    """The author of a change: a user or machine credential with the name at that time, or the system."""

    type: TicketActorType
    id: Annotated[str, Field(examples=["usr_01KZ0000000000000000AGENT1"])] | None
    name: PersonName | None


class TicketFieldChange(Shape):
    """The change of a field."""

    field: Annotated[str, Field(examples=["status"])]
    from_: Annotated[Any, Field(alias="from", examples=["OPEN"])]
    to: Annotated[Any, Field(examples=["DONE"])]


class TicketActivity(Shape):
    """An entry in the activity log of a ticket."""

    id: ActivityId
    at: Moment
    actor: TicketActor
    action: Action
    changes: list[TicketFieldChange]


class TeamMember(Shape):
    """A member of a team."""

    id: UserId
    name: PersonName


class Team(Shape):
    """A team that conversations and tickets can be assigned to."""

    id: TeamId
    name: Annotated[str, Field(examples=["Returns"])]
    members: list[TeamMember]
    created_at: Moment
    updated_at: Moment


class Upload(Shape):
    """An uploaded file. Anyone with the URL can download it until the URL expires."""

    id: UploadId
    name: Annotated[str, Field(examples=["label.png"])]
    type: Annotated[
        str, Field(description="The media type, detected from the bytes.", examples=["image/png"])
    ]
    size: Annotated[int, Field(ge=0, description="The size in bytes.", examples=[18_211])]
    url: Annotated[str, Field(examples=["https://support.example.com/v3/uploads/upl_…/label.png?expires=…"])]
    expires_at: Moment


class VoiceReply(Shape):
    """The reply and transcript of a recording (contract 2.2), with the mode used."""

    reply: Annotated[str, Field(examples=["Your parcel left us today."])]
    transcript: Annotated[str, Field(examples=["parcel left today"])]
    mode: Annotated[Mode, Field(examples=["smart"])]
