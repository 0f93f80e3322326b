"""Deliveries waiting for an attempt, in the order of their conversations.

Source: decisions 6.
"""

from __future__ import annotations

from deskwire.engine.core.values import replace
from deskwire.engine.webhooks.queue.ordering import OrderedDeliveries
from tests.support.sockets.receivers import delivery


def filled(*keys: int | None) -> OrderedDeliveries:
    """Return deliveries at the positions 1, 2, …, with these ordering keys."""
    made = OrderedDeliveries()
    for position, key in enumerate(keys, 1):
        made.add(delivery(position, key))
    return made


def taken(ordered: OrderedDeliveries) -> list[int]:
    """Take all deliveries that may start; return their positions."""
    found = []
    while ordered:
        found.append(ordered.take().position)
    return found


def test_one_delivery_of_a_key_is_ready_at_a_time_in_order() -> None:
    ordered = filled(7, 7, 8, 7, 8)
    assert taken(ordered) == [1, 3]
    ordered.ended(7)
    assert taken(ordered) == [2]
    ordered.ended(8)
    ordered.ended(7)
    assert taken(ordered) == [5, 4]


def test_deliveries_without_a_key_do_not_wait() -> None:
    ordered = filled(None, None, 7)
    assert taken(ordered) == [1, 2, 3]
    ordered.ended(None)
    assert taken(ordered) == []


def test_the_delivery_ready_longest_is_first() -> None:
    ordered = filled(7, 8)
    first = ordered.first()
    assert first is not None
    assert first.position == 1
    assert taken(ordered) == [1, 2]
    assert ordered.first() is None


def test_a_finished_key_can_start_again() -> None:
    ordered = filled(7)
    assert taken(ordered) == [1]
    ordered.ended(7)
    ordered.add(delivery(2, 7))
    assert taken(ordered) == [2]


def test_due_postponed_attempt_goes_last_and_its_key_waits_for_it() -> None:
    ordered = filled(7, 7, 8)
    ordered.take()
    ordered.postpone(delivery(1, 7, due_at=5))
    ordered.resume(4)
    assert (ordered.held[1].due_at, ordered.next_due, taken(ordered)) == (5, 5, [3])
    ordered.add(delivery(4, 9))
    ordered.resume(5)
    assert (ordered.next_due, taken(ordered)) == (None, [4, 1])
    ordered.ended(7)
    assert taken(ordered) == [2]


def test_a_time_that_no_pause_explains_is_from_a_clock_set_back() -> None:
    ordered = filled(7)
    ordered.take()
    ordered.postpone(delivery(1, 7, due_at=1_000_000))
    ordered.resume(1)
    assert taken(ordered) == [1]


def test_a_row_that_was_refused_waits_until_it_is_due() -> None:
    ordered = OrderedDeliveries()
    ordered.add(replace(delivery(1, 7, due_at=5), refusals=1))
    ordered.add(delivery(2, 7))
    ordered.add(delivery(3, 8))
    assert taken(ordered) == [3]
    ordered.resume(5)
    assert taken(ordered) == [1]


def test_evicting_postponed_deliveries_makes_the_next_ones_ready() -> None:
    ordered = filled(7, 7, 8)
    ordered.take()
    ordered.postpone(delivery(1, 7, due_at=5))
    assert [each.position for each in ordered.evict_postponed()] == [1]
    assert (list(ordered.held), taken(ordered), ordered.next_due) == ([2, 3], [3, 2], None)


def test_a_delivery_forgotten_during_its_attempt_is_not_repeated() -> None:
    ordered = filled(7)
    ordered.take()
    ordered.forget(frozenset({1}), frozenset({7}))
    ordered.postpone(delivery(1, 7))
    assert (taken(ordered), ordered.held) == ([], {})


def test_forgotten_deliveries_are_not_sent() -> None:
    ordered = filled(7, 7, 8)
    ordered.forget(frozenset({1, 2}), frozenset({7}))
    assert (taken(ordered), list(ordered.held)) == ([3], [3])


def test_a_key_forgotten_during_an_attempt_can_start_again() -> None:
    ordered = filled(7, 7)
    ordered.take()
    ordered.forget(frozenset({1, 2}), frozenset({7}))
    ordered.add(delivery(3, 7))
    assert taken(ordered) == [3]


def test_other_deliveries_of_a_forgotten_key_are_sent() -> None:
    """The conversation's deletion event may already be queued after its erased deliveries."""
    ordered = filled(7, 7, 7, 7)
    ordered.forget(frozenset({1, 2}), frozenset({7}))
    assert taken(ordered) == [3]
    ordered.ended(7)
    assert (taken(ordered), sorted(ordered.held)) == ([4], [3, 4])


def test_a_key_that_is_blocked_waits_for_as_many_ends_as_blocks() -> None:
    ordered = OrderedDeliveries()
    ordered.block(7)
    ordered.block(7)
    ordered.add(delivery(1, 7))
    ordered.add(delivery(2, 8))
    assert taken(ordered) == [2]
    ordered.ended(7)
    assert taken(ordered) == []
    ordered.ended(7)
    assert taken(ordered) == [1]
    ordered.ended(7)
    ordered.add(delivery(3, 7))
    assert taken(ordered) == [3]


def test_a_block_during_an_attempt_is_waited_for() -> None:
    ordered = filled(7, 7)
    assert taken(ordered) == [1]
    ordered.block(7)
    ordered.ended(7)
    assert taken(ordered) == []
    ordered.ended(7)
    assert taken(ordered) == [2]


def test_blocks_go_with_a_key_that_is_forgotten() -> None:
    ordered = filled(7)
    ordered.block(7)
    ordered.forget(frozenset({1}), frozenset({7}))
    ordered.add(delivery(2, 7))
    assert taken(ordered) == [2]
    ordered.ended(7)
    ordered.add(delivery(3, 7))
    assert taken(ordered) == [3]


def test_only_the_blocked_key_waits_for_its_blocks() -> None:
    ordered = filled(8, 8)
    ordered.block(7)
    assert taken(ordered) == [1]
    ordered.ended(8)
    assert taken(ordered) == [2]
