"""Conversations, messages, workflow steps and surveys as their customer sees them.

The fields are those of `engine.customers.view`; a test compares both.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from deskwire.engine.accounts.people import AssigneeType
from deskwire.engine.conversations.conversation import AuthorType, Closer, Status
from deskwire.engine.surveys.survey import Status as SurveyStatus
from deskwire.http.schemas.base import (
    ChannelId,
    ConversationId,
    Count,
    MessageId,
    Moment,
    PersonName,
    ResponseId,
    Shape,
    SurveyId,
)
from deskwire.http.schemas.conversations import Attachment, ClientId, Format, Index, RatingWords
from deskwire.http.schemas.surveys import SurveyDefinition
from deskwire.http.schemas.workflows import ActionId, FormAction, ShownButtons, WaitingAction


class CustomerMessageAuthor(Shape):
    """The author of a message, without an id. `self` is true for the customer's own messages."""

    type: AuthorType
    name: PersonName | None
    self_: Annotated[bool, Field(alias="self")]


class CustomerMessage(Shape):
    """A message as the customer sees it."""

    id: MessageId
    conversation_id: ConversationId
    index: Index
    author: CustomerMessageAuthor
    text: Annotated[str, Field(examples=["Hello, where is my order?"])]
    attachments: list[Attachment]
    created_at: Moment
    redacted_at: (
        Annotated[
            Moment,
            Field(description="The time of the message's last redaction; null if there was none."),
        ]
        | None
    )
    client_id: ClientId | None = None
    format: Format | None = None


class CustomerAssignee(Shape):
    """The user or team that the conversation is assigned to, without an id."""

    type: AssigneeType
    name: Annotated[str, Field(examples=["Grace Hopper"])]


class CustomerConversation(Shape):
    """A conversation as its customer sees it. `sequence` is that of its newest event.

    `lastMessage` is its newest message; the response to a new conversation has the message that was sent with it. `mergedInto` is
    the conversation that shows its messages from now on; it is omitted if it is not merged. `splitFrom` is the conversation some of
    whose messages it shows; it is omitted if there is none.
    """

    id: ConversationId
    title: Annotated[str, Field(examples=["Where is my order?"])] | None
    status: Status
    closed: Annotated[bool, Field(description="True if `status` is `CLOSED`.")]
    closed_by: Closer | None
    unread: Annotated[bool, Field(description="True if there are messages to read.")]
    assignee: CustomerAssignee | None
    rating: Annotated[int, Field(ge=0, le=10, examples=[9])] | None
    last_message_at: Moment | None
    created_at: Moment
    updated_at: Moment
    closed_at: Moment | None
    sequence: Count
    rating_comment: RatingWords | None = None
    channel_id: ChannelId | None = None
    client_id: ClientId | None = None
    last_message: CustomerMessage | None = None
    merged_into: ConversationId | None = None
    split_from: ConversationId | None = None


class CustomerStep(Shape):
    """A workflow step that waits for the customer. `actionId` names it in the answer."""

    step_type: WaitingAction
    action_id: ActionId
    action: Annotated[
        ShownButtons | FormAction,
        Field(
            discriminator="type",
            description="Buttons or a form.",
            json_schema_extra={"x-union": "PresentedAction"},
        ),
    ]


class CustomerPendingStep(Shape):
    """The workflow step that waits for the customer; null without one."""

    step: CustomerStep | None


class CustomerSurvey(Shape):
    """The survey of the channel. A closed survey accepts no responses."""

    id: SurveyId
    status: SurveyStatus
    version: Annotated[int, Field(ge=1, examples=[1])]
    definition: SurveyDefinition


class CustomerSurveyResponse(Shape):
    """The stored response of the customer."""

    id: ResponseId
    survey_id: SurveyId
    version: Annotated[int, Field(ge=1, examples=[1])]
    created_at: Moment
