"""The rules of a channel's lease, without a store (decisions 5; ADR 8)."""

from __future__ import annotations

from math import inf
from typing import Any

from deskwire.engine.core.values import replace
from deskwire.engine.stream.channel import StreamChannel
from deskwire.engine.stream.lease import ChannelLease
from deskwire.engine.stream.ports import StreamConsumer
from tests.support.streaming import CHANNEL, PROJECT_ID, Stage

LEASE_S = 60.0


def lease() -> ChannelLease:
    return ChannelLease(StreamChannel(1, CHANNEL, "project", PROJECT_ID), LEASE_S)


def test_new_lease_has_no_holder_and_no_fence() -> None:
    new = lease()
    assert (new.holder, new.consumer_id, new.generation, new.confirmed, new.since) == (None, None, 0, 0, 0)
    assert (new.waiting, new.released, new.busy, new.paused) == (0, False, False, False)
    assert (new.held_remotely, new.replaced, new.channel.name) == (False, False, CHANNEL)
    assert new.admitted_at("c1") == -inf
    assert (new.free_at(), new.after_taking("c1", 0.0)) == (-inf, {})


def test_lease_with_a_waiting_consumer_is_busy() -> None:
    awaited = lease()
    awaited.waiting = 1
    assert awaited.busy


def test_latest_hundred_superseded_ids_are_kept() -> None:
    crowded = lease()
    crowded.superseded = {f"c{n}": None for n in range(120)}
    crowded.consumer_id, crowded.dropped_at = "last", 0.0
    assert list(crowded.after_taking("new", 1.0)) == [*(f"c{n}" for n in range(21, 120)), "last"]


def test_consumer_superseded_again_counts_as_the_latest() -> None:
    again = lease()
    again.superseded, again.consumer_id, again.dropped_at = {"c1": None, "c2": None}, "c1", 0.0
    assert list(again.after_taking("c3", 1.0)) == ["c2", "c1"]


def test_fence_ends_on_time_and_clears_superseded_ids() -> None:
    left = lease()
    left.superseded, left.consumer_id, left.dropped_at = {"c1": None}, "c2", 10.0
    assert left.fenced("c1", 69.9)
    assert not left.fenced("c1", 70.0)
    assert not left.fenced("c2", 10.0)
    assert (left.admitted_at("c1"), left.admitted_at("c2")) == (70.0, -inf)
    assert list(left.after_taking("c3", 69.9)) == ["c1", "c2"]
    assert list(left.after_taking("c3", 70.0)) == ["c2"]


async def test_new_holder_gets_the_lease_and_the_old_one_cannot_release_it(stage: Stage) -> None:
    taken, first, second = lease(), await stage.hold("c1"), await stage.hold("c2")
    first.current = True
    changed = taken.changed
    assert taken.take(first, 7, 1_000, 5.0) is None
    assert changed.is_set()
    assert (taken.holder, taken.consumer_id, taken.generation, taken.since) == (first, "c1", 7, 1_000)
    assert (taken.busy, taken.free_at(), taken.takeovers) == (True, inf, ())
    assert taken.take(second, 8, 2_000, 6.0) is first
    assert (first.current, taken.takeovers, list(taken.superseded)) == (False, (6.0,), ["c1"])
    assert not taken.leave(first, 7.0, for_good=True)
    assert (taken.holder, taken.released, list(taken.superseded)) == (second, False, ["c1"])


def test_lease_released_for_another_consumer_supersedes_its_holder() -> None:
    held = lease()
    held.consumer_id, held.held = "c1", True
    held.yield_to("c2", 5.0)
    assert (held.held, held.released, held.dropped_at) == (False, False, 5.0)
    assert (list(held.superseded), held.takeovers) == (["c1"], (5.0,))
    assert held.fenced("c1", 5.0)


def test_fencing_a_consumer_twice_changes_nothing() -> None:
    held, dropped = lease(), lease()
    held.consumer_id, held.held, held.released = "c1", True, True
    dropped.consumer_id = "c1"
    assert held.fence_holder(5.0)
    assert dropped.fence_holder(5.0)
    assert (held.held, held.released, held.dropped_at, list(held.superseded)) == (False, False, 5.0, ["c1"])
    assert not held.fence_holder(6.0)
    assert held.dropped_at == 5.0


async def test_a_lease_is_paused_while_its_holder_may_not_write(stage: Stage) -> None:
    taken, holder = lease(), await stage.hold("c1")
    taken.take(holder, 1, 1_000, 5.0)
    holder.current = True
    assert not taken.paused
    holder.current = False
    assert taken.paused


