"""Customers' streams: server-sent events, each message the `data` of one of them."""

from __future__ import annotations

from typing import Final, get_args

from deskwire.engine.customers.stream import Bye
from deskwire.engine.events.types import STORED
from deskwire.http.description.asyncapi.parts import AsyncApiParts, security, servers
from deskwire.http.description.asyncapi.sse_parts import SseMessages
from deskwire.http.description.openapi.samples import sample
from deskwire.http.schemas.customer_events import CustomerEvent

_TYPING: Final = {
    "type": "agent.typing.started",
    "data": {"conversationId": "cnv_01KZ00000000000000000000C1", "agent": {"name": "Ada"}},
}


def add(parts: AsyncApiParts) -> None:
    """Add the streams of customers."""
    messages, schema = SseMessages(parts, "customers"), parts.schemas.of(CustomerEvent)
    messages.add_hello("The first event: the start position of the stream.", {}, {})
    messages.add_passing(
        "An ephemeral event without an id, which is not stored: an agent types in one of the customer's conversations.",
        _TYPING,
    )
    messages.add_bye(get_args(Bye))
    messages.add(
        "event",
        "A stored event as the customer may see it. Its `type` is one of "
        f"{', '.join(f'`{each}`' for each in sorted(STORED))}.",
        schema,
        sample(schema, parts.schemas.components),
    )
    parts.channel(
        "customers",
        messages.names,
        address="/v3/customer/stream",
        title="Customers' stream",
        description="Server-sent events. Stored events have an `id` and no field `event`; one that shows the customer nothing has an `id` "
        "alone. The others are named by `event`.",
        servers=servers("api"),
    )
    parts.operation(
        "sendToCustomers",
        "customers",
        "send",
        messages.names,
        "Send customers the events of their own conversations.",
        security=security("customerToken"),
        bindings={"http": {"method": "GET", "bindingVersion": "0.3.0"}},
    )
