"""Events: what each type carries, in the envelope that all have (contract 2.10, 6.1; decisions 4)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, Union

from pydantic import Field, RootModel, create_model

from deskwire.engine.conversations.conversation import Closer, Reason, Status
from deskwire.engine.events.types import API_VERSION, CATALOG, STORED, Kind
from deskwire.http.schemas.base import (
    ConversationId,
    EndpointId,
    EventId,
    Moment,
    PersonName,
    ProjectId,
    Shape,
    Url,
    UserId,
    WorkflowId,
)
from deskwire.http.schemas.conversations import BackendUserId, Contact, Conversation, Message
from deskwire.http.schemas.workflows import WorkflowStep


class ConversationData(Shape):
    """The conversation as it is after the event."""

    conversation: Conversation


class ConversationUpdatedData(ConversationData):
    """The conversation, and which of its fields changed."""

    changed: list[Annotated[str, Field(examples=["title"])]]


class ConversationClosedData(ConversationData):
    """The conversation, and who closed it."""

    closed_by: Closer


class RemovedContact(Shape):
    """Whose conversation it was."""

    user_id: BackendUserId


class RemovedConversation(Shape):
    """What a mirror needs to prune it; no personal data."""

    id: ConversationId
    status: Status
    closed: bool
    unread: bool
    contact: RemovedContact


class ConversationDeletedData(Shape):
    """What is gone, and why."""

    conversation: RemovedConversation
    reason: Reason


class MessageData(ConversationData):
    """The message and its conversation."""

    message: Message


class StepData(ConversationData):
    """The step that waits for the customer."""

    step: WorkflowStep


class WorkflowData(ConversationData):
    """The workflow that ended, and how."""

    workflow_id: WorkflowId
    reason: Literal["completed", "handed_off"]


class ContactData(Shape):
    """The contact as it is after the change."""

    contact: Contact


class Typist(Shape):
    """The agent who types."""

    id: UserId
    name: PersonName


class TypingData(Shape):
    """Who types where."""

    conversation_id: ConversationId
    agent: Typist


class WebhookTestData(Shape):
    """The endpoint that was asked to be tested."""

    endpoint_id: EndpointId
    url: Url


DATA: Final[Mapping[str, type[Shape]]] = {
    "conversation.created": ConversationData,
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
"""What `data` is in each type of the registry; a test fails for a type that is missing."""


def _envelope(kind: Kind) -> type[Shape]:
    name = "".join(word.title() for word in kind.type.split("."))
    sequence = Annotated[int, Field(ge=1, description="Its number in its conversation.", examples=[1])]
    fields: dict[str, Any] = {
        "id": (EventId, ...),
        "type": (Literal[kind.type], ...),
        "api_version": (Literal[API_VERSION], ...),
        "created_at": (Moment, ...),
        "project_id": (ProjectId, ...),
        "sequence": (sequence if kind.numbered else None, ...),
        "data": (DATA[kind.type], ...),
    }
    return create_model(f"{name}Event", __base__=Shape, __doc__=kind.when, **fields)


ENVELOPES: Final[Mapping[str, type[Shape]]] = {
    kind.type: _envelope(kind) for kind in CATALOG.values() if kind.type in DATA
}
"""The envelope of each type."""


class Event(RootModel[Any]):
    """An event as it is stored, and sent on every channel."""

    root: Annotated[
        Union[tuple(ENVELOPES[each] for each in sorted(STORED & ENVELOPES.keys()))],  # type: ignore[valid-type]  # noqa: UP007
        Field(discriminator="type"),
    ]
