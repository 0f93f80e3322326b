"""Events as customers get them, and the presence of contacts for agents."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from deskwire.engine.conversations.conversation import Closer, Status
from deskwire.http.schemas.base import ContactId, ConversationId, EventId, MessageId, Moment, Shape
from deskwire.http.schemas.customer_conversations import CustomerConversation, CustomerMessage, CustomerStep


class CustomerDeletedConversation(Shape):
    """A deleted conversation: remove it from the page."""

    id: ConversationId
    status: Status
    closed: Annotated[bool, Field(description="True if `status` was `CLOSED`.")]
    unread: bool


class CustomerEventData(Shape):
    """The parts of an event that the customer may see; which of them an event has depends on its type."""

    conversation: CustomerConversation | CustomerDeletedConversation | None = None
    message: CustomerMessage | None = None
    step: CustomerStep | None = None
    closed_by: Closer | None = None
    changed: list[Annotated[str, Field(examples=["title"])]] | None = None
    redacted_message_ids: list[MessageId] | None = None
    deleted_message_ids: list[MessageId] | None = None


class CustomerEvent(Shape):
    """An event of the customer's own conversations."""

    id: EventId
    type: Annotated[str, Field(examples=["message.created"])]
    created_at: Moment
    sequence: Annotated[int, Field(description="Place in the conversation; counts up by one.")] | None = None
    data: CustomerEventData


class CustomerEvents(Shape):
    """Events after the requested one, and the event after which to continue.

    With `gap`, events in between are no longer stored: fetch the conversations again.
    """

    events: list[CustomerEvent]
    cursor: EventId
    gap: bool


class CustomerPage(Shape):
    """The page of your website on which a customer is, as the page reports it."""

    url: Annotated[str, Field(examples=["https://shop.example/cart"])]
    title: Annotated[str, Field(examples=["Your cart"])] | None


class ContactPresence(Shape):
    """The presence of a contact: the widget is open, and the page on which it is. Nothing of it is stored."""

    contact_id: ContactId
    online: bool
    page: CustomerPage | None
