"""The backlog of an outage: in batches, in order, at a limited rate.

Source: decisions 6.
"""

from __future__ import annotations

import pytest

from deskwire.engine.webhooks.queue.backlog import Backlog
from tests.support.sockets.receivers import delivery


def caught_up(rate_per_s: float = 10, share: int = 8, room: int = 8) -> Backlog:
    return Backlog(rate_per_s, share, room)


def holding(*positions: int, rate_per_s: float = 10, share: int = 8) -> Backlog:
    backlog = caught_up(rate_per_s, share)
    for position in positions:
        backlog.ordered.add(delivery(position, position))
    return backlog


def begun(backlog: Backlog, upto: float, step: float = 0.01, *, well: bool = False) -> list[float]:
    """Return the start times of attempts if each ends at once.

    The backlog is polled every `step` seconds.
    """
    found, at = [], 0.0
    while at <= upto:
        while backlog.may_start(at):
            position = backlog.take(at).position
            if well:
                backlog.note_result(position, at, well=True)
            backlog.ended(position)
            found.append(round(at, 2))
        at += step
    return found


def test_attempts_begin_at_a_bounded_rate() -> None:
    times = begun(holding(*range(1, 60), rate_per_s=10), 3.0)
    assert 30 <= len(times) <= 32
    assert all(len([at for at in times if second <= at < second + 1]) <= 11 for second in range(3))


def test_a_busy_moment_is_made_up_for_but_not_an_idle_hour() -> None:
    backlog = holding(*range(1, 60), rate_per_s=100)
    backlog.ended(backlog.take(0.0).position)
    at_once = 0
    while backlog.may_start(3_600.0):
        backlog.ended(backlog.take(3_600.0).position)
        at_once += 1
    assert at_once <= 12


def test_the_backlog_uses_only_a_share_of_the_slots() -> None:
    backlog = holding(1, 2, 3, 4, rate_per_s=1_000, share=2)
    first = backlog.take(0.0)
    assert backlog.may_start(1.0)
    backlog.take(1.0)
    assert (backlog.may_start(2.0), backlog.next_at()) == (False, None)
    backlog.ended(first.position)
    assert backlog.may_start(2.0)


def test_other_deliveries_do_not_count_in_the_backlogs_share() -> None:
    backlog = holding(1, 2, share=1, rate_per_s=1_000)
    backlog.take(0.0)
    backlog.ended(99)
    assert not backlog.may_start(1.0)


def test_the_backlog_is_urgent_while_none_of_it_is_running() -> None:
    """Neither new events nor the backlog starve each other."""
    backlog = holding(1, 2, 3, rate_per_s=10)
    assert backlog.urgent(0.0)
    first = backlog.take(0.0)
    assert not backlog.urgent(5.0)
    backlog.ended(first.position)
    second = backlog.take(5.0)
    backlog.ended(second.position)
    assert not backlog.urgent(5.0 - 0.01)
    assert backlog.urgent(5.1)


def test_the_backlog_is_not_urgent_without_ready_deliveries() -> None:
    assert not caught_up().urgent(9.0)
    assert caught_up().next_at() is None
    assert not caught_up().may_start(9.0)


def test_backlog_reads_redeliveries_first_then_makes_missed_ones_then_reads_held_ones() -> None:
    backlog = caught_up()
    backlog.begin_catch_up(50)
    backlog.missed = True
    kinds = []
    while (kind := backlog.begin_batch()) is not None:
        kinds.append(kind)
        backlog.end_batch(kind, None)
        if kind == "missed" and kinds.count("missed") == 1:
            backlog.note_redelivery()  # the new redeliveries
    assert kinds == ["redeliveries", "missed", "redeliveries", "held"]
    assert backlog.empty


def test_batches_continue_after_the_last_one_while_more_rows_may_exist() -> None:
    backlog = caught_up()
    backlog.begin_catch_up(50)
    assert backlog.begin_batch() == "redeliveries"
    backlog.end_batch("redeliveries", 44)
    assert (backlog.redelivered_after, backlog.begin_batch()) == (44, "redeliveries")
    backlog.end_batch("redeliveries", None)
    assert backlog.begin_batch() == "held"
    backlog.end_batch("held", 20)
    assert (backlog.held_after, backlog.begin_batch()) == (20, "held")
    backlog.end_batch("held", None)
    assert (backlog.held_after, backlog.begin_batch()) == (50, None)


@pytest.mark.parametrize("kind", ["redeliveries", "missed", "held"])
def test_a_batch_that_could_not_be_read_is_read_again(kind: str) -> None:
    backlog = caught_up()
    if kind == "held":
        backlog.begin_catch_up(50)
        backlog.begin_batch()
    elif kind == "missed":
        backlog.missed = True
    else:
        backlog.note_redelivery()
    assert backlog.begin_batch() == kind
    backlog.give_up_batch(kind)
    assert backlog.begin_batch() == kind


def test_a_batch_is_read_when_a_quarter_of_the_room_is_left() -> None:
    backlog = caught_up(room=8)
    backlog.begin_catch_up(50)
    for position in range(1, 9):
        backlog.ordered.add(delivery(position, position))
    for position in range(1, 6):
        assert (backlog.room, backlog.begin_batch()) == (position - 1, None)
        del backlog.ordered.held[position]
    del backlog.ordered.held[6]
    assert (backlog.room, backlog.begin_batch()) == (6, "redeliveries")


def test_the_backlog_has_at_most_five_hundred_deliveries_in_memory() -> None:
    assert caught_up(room=1_000).room == 500


def test_a_commit_makes_a_hundred_redeliveries_at_most() -> None:
    backlog = caught_up(room=1_000)
    assert (backlog.room_for("held"), backlog.room_for("missed")) == (500, 100)


def test_its_own_successes_make_it_faster() -> None:
    slow, fast = (holding(*range(1, 900), rate_per_s=1_000) for _ in range(2))
    assert len(begun(slow, 1.0)) < 250
    assert len(begun(fast, 1.0, well=True)) > 500


def test_a_failure_of_any_attempt_makes_it_slower() -> None:
    well, ill = (holding(*range(1, 900), rate_per_s=1_000) for _ in range(2))
    for backlog in (well, ill):
        begun(backlog, 0.5, well=True)
    ill.note_result(9_999, 0.5, well=False)
    assert len(begun(ill, 1.0)) < len(begun(well, 1.0))


def test_an_open_circuit_clears_the_backlog_but_not_missed_deliveries() -> None:
    backlog = holding(1, 2)
    backlog.begin_catch_up(50)
    backlog.missed = True
    backlog.clear()
    assert (len(backlog.ordered.held), backlog.begin_batch()) == (0, "missed")
    backlog.end_batch("missed", None)
    assert backlog.empty


def test_the_backlog_is_not_empty_while_deliveries_remain() -> None:
    backlog = caught_up()
    assert backlog.empty
    backlog.begin_catch_up(5)
    assert not backlog.empty
    for kind in ("redeliveries", "held"):
        assert backlog.begin_batch() == kind
        backlog.end_batch(kind, None)
    backlog.ordered.add(delivery(1))
    assert not backlog.empty
