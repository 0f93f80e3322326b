"""Events beyond the contract as rows: their deliveries, their erasure, and circuit events (ADR 51)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from deskwire.engine.core.values import replace
from deskwire.engine.events.types import (
    RESPONSES,
    EventDraft,
    StoredEvent,
    contact_lane,
    endpoint_lane,
    response_lane,
    ticket_lane,
)
from deskwire.engine.ports import Transaction
from deskwire.engine.webhooks.endpoint import Endpoint
from deskwire.engine.webhooks.publish import publish_extension, save_circuit
from deskwire.engine.webhooks.retry.circuit_breaker import CLOSED, Circuit
from tests.support.builders import NOON, PROJECT, InlineStore, endpoint
from tests.support.seeing import seen

TYPES = frozenset({"ticket.created", "webhook.circuit.opened", "webhook.circuit.closed"})
OPEN = Circuit(20, NOON - 60_000, 0, NOON + 10_000, "why")
WHO = contact_lane(8)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[InlineStore]:
    """Yield a store without endpoints."""
    opened = InlineStore(tmp_path)
    yield opened
    opened.close()


def registered(store: InlineStore, events: frozenset[str] = TYPES) -> Endpoint:
    return store.at_once(lambda tx: tx.insert_endpoint(replace(endpoint(), events=events)))


def waiting(store: InlineStore, whom: Endpoint) -> list[tuple[str, int | None]]:
    """Return the event types of an endpoint's pending deliveries, each with its lane."""
    rows = seen(store, lambda reader: reader.pending_deliveries(whom.rowid, 0, 100))
    return [(each.event.type, each.ordering_key) for each in rows]


def ticket_event(tx: Transaction, ticket: int, subject: int | None) -> StoredEvent:
    draft = EventDraft("ticket.created", None, {})
    return publish_extension(tx, PROJECT, draft, subject, NOON, lane=ticket_lane(ticket), ticket=ticket)


def test_only_the_first_store_of_a_circuit_change_makes_an_event(store: InlineStore) -> None:
    whom, watch = registered(store), registered(store)
    lane = endpoint_lane(whom.rowid)
    for before, after in ((CLOSED, OPEN), (CLOSED, OPEN), (OPEN, replace(OPEN, probes=1))):
        store.at_once(lambda tx, b=before, a=after: save_circuit(tx, whom, b, a, NOON))  # type: ignore[misc]
    assert waiting(store, watch) == [("webhook.circuit.opened", lane)]
    for before, after in ((OPEN, CLOSED), (OPEN, CLOSED), (CLOSED, replace(CLOSED, failed_attempts=1))):
        store.at_once(lambda tx, b=before, a=after: save_circuit(tx, whom, b, a, NOON))  # type: ignore[misc]
    assert waiting(store, watch) == [("webhook.circuit.opened", lane), ("webhook.circuit.closed", lane)]
    assert waiting(store, whom) == [], "it is not told of itself"


def test_ticket_erasure_removes_only_its_own_pending_deliveries(store: InlineStore) -> None:
    whom = registered(store)
    for ticket in (1, 2):
        store.at_once(lambda tx, number=ticket: ticket_event(tx, number, WHO))  # type: ignore[misc]
    store.at_once(lambda tx: (tx.erase_deliveries(ticket_lane(1)), tx.erase_ticket_events(1)))  # type: ignore[attr-defined]
    assert waiting(store, whom) == [("ticket.created", ticket_lane(2))]


def test_contact_erasure_removes_ticket_deliveries_from_its_time_as_subject(store: InlineStore) -> None:
    whom = registered(store)
    for subject in (WHO, None):
        store.at_once(lambda tx, about=subject: ticket_event(tx, 1, about))  # type: ignore[misc]
    store.at_once(lambda tx: (tx.erase_ticket_deliveries(WHO), tx.erase_events(WHO)))  # type: ignore[attr-defined]
    assert waiting(store, whom) == [("ticket.created", ticket_lane(1))]


def test_event_is_erased_with_its_subject_and_with_its_ticket() -> None:
    event = StoredEvent(1, "evt_1", "ticket.created", 1, WHO, None, b"{}", 3)
    assert event.erased_with({WHO})
    assert event.erased_with({ticket_lane(3)})
    assert not event.erased_with({contact_lane(3), 3, ticket_lane(8)})
    assert not replace(event, ticket=None).erased_with({ticket_lane(3)})


def test_keys_of_all_kinds_are_distinct_and_fit_into_64_bits() -> None:
    many = 1 << 40
    newest = response_lane("rsp_7ZZZZZZZZZZZZZZZZZZZZZZZZZ")
    ordered = [
        contact_lane(1),
        1,
        many,
        endpoint_lane(1),
        endpoint_lane(many),
        ticket_lane(1),
        ticket_lane(many),
    ]
    ordered += [RESPONSES, newest, (1 << 63) - 1]
    assert ordered == sorted(ordered)
    assert response_lane("rsp_01KZ00000000000000000000R1") != response_lane("rsp_01KZ00000000000000000000R2")


def test_unknown_events_of_a_newer_program_are_on_no_stream() -> None:
    event = StoredEvent(1, "evt_1", "ticket.exploded", 1, None, None, b"{}")
    assert (event.internal, event.on_no_stream) == (True, True)
