"""A webhook endpoint, and its object in the API (contract 2.9, decisions 6)."""

from __future__ import annotations

from typing import Any, Final, Literal, assert_never

from msgspec import Struct

from deskwire.engine.core.clock import iso, iso_or_none
from deskwire.engine.core.values import replace
from deskwire.engine.events.types import CONFIDENTIAL, REGISTRY, STORED, matches
from deskwire.engine.webhooks.delivery import NO_OUTAGE, OutageCounts
from deskwire.engine.webhooks.retry.circuit_breaker import CLOSED, Circuit

ENDPOINTS_MAX: Final = 5
"""Endpoints per project (contract 6.2.1)."""

SECRET_OVERLAP_MS: Final = 24 * 3_600_000
"""Time for which a replaced secret still signs beside the new one (decisions 6)."""

CatchUp = Literal["automatic", "off"]

INTERNAL_NOT_REQUESTED: Final = "the endpoint does not ask for internal events any more"
"""The reason for which one is not sent what was made for it before."""

TYPE_NOT_LISTED: Final = "the endpoint belongs to a machine credential and does not list this type any more"
"""The reason for which an endpoint of a machine is not sent what was made for it when it had other types."""

DISABLED_PREFIX: Final = "the endpoint is disabled"
"""The begin of the reason for which nothing is sent to one."""

_TAIL_LENGTH: Final = 4


class Endpoint(Struct, frozen=True):
    """A URL that a project's events are posted to. Secrets are sealed (see `core.sealing`).

    Args:
        status: `removed` while some of its deliveries are still there.
        status_reason: the reason for which it is disabled.
        last_success_at: begin of the last attempt that it answered with a 2xx (ms).
        held_upto: position up to which its circuit had held deliveries that are not all sent yet.
        catch_up: whether missed deliveries are sent once more after an outage by themselves.
        internal: whether it asks for what agents write for agents, see `Kind.confidential`.
        credential: id of the machine credential that it belongs to and ends with; None if it is a person's, a key's or the operator's.
        old_secret: the secret before, which signs, too, until `old_secret_until` (ms).
    """

    rowid: int
    id: str
    project: int
    url: str
    events: frozenset[str]
    sealed_secret: bytes
    secret_tail: str
    created_at: int
    updated_at: int
    status: Literal["enabled", "disabled", "removed"] = "enabled"
    status_reason: str | None = None
    description: str | None = None
    last_delivery_at: int | None = None
    last_delivery_status: str | None = None
    last_success_at: int | None = None
    held_upto: int | None = None
    catch_up: CatchUp = "automatic"
    old_secret: bytes | None = None
    old_secret_until: int | None = None
    internal: bool = False
    credential: str | None = None
    circuit: Circuit = CLOSED

    def with_secret(self, sealed: bytes, tail: str, at: int) -> Endpoint:
        """Return the endpoint with a new secret; the present one signs beside it for 24 h, an older one no more."""
        return replace(
            self,
            sealed_secret=sealed,
            secret_tail=tail,
            old_secret=self.sealed_secret,
            old_secret_until=at + SECRET_OVERLAP_MS,
            updated_at=at,
        )


def may_receive(endpoint: Endpoint, event_type: str) -> bool:
    """Tell whether the endpoint is one that events of this type may be sent to."""
    return withheld_reason(endpoint, event_type) is None


def withheld_reason(endpoint: Endpoint, event_type: str) -> str | None:
    """Return why an event of this type, delivered to the endpoint earlier, is not sent to it now; None if it is."""
    if event_type in CONFIDENTIAL and not endpoint.internal:
        return INTERNAL_NOT_REQUESTED
    if endpoint.credential is None or matches(endpoint.events, event_type):
        return None
    # What a machine may read is checked against the list alone, so nothing else may be sent in its name.
    return None if REGISTRY[event_type].directed else TYPE_NOT_LISTED


DROPPED_WINDOW_MS: Final = 24 * 3_600_000
"""Age up to which a dropped delivery that was not made good counts against its endpoint."""


DROPPED_COUNT_MAX: Final = 10_000
"""The number up to which the dropped deliveries of an endpoint are counted."""

HealthCode = Literal["disabled", "circuit_open", "failing", "dropped"]
"""The reason for which an endpoint is not healthy, as a code; the first that holds."""


