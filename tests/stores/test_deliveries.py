"""Deliveries as rows: pending ones, those held back by an outage, and how each ends (decisions 6)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from deskwire.engine.core.ids import id_before
from deskwire.engine.core.values import replace
from deskwire.engine.events.types import EventDraft
from deskwire.engine.ports import Reader, Transaction
from deskwire.engine.webhooks.delivery import (
    NO_OUTAGE,
    Attempt,
    Delivery,
    DeliveryFilter,
    DeliveryRecord,
    OutageCounts,
)
from deskwire.engine.webhooks.endpoint import Endpoint
from deskwire.engine.webhooks.retry.circuit_breaker import CLOSED, Circuit
from tests.support.builders import NOON, OTHER_PROJECT, PROJECT, InlineStore, endpoint
from tests.support.seeing import seen

EVERYTHING = DeliveryFilter()
ALL = 2**62
OPEN = Circuit(20, NOON - 60_000, 3, NOON + 10_000, "why")


class Shelf:
    """A store with one endpoint and a test's deliveries."""

    def __init__(self, directory: Path) -> None:
        self.store = InlineStore(directory)
        self.whom = self.store.at_once(lambda tx: tx.insert_endpoint(endpoint()))

    @property
    def endpoint(self) -> Endpoint:
        """The stored endpoint."""
        found = seen(self.store, lambda reader: reader.endpoints())
        return next(each for each in found if each.rowid == self.whom.rowid)

    def put(self, count: int = 1, *, at: int = NOON, lane: int | None = 7) -> list[Delivery]:
        """Commit `count` events, each with a delivery."""
        return [self.store.at_once(lambda tx: self._put(tx, at, lane)) for _ in range(count)]

    def _put(self, tx: Transaction, at: int, lane: int | None) -> Delivery:
        event = tx.append_event(PROJECT, EventDraft("contact.updated", None, {}), None, at)
        return tx.insert_delivery(self.whom.rowid, event, lane, None, at)

    def plan(self, delivery: Delivery, due_at: int, attempts: int = 1) -> Delivery:
        """Record an attempt that failed."""
        planned = replace(
            delivery, attempts=attempts, due_at=due_at, planned_from=NOON + 1, failing_since=NOON + 2
        )
        assert self.store.at_once(lambda tx: tx.record_retry(planned, failed(attempts)))
        return planned

    def drop(self, *deliveries: Delivery, missed: bool = True) -> None:
        def job(tx: Transaction) -> None:
            for each in deliveries:
                assert tx.record_end(each, failed(4), "dropped", "x", missed=missed)

        self.store.at_once(job)

    def redeliver(self, delivery: Delivery) -> Delivery:
        made = self.store.at_once(lambda tx: tx.redeliver(delivery.position, NOON))
        assert made is not None
        return made

    def pending(self, **options: object) -> list[int]:
        return positions(
            seen(self.store, lambda reader: reader.pending_deliveries(self.whom.rowid, 0, 100, **options))  # type: ignore[arg-type]
        )

    def due(
        self, limit: int = 100, *, upto: int = ALL, unread: tuple[int, int] = (0, 0), again: int = ALL
    ) -> list[int]:
        return positions(
            seen(
                self.store,
                lambda reader: reader.due_retries(
                    self.whom.rowid, limit, upto=upto, unread=unread, redelivered_upto=again
                ),
            )
        )

    def outage_counts(self) -> OutageCounts:
        return seen(self.store, lambda reader: reader.outage_counts(self.whom.rowid))

    def log(self) -> list[tuple[str, str | None, int | None]]:
        """Return status, reason and end of all deliveries, oldest first."""
        return [(each.status, each.reason, each.ended_at) for each in reversed(self.records())]

    def records(self) -> Sequence[DeliveryRecord]:
        """Return all deliveries as the log shows them, newest first."""

        def read(reader: Reader) -> Sequence[DeliveryRecord]:
            return reader.delivery_records(PROJECT.rowid, self.whom.rowid, EVERYTHING, None, 100).records

        return seen(self.store, read)


def positions(deliveries: Sequence[Delivery]) -> list[int]:
    return [each.position for each in deliveries]


def failed(number: int = 1) -> Attempt:
    return Attempt(number, NOON, 100, 500, "status 500", b"no")


@pytest.fixture
def shelf(tmp_path: Path) -> Iterator[Shelf]:
    made = Shelf(tmp_path)
    yield made
    made.store.close()


# Pending deliveries


