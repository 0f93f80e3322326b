"""Outcomes of a conversation's events at the endpoints, as agents see them.

Agents must not learn an endpoint's URL or its responses, so an endpoint is shown by name and a failure by its
kind.
"""

from __future__ import annotations

from typing import Any, Final, Literal
from urllib.parse import urlsplit

from msgspec import Struct

from deskwire.engine.core.clock import iso, iso_or_none
from deskwire.engine.core.ids import id_time_ms
from deskwire.engine.webhooks.delivery import DeliveryStatus
from deskwire.engine.webhooks.endpoint import DISABLED_PREFIX, Endpoint
from deskwire.engine.webhooks.http.failure import is_unreachable

# Why an event has not arrived.
Reason = Literal[
    "on_its_way", "retrying", "held", "paused", "failed", "endpoint_disabled", "waited_too_long", "not_stored"
]

# Reason in the delivery log of a delivery that waited until its event was deleted.
NOT_STORED: Final = "the event is no longer stored"

# Text in the delivery log, and the wording for agents.
_FAILURE_TEXTS: Final = (
    ("timeout", "it did not answer in time"),
    ("TLS", "no secure connection was possible"),
    ("proxy", "the proxy on the way to it failed"),
    ("address refused", "its address is not one that webhooks are sent to"),
    ("this server had no", "this server lacked what it takes"),
    ("connection closed", "it hung up before it answered"),
    ("malformed answer", "its answer could not be understood"),
)


class Outcome(Struct, frozen=True):
    """A delivery of a conversation's event. Times are in milliseconds.

    Args:
        endpoint: the endpoint's storage key.
        made_at: time of the event; None if the event is no longer stored.
        last_status, last_error: HTTP status and failure of the last attempt.
        missed: 1 if it will be sent again automatically, else None.
    """

    position: int
    endpoint: int
    sequence: int
    event_id: str
    made_at: int | None
    status: DeliveryStatus
    reason: str | None
    attempts: int
    last_status: int | None
    last_error: str | None
    due_at: int
    ended_at: int | None
    missed: int | None


class SequenceRange(Struct, frozen=True):
    """A range of sequences, both ends included; None leaves an end open."""

    first: int | None = None
    last: int | None = None


def endpoint_name(endpoint: Endpoint) -> str:
    """Return the name of the endpoint for agents: its description or its URL's host."""
    return endpoint.description or urlsplit(endpoint.url).hostname or endpoint.id


def outcome_view(outcome: Outcome, endpoint: Endpoint, now: int) -> dict[str, Any]:
    """Return the outcome of an event at an endpoint for agents, at `now` (ms)."""
    name = endpoint_name(endpoint)
    reason = _reason(outcome, endpoint, now)
    arrived = outcome.ended_at if outcome.status == "delivered" else None
    made = id_time_ms(outcome.event_id) if outcome.made_at is None else outcome.made_at
    return {
        "sequence": outcome.sequence,
        "eventId": outcome.event_id,
        "endpointId": endpoint.id,
        "endpoint": name,
        "status": outcome.status,
        "reasonCode": reason,
        "reason": None if reason is None else _reason_text(reason, outcome, name),
        "attempts": outcome.attempts,
        "lastStatus": outcome.last_status,
        "deliveredAt": iso_or_none(arrived),
        "afterMs": None if arrived is None else max(0, arrived - made),
        "nextAttemptAt": iso(_next_attempt_at(outcome, endpoint)) if outcome.status == "pending" else None,
    }


def _reason(outcome: Outcome, endpoint: Endpoint, now: int) -> Reason | None:
    match outcome.status:
        case "delivered":
            return None
        case "dropped":
            return "not_stored" if outcome.reason == NOT_STORED else "failed"
        case "skipped":
            disabled = (outcome.reason or "").startswith(DISABLED_PREFIX)
            return "endpoint_disabled" if disabled else "waited_too_long"
    if endpoint.circuit.probe_at is not None:
        return "held"
    if endpoint.circuit.paused(now):
        return "paused"
    return "retrying" if outcome.attempts else "on_its_way"


def _reason_text(reason: Reason, outcome: Outcome, name: str) -> str:
    failure = _failure_text(outcome)
    match reason:
        case "on_its_way":
            return f"It is on its way to {name}."
        case "retrying":
            return f"It is retried because {_attempts_text(outcome.attempts)} {failure}."
        case "held":
            return f"It is held until {name} has recovered, and sent then."
        case "paused":
            return f"{name} has asked for a pause; it is sent after that."
        case "failed":
            again = f" It is sent again when {name} has recovered." if outcome.missed else ""
            return f"It did not arrive because {_attempts_text(outcome.attempts)} {failure}.{again}"
        case "endpoint_disabled":
            return f"It was not sent because {name} was switched off."
        case "waited_too_long":
            return f"It was not sent because it had waited for {name} too long."
        case "not_stored":
            return f"It was not sent because it had waited for {name} for longer than events are kept."


def _attempts_text(attempts: int) -> str:
    return "an attempt failed:" if attempts == 1 else f"{attempts} attempts failed; the last time"


def _failure_text(outcome: Outcome) -> str:
    """Return why the last attempt failed, without an address or the response's text."""
    error = outcome.last_error or ""
    if outcome.last_status is not None:
        return f"it answered {outcome.last_status}"
    if is_unreachable(error):
        return "it could not be reached"
    found = (words for begin, words in _FAILURE_TEXTS if begin in error)
    return next(found, "it could not be reached")


def _next_attempt_at(outcome: Outcome, endpoint: Endpoint) -> int:
    """Return the earliest time of the next attempt."""
    circuit = endpoint.circuit
    return max(outcome.due_at, circuit.probe_at or 0, circuit.paused_until or 0)
