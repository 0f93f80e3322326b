"""Deliveries as stored, and as the delivery log shows them (decisions 6)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

from msgspec import Struct

from deskwire.engine.core.clock import iso, iso_or_none
from deskwire.engine.core.values import replace
from deskwire.engine.events.types import StoredEvent

DeliveryStatus = Literal["pending", "delivered", "dropped", "skipped"]


class Delivery(Struct, frozen=True):
    """One event to be sent to one endpoint. All attempts share its id (decisions 6).

    Args:
        ordering_key: the conversation (or the contact's key) within which first attempts keep their order;
            None for no order.
        previous: sequence of the conversation's event that this endpoint was sent before, 0 for none.
        attempts: number of attempts made so far.
        due_at: when the next attempt may start, in milliseconds since the epoch.
        planned_from: time from which attempts are planned (ms); None until the first attempt has ended.
        failing_since: when its first attempt failed (ms); None if none has failed.
        redelivery: whether it repeats another delivery.
        refusals: consecutive `Retry-After` responses attributed to this delivery: 1 after the first one, 2
            after another conversation's delivery has succeeded in between, 3 after the refusal counts as its
            own failure.
    """

    position: int
    id: str
    endpoint: int
    event: StoredEvent
    ordering_key: int | None
    previous: int | None
    attempts: int
    due_at: int
    created_at: int
    planned_from: int | None = None
    failing_since: int | None = None
    redelivery: bool = False
    refusals: int = 0


def with_event(delivery: Delivery, events: Mapping[int, StoredEvent]) -> Delivery:
    """Return the delivery with its event replaced, if `events` has its position."""
    event = events.get(delivery.event.position)
    return delivery if event is None else replace(delivery, event=event)


class Attempt(Struct, frozen=True):
    """One attempt at a delivery.

    Args:
        at: start time in milliseconds since the epoch.
        latency_ms: duration of the attempt.
        error: why the attempt failed; None only after a 2xx.
        answer: the first bytes of the response's body.
        wait_ms: the pause that the receiver asked for (`Retry-After` of a 429 or 503); it is not stored.
    """

    number: int
    at: int
    latency_ms: int
    status: int | None
    error: str | None
    answer: bytes
    wait_ms: int | None = None


class DeliveryRecord(Struct, frozen=True):
    """A delivery in the log with its attempts. The record outlives its event.

    Deliveries older than the log whose event is gone have no event id and no type.

    Args:
        due_at: when the next attempt may start (ms), if the delivery is pending.
        redelivery_of: id of the delivery that this delivery repeats.
        redelivered_as: id of the delivery that repeats this delivery.
    """

    position: int
    id: str
    endpoint_id: str
    event_id: str | None
    event_type: str | None
    conversation_id: str | None
    sequence: int | None
    status: DeliveryStatus
    reason: str | None
    attempts: Sequence[Attempt]
    due_at: int
    redelivery_of: str | None
    redelivered_as: str | None
    created_at: int
    ended_at: int | None


class OutageCounts(Struct, frozen=True):
    """Numbers of an endpoint's deliveries that wait because of an outage.

    Args:
        held: deliveries that are pending because the circuit was open.
        missed: deliveries that used up their attempts in the outage and will be sent again.
        held_since, missed_since: creation time of the oldest of them (ms), None if there is none.
    """

    held: int
    held_since: int | None
    missed: int
    missed_since: int | None


NO_OUTAGE: Final = OutageCounts(0, None, 0, None)


class DeliveryFilter(Struct, frozen=True):
    """Criteria for listing deliveries; None matches all. Times are in ms.

    `since` is included, `until` is excluded.
    """

    status: DeliveryStatus | None = None
    event_type: str | None = None
    conversation_id: str | None = None
    since: int | None = None
    until: int | None = None


class FoundDeliveries(Struct, frozen=True):
    """One page of a search for deliveries, newest first.

    Args:
        reached: position and time (ms) of the oldest delivery that this search examined; None if it examined
            all of them.
    """

    records: Sequence[DeliveryRecord]
    reached: tuple[int, int] | None = None


def delivery_view(record: DeliveryRecord) -> dict[str, Any]:
    """Return the delivery object of the API."""
    return {
        "id": record.id,
        "endpointId": record.endpoint_id,
        "eventId": record.event_id,
        "eventType": record.event_type,
        "conversationId": record.conversation_id,
        "sequence": record.sequence,
        "status": record.status,
        "reason": record.reason,
        "attempts": [_attempt_view(attempt) for attempt in record.attempts],
        "nextAttemptAt": iso(record.due_at) if record.status == "pending" else None,
        "redeliveryOf": record.redelivery_of,
        "redeliveredAs": record.redelivered_as,
        "createdAt": iso(record.created_at),
        "endedAt": iso_or_none(record.ended_at),
    }


def _attempt_view(attempt: Attempt) -> dict[str, Any]:
    return {
        "number": attempt.number,
        "at": iso(attempt.at),
        "status": attempt.status,
        "latencyMs": attempt.latency_ms,
        "error": attempt.error,
        "answer": attempt.answer.decode(errors="replace"),
    }


class ReplayRange(Struct, frozen=True):
    """The events to replay: these types, from one sequence to another, both included.

    `first` and `last` are None for an open range.
    """

    types: frozenset[str]
    first: int | None = None
    last: int | None = None


class ReplayCounts(Struct, frozen=True):
    """Numbers of events in the range of a replay.

    Args:
        count: events that the replay sends.
        pending: events that it leaves out because a delivery of them is still pending.
        not_stored: deliveries that can't be repeated because their event is no longer stored.
    """

    count: int
    pending: int
    not_stored: int