def test_delivery_is_read_as_stored(shelf: Shelf) -> None:
    (made,) = shelf.put()
    (found,) = seen(shelf.store, lambda reader: reader.pending_deliveries(shelf.whom.rowid, 0, 10))
    assert found == made
    assert (found.planned_from, found.failing_since, found.redelivery, found.due_at) == (
        None,
        None,
        False,
        NOON,
    )


def test_retry_is_read_as_planned(shelf: Shelf) -> None:
    (made,) = shelf.put()
    planned = shelf.plan(made, NOON + 2_000)
    (found,) = seen(shelf.store, lambda reader: reader.pending_deliveries(shelf.whom.rowid, 0, 10))
    assert found == planned


def test_pending_deliveries_are_read_in_order_between_two_positions(shelf: Shelf) -> None:
    a, b, c, d = shelf.put(4)
    shelf.drop(b)
    assert shelf.pending() == positions([a, c, d])
    assert shelf.pending(upto=c.position) == positions([a, c])
    found = seen(shelf.store, lambda reader: reader.pending_deliveries(shelf.whom.rowid, a.position, 1))
    assert positions(found) == [c.position]


def test_redeliveries_are_read_alone_or_left_out(shelf: Shelf) -> None:
    a, b = shelf.put(2)
    shelf.drop(a)
    again = shelf.redeliver(a)
    assert (again.redelivery, again.event, again.ordering_key) == (True, a.event, a.ordering_key)
    assert shelf.pending() == positions([b, again])
    assert shelf.pending(redeliveries=True) == [again.position]
    assert shelf.pending(redeliveries=False) == [b.position]
    (found,) = seen(
        shelf.store, lambda reader: reader.pending_deliveries(shelf.whom.rowid, 0, 10, redeliveries=True)
    )
    assert found == again


def test_another_endpoints_deliveries_are_not_touched(shelf: Shelf) -> None:
    (mine,) = shelf.put()
    other = shelf.store.at_once(lambda tx: tx.insert_endpoint(endpoint()))
    rowid = other.rowid
    assert seen(shelf.store, lambda reader: reader.pending_deliveries(rowid, 0, 10)) == []
    assert (
        seen(
            shelf.store,
            lambda reader: reader.due_retries(rowid, 9, upto=ALL, unread=(0, 0), redelivered_upto=ALL),
        )
        == []
    )
    assert seen(shelf.store, lambda reader: reader.outage_counts(rowid)) == NO_OUTAGE
    assert shelf.store.at_once(lambda tx: tx.end_too_old(rowid, NOON + 1, "old", NOON, 10)) == 0
    assert shelf.store.at_once(lambda tx: tx.catch_up(rowid, "", NOON, 10)) == 0
    assert shelf.pending() == [mine.position]


# Retries


def test_retries_are_read_by_due_time_without_first_attempts(shelf: Shelf) -> None:
    a, b, c, _new = shelf.put(4)
    for each, due_at in ((a, 3_000), (b, 1_000), (c, 2_000)):
        shelf.plan(each, NOON + due_at)
    assert shelf.due() == positions([b, c, a])
    assert shelf.due(2) == positions([b, c])
    shelf.drop(b)
    assert shelf.due() == positions([c, a])


def test_postponed_attempt_without_a_used_retry_is_read_as_a_retry(shelf: Shelf) -> None:
    (made,) = shelf.put()
    shelf.plan(made, NOON + 40_000, attempts=0)
    assert shelf.due() == [made.position]


def test_retries_are_read_up_to_a_position_and_outside_the_unread_range(
    shelf: Shelf,
) -> None:
    rows = shelf.put(5)
    for each in rows:
        shelf.plan(each, NOON)
    first = rows[0].position
    assert shelf.due(upto=first + 2) == [first, first + 1, first + 2]
    assert shelf.due(unread=(first, first + 2)) == [first, first + 3, first + 4]


def test_retries_of_redeliveries_are_read_up_to_a_position(shelf: Shelf) -> None:
    a, b = shelf.put(2)
    shelf.drop(a, b)
    one, two = shelf.redeliver(a), shelf.redeliver(b)
    for each in (one, two):
        shelf.plan(each, NOON)
    assert shelf.due(upto=0, unread=(0, ALL), again=one.position) == [one.position]
    assert shelf.due(upto=0, again=two.position) == positions([one, two])
    assert shelf.due(again=0) == []


# Attempts


