"""Drafts and held messages in the API, for their author."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from deskwire.engine.accounts.people import AssigneeType
from deskwire.engine.conversations.conversation import Status
from deskwire.engine.conversations.drafts import DraftMode
from deskwire.http.schemas.base import (
    ConversationId,
    Count,
    Deleted,
    MessageId,
    Moment,
    Shape,
    TeamId,
    UserId,
)
from deskwire.http.schemas.conversations import Attachment, Format, Mention

DraftText = Annotated[str, Field(examples=["Hello Ada, your parcel left our house this"])]
Version = Annotated[int, Field(ge=1, examples=[1_793_534_400_000])]


class Draft(Shape):
    """An unsent reply or note of yours. `version` grows with each change and is unique among all drafts.

    `baseSequence` is the newest sequence of the conversation that you had seen, if you sent it.
    """

    mode: DraftMode
    text: DraftText
    attachments: list[Attachment]
    version: Version
    base_sequence: Count | None
    mentions: Annotated[
        list[Mention], Field(description="The users and teams that you have picked for a note.")
    ]
    updated_at: Moment


class ListedDraft(Draft):
    """An unsent reply or note of yours, and its conversation."""

    conversation_id: ConversationId


class ConversationDrafts(Shape):
    """Your drafts in a conversation; null for none."""

    reply: Draft | None
    note: Draft | None


class SavedDraft(Shape):
    """The draft as stored; null if it is empty and therefore removed.

    `merged` is true if a newer version was stored: the draft then has the text of both.
    """

    draft: Draft | None
    merged: bool


class HeldAssignee(Shape):
    """The user or team that the conversation is assigned to with the message."""

    type: AssigneeType
    id: UserId | TeamId


class HeldThen(Shape):
    """The changes to apply after the message in the same commit."""

    status: Status | None = None
    close: bool | None = None
    assignee: HeldAssignee | None = None
    snoozed_until: Annotated[str, Field(examples=["2026-11-02T08:00:00.000Z"])] | None = None


class HeldProblem(Shape):
    """The reason why a message was not sent.

    The code is `conversation_moved_on`, `contact_replied`, `conversation_closed`, `permission_denied`, `attachment_gone`,
    `assignee_gone`, `mention_gone`, `restored` (a backup was restored, so it may have been sent before) or `internal_error`.
    """

    code: Annotated[str, Field(examples=["conversation_moved_on"])]
    detail: Annotated[
        str,
        Field(examples=["The conversation has newer messages: read them, then send this again."]),
    ]


class HeldMessage(Shape):
    """A message or note of yours that is sent at `sendAt`, with this id, unless you take it back.

    It is `scheduled` if you chose the time; otherwise it waits some seconds for an undo. `unlessReplied` is true if a later message
    of the contact refuses it.

    A message that could not be sent has the status `refused`, and is kept with the reason until you send it or take it back.
    """

    id: MessageId
    conversation_id: ConversationId
    text: Annotated[str, Field(examples=["Your parcel is on its way."])]
    attachments: list[Attachment]
    internal: bool
    mentions: list[Mention]
    status: Literal["held", "refused"]
    scheduled: bool
    unless_replied: bool
    send_at: Moment
    created_at: Moment
    then: HeldThen | None
    problem: HeldProblem | None
    format: Format | None = None


class WithdrawnMessage(Deleted):
    """The confirmation that a message is not sent, and the draft with its text; null if it was discarded."""

    draft: Draft | None
