"""Webhook endpoints, deliveries, and the stream's consumers as the API shows them (decisions 5, 6)."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from deskwire.engine.webhooks.delivery import DeliveryStatus
from deskwire.engine.webhooks.endpoint import CatchUp
from deskwire.engine.webhooks.retry.circuit import State
from deskwire.http.schemas.base import (
    ConversationId,
    Count,
    DeliveryId,
    EndpointId,
    EventId,
    Moment,
    ProjectId,
    Shape,
    Url,
)

EventType = Annotated[str, Field(examples=["message.created"])]


class LastDelivery(Shape):
    """How the newest delivery ended."""

    at: Moment
    status: Literal["delivered", "dropped", "skipped"]


class Waiting(Shape):
    """How many deliveries wait, and when the oldest of them was made."""

    count: Annotated[int, Field(ge=1, examples=[914])]
    since: Moment


class WebhookEndpoint(Shape):
    """Where events are posted to. The secret is whole in the answers that make one, and masked elsewhere."""

    id: EndpointId
    url: Url
    events: Annotated[list[EventType], Field(description="None listed means all but typing.")]
    secret: Annotated[str, Field(examples=["whsec_…7Q2x"])]
    old_secret_until: Annotated[
        Moment | None, Field(description="Until when the secret that was replaced signs, too.")
    ]
    status: Literal["enabled", "disabled"]
    status_reason: Annotated[str, Field(examples=["by the API"])] | None
    description: Annotated[str, Field(examples=["The CRM"])] | None
    created_at: Moment
    updated_at: Moment
    last_delivery: LastDelivery | None
    circuit: State
    circuit_open_until: Annotated[Moment | None, Field(description="When the next probe is sent.")]
    circuit_reason: (
        Annotated[str, Field(examples=["20 attempts in a row failed within 61 s; the last: status 500"])]
        | None
    )
    failing_since: Annotated[Moment | None, Field(description="Since when no attempt has succeeded.")]
    paused_until: Annotated[
        Moment | None,
        Field(description="Until when nothing is sent, as the receiver asked with `Retry-After`."),
    ]
    catch_up: Annotated[
        CatchUp, Field(description="Whether what an outage made it miss is sent once more by itself.")
    ]
    held: Annotated[
        Waiting | None,
        Field(description="Deliveries that the circuit has held, and that are still to be sent."),
    ]
    missed: Annotated[
        Waiting | None,
        Field(description="Deliveries that were dropped in an outage, and that are to be sent once more."),
    ]


class Attempt(Shape):
    """One try of a delivery. `error` is null only after a 2xx."""

    number: Annotated[int, Field(ge=1, examples=[1])]
    at: Moment
    status: Annotated[int, Field(examples=[200])] | None
    latency_ms: Annotated[int, Field(ge=0, examples=[41])]
    error: Annotated[str, Field(examples=["status 500"])] | None
    answer: Annotated[str, Field(description="The first KiB of what the receiver answered.", examples=["ok"])]


class Delivery(Shape):
    """One event on its way to one endpoint."""

    id: DeliveryId
    endpoint_id: EndpointId
    event_id: EventId | None
    event_type: EventType | None
    conversation_id: ConversationId | None
    sequence: Annotated[int, Field(ge=1, examples=[2])] | None
    status: DeliveryStatus
    reason: (
        Annotated[str, Field(description="Why it was dropped or skipped.", examples=["status 500"])] | None
    )
    attempts: list[Attempt]
    next_attempt_at: Moment | None
    redelivery_of: DeliveryId | None
    redelivered_as: DeliveryId | None
    created_at: Moment
    ended_at: Moment | None


class Recovery(Shape):
    """How many deliveries are sent again, and how many can't be as their events are gone."""

    count: Count
    not_stored: Count
    dry_run: bool


class StreamAuthorization(Shape):
    """What a Pusher client subscribes with."""

    auth: Annotated[
        str, Field(description="The stream key and a token.", examples=["x7Gt2kQ1bVnA:eyJhbGciOi…"])
    ]


class StreamConsumer(Shape):
    """Who holds a channel, and how far it has confirmed."""

    channel: Annotated[str, Field(examples=["private-project-prj_01KZ000000000000000000SH0P"])]
    consumer_id: Annotated[str, Field(examples=["crm-1"])]
    connected: bool
    since: Moment
    confirmed_event_id: EventId | None
    lag: Annotated[int, Field(ge=0, description="Events that it has not confirmed.", examples=[0])]


class EndedConsumer(Shape):
    """A consumer that has been ended."""

    consumer_id: Annotated[str, Field(examples=["crm-1"])]
    ended: Annotated[
        list[str],
        Field(
            description="Channels that it was connected to.",
            examples=[["private-project-prj_01KZ000000000000000000SH0P"]],
        ),
    ]


class ServerProject(Shape):
    """The project that a server key belongs to."""

    id: ProjectId
    name: Annotated[str, Field(examples=["Shop"])]
    stream_key: Annotated[str, Field(examples=["x7Gt2kQ1bVnA"])]
