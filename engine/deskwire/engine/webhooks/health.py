"""The health of an endpoint, told to the other endpoints of its project that ask for it: one event for each transition."""

from __future__ import annotations

from typing import Literal, Protocol

from deskwire.engine.accounts.people import Project
from deskwire.engine.events.types import EventDraft, endpoint_lane
from deskwire.engine.webhooks.delivery import HeldBack
from deskwire.engine.webhooks.endpoint import Endpoint, endpoint_health
from deskwire.engine.webhooks.publish import PublishTransaction, extend
from deskwire.engine.webhooks.retry.circuit import Circuit

Transition = Literal["circuit.opened", "circuit.closed", "disabled", "enabled"]


class HealthTransaction(PublishTransaction, Protocol):
    """Changes of what is delivered, of which the other endpoints of a project are told."""

    def project_with(self, project: int) -> Project | None:
        """Return the project with this storage key; None if it is no more."""


def health_event(transition: Transition, endpoint: Endpoint, waiting: HeldBack, at: int) -> EventDraft:
    """Return the event of an endpoint's transition, `at` this time (ms), after which it is as given."""
    return EventDraft(f"webhook.{transition}", None, {"endpoint": endpoint_health(endpoint, at, waiting)})


def save_circuit(
    tx: HealthTransaction, endpoint: Endpoint, before: Circuit, circuit: Circuit, at: int
) -> None:
    """Store a circuit, and tell of it if it was closed and is open now, or the other way round.

    Args:
        before: what was stored, as far as is known here; whether it turns is looked up if it may.
    """
    closed = circuit.probe_at is None
    turns = closed != (before.probe_at is None) and tx.circuit_turns(endpoint.rowid, closed=closed)
    tx.save_circuit(endpoint.rowid, circuit)
    if turns:
        tell(tx, "circuit.closed" if closed else "circuit.opened", endpoint, at)


def tell(tx: HealthTransaction, transition: Transition, endpoint: Endpoint, at: int) -> None:
    """Tell the other endpoints of a transition, `at` this time (ms), that this transaction has stored."""
    project = tx.project_with(endpoint.project)
    stored = next((each for each in tx.endpoints(endpoint.project) if each.rowid == endpoint.rowid), None)
    if project is not None and stored is not None:
        draft = health_event(transition, stored, tx.held_back(stored.rowid), at)
        extend(tx, project, draft, None, at, lane=endpoint_lane(stored.rowid), about=stored.rowid)
