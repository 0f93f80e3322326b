"""Events: the data of each type, and the common envelope (contract 2.10, 6.1; decisions 4)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any, Final, Literal, Union

from pydantic import ConfigDict, Field, RootModel

from deskwire.engine.conversations.conversation import Closer, Reason, Status
from deskwire.engine.events.types import API_VERSION, CATALOG, STORED, EventSpec
from deskwire.engine.workflows.runs import Ending
from deskwire.http.schemas.base import (
    ConversationId,
    EndpointId,
    EventId,
    MessageId,
    Moment,
    PersonName,
    ProjectId,
    Shape,
    Url,
    UserId,
    WorkflowId,
    shape_of,
)
from deskwire.http.schemas.conversations import BackendUserId, ContactIdentity, Conversation, Message
from deskwire.http.schemas.workflows import WorkflowStep


class ConversationData(Shape):
    """The conversation after the event."""

    conversation: Conversation


class ConversationCreatedData(ConversationData):
    """The new conversation. If it was split off from another one, with the ids of the messages of that one that it shows."""

    split_off_message_ids: list[MessageId] | None = None


class ConversationUpdatedData(ConversationData):
    """The conversation after the event, and the names of the changed fields.

    After a redaction or deletion of a message, `changed` is `["messages"]`, and `redactedMessageIds` or `deletedMessageIds` has the
    message's id. Fetch a redacted message again, and remove a deleted one.
    """

    changed: list[Annotated[str, Field(examples=["title"])]]
    redacted_message_ids: list[MessageId] | None = None
    deleted_message_ids: list[MessageId] | None = None


class ConversationClosedData(ConversationData):
    """The conversation, and the agent, bot or system that closed it."""

    closed_by: Closer


class RemovedContact(Shape):
    """The contact of a deleted conversation."""

    user_id: BackendUserId


class RemovedConversation(Shape):
    """The fields of a deleted conversation that a mirror needs to remove it, without personal data."""

    id: ConversationId
    status: Status
    closed: bool
    unread: bool
    contact: RemovedContact


class ConversationDeletedData(Shape):
    """The deleted conversation, and the reason for the deletion."""

    conversation: RemovedConversation
    reason: Reason


class MessageData(ConversationData):
    """The message, and its conversation."""

    message: Message


class StepData(ConversationData):
    """The workflow step that waits for the customer, and the conversation."""

    step: WorkflowStep


class WorkflowData(ConversationData):
    """The workflow that ended, the reason, and the conversation."""

    workflow_id: WorkflowId
    reason: Ending


class ContactData(Shape):
    """The contact after the change."""

    contact: ContactIdentity


class TypingAgent(Shape):
    """The agent who is typing or has stopped."""

    id: UserId
    name: PersonName


class TypingData(Shape):
    """The agent who is typing or has stopped, and the conversation."""

    conversation_id: ConversationId
    agent: TypingAgent


class WebhookTestData(Shape):
    """The endpoint that receives the test event."""

    endpoint_id: EndpointId
    url: Url


DATA: Final[Mapping[str, type[Shape]]] = {
    "conversation.created": ConversationCreatedData,
    "conversation.updated": ConversationUpdatedData,
    "conversation.closed": ConversationClosedData,
    "conversation.reopened": ConversationData,
    "conversation.assigned": ConversationData,
    "conversation.deleted": ConversationDeletedData,
    "message.created": MessageData,
    "workflow.step.presented": StepData,
    "workflow.completed": WorkflowData,
    "contact.updated": ContactData,
    "agent.typing.started": TypingData,
    "agent.typing.stopped": TypingData,
    "webhook.test": WebhookTestData,
}
"""The model of `data` for each type of the registry; a test fails for a missing type."""


_Number = Annotated[int, Field(ge=1)]
NUMBERED: Final = Annotated[
    _Number | None,
    Field(description="The number of the event within its conversation, from 1.", examples=[1]),
]
UNNUMBERED: Final = Annotated[
    _Number | None, Field(description="Null: an event of this type has no number.", examples=[None])
]
"""The `sequence` of an envelope. Its type is integer or null in all of them, so that one type can parse every event."""


API_VERSION_FIELD: Final = Annotated[
    str,
    Field(
        description="The version of the event's shape. This document describes the newest; an endpoint may be pinned to an older one.",
        examples=[API_VERSION],
    ),
]


@cache  # a type for both agents and webhooks has one schema
def envelope(kind: EventSpec, data: type[Shape]) -> type[Shape]:
    """Return the shape of a type's envelope with this `data`."""
    name = "".join(word.title() for word in kind.type.split("."))
    fields: dict[str, Any] = {
        "id": EventId,
        "type": Literal[kind.type],
        "api_version": API_VERSION_FIELD,
        "created_at": Moment,
        "project_id": ProjectId,
        "sequence": NUMBERED if kind.numbered else UNNUMBERED,
        "data": data,
    }
    return shape_of(f"{name}Event", Shape, kind.when, fields)


ENVELOPES: Final[Mapping[str, type[Shape]]] = {
    kind.type: envelope(kind, DATA[kind.type]) for kind in CATALOG.values() if kind.type in DATA
}
"""The envelope of each type."""


class Event(RootModel[Any]):
    """An event as stored, and as sent on every channel."""

    model_config = ConfigDict(defer_build=True)  # the service does not use it, like shapes

    root: Annotated[
        Union[tuple(ENVELOPES[each] for each in sorted(STORED & ENVELOPES.keys()))],  # type: ignore[valid-type]  # noqa: UP007
        Field(discriminator="type"),
    ]