def test_repeated_attempt_replaces_the_previous_one(shelf: Shelf) -> None:
    (made,) = shelf.put()
    busy = replace(failed(1), status=429, error="status 429")
    again = replace(made, due_at=NOON + 5, planned_from=NOON + 5)
    assert shelf.store.at_once(lambda tx: tx.record_retry(again, busy))
    good = Attempt(1, NOON + 5, 9, 204, None, b"")
    assert shelf.store.at_once(lambda tx: tx.record_end(again, good, "delivered", None))
    (record,) = shelf.records()
    assert [(each.number, each.status) for each in record.attempts] == [(1, 204)]


def test_ended_delivery_records_nothing(shelf: Shelf) -> None:
    a, b = shelf.put(2)
    assert shelf.store.at_once(lambda tx: tx.end_delivery(a, "skipped", "old", NOON + 9))
    assert not shelf.store.at_once(lambda tx: tx.record_retry(replace(a, attempts=1), failed()))
    assert not shelf.store.at_once(lambda tx: tx.record_end(a, failed(), "dropped", "x", missed=True))
    assert not shelf.store.at_once(lambda tx: tx.end_delivery(a, "dropped", "y", NOON))
    assert shelf.log() == [("skipped", "old", NOON + 9), ("pending", None, None)]
    assert (shelf.outage_counts().missed, shelf.pending()) == (0, [b.position])
    (_, record) = shelf.records()
    assert list(record.attempts) == []


def test_too_old_deliveries_are_skipped_oldest_first_in_batches(shelf: Shelf) -> None:
    old, new = shelf.put(3, at=NOON), shelf.put(2, at=NOON + 1_000)

    def end() -> int:
        return shelf.store.at_once(
            lambda tx: tx.end_too_old(shelf.whom.rowid, NOON + 1_000, "old", NOON + 2_000, 2)
        )

    assert end() == 2
    assert shelf.pending() == positions([old[2], *new])
    assert (end(), end()) == (1, 0)
    assert shelf.log() == [("skipped", "old", NOON + 2_000)] * 3 + [("pending", None, None)] * 2


# Deliveries held back by an outage


def test_nothing_is_held_back_while_the_circuit_is_closed(shelf: Shelf) -> None:
    shelf.put(2)
    assert shelf.outage_counts() == NO_OUTAGE


def test_pending_deliveries_are_held_while_the_circuit_is_open(shelf: Shelf) -> None:
    shelf.put(2, at=NOON + 5)
    shelf.store.at_once(lambda tx: tx.save_circuit(shelf.whom.rowid, OPEN))
    assert shelf.outage_counts() == OutageCounts(2, NOON + 5, 0, None)


def test_closed_circuit_counts_held_deliveries_that_are_still_pending(shelf: Shelf) -> None:
    a, b = shelf.put(2)
    upto = shelf.store.at_once(lambda tx: tx.release_held(shelf.whom.rowid, None))
    shelf.put(at=NOON + 9)
    assert (upto, shelf.endpoint.held_upto) == (b.position, b.position)
    assert shelf.outage_counts() == OutageCounts(2, NOON, 0, None)
    shelf.drop(a, missed=False)
    assert shelf.outage_counts().held == 1
    shelf.store.at_once(lambda tx: tx.clear_held_position(shelf.whom.rowid))
    assert (shelf.endpoint.held_upto, shelf.outage_counts()) == (None, NO_OUTAGE)


def test_held_deliveries_may_end_before_the_newest_pending_one(shelf: Shelf) -> None:
    a, _ = shelf.put(2)
    assert shelf.store.at_once(lambda tx: tx.release_held(shelf.whom.rowid, a.position)) == a.position
    assert shelf.outage_counts().held == 1


def test_circuit_without_held_deliveries_releases_nothing(shelf: Shelf) -> None:
    assert shelf.store.at_once(lambda tx: tx.release_held(shelf.whom.rowid, None)) == 0


def test_reset_circuit_releases_its_held_deliveries(shelf: Shelf) -> None:
    (made,) = shelf.put()
    shelf.store.at_once(lambda tx: tx.save_circuit(shelf.whom.rowid, OPEN))
    assert shelf.endpoint.circuit == OPEN
    shelf.store.at_once(lambda tx: tx.reset_circuit(shelf.whom.rowid))
    assert (shelf.endpoint.circuit, shelf.endpoint.held_upto) == (CLOSED, made.position)


def test_reset_of_a_closed_circuit_releases_nothing(shelf: Shelf) -> None:
    shelf.put()
    shelf.store.at_once(lambda tx: tx.save_circuit(shelf.whom.rowid, Circuit(3, NOON, paused_until=NOON + 5)))
    shelf.store.at_once(lambda tx: tx.reset_circuit(shelf.whom.rowid))
    assert (shelf.endpoint.circuit, shelf.endpoint.held_upto) == (CLOSED, None)


