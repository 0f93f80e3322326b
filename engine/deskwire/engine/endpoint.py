"""A webhook endpoint: what it is and how the API shows it (contract 2.9, decisions 6)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal

from deskwire.engine.clock import iso, iso_or_none

CircuitState = Literal["closed", "open", "half_open"]

ENDPOINTS_MAX: Final = 5
"""Endpoints per project (contract 6.2.1)."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a project's events are posted to. The secret is sealed (see `sealing`).

    `circuit` is closed as long as deliveries are made; nothing opens it yet.
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
    status: Literal["enabled", "disabled"] = "enabled"
    description: str | None = None
    last_delivery_at: int | None = None
    last_delivery_status: str | None = None
    circuit: CircuitState = "closed"


def endpoint_view(endpoint: Endpoint, secret: str | None = None) -> dict[str, Any]:
    """The endpoint object; the secret is masked unless given (shown once, at creation)."""
    return {
        "id": endpoint.id,
        "url": endpoint.url,
        "events": sorted(endpoint.events),
        "secret": secret or f"whsec_…{endpoint.secret_tail}",
        "status": endpoint.status,
        "description": endpoint.description,
        "createdAt": iso(endpoint.created_at),
        "updatedAt": iso(endpoint.updated_at),
        "lastDelivery": endpoint.last_delivery_at
        and {"at": iso_or_none(endpoint.last_delivery_at), "status": endpoint.last_delivery_status},
        "circuit": endpoint.circuit,
    }
