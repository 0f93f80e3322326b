"""Deliveries that wait for an attempt, in the order of their conversations (decisions 6)."""

from __future__ import annotations

from deskwire.engine.webhooks.queue.ordering import OrderedDeliveries
from tests.support.sockets.receivers import delivery


def filled(*lanes: int | None) -> OrderedDeliveries:
    """Deliveries at the positions 1, 2, …, in these lanes."""
    made = OrderedDeliveries()
    for position, lane in enumerate(lanes, 1):
        made.add(delivery(position, lane))
    return made


def taken(lanes: OrderedDeliveries) -> list[int]:
    """The positions of all that may start."""
    found = []
    while lanes:
        found.append(lanes.take().position)
    return found


def test_of_a_lane_one_is_ready_at_a_time_in_the_order_of_their_coming() -> None:
    lanes = filled(7, 7, 8, 7, 8)
    assert taken(lanes) == [1, 3]
    lanes.ended(7)
    assert taken(lanes) == [2]
    lanes.ended(8)
    lanes.ended(7)
    assert taken(lanes) == [5, 4]


def test_those_without_a_lane_wait_for_nobody() -> None:
    lanes = filled(None, None, 7)
    assert taken(lanes) == [1, 2, 3]
    lanes.ended(None)
    assert taken(lanes) == []


def test_what_has_been_ready_longest_is_first() -> None:
    lanes = filled(7, 8)
    first = lanes.first()
    assert first is not None
    assert first.position == 1
    assert taken(lanes) == [1, 2]
    assert lanes.first() is None


def test_a_lane_that_has_come_to_its_end_begins_anew() -> None:
    lanes = filled(7)
    assert taken(lanes) == [1]
    lanes.ended(7)
    lanes.add(delivery(2, 7))
    assert taken(lanes) == [2]


def test_an_attempt_that_is_to_be_repeated_is_the_next_one_and_its_lane_goes_on_waiting() -> None:
    lanes = filled(7, 7, 8)
    lanes.take()
    lanes.put_back(delivery(1, 7, due_at=5))
    assert (lanes.held[1].due_at, taken(lanes)) == (5, [1, 3])
    lanes.ended(7)
    assert taken(lanes) == [2]


def test_what_was_forgotten_meanwhile_is_not_repeated() -> None:
    lanes = filled(7)
    lanes.take()
    lanes.forget(frozenset({1}), frozenset({7}))
    lanes.put_back(delivery(1, 7))
    assert (taken(lanes), lanes.held) == ([], {})


def test_what_is_forgotten_is_not_sent_whether_it_was_ready_or_waited() -> None:
    lanes = filled(7, 7, 8)
    lanes.forget(frozenset({1, 2}), frozenset({7}))
    assert (taken(lanes), list(lanes.held)) == ([3], [3])


def test_a_lane_that_was_forgotten_in_mid_attempt_begins_anew() -> None:
    lanes = filled(7, 7)
    lanes.take()
    lanes.forget(frozenset({1, 2}), frozenset({7}))
    lanes.add(delivery(3, 7))
    assert taken(lanes) == [3]


def test_what_is_not_forgotten_of_a_lane_is_sent() -> None:
    """The deletion of a conversation waits behind what was erased, if a page has brought it already."""
    lanes = filled(7, 7, 7, 7)
    lanes.forget(frozenset({1, 2}), frozenset({7}))
    assert taken(lanes) == [3]
    lanes.ended(7)
    assert (taken(lanes), sorted(lanes.held)) == ([4], [3, 4])


def test_a_lane_that_is_blocked_waits_for_as_many_ends_as_blocks() -> None:
    lanes = OrderedDeliveries()
    lanes.block(7)
    lanes.block(7)
    lanes.add(delivery(1, 7))
    lanes.add(delivery(2, 8))
    assert taken(lanes) == [2]
    lanes.ended(7)
    assert taken(lanes) == []
    lanes.ended(7)
    assert taken(lanes) == [1]
    lanes.ended(7)
    lanes.add(delivery(3, 7))
    assert taken(lanes) == [3]


def test_a_block_beside_an_attempt_under_way_is_waited_for_too() -> None:
    lanes = filled(7, 7)
    assert taken(lanes) == [1]
    lanes.block(7)
    lanes.ended(7)
    assert taken(lanes) == []
    lanes.ended(7)
    assert taken(lanes) == [2]


def test_blocks_go_with_a_lane_that_is_forgotten() -> None:
    lanes = filled(7)
    lanes.block(7)
    lanes.forget(frozenset({1}), frozenset({7}))
    lanes.add(delivery(2, 7))
    assert taken(lanes) == [2]
    lanes.ended(7)
    lanes.add(delivery(3, 7))
    assert taken(lanes) == [3]


def test_only_the_blocked_lane_waits_for_its_blocks() -> None:
    lanes = filled(8, 8)
    lanes.block(7)
    assert taken(lanes) == [1]
    lanes.ended(8)
    assert taken(lanes) == [2]