def test_circuit_is_stored_with_all_fields(shelf: Shelf) -> None:
    for circuit in (OPEN, replace(OPEN, paused_until=NOON + 30_000), CLOSED):
        shelf.store.at_once(lambda tx, circuit=circuit: tx.save_circuit(shelf.whom.rowid, circuit))  # type: ignore[misc]
        assert shelf.endpoint.circuit == circuit


def test_the_last_delivery_and_the_last_success_are_stored(shelf: Shelf) -> None:
    shelf.store.at_once(lambda tx: tx.record_last_delivery(shelf.whom.rowid, NOON + 7, "delivered", NOON + 3))
    found = shelf.endpoint
    assert (found.last_delivery_at, found.last_delivery_status, found.last_success_at) == (
        NOON + 7,
        "delivered",
        NOON + 3,
    )


def test_whether_it_is_caught_up_is_stored_with_the_endpoint(shelf: Shelf) -> None:
    off = shelf.store.at_once(lambda tx: tx.insert_endpoint(replace(endpoint(), catch_up="off")))
    shelf.store.at_once(lambda tx: tx.save_endpoint(replace(off, catch_up="automatic")))
    shelf.store.at_once(lambda tx: tx.save_endpoint(replace(shelf.whom, catch_up="off")))
    found = seen(shelf.store, lambda reader: reader.endpoints())
    assert [(each.rowid, each.catch_up) for each in found] == [
        (shelf.whom.rowid, "off"),
        (off.rowid, "automatic"),
    ]


# Catching up


def test_missed_deliveries_are_repeated_once_oldest_first(shelf: Shelf) -> None:
    a, b, c = shelf.put(3)
    shelf.drop(b, a, c)
    assert shelf.outage_counts() == OutageCounts(0, None, 3, NOON)

    def catch_up() -> int:
        return shelf.store.at_once(lambda tx: tx.catch_up(shelf.whom.rowid, "", NOON + 50, 2))

    assert catch_up() == 2
    assert shelf.outage_counts().missed == 1
    assert (catch_up(), catch_up(), shelf.outage_counts()) == (1, 0, NO_OUTAGE)
    found = seen(shelf.store, lambda reader: reader.pending_deliveries(shelf.whom.rowid, 0, 10))
    assert [each.event.id for each in found] == [a.event.id, b.event.id, c.event.id]
    assert {(each.attempts, each.due_at, each.created_at, each.redelivery) for each in found} == {
        (0, NOON + 50, NOON + 50, True)
    }


def test_individually_dropped_delivery_is_not_repeated(shelf: Shelf) -> None:
    shelf.drop(*shelf.put(2), missed=False)
    assert shelf.outage_counts() == NO_OUTAGE
    assert shelf.store.at_once(lambda tx: tx.catch_up(shelf.whom.rowid, "", NOON, 10)) == 0


def test_redelivered_event_is_no_longer_missed(shelf: Shelf) -> None:
    a, b = shelf.put(2)
    shelf.drop(a, b)
    shelf.redeliver(a)
    assert shelf.outage_counts().missed == 1
    assert shelf.store.at_once(lambda tx: tx.recover(shelf.whom.rowid, "", NOON, 10)) == 1
    assert shelf.store.at_once(lambda tx: tx.catch_up(shelf.whom.rowid, "", NOON, 10)) == 0


def test_events_before_the_horizon_or_no_longer_stored_are_not_missed(
    shelf: Shelf,
) -> None:
    old, gone, new = *shelf.put(1, at=NOON), *shelf.put(1, at=NOON + 5_000), *shelf.put(1, at=NOON + 9_000)
    shelf.drop(old, gone, new)
    shelf.store.at_once(lambda tx: tx.conn.execute("DELETE FROM events WHERE id = ?", (gone.event.id,)))  # type: ignore[attr-defined]
    horizon = id_before("evt", NOON + 1_000)
    assert shelf.store.at_once(lambda tx: tx.catch_up(shelf.whom.rowid, horizon, NOON + 9_000, 2)) == 1
    assert shelf.outage_counts() == NO_OUTAGE
    (found,) = seen(shelf.store, lambda reader: reader.pending_deliveries(shelf.whom.rowid, 0, 10))
    assert found.event == new.event


def test_repetition_that_is_missed_again_is_owed_again(shelf: Shelf) -> None:
    (made,) = shelf.put()
    shelf.drop(made)
    shelf.store.at_once(lambda tx: tx.catch_up(shelf.whom.rowid, "", NOON, 10))
    (again,) = seen(shelf.store, lambda reader: reader.pending_deliveries(shelf.whom.rowid, 0, 10))
    shelf.drop(again)
    assert shelf.outage_counts().missed == 1
    assert shelf.store.at_once(lambda tx: tx.catch_up(shelf.whom.rowid, "", NOON, 10)) == 1