async def test_an_ended_consumer_is_returned_fenced_and_may_not_write(stage: Stage) -> None:
    taken, holder = lease(), await stage.hold("c1")
    taken.take(holder, 1, 1_000, 5.0)
    holder.current = True
    changed = taken.changed
    assert taken.end(6.0) is holder
    assert (taken.holder, holder.current, changed.is_set()) == (None, False, True)
    assert taken.fenced("c1", 6.0)
    assert lease().end(6.0) is None


async def test_a_stopped_lease_returns_its_holder_which_may_not_write(stage: Stage) -> None:
    taken, holder = lease(), await stage.hold("c1")
    taken.take(holder, 1, 1_000, 5.0)
    holder.current = True
    assert taken.stop() is holder
    assert (taken.holder, holder.current) == (None, False)
    assert taken.stop() is None


def stored(**given: Any) -> StreamConsumer:
    """A row of generation 4, confirmed up to 20, whose connection ended at 90 s."""
    row = StreamConsumer(1, CHANNEL, "c2", 4, 20, ("c0", "c1"), 70_000, 80_000)
    return replace(row, dropped_at=90_000, takeovers=(60_000, 61_500), event="evt_20", **given)


def test_a_stored_row_of_another_generation_is_taken_over_whole() -> None:
    loaded = lease()
    loaded.generation, loaded.confirmed = 3, 25
    loaded.load(stored())
    assert (loaded.consumer_id, loaded.generation, loaded.since) == ("c2", 4, 70_000)
    assert (loaded.confirmed, loaded.event) == (20, "evt_20")
    assert (list(loaded.superseded), loaded.takeovers) == (["c0", "c1"], (60.0, 61.5))
    assert (loaded.held, loaded.released, loaded.dropped_at) == (False, False, 90.0)


def test_a_stored_row_of_this_generation_takes_no_confirmation_back() -> None:
    ahead, same, late = lease(), lease(), lease()
    ahead.generation, ahead.confirmed = 4, 25
    ahead.load(stored())
    assert ahead.confirmed == 25
    assert ahead.event is None
    for each, confirmed in ((same, 20), (late, 19)):
        each.generation, each.confirmed = 4, confirmed
        each.load(stored())
        assert (each.confirmed, each.event) == (20, "evt_20")


def test_a_stored_row_says_whether_the_channel_is_held_or_was_left() -> None:
    held, left = lease(), lease()
    held.load(replace(stored(), connected=True, dropped_at=0))
    assert (held.held, held.released, held.dropped_at) == (True, False, -inf)
    left.load(replace(stored(), dropped_at=0))
    assert (left.held, left.released, left.dropped_at) == (False, True, -inf)


async def test_unsubscribed_holder_leaves_no_fence_and_is_not_superseded(stage: Stage) -> None:
    left, first, second = lease(), await stage.hold("c1"), await stage.hold("c2")
    left.take(first, 1, 1_000, 5.0)
    left.take(second, 2, 2_000, 6.0)
    changed = left.changed
    assert left.leave(second, 8.0, for_good=True)
    assert changed.is_set()
    assert not left.changed.is_set()
    assert (second.current, left.holder, left.superseded, left.released) == (False, None, {}, True)
    assert (left.busy, left.dropped_at, left.after_taking("c3", 8.0)) == (False, -inf, {})
    left.take(first, 3, 3_000, 9.0)
    assert (left.released, list(left.after_taking("c3", 9.0))) == (False, ["c1"])


async def test_dropped_holder_keeps_its_fence_from_that_moment(stage: Stage) -> None:
    dropped, first = lease(), await stage.hold("c1")
    dropped.take(first, 1, 1_000, 5.0)
    assert dropped.leave(first, 8.0, for_good=False)
    assert (dropped.dropped_at, dropped.released, dropped.free_at()) == (8.0, False, 68.0)


async def test_ten_takeovers_within_a_minute_are_counted_and_the_eleventh_waits(stage: Stage) -> None:
    crowded, holder = lease(), await stage.hold("c0")
    crowded.take(holder, 1, 1_000, 0.0)
    for n in range(1, 13):
        assert crowded.throttled_until("new") == (n - 11 + LEASE_S if n > 10 else -inf)
        crowded.take(await stage.hold(f"c{n}", channel=f"private-contact-{n}"), n, 1_000, n - 1.0)
    assert crowded.takeovers == tuple(float(n) for n in range(2, 12))
    assert crowded.throttled_until("c12") == -inf
    assert crowded.admitted_at("new") == 62.0