def unhealthy_code(endpoint: Endpoint, dropped: int) -> HealthCode | None:
    """Return why an endpoint does not get everything; None if it is healthy. The API, the desk, metrics and alerts use it.

    Args:
        dropped: its deliveries of the last 24 hours that were dropped and not made good.
    """
    if endpoint.status != "enabled":
        return "disabled"
    if endpoint.circuit.probe_at is not None:
        return "circuit_open"
    if endpoint.circuit.failing_since is not None:
        return "failing"
    return "dropped" if dropped else None


def health_view(endpoint: Endpoint, dropped: int) -> dict[str, Any]:
    """Return the health of an endpoint as the API has it; see `unhealthy_code`."""
    code = unhealthy_code(endpoint, dropped)
    return {
        "healthy": code is None,
        "healthCode": code,
        "healthReason": None if code is None else _unhealthy_reason(code, endpoint, dropped),
        "dropped": dropped,
    }


def _unhealthy_reason(code: HealthCode, endpoint: Endpoint, dropped: int) -> str:
    match code:
        case "disabled":
            return disabled_reason(endpoint.status_reason)
        case "circuit_open":
            return f"deliveries are held: {endpoint.circuit.reason}"
        case "failing":
            return f"no attempt has succeeded since {iso_or_none(endpoint.circuit.failing_since)}"
        case "dropped":
            count = "one delivery" if dropped == 1 else f"{dropped} deliveries"
            return f"{count} of the last 24 hours did not arrive"
        case _:
            assert_never(code)


def disabled_reason(status_reason: str | None) -> str:
    """Return the reason for which a disabled endpoint is sent nothing."""
    return f"{DISABLED_PREFIX}: {status_reason}"


def secret_tail(secret: str) -> str:
    """Return the part of a secret that is always shown."""
    return secret[-_TAIL_LENGTH:]


def endpoint_view(
    endpoint: Endpoint,
    now: int,
    waiting: OutageCounts = NO_OUTAGE,
    secret: str | None = None,
    *,
    dropped: int = 0,
) -> dict[str, Any]:
    """Return the endpoint object at `now` (ms); the secret is masked unless given (shown once, at creation).

    Args:
        dropped: see `unhealthy_code`.
    """
    circuit = endpoint.circuit
    return {
        "id": endpoint.id,
        "url": endpoint.url,
        "events": sorted(endpoint.events),
        "secret": secret or f"whsec_…{endpoint.secret_tail}",
        "oldSecretUntil": _future(endpoint.old_secret_until, now),
        "status": endpoint.status,
        "statusReason": endpoint.status_reason,
        "description": endpoint.description,
        "createdAt": iso(endpoint.created_at),
        "updatedAt": iso(endpoint.updated_at),
        "lastDelivery": endpoint.last_delivery_at
        and {"at": iso_or_none(endpoint.last_delivery_at), "status": endpoint.last_delivery_status},
        **health_view(endpoint, dropped),
        "circuit": circuit.state(now),
        "circuitOpenUntil": _future(circuit.probe_at, now),
        "circuitReason": circuit.reason,
        "failingSince": iso_or_none(circuit.failing_since),
        "pausedUntil": iso_or_none(circuit.paused_until if circuit.paused(now) else None),
        "catchUp": endpoint.catch_up,
        "internal": endpoint.internal,
        "credentialId": endpoint.credential,
        "held": _count_view(waiting.held, waiting.held_since),
        "missed": _count_view(waiting.missed, waiting.missed_since),
    }


def endpoint_health(endpoint: Endpoint, now: int, waiting: OutageCounts) -> dict[str, Any]:
    """Return the part of the endpoint object that says how it is, as other endpoints are told it at `now` (ms)."""
    circuit = endpoint.circuit
    return {
        "id": endpoint.id,
        "url": endpoint.url,
        "description": endpoint.description,
        "status": endpoint.status,
        "statusReason": endpoint.status_reason,
        "circuit": circuit.state(now),
        "circuitReason": circuit.reason,
        "circuitOpenUntil": _future(circuit.probe_at, now),
        "failingSince": iso_or_none(circuit.failing_since),
        "held": _count_view(waiting.held, waiting.held_since),
    }


def _count_view(count: int, since: int | None) -> dict[str, Any] | None:
    return {"count": count, "since": iso_or_none(since)} if count else None


def _future(at: int | None, now: int) -> str | None:
    return iso(at) if at is not None and at > now else None


def replayed_types(endpoint: Endpoint) -> frozenset[str]:
    """Return the types of a conversation's numbered events that the endpoint is sent."""
    return frozenset(name for name in STORED if matches(endpoint.events, name))
