"""Deliveries as they are stored, and as the delivery log shows them (decisions 6)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

from msgspec import Struct

from deskwire.engine.core.clock import iso, iso_or_none
from deskwire.engine.core.values import replace
from deskwire.engine.events.types import StoredEvent

DeliveryStatus = Literal["pending", "delivered", "dropped", "skipped"]


class Delivery(Struct, frozen=True):
    """One event on its way to one endpoint; it keeps its id over all attempts (decisions 6).

    Args:
        ordering_key: the conversation (or the contact's key) whose order its first attempt keeps, None for none.
        previous: sequence of the conversation's event that this endpoint was sent before, 0 for none.
        attempts: the number of attempts that were made.
        due_at: time at which the next attempt may start, in milliseconds since the epoch.
        planned_from: time from which its attempts are planned (ms), None before the first one has ended.
        failing_since: time at which its first attempt had failed (ms), None if none has.
        redelivery: whether it repeats another one.
        refusals: number of responses with `Retry-After` in a row that concern it, as far as is known: 1 after the first one, 2
            once another conversation's delivery has succeeded in between, 3 once it has failed by itself.
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
    """Return the delivery with its event as it is among these, by its position; the delivery itself if it is not."""
    event = events.get(delivery.event.position)
    return delivery if event is None else replace(delivery, event=event)


class Attempt(Struct, frozen=True):
    """One attempt at a delivery.

    Args:
        at: time at which it began, in milliseconds since the epoch.
        latency_ms: time until its end.
        error: the reason for which it failed, in words; None only after a 2xx.
        answer: the begin of the response's body.
        wait_ms: pause that the receiver asked for (`Retry-After` of a 429 or 503); it is used once and not stored.
    """

    number: int
    at: int
    latency_ms: int
    status: int | None
    error: str | None
    answer: bytes
    wait_ms: int | None = None


class DeliveryRecord(Struct, frozen=True):
    """A delivery in the log, with its attempts; it outlives the event that it carried.

    A delivery from before there was a log whose event is gone has no event id and type.

    Args:
        due_at: time at which the next attempt may start (ms), if it is pending.
        redelivery_of: id of the delivery that this one repeats.
        redelivered_as: id of the delivery that repeats this one.
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
    """The numbers of an endpoint's deliveries that an outage keeps waiting.

    Args:
        held: deliveries that are pending because the circuit was open.
        missed: deliveries that used up their attempts in the outage and are to be sent once more.
        held_since, missed_since: time at which the oldest of them was made (ms), None if there is none.
    """

    held: int
    held_since: int | None
    missed: int
    missed_since: int | None


NO_OUTAGE: Final = OutageCounts(0, None, 0, None)


class DeliveryFilter(Struct, frozen=True):
    """The filter of a listing of deliveries; None matches any. Times are in milliseconds, `until` is excluded."""

    status: DeliveryStatus | None = None
    event_type: str | None = None
    conversation_id: str | None = None
    since: int | None = None
    until: int | None = None


class FoundDeliveries(Struct, frozen=True):
    """The deliveries that a search has found, newest first, and the delivery at which it stopped for this time.

    Args:
        reached: position and time (ms) of the oldest delivery that was looked at; None if none is left to look at.
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
    """The events to send again: of these types, from the first sequence to the last, both included; None is for no bound."""

    types: frozenset[str]
    first: int | None = None
    last: int | None = None


class ReplayCounts(Struct, frozen=True):
    """The numbers of events that a replay finds.

    Args:
        count: events that it sends.
        pending: events that it leaves out, as they are on their way to the endpoint anyway.
        not_stored: deliveries whose event can't be sent again, as it is no longer stored.
    """

    count: int
    pending: int
    not_stored: int
