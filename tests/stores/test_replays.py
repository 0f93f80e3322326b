"""The events of one conversation, sent to one endpoint again (ADR 10)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from deskwire.engine.events.types import EventDraft
from deskwire.engine.ports import Transaction
from deskwire.engine.webhooks.delivery import Attempt, Delivery, ReplayCounts, ReplayRange
from deskwire.engine.webhooks.endpoint import replayed_types
from tests.support.builders import NOON, PROJECT, InlineStore, endpoint
from tests.support.seeing import seen

MESSAGE, CLOSED = "message.created", "conversation.closed"
ALL = ReplayRange(frozenset({MESSAGE, CLOSED}))
LATER = NOON + 60_000


class Shelf:
    """A store with two endpoints, one of which was sent all events of conversation 7."""

    def __init__(self, directory: Path) -> None:
        self.store = InlineStore(directory)
        self.crm = self.store.at_once(lambda tx: tx.insert_endpoint(endpoint())).rowid
        self.late = self.store.at_once(lambda tx: tx.insert_endpoint(endpoint())).rowid

    def put(self, sequence: int, kind: str = MESSAGE, *, conversation: int = 7, end: bool = True) -> Delivery:
        """Commit an event with its delivery to the first endpoint; it is delivered unless `end` is False."""

        def job(tx: Transaction) -> Delivery:
            event = tx.append_event(PROJECT, EventDraft(kind, sequence, {}), conversation, NOON)
            return tx.insert_delivery(self.crm, event, conversation, sequence - 1, NOON)

        made = self.store.at_once(job)
        if end:
            self.deliver(made)
        return made

    def deliver(self, delivery: Delivery) -> None:
        attempt = Attempt(1, NOON, 5, 204, None, b"")
        assert self.store.at_once(lambda tx: tx.record_end(delivery, attempt, "delivered", None))

    def replay(self, whom: int, wanted: ReplayRange = ALL, limit: int = 100) -> tuple[int, int | None]:
        return self.store.at_once(lambda tx: tx.replay(whom, 7, wanted, LATER, limit))

    def replayable(self, whom: int, wanted: ReplayRange = ALL) -> ReplayCounts:
        return seen(self.store, lambda reader: reader.replayable(whom, 7, wanted))

    def pending(self, whom: int) -> list[tuple[int | None, int | None, bool]]:
        """Return sequence, previous sequence and redelivery flag of each pending delivery of an endpoint."""
        found = seen(self.store, lambda reader: reader.pending_deliveries(whom, 0, 100))
        return [(each.event.sequence, each.previous, each.redelivery) for each in found]


@pytest.fixture
def shelf(tmp_path: Path) -> Iterator[Shelf]:
    made = Shelf(tmp_path)
    yield made
    made.store.close()


def test_delivered_events_are_redelivered_in_order(shelf: Shelf) -> None:
    for sequence in (1, 2, 3):
        shelf.put(sequence)
    shelf.put(1, conversation=8)
    assert shelf.replayable(shelf.crm) == ReplayCounts(3, 0, 0)
    assert shelf.replay(shelf.crm) == (3, None)
    assert shelf.pending(shelf.crm) == [(1, 0, True), (2, 1, True), (3, 2, True)]
    assert shelf.pending(shelf.late) == []


def test_pending_deliveries_are_left_out(shelf: Shelf) -> None:
    shelf.put(1)
    shelf.put(2, end=False)
    assert shelf.replayable(shelf.crm) == ReplayCounts(1, 1, 0)
    assert shelf.replay(shelf.crm) == (1, None)
    assert shelf.replayable(shelf.crm) == ReplayCounts(0, 2, 0)
    assert shelf.replay(shelf.crm) == (0, None)


def test_the_newest_delivery_of_an_event_is_the_one_that_is_repeated(shelf: Shelf) -> None:
    first = shelf.put(1)
    again = shelf.store.at_once(lambda tx: tx.redeliver(first.position, LATER))
    assert again is not None
    shelf.deliver(again)
    assert shelf.replay(shelf.crm) == (1, None)
    record = seen(shelf.store, lambda reader: reader.delivery_record(PROJECT.rowid, again.id))
    assert record is not None
    assert record.redelivered_as is not None


def test_late_endpoint_gets_first_deliveries_with_previous_sequences(shelf: Shelf) -> None:
    shelf.put(1)
    shelf.put(2, CLOSED)
    shelf.put(3)
    messages = ReplayRange(frozenset({MESSAGE}))
    assert shelf.replayable(shelf.late, messages) == ReplayCounts(2, 0, 0)
    assert shelf.replay(shelf.late, messages) == (2, None)
    assert shelf.pending(shelf.late) == [(1, 0, False), (3, 1, False)]


def test_part_returns_the_start_of_the_next_one(shelf: Shelf) -> None:
    for sequence in range(1, 6):
        shelf.put(sequence)
    assert shelf.replay(shelf.crm, ReplayRange(ALL.types, 2), 2) == (2, 3)
    assert shelf.replay(shelf.crm, ReplayRange(ALL.types, 4), 2) == (2, 5)
    assert shelf.replay(shelf.crm, ReplayRange(ALL.types, 6), 2) == (0, None)
    assert [sequence for sequence, _, _ in shelf.pending(shelf.crm)] == [2, 3, 4, 5]


def test_a_range_and_the_types_bound_what_is_sent(shelf: Shelf) -> None:
    for sequence in range(1, 6):
        shelf.put(sequence, CLOSED if sequence == 3 else MESSAGE)
    assert shelf.replayable(shelf.crm, ReplayRange(frozenset({MESSAGE}), 2, 4)) == ReplayCounts(2, 0, 0)
    assert shelf.replay(shelf.crm, ReplayRange(frozenset(), 2, 4)) == (0, None)
    assert shelf.replayable(shelf.crm, ReplayRange(frozenset())) == ReplayCounts(0, 0, 0)
    assert shelf.replay(shelf.crm, ReplayRange(frozenset({MESSAGE}), 2, 4)) == (2, None)
    assert [sequence for sequence, _, _ in shelf.pending(shelf.crm)] == [2, 4]


@pytest.mark.sqlite
def test_a_part_of_a_replay_reads_no_deliveries_of_later_parts(shelf: Shelf) -> None:
    """The steps of SQLite's virtual machine do not grow with later deliveries."""

    def part(first: int) -> int:
        taken = 0

        def count() -> None:
            nonlocal taken
            taken += 1

        shelf.store.connection.set_progress_handler(count, 1)
        try:
            assert shelf.replay(shelf.crm, ReplayRange(frozenset({MESSAGE}), first, None), 5) == (
                5,
                first + 4,
            )
        finally:
            shelf.store.connection.set_progress_handler(None, 0)
        return taken

    for sequence in range(1, 21):
        shelf.put(sequence)
    few = part(1)
    for sequence in range(21, 401):
        shelf.put(sequence)
    assert part(6) < 1.2 * few


def test_events_that_are_no_longer_stored_are_counted_and_not_sent(shelf: Shelf) -> None:
    shelf.put(1)
    shelf.put(2)
    shelf.put(3)
    assert shelf.store.at_once(lambda tx: tx.prune_events(NOON + 1, 2, LATER)) == 2
    assert shelf.replayable(shelf.crm) == ReplayCounts(1, 0, 2)
    assert shelf.replay(shelf.crm) == (1, None)


def test_endpoint_is_resent_only_its_listed_types() -> None:
    assert MESSAGE in replayed_types(endpoint())
    assert replayed_types(endpoint(events=frozenset({MESSAGE, "ticket.created"}))) == {MESSAGE}