def test_a_delivery_is_found_in_the_transaction_that_made_it(shelf: Shelf) -> None:
    (dropped,) = shelf.put()
    shelf.drop(dropped)

    def again(tx: Transaction) -> None:
        made = tx.redeliver(dropped.position, NOON)
        assert made is not None
        record = tx.delivery_record(PROJECT.rowid, made.id)
        assert record is not None
        assert (record.position, record.status) == (made.position, "pending")

    shelf.store.at_once(again)


def test_pruning_one_project_ignores_newer_deliveries_of_another(shelf: Shelf) -> None:
    other = shelf.store.at_once(lambda tx: tx.insert_endpoint(endpoint(OTHER_PROJECT)))

    def put(tx: Transaction) -> Delivery:
        event = tx.append_event(OTHER_PROJECT, EventDraft("contact.updated", None, {}), None, NOON)
        return tx.insert_delivery(other.rowid, event, 7, None, NOON)

    old = [shelf.store.at_once(put) for _ in range(3)]
    shelf.drop(*old[:2])
    kept = shelf.put(2, at=NOON + 1_000)
    assert shelf.store.at_once(lambda tx: tx.prune_deliveries(NOON + 1_000, 2)) == 2
    assert shelf.store.at_once(lambda tx: tx.prune_deliveries(NOON + 1_000, 2)) == 0
    left = seen(shelf.store, lambda reader: reader.pending_deliveries(other.rowid, 0, 10))
    assert (positions(left), shelf.pending()) == (positions(old[2:]), positions(kept))


def test_pending_deliveries_are_read_without_one_conversation(shelf: Shelf) -> None:
    """After a failed probe the next one is a delivery of another conversation, or of none."""
    first, other, alone, again = (shelf.put(lane=lane)[0] for lane in (7, 8, None, 7))

    def read(after: int, lane: int | None) -> list[int]:
        rows = seen(
            shelf.store,
            lambda reader: reader.pending_deliveries(shelf.whom.rowid, after, 10, other_than=lane),
        )
        return [each.position for each in rows]

    assert read(0, 7) == [other.position, alone.position]
    assert read(0, 8) == [first.position, alone.position, again.position]
    assert read(other.position, 7) == [alone.position]
    assert read(0, None) == [each.position for each in (first, other, alone, again)]


def test_missed_deliveries_are_repeated_from_an_event_on(shelf: Shelf) -> None:
    """The probes of a quiet endpoint alternate: each one is for an event after the previous probe's."""
    first, second, third = shelf.put(3)
    shelf.drop(first, second, third)
    oldest = id_before("evt", NOON - 86_400_000)

    def repeat(beyond: int) -> list[int]:
        before = {each.position for each in pending(shelf)}
        count = shelf.store.at_once(lambda tx: tx.catch_up(shelf.whom.rowid, oldest, NOON, 1, beyond=beyond))
        made = [each for each in pending(shelf) if each.position not in before]
        assert len(made) == count
        return [each.event.position for each in made]

    assert repeat(first.event.position) == [second.event.position]
    assert repeat(third.event.position) == []
    assert repeat(0) == [first.event.position]
    assert repeat(0) == [third.event.position]
    assert repeat(0) == []


def test_dropped_deliveries_are_counted_until_they_are_redelivered(shelf: Shelf) -> None:
    (old,) = shelf.put(at=NOON - 90_000_000)
    one, two, kept = shelf.put(3, at=NOON)
    shelf.drop(old, one, missed=False)
    shelf.drop(two)

    def lost(since: int, bound: int = 100) -> int:
        return seen(shelf.store, lambda r: r.dropped_since(PROJECT.rowid, shelf.whom.rowid, since, bound))

    assert lost(NOON - 86_400_000) == 2
    assert lost(NOON - 100_000_000) == 3
    assert lost(NOON - 86_400_000, bound=1) == 1
    assert lost(NOON + 86_400_000) == 0
    shelf.redeliver(one)
    assert lost(NOON - 86_400_000) == 1
    shelf.drop(kept, missed=False)
    assert lost(NOON - 86_400_000) == 2


def pending(shelf: Shelf) -> Sequence[Delivery]:
    return seen(shelf.store, lambda reader: reader.pending_deliveries(shelf.whom.rowid, 0, 100))
