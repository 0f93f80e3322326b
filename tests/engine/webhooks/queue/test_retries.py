"""Retries: the first due ones in memory, the others as rows."""

from __future__ import annotations

from collections.abc import Sequence

from deskwire.engine.webhooks.delivery import Delivery
from deskwire.engine.webhooks.queue.retries import Retries
from tests.support.sockets.receivers import delivery

DAY_MS = 86_400_000
AHEAD_MAX_MS = 200_000


def retry(position: int, due_at: int) -> Delivery:
    return delivery(position, position, attempts=1, due_at=due_at)


def waiting(room: int, *due: int, now: int = 0) -> Retries:
    """Return retries at the positions 1, 2, …, due at these times."""
    retries = Retries(room, AHEAD_MAX_MS)
    retries.adjust_clock(now)
    for position, due_at in enumerate(due, 1):
        retries.add(retry(position, due_at), now)
    return retries


def started(retries: Retries, now: int) -> list[int]:
    retries.adjust_clock(now)
    found = []
    while retries.first(now) is not None:
        found.append(retries.take().position)
    return found


def read(retries: Retries, rows: Sequence[Delivery], *, more: bool = False, now: int = 0) -> int:
    """Add these rows; return the room there was."""
    room = retries.begin_reading()
    retries.end_reading(rows, more=more, now=now)
    return room


def test_retries_start_when_due_in_the_order_of_their_times() -> None:
    retries = waiting(10, 3_000, 1_000, 2_000)
    assert retries.next_due() == 1_000
    assert started(retries, 999) == []
    assert started(retries, 2_000) == [2, 3]
    assert (retries.next_due(), started(retries, 3_000)) == (3_000, [1])
    assert retries.next_due() is None


def test_a_running_retry_keeps_its_room() -> None:
    retries = waiting(1, 1_000)
    assert started(retries, 1_000) == [1]
    assert list(retries.held) == [1]
    retries.add(retry(2, 5_000), 1_000)
    assert list(retries.held) == [1]


def test_retries_without_room_are_parked_and_read_when_the_first_is_due() -> None:
    retries = waiting(4, 1_000, 2_000, 9_000, 9_500, 4_000, 3_000)
    assert sorted(retries.held) == [1, 2, 3, 4]
    assert retries.next_due() == 1_000
    assert started(retries, 2_000) == [1, 2]
    del retries.held[1]
    assert not retries.wants_rows(2_999)
    assert retries.wants_rows(3_000)


def test_parked_retries_are_read_when_there_is_room_for_many() -> None:
    retries = waiting(8, *range(1_000, 1_008), 50_000)
    assert started(retries, 1_005) == [1, 2, 3, 4, 5, 6]
    for position in range(1, 7):
        del retries.held[position]
    assert retries.wants_rows(1_006)
    assert read(retries, [retry(7, 1_006), retry(8, 1_007), retry(9, 50_000)]) == 8
    assert sorted(retries.held) == [7, 8, 9]
    assert (started(retries, 50_000), retries.wants_rows(DAY_MS)) == ([7, 8, 9], False)


def test_parked_retries_are_not_read_while_earlier_ones_are_in_memory() -> None:
    """With more overdue rows than room, the query would return the same rows again and again."""
    retries = waiting(4, 1_000, 1_000, 1_000, 1_000, 1_500, 9_000)
    assert not retries.wants_rows(5_000)
    read(retries, [retry(position, 1_000) for position in (1, 2, 3, 4)], more=True, now=1_000)
    assert not retries.wants_rows(1_000)
    assert started(retries, 5_000) == [1, 2, 3, 4]
    assert not retries.wants_rows(5_000)
    del retries.held[1]
    assert retries.wants_rows(5_000)


def test_running_retries_do_not_cause_endless_reading() -> None:
    retries = waiting(8, *range(1_000, 1_008), 50_000)
    assert started(retries, 1_006) == [1, 2, 3, 4, 5, 6, 7]
    del retries.held[1]
    assert not retries.wants_rows(1_006)


def test_no_rows_are_read_without_parked_retries_or_room() -> None:
    assert not waiting(4, 1_000).wants_rows(DAY_MS)
    full = waiting(2, 1_000, 1_000, 2_000)
    assert started(full, 1_000) == [1, 2]
    assert (full.wants_rows(DAY_MS), full.next_due()) == (False, None)
    del full.held[1]
    assert (full.wants_rows(DAY_MS), full.next_due()) == (True, 2_000)


def test_reading_makes_room_for_the_retries_due_first() -> None:
    retries = waiting(3, 1_000, 5_000, 6_000, 2_000)
    assert started(retries, 1_000) == [1]
    assert retries.begin_reading() == 2
    retries.end_reading([retry(4, 2_000), retry(2, 5_000), retry(3, 6_000)], more=False, now=1_000)
    assert sorted(retries.held) == [1, 2, 4]
    del retries.held[1]
    assert (retries.next_due(), started(retries, 5_000)) == (2_000, [4, 2])
    assert (retries.wants_rows(6_000), retries.next_due()) == (True, 6_000)


def test_rows_after_a_batch_are_read_soon() -> None:
    retries = waiting(1, 1_000, 1_000)
    read(retries, [], more=True, now=3_000)
    assert (retries.next_due(), retries.wants_rows(3_001)) == (3_001, True)


def test_rows_that_could_not_be_read_are_read_soon() -> None:
    retries = waiting(1, 9_000, 9_000)
    retries.begin_reading()
    retries.give_up_reading(3_000)
    assert (retries.next_due(), retries.wants_rows(3_000)) == (3_000, True)


def test_retries_added_during_a_read_are_not_lost() -> None:
    retries = waiting(2, 9_000, 9_000, 9_000)
    retries.begin_reading()
    retries.add(retry(7, 1_000), 0)
    retries.end_reading([retry(1, 9_000), retry(2, 9_000), retry(3, 9_000)], more=False, now=0)
    assert sorted(retries.held) == [1, 7]
    assert started(retries, 9_000) == [7, 1]
    del retries.held[7]
    assert retries.wants_rows(9_000)


def test_a_clock_that_is_set_back_does_not_hold_up_retries() -> None:
    retries = waiting(2, DAY_MS + 6_000, DAY_MS + 2_000, DAY_MS + 8_000, now=DAY_MS)
    assert started(retries, 100) == []
    assert retries.next_due() == 2_100
    assert started(retries, 2_100) == [2]
    assert started(retries, 6_100) == [1]
    retries.held.clear()
    assert (retries.wants_rows(8_100), retries.next_due()) == (True, 8_100)


def test_a_clock_that_is_set_ahead_makes_them_due() -> None:
    assert started(waiting(2, 2_000), DAY_MS) == [1]


def test_row_dated_before_the_clock_was_set_back_waits_a_bounded_time() -> None:
    """After a restart the outbox does not know the old clock, so a time far ahead came from it."""
    retries = waiting(2)
    retries.add(retry(1, DAY_MS), 0)
    assert started(retries, AHEAD_MAX_MS - 1) == []
    assert started(retries, AHEAD_MAX_MS) == [1]


def test_a_forgotten_delivery_is_not_retried() -> None:
    retries = waiting(4, 1_000, 2_000, 3_000)
    retries.forget(frozenset({1, 3}), frozenset())
    assert (retries.next_due(), started(retries, 3_000)) == (2_000, [2])
    retries.clear()
    assert (retries.held, retries.next_due(), retries.wants_rows(DAY_MS)) == ({}, None, False)
