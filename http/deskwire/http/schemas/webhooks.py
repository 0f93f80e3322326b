"""Webhook endpoints, deliveries, and stream consumers in the API (decisions 5, 6)."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from deskwire.engine.events.types import API_VERSION
from deskwire.engine.webhooks.delivery import DeliveryStatus
from deskwire.engine.webhooks.endpoint import CatchUp, HealthCode
from deskwire.engine.webhooks.figures import Bucket
from deskwire.engine.webhooks.outcome import Reason
from deskwire.engine.webhooks.retry.circuit_breaker import CircuitStatus
from deskwire.http.schemas.base import (
    ConversationId,
    Count,
    DeliveryId,
    EndpointId,
    EventId,
    Listed,
    Moment,
    ProjectId,
    Shape,
    Url,
)

EventType = Annotated[str, Field(examples=["message.created"])]

EndpointStatus = Literal["enabled", "disabled"]
"""The status of an existing endpoint."""


class LastDelivery(Shape):
    """The result of the newest finished delivery."""

    at: Moment
    status: Literal["delivered", "dropped", "skipped"]


class WaitingDeliveries(Shape):
    """The number of waiting deliveries, and the time of the oldest one."""

    count: Annotated[int, Field(ge=1, examples=[914])]
    since: Moment


class WebhookEndpoint(Shape):
    """A webhook endpoint. The responses that create a secret show it; all others mask it."""

    id: EndpointId
    url: Url
    events: Annotated[
        list[EventType],
        Field(
            description="The event types sent. An empty list means all types of the contract except typing."
        ),
    ]
    api_version: Annotated[
        str, Field(description="The version in which events are sent to it.", examples=[API_VERSION])
    ]
    secret: Annotated[str, Field(examples=["whsec_…7Q2x"])]
    old_secret_until: Annotated[
        Moment | None, Field(description="The time until which the replaced secret also signs.")
    ]
    status: EndpointStatus
    status_reason: Annotated[str, Field(examples=["by the API"])] | None
    description: Annotated[str, Field(examples=["The CRM"])] | None
    created_at: Moment
    updated_at: Moment
    last_delivery: LastDelivery | None
    healthy: Annotated[
        bool,
        Field(
            description="True if it is enabled, its circuit is closed, `failingSince` is null and `dropped` is 0."
        ),
    ]
    health_code: Annotated[
        HealthCode | None, Field(description="The reason why it is not healthy, as a code.")
    ]
    health_reason: Annotated[str, Field(examples=["3 deliveries of the last 24 hours did not arrive"])] | None
    dropped: Annotated[
        int,
        Field(
            ge=0,
            examples=[0],
            description="The deliveries of the last 24 hours that were dropped and not sent again, up to 10,000.",
        ),
    ]
    circuit: CircuitStatus
    circuit_open_until: Annotated[Moment | None, Field(description="The time of the next probe.")]
    circuit_reason: (
        Annotated[str, Field(examples=["20 attempts in a row failed within 61 s; the last: status 500"])]
        | None
    )
    failing_since: Annotated[
        Moment | None, Field(description="The time since which no attempt has succeeded.")
    ]
    paused_until: Annotated[
        Moment | None,
        Field(
            description="The time until which nothing is sent, requested by the receiver with `Retry-After`."
        ),
    ]
    catch_up: Annotated[
        CatchUp,
        Field(description="`automatic` if events missed in an outage are sent again automatically."),
    ]
    internal: Annotated[bool, Field(description="Whether it may list types with internal notes of agents.")]
    credential_id: Annotated[
        str | None,
        Field(
            description="The machine credential that owns the endpoint, which is disabled with it; null for none."
        ),
    ]
    held: Annotated[
        WaitingDeliveries | None,
        Field(description="The deliveries held back by the open circuit, still to be sent."),
    ]
    missed: Annotated[
        WaitingDeliveries | None,
        Field(description="The deliveries dropped in an outage, to be sent again."),
    ]


class DeliveryAttempt(Shape):
    """An attempt of a delivery. `error` is null only after a 2xx status."""

    number: Annotated[int, Field(ge=1, examples=[1])]
    at: Moment
    status: Annotated[int, Field(examples=[200])] | None
    latency_ms: Annotated[int, Field(ge=0, examples=[41])]
    error: Annotated[str, Field(examples=["status 500"])] | None
    answer: Annotated[str, Field(description="The first KiB of the receiver's response.", examples=["ok"])]


class Delivery(Shape):
    """A delivery of an event to an endpoint."""

    id: DeliveryId
    endpoint_id: EndpointId
    event_id: EventId | None
    event_type: EventType | None
    conversation_id: ConversationId | None
    sequence: Annotated[int, Field(ge=1, examples=[2])] | None
    status: DeliveryStatus
    reason: (
        Annotated[
            str,
            Field(description="The reason why the delivery was dropped or skipped.", examples=["status 500"]),
        ]
        | None
    )
    attempts: list[DeliveryAttempt]
    next_attempt_at: Moment | None
    redelivery_of: DeliveryId | None
    redelivered_as: DeliveryId | None
    created_at: Moment
    ended_at: Moment | None


class DeliveryPage(Listed):
    """A page of the delivery log. `nextCursor` is the `cursor` of the next page, null on the last page."""

    items: list[Delivery]
    searched_to: Annotated[
        Moment | None,
        Field(
            description="The time of the oldest delivery examined. Present only if the search for a type ended "
            "before a full page; `nextCursor` continues from there."
        ),
    ] = None


class DeliveryOutcome(Shape):
    """The outcome of a conversation's event at an endpoint, without address, attempts and responses."""

    sequence: Annotated[int, Field(ge=1, examples=[2])]
    event_id: EventId
    endpoint_id: EndpointId
    endpoint: Annotated[
        str,
        Field(description="The endpoint's description, or else the host of its URL.", examples=["The CRM"]),
    ]
    status: DeliveryStatus
    reason_code: Annotated[Reason | None, Field(description="The code of the reason why it has not arrived.")]
    reason: (
        Annotated[
            str,
            Field(
                description="The reason in words.",
                examples=["It is held until The CRM has recovered, and sent then."],
            ),
        ]
        | None
    )
    attempts: Annotated[int, Field(ge=0, examples=[1])]
    last_status: Annotated[
        Annotated[int, Field(examples=[200])] | None,
        Field(description="The HTTP status of the response to the last attempt."),
    ]
    delivered_at: Moment | None
    after_ms: Annotated[
        Annotated[int, Field(ge=0, examples=[85])] | None,
        Field(description="The time from the event to its arrival, in milliseconds."),
    ]
    next_attempt_at: Moment | None


