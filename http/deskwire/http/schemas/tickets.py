"""Tickets, teams, uploads and voice replies as the API shows them (decisions 7)."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from deskwire.engine.tickets.activity import Action
from deskwire.engine.tickets.ticket import Priority, Status
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
    """What a change of many tickets came to. `matched` is `updated` and `unchanged` together."""

    matched: Count
    updated: Count
    unchanged: Annotated[int, Field(ge=0, examples=[0])]
    not_found: list[Annotated[str, Field(examples=["tkt_01KZ00000000000000000000T9"])]]


class Actor(Shape):
    """Who acted: a user by the name that it had then, or the system."""

    type: Literal["user", "system"]
    id: UserId | None
    name: PersonName | None


class FieldChange(Shape):
    """A field that changed."""

    field: Annotated[str, Field(examples=["status"])]
    from_: Annotated[Any, Field(alias="from", examples=["OPEN"])]
    to: Annotated[Any, Field(examples=["DONE"])]


class TicketActivity(Shape):
    """One entry of a ticket's activity log."""

    id: ActivityId
    at: Moment
    actor: Actor
    action: Action
    changes: list[FieldChange]


class TeamMember(Shape):
    """A user of a team."""

    id: UserId
    name: PersonName


class Team(Shape):
    """A team, to which conversations and tickets are given."""

    id: TeamId
    name: Annotated[str, Field(examples=["Returns"])]
    members: list[TeamMember]
    created_at: Moment
    updated_at: Moment


class Upload(Shape):
    """A file. Whoever has the URL may fetch it until it expires."""

    id: UploadId
    name: Annotated[str, Field(examples=["label.png"])]
    type: Annotated[str, Field(description="The media type, found from the bytes.", examples=["image/png"])]
    size: Annotated[int, Field(ge=0, description="In bytes.", examples=[18_211])]
    url: Annotated[str, Field(examples=["https://support.example.com/v3/uploads/upl_…/label.png?expires=…"])]
    expires_at: Moment


class VoiceReply(Shape):
    """What was made of a recording (contract 2.2)."""

    reply: Annotated[str, Field(examples=["Your parcel left us today."])]
    transcript: Annotated[str, Field(examples=["parcel left today"])]
