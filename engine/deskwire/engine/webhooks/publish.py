"""Publication: events are put into the log, each with a delivery for every webhook endpoint that it is for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol

from msgspec import Struct

from deskwire.engine.accounts.people import Project
from deskwire.engine.events.ports import EventTransaction
from deskwire.engine.events.types import EXTENSIONS, Draft, StoredEvent, endpoint_lane, matches
from deskwire.engine.webhooks.delivery import OutageCounts
from deskwire.engine.webhooks.endpoint import Endpoint, disabled_reason, endpoint_health, may_receive
from deskwire.engine.webhooks.ports import DeliveryTransaction
from deskwire.engine.webhooks.retry.circuit_breaker import Circuit


class PublishTransaction(DeliveryTransaction, EventTransaction, Protocol):
    """Changes of the log and of what is delivered."""


class Recipient(Struct, frozen=True):
    """An endpoint that an event is for, the sequence it was sent before, and why it is not sent this one."""

    endpoint: int
    previous: int | None
    skipped: str | None


def recipients(
    tx: PublishTransaction, project: Project, draft: Draft, sent: dict[int, int]
) -> list[Recipient]:
    """Return the endpoints that an event is for; note in `sent` what they were sent last.

    What a disabled one is not sent counts, too: once it is enabled it can tell that something is missing.
    """
    found: list[Recipient] = []
    for endpoint in tx.routed_endpoints(project.rowid):
        if not matches(endpoint.events, draft.type) or not may_receive(endpoint, draft.type):
            continue
        skipped = None if endpoint.status == "enabled" else disabled_reason(endpoint.status_reason)
        if draft.sequence is None:
            found.append(Recipient(endpoint.rowid, None, skipped))
        else:
            found.append(Recipient(endpoint.rowid, sent.get(endpoint.rowid, 0), skipped))
            sent[endpoint.rowid] = draft.sequence
    return found


def publish_event(
    tx: PublishTransaction,
    project: Project,
    draft: Draft,
    conversation: int | None,
    addressed: Sequence[Recipient],
    at: int,
    *,
    lane: int | None,
    ticket: int | None = None,
) -> StoredEvent:
    """Put an event into the log, with its deliveries to these targets, in this lane; return it."""
    event = tx.append_event(project, draft, conversation, at, ticket=ticket)
    for each in addressed:
        tx.insert_delivery(each.endpoint, event, lane, each.previous, at, skipped=each.skipped)
    return event


def publish_extension(
    tx: PublishTransaction,
    project: Project,
    draft: Draft,
    subject: int | None,
    at: int,
    *,
    lane: int | None,
    ticket: int | None = None,
    about: int | None = None,
) -> StoredEvent:
    """Put an event beyond the contract into the log, with a delivery for each endpoint that names its type.

    Args:
        subject: what it is about and is erased with, as for `tell_agents`; None for what holds nothing of a contact.
        at: time in milliseconds.
        lane: the key in whose order it is delivered: that of a conversation, of a contact or of a ticket; None for no order.
        ticket: storage key of the ticket that it is about and is erased with, too; its deliveries are in the ticket's lane.
        about: storage key of the endpoint that it is about, which is not sent it.
    """
    assert draft.type in EXTENSIONS, "whatever everybody may have is appended with a number"
    addressed = [each for each in recipients(tx, project, draft, {}) if each.endpoint != about]
    return publish_event(tx, project, draft, subject, addressed, at, lane=lane, ticket=ticket)


Transition = Literal["circuit.opened", "circuit.closed", "disabled", "enabled"]


class HealthTransaction(PublishTransaction, Protocol):
    """Changes of what is delivered, of which the other endpoints of a project are told."""

    def project_with(self, project: int) -> Project | None:
        """Return the project with this storage key; None if it is no more."""


def health_event(transition: Transition, endpoint: Endpoint, waiting: OutageCounts, at: int) -> Draft:
    """Return the event of an endpoint's transition, `at` this time (ms), after which it is as given."""
    return Draft(f"webhook.{transition}", None, {"endpoint": endpoint_health(endpoint, at, waiting)})


def save_circuit(
    tx: HealthTransaction, endpoint: Endpoint, before: Circuit, circuit: Circuit, at: int
) -> None:
    """Store a circuit, and tell of it if it was closed and is open now, or the other way round.

    Args:
        before: what was stored, as far as is known here; whether it turns is looked up if it may.
    """
    closed = circuit.probe_at is None
    turns = closed != (before.probe_at is None) and tx.circuit_changes(endpoint.rowid, closed=closed)
    tx.save_circuit(endpoint.rowid, circuit)
    if turns:
        publish_transition(tx, "circuit.closed" if closed else "circuit.opened", endpoint, at)


def publish_transition(tx: HealthTransaction, transition: Transition, endpoint: Endpoint, at: int) -> None:
    """Tell the other endpoints of a transition, `at` this time (ms), that this transaction has stored."""
    project = tx.project_with(endpoint.project)
    stored = next((each for each in tx.endpoints(endpoint.project) if each.rowid == endpoint.rowid), None)
    if project is not None and stored is not None:
        draft = health_event(transition, stored, tx.outage_counts(stored.rowid), at)
        publish_extension(tx, project, draft, None, at, lane=endpoint_lane(stored.rowid), about=stored.rowid)