class RecoveryResult(Shape):
    """The number of deliveries created, and the number of events no longer stored."""

    count: Count
    not_stored: Count
    dry_run: bool


class ReplayResult(Shape):
    """The number of deliveries created, of events omitted because they are being sent, and of events no longer stored."""

    count: Count
    pending: Count
    not_stored: Count
    dry_run: bool


class DeliveryCounts(Shape):
    """The number of deliveries created in an hour or a day, by outcome."""

    at: Moment
    delivered: Count
    dropped: Count
    skipped: Count
    pending: Count


class DeliveryLatency(Shape):
    """The time from a delivery's creation to its arrival, in milliseconds: the median and the 99th percentile."""

    deliveries: Count
    p50_ms: Annotated[int, Field(ge=0, examples=[24])] | None
    p99_ms: Annotated[int, Field(ge=0, examples=[310])] | None


class EndpointFigures(Shape):
    """The numbers of deliveries to an endpoint by time, oldest first."""

    bucket: Bucket
    items: list[DeliveryCounts]
    latency: DeliveryLatency


class ConversationConsumer(Shape):
    """The consumer of a channel with a conversation's events, and the newest one of them that it has confirmed."""

    channel: Annotated[str, Field(examples=["private-project-prj_01KZ000000000000000000SH0P"])]
    consumer_id: Annotated[str, Field(examples=["crm-1"])]
    connected: bool
    since: Moment
    confirmed_sequence: Annotated[
        Annotated[int, Field(ge=1, examples=[2])] | None,
        Field(description="The sequence of the conversation's newest stored event that it has confirmed."),
    ]


class StreamAuthorization(Shape):
    """The authorization with which a Pusher client subscribes."""

    auth: Annotated[
        str, Field(description="The stream key and a token.", examples=["x7Gt2kQ1bVnA:eyJhbGciOi…"])
    ]


class StreamConsumer(Shape):
    """The consumer of a channel, and the newest event it has confirmed."""

    channel: Annotated[str, Field(examples=["private-project-prj_01KZ000000000000000000SH0P"])]
    consumer_id: Annotated[str, Field(examples=["crm-1"])]
    connected: bool
    since: Moment
    confirmed_event_id: EventId | None
    lag: Annotated[int, Field(ge=0, description="The number of events not yet confirmed.", examples=[0])]


class EndedConsumer(Shape):
    """The consumer that was ended."""

    consumer_id: Annotated[str, Field(examples=["crm-1"])]
    ended: Annotated[
        list[str],
        Field(
            description="The channels that the consumer was connected to.",
            examples=[["private-project-prj_01KZ000000000000000000SH0P"]],
        ),
    ]


class ServerProject(Shape):
    """The project that a server key belongs to."""

    id: ProjectId
    name: Annotated[str, Field(examples=["Shop"])]
    stream_key: Annotated[str, Field(examples=["x7Gt2kQ1bVnA"])]
