"""Append events to the log together with their webhook deliveries.

This includes the events about the endpoints themselves: a circuit opened or closed, an endpoint disabled or
enabled.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol

from msgspec import Struct

from deskwire.engine.accounts.people import Project
from deskwire.engine.events.ports import EventTransaction
from deskwire.engine.events.types import EXTENSIONS, EventDraft, StoredEvent, endpoint_lane, matches
from deskwire.engine.webhooks.delivery import OutageCounts
from deskwire.engine.webhooks.endpoint import Endpoint, disabled_reason, endpoint_health, may_receive
from deskwire.engine.webhooks.ports import DeliveryTransaction
from deskwire.engine.webhooks.retry.circuit_breaker import Circuit


class PublishTransaction(DeliveryTransaction, EventTransaction, Protocol):
    """Changes of the event log and of deliveries."""


class Recipient(Struct, frozen=True):
    """An endpoint that gets a delivery of an event.

    Args:
        previous: the sequence that it was sent before; None for an event without a sequence.
        skipped: why the delivery is recorded as skipped; None if it is sent.
    """

    endpoint: int
    previous: int | None
    skipped: str | None


def recipients(endpoints: Sequence[Endpoint], draft: EventDraft, sent: dict[int, int]) -> list[Recipient]:
    """Return the endpoints of a project that an event is for, and update `sent`.

    Args:
        sent: the last sequence sent to each endpoint, by storage key. Skipped deliveries count too, so that
            an endpoint that is enabled again notices the gap.
    """
    found: list[Recipient] = []
    for endpoint in endpoints:
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
    draft: EventDraft,
    conversation: int | None,
    addressed: Sequence[Recipient],
    at: int,
    *,
    lane: int | None,
    ticket: int | None = None,
) -> StoredEvent:
    """Append an event to the log with a delivery for each recipient; return it."""
    event = tx.append_event(project, draft, conversation, at, ticket=ticket)
    deliver(tx, event, addressed, at, lane=lane)
    return event


def deliver(
    tx: PublishTransaction,
    event: StoredEvent,
    addressed: Sequence[Recipient],
    at: int,
    *,
    lane: int | None,
) -> None:
    """Store the deliveries of an event to these recipients, in this lane."""
    for each in addressed:
        tx.insert_delivery(each.endpoint, event, lane, each.previous, at, skipped=each.skipped)


def publish_extension(
    tx: PublishTransaction,
    project: Project,
    draft: EventDraft,
    subject: int | None,
    at: int,
    *,
    lane: int | None,
    ticket: int | None = None,
    about: int | None = None,
) -> StoredEvent:
    """Append an event beyond the contract for the endpoints that list its type.

    Args:
        subject: storage key of the contact or conversation with which the event is erased, see `append_internal_event`;
            None if the event contains nothing about a contact.
        at: time in milliseconds.
        lane: ordering key of its deliveries: a conversation, a contact or a ticket; None for no order.
        ticket: storage key of the ticket with which the event is erased too; its deliveries use the ticket's
            lane.
        about: storage key of the endpoint that the event is about. It is not sent to that endpoint.
    """
    assert draft.type in EXTENSIONS, "an event of the contract has a sequence and uses publish_event"
    endpoints = tx.routed_endpoints(project.rowid)
    addressed = [each for each in recipients(endpoints, draft, {}) if each.endpoint != about]
    return publish_event(tx, project, draft, subject, addressed, at, lane=lane, ticket=ticket)


Transition = Literal["circuit.opened", "circuit.closed", "disabled", "enabled"]


class HealthTransaction(PublishTransaction, Protocol):
    """Changes of deliveries and endpoints that publish health events."""

    def project_with(self, project: int) -> Project | None:
        """Return the project with this storage key, None if it was deleted."""


def health_event(transition: Transition, endpoint: Endpoint, waiting: OutageCounts, at: int) -> EventDraft:
    """Return the event for an endpoint's transition.

    Args:
        endpoint: the endpoint after the transition.
        at: time of the transition (ms).
    """
    return EventDraft(f"webhook.{transition}", None, {"endpoint": endpoint_health(endpoint, at, waiting)})


def save_circuit(
    tx: HealthTransaction, endpoint: Endpoint, before: Circuit, circuit: Circuit, at: int
) -> None:
    """Store a circuit; publish an event if it has opened or closed.

    Args:
        before: the circuit that was stored last, as far as this node knows. The store confirms a transition
            before it is published.
    """
    closed = circuit.probe_at is None
    turns = closed != (before.probe_at is None) and tx.circuit_changes(endpoint.rowid, closed=closed)
    tx.save_circuit(endpoint.rowid, circuit)
    if turns:
        publish_transition(tx, "circuit.closed" if closed else "circuit.opened", endpoint, at)


def publish_transition(tx: HealthTransaction, transition: Transition, endpoint: Endpoint, at: int) -> None:
    """Publish an endpoint's transition to the project's other endpoints.

    This transaction must have stored the transition.
    """
    project = tx.project_with(endpoint.project)
    stored = next((each for each in tx.endpoints(endpoint.project) if each.rowid == endpoint.rowid), None)
    if project is not None and stored is not None:
        draft = health_event(transition, stored, tx.outage_counts(stored.rowid), at)
        publish_extension(tx, project, draft, None, at, lane=endpoint_lane(stored.rowid), about=stored.rowid)
