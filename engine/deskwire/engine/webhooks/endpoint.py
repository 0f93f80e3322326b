"""Webhook endpoints and their object in the API (contract 2.9, decisions 6)."""

from __future__ import annotations

from typing import Any, Final, Literal, assert_never

from msgspec import Struct

from deskwire.engine.core.clock import iso, iso_or_none
from deskwire.engine.core.values import replace
from deskwire.engine.events.types import API_VERSION, CONFIDENTIAL, REGISTRY, STORED, matches
from deskwire.engine.webhooks.delivery import NO_OUTAGE, OutageCounts
from deskwire.engine.webhooks.retry.circuit_breaker import CLOSED, Circuit

# Endpoints per project (contract 6.2.1).
ENDPOINTS_MAX: Final = 5

# How long the old secret signs beside the new one after a rotation (decisions 6).
SECRET_OVERLAP_MS: Final = 24 * 3_600_000

CatchUp = Literal["automatic", "off"]

# Reason for skipping a pending delivery after the endpoint turned `internal` off.
INTERNAL_NOT_REQUESTED: Final = "the endpoint no longer asks for internal events"

# Reason for skipping a pending delivery after a machine's endpoint removed its type from the list.
TYPE_NOT_LISTED: Final = "the endpoint belongs to a machine credential and no longer lists this type"

# All reasons for skipping the deliveries of a disabled endpoint start with this text.
DISABLED_PREFIX: Final = "the endpoint is disabled"

_TAIL_LENGTH: Final = 4


class Endpoint(Struct, frozen=True):
    """A URL that a project's events are posted to.

    Secrets are sealed (see `core.encryption`).

    Args:
        status: `removed` until the last of its deliveries is deleted.
        status_reason: why the endpoint is disabled: by a call, or by the end of its credential (`ownership`).
        last_success_at: start of the last attempt that got a 2xx response (ms).
        held_upto: position of the last delivery that its circuit held, until all held deliveries are sent.
        catch_up: whether missed deliveries are sent again automatically after an outage.
        internal: whether the endpoint receives what agents write for agents, see `EventSpec.confidential`.
        credential: id of the machine credential that owns the endpoint and ends with it; None if a person, a
            key or the operator owns it.
        api_version: the version in which events are rendered for it, see `events.versions`.
        old_secret: the previous secret, which also signs until `old_secret_until` (ms).
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
    api_version: str = API_VERSION
    circuit: Circuit = CLOSED

    def with_secret(self, sealed: bytes, tail: str, at: int) -> Endpoint:
        """Return the endpoint with a new secret.

        The current secret signs beside the new one for 24 hours. An older secret stops signing at once.
        """
        return replace(
            self,
            sealed_secret=sealed,
            secret_tail=tail,
            old_secret=self.sealed_secret,
            old_secret_until=at + SECRET_OVERLAP_MS,
            updated_at=at,
        )


def may_receive(endpoint: Endpoint, event_type: str) -> bool:
    """Return whether events of this type may be sent to the endpoint."""
    return withheld_reason(endpoint, event_type) is None


def withheld_reason(endpoint: Endpoint, event_type: str) -> str | None:
    """Return why a stored delivery of this type may not be sent now, or None."""
    if event_type in CONFIDENTIAL and not endpoint.internal:
        return INTERNAL_NOT_REQUESTED
    if endpoint.credential is None or matches(endpoint.events, event_type):
        return None
    # A machine's permissions are checked against its list of types, so it must get no other type.
    return None if REGISTRY[event_type].directed else TYPE_NOT_LISTED


# A dropped delivery makes its endpoint unhealthy for this long, unless it is redelivered.
DROPPED_WINDOW_MS: Final = 24 * 3_600_000


# Dropped deliveries of an endpoint are counted up to this number.
DROPPED_COUNT_MAX: Final = 10_000

# Why an endpoint is unhealthy. If several codes apply, the first one is reported.
HealthCode = Literal["disabled", "circuit_open", "failing", "dropped"]


def unhealthy_code(endpoint: Endpoint, dropped: int) -> HealthCode | None:
    """Return why an endpoint is unhealthy, None if it is healthy.

    The API, the desk, metrics and alerts all use this rule.

    Args:
        dropped: its deliveries of the last 24 hours that were dropped and not redelivered.
    """
    if endpoint.status != "enabled":
        return "disabled"
    if endpoint.circuit.probe_at is not None:
        return "circuit_open"
    if endpoint.circuit.failing_since is not None:
        return "failing"
    return "dropped" if dropped else None


def health_view(endpoint: Endpoint, dropped: int) -> dict[str, Any]:
    """Return the endpoint's health fields for the API; see `unhealthy_code`."""
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
    """Return the reason that the delivery log shows for a disabled endpoint."""
    return f"{DISABLED_PREFIX}: {status_reason}"


def secret_tail(secret: str) -> str:
    """Return the last characters of a secret, which are always shown."""
    return secret[-_TAIL_LENGTH:]


def endpoint_view(
    endpoint: Endpoint,
    now: int,
    waiting: OutageCounts = NO_OUTAGE,
    secret: str | None = None,
    *,
    dropped: int = 0,
) -> dict[str, Any]:
    """Return the endpoint object of the API at `now` (ms).

    Args:
        secret: shown in full if given (once, at creation and rotation); otherwise the secret is masked.
        dropped: see `unhealthy_code`.
    """
    circuit = endpoint.circuit
    return {
        "id": endpoint.id,
        "url": endpoint.url,
        "events": sorted(endpoint.events),
        "apiVersion": endpoint.api_version,
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
    """Return the fields of an endpoint that health events carry, at `now` (ms)."""
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
    """Return the numbered conversation event types that the endpoint receives."""
    return frozenset(name for name in STORED if matches(endpoint.events, name))
