"""Publication: events are put into the log, each with a delivery for every webhook endpoint that it is for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from deskwire.engine.accounts.people import Project
from deskwire.engine.events.ports import EventTransaction
from deskwire.engine.events.types import EXTENSIONS, EventDraft, StoredEvent, matches
from deskwire.engine.webhooks.endpoint import Endpoint, disabled_reason, may_have
from deskwire.engine.webhooks.ports import DeliveryTransaction


class PublishTransaction(DeliveryTransaction, EventTransaction, Protocol):
    """Changes of the log and of what is delivered."""


class Target(Struct, frozen=True):
    """An endpoint that an event is for, the sequence it was sent before, and why it is not sent this one."""

    endpoint: int
    previous: int | None
    skipped: str | None


def targets(endpoints: Sequence[Endpoint], draft: EventDraft, sent: dict[int, int]) -> list[Target]:
    """Return those of a project's endpoints that an event is for; note in `sent` what they were sent last.

    What a disabled one is not sent counts, too: once it is enabled it can tell that something is missing.
    """
    found: list[Target] = []
    for endpoint in endpoints:
        if not matches(endpoint.events, draft.type) or not may_have(endpoint, draft.type):
            continue
        skipped = None if endpoint.status == "enabled" else disabled_reason(endpoint.status_reason)
        if draft.sequence is None:
            found.append(Target(endpoint.rowid, None, skipped))
        else:
            found.append(Target(endpoint.rowid, sent.get(endpoint.rowid, 0), skipped))
            sent[endpoint.rowid] = draft.sequence
    return found


def append(
    tx: PublishTransaction,
    project: Project,
    draft: EventDraft,
    conversation: int | None,
    targets: Sequence[Target],
    at: int,
    *,
    lane: int | None,
    ticket: int | None = None,
) -> StoredEvent:
    """Put an event into the log, with its deliveries to these targets, in this lane; return it."""
    event = tx.append_event(project, draft, conversation, at, ticket=ticket)
    deliver(tx, event, targets, at, lane=lane)
    return event


def deliver(
    tx: PublishTransaction, event: StoredEvent, targets: Sequence[Target], at: int, *, lane: int | None
) -> None:
    """Store the deliveries of an event to these targets, in this lane."""
    for target in targets:
        tx.insert_delivery(target.endpoint, event, lane, target.previous, at, skipped=target.skipped)


def extend(
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
    """Put an event beyond the contract into the log, with a delivery for each endpoint that names its type.

    Args:
        subject: what it is about and is erased with, as for `append_internal_event`; None for what holds nothing of a contact.
        at: time in milliseconds.
        lane: the key in whose order it is delivered: that of a conversation, of a contact or of a ticket; None for no order.
        ticket: storage key of the ticket that it is about and is erased with, too; its deliveries are in the ticket's lane.
        about: storage key of the endpoint that it is about, which is not sent it.
    """
    assert draft.type in EXTENSIONS, "whatever everybody may have is appended with a number"
    addressed = [
        each for each in targets(tx.routed_endpoints(project.rowid), draft, {}) if each.endpoint != about
    ]
    return append(tx, project, draft, subject, addressed, at, lane=lane, ticket=ticket)
