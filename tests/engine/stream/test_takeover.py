"""The holder of a channel (decisions 5; ADR 8)."""

from __future__ import annotations

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from deskwire.engine.core.errors import Unavailable
from deskwire.engine.stream import hub
from deskwire.engine.stream.hub import ConsumerSuperseded, TooManyTakeovers
from tests.support.streaming import JumpStore, Stage, jump_stage, next_batch, number, trio_ms


async def test_newest_consumer_is_the_only_holder_and_the_old_one_is_notified(
    autojump_clock: MockClock, stage: Stage
) -> None:
    received = list[str]()
    old = await stage.hold("c1", lost=received.append)
    new = await stage.hold("c2")
    assert received == ["superseded"]
    assert (old.current, new.current) == (False, True)


async def test_a_superseded_consumer_is_refused_while_its_successor_is_connected(
    autojump_clock: MockClock, stage: Stage
) -> None:
    await stage.hold("c1")
    await stage.hold("c2")
    await trio.sleep(80_000)  # virtual time: the mock clock jumps
    with pytest.raises(ConsumerSuperseded):
        await stage.hold("c1")


async def test_the_fence_outlasts_the_successors_drop_by_a_minute(
    autojump_clock: MockClock, stage: Stage
) -> None:
    """Decisions 5: within 60 s of its drop."""
    await stage.hold("c1")
    successor = await stage.hold("c2")
    stage.hub.leave(successor, for_good=False)
    await trio.sleep(59)  # virtual time: the mock clock jumps
    with pytest.raises(ConsumerSuperseded):
        await stage.hold("c1")
    await trio.sleep(1)  # virtual time: the mock clock jumps
    assert (await stage.hold("c1")).current


async def test_successor_that_returns_in_time_keeps_the_fence(
    autojump_clock: MockClock, stage: Stage
) -> None:
    await stage.hold("c1")
    stage.hub.leave(await stage.hold("c2"), for_good=False)
    await trio.sleep(30)  # virtual time: the mock clock jumps
    await stage.hold("c2")
    await trio.sleep(60)  # virtual time: the mock clock jumps
    with pytest.raises(ConsumerSuperseded):
        await stage.hold("c1")


async def test_a_holder_that_unsubscribes_lifts_the_fence_at_once(
    autojump_clock: MockClock, stage: Stage
) -> None:
    """Pusher protocol, takeover: `pusher:unsubscribe` by the holder."""
    await stage.hold("c1")
    stage.hub.leave(await stage.hold("c2"), for_good=True)
    assert (await stage.hold("c1")).current
    assert (await stage.hold("c2")).current


async def test_dropped_consumer_is_superseded_as_well(autojump_clock: MockClock, stage: Stage) -> None:
    """Fence a client that lost its network: it does not notice the takeover, and returns with its old id."""
    stage.hub.leave(await stage.hold("c1"), for_good=False)
    await stage.hold("c2")
    with pytest.raises(ConsumerSuperseded):
        await stage.hold("c1")


async def test_the_same_consumer_on_a_second_socket_wins_and_is_not_fenced(
    autojump_clock: MockClock, stage: Stage
) -> None:
    received = list[str]()
    first = await stage.hold("c1", lost=received.append)
    second = await stage.hold("c1")
    assert received == ["superseded"]
    assert not first.current
    stage.hub.leave(second, for_good=False)
    assert (await stage.hold("c1")).current


async def test_a_standby_learns_when_the_channel_is_free(autojump_clock: MockClock, stage: Stage) -> None:
    await stage.hold("c1")
    successor = await stage.hold("c2")
    stage.hub.leave(successor, for_good=False)
    start = trio.current_time()
    await stage.hub.until_unfenced(stage.channel, "c1")
    assert trio.current_time() - start == 60


async def test_the_fence_survives_a_restart_for_the_lease(
    autojump_clock: MockClock, stage: Stage, store: JumpStore
) -> None:
    """Otherwise a zombie that reconnects first or last would take over from the rightful holder."""
    await stage.hold("c1")
    await stage.hold("c2")
    restarted = await jump_stage(store)
    with pytest.raises(ConsumerSuperseded):
        await restarted.hold("c1")
    await restarted.hold("c2")
    with pytest.raises(ConsumerSuperseded):
        await restarted.hold("c1")


async def test_the_lease_after_a_restart_runs_from_the_restart(
    autojump_clock: MockClock, stage: Stage, store: JumpStore
) -> None:
    await stage.hold("c1")
    await stage.hold("c2")
    await trio.sleep(5)  # virtual time: the mock clock jumps
    restarted = await jump_stage(store)
    await trio.sleep(20)  # virtual time: the mock clock jumps
    await restarted.hub.until_unfenced(stage.channel, "c1")
    assert trio.current_time() == 65


async def test_clock_set_back_makes_the_lease_after_a_restart_no_longer(
    autojump_clock: MockClock, stage: Stage, store: JumpStore
) -> None:
    await stage.hold("c1")
    await stage.hold("c2")
    behind_ms = 0
    restarted = await jump_stage(store, lambda: trio_ms() - behind_ms)
    behind_ms = 86_400_000
    await restarted.hub.until_unfenced(stage.channel, "c1")
    assert trio.current_time() == 60


async def test_unsubscribed_consumer_fences_no_other_after_a_restart(
    autojump_clock: MockClock, stage: Stage, store: JumpStore
) -> None:
    await stage.hold("c1")
    async with trio.open_nursery() as nursery:
        await nursery.start(stage.hub.run)
        stage.hub.leave(await stage.hold("c2"), for_good=True)
        nursery.cancel_scope.cancel()
    restarted = await jump_stage(store)
    assert (await restarted.hold("c1")).current


async def test_a_takeover_that_cannot_be_stored_changes_nothing(
    autojump_clock: MockClock, stage: Stage, store: JumpStore
) -> None:
    holder = await stage.hold("c1")
    store.write_failure = Unavailable("full")
    with pytest.raises(Unavailable):
        await stage.hold("c2")
    store.write_failure = None
    assert holder.current
    stage.hub.leave(holder, for_good=False)
    assert (await stage.hold("c1")).current


async def test_a_takeover_that_is_not_stored_after_ten_seconds_changes_nothing(
    autojump_clock: MockClock, stage: Stage, store: JumpStore
) -> None:
    holder = await stage.hold("c1")
    store.write_takes_s = 11
    with pytest.raises(Unavailable):
        await stage.hold("c2")
    assert (trio.current_time(), holder.current) == (10, True)


async def test_cancelled_call_during_the_commit_still_has_the_channel(
    autojump_clock: MockClock, stage: Stage, store: JumpStore
) -> None:
    """Assign the lease to a holder whose takeover is stored, because otherwise its confirmations would be lost."""
    old = await stage.hold("c1")
    store.write_takes_s = 5
    with trio.move_on_after(1):
        assert (await stage.hold("c2")).current
    assert (trio.current_time(), old.current) == (5, False)


async def test_simultaneous_takeovers_leave_one_holder(autojump_clock: MockClock, stage: Stage) -> None:
    async with trio.open_nursery() as nursery:
        for consumer in ("c1", "c2"):
            nursery.start_soon(stage.hold, consumer)
    (status,) = await stage.hub.consumers(stage.project)
    assert status.connected
    other = {"c1": "c2", "c2": "c1"}[status.consumer_id]
    with pytest.raises(ConsumerSuperseded):
        await stage.hold(other)


async def test_consumers_with_ever_new_ids_can_take_over_ten_times_a_minute(
    autojump_clock: MockClock, stage: Stage
) -> None:
    """Pusher protocol, takeover: supervisors that restart both processes would flap with fresh ids."""
    for n in range(11):
        holder = await stage.hold(f"c{n}")
    with pytest.raises(TooManyTakeovers):
        await stage.hold("c11")
    assert holder.current
    start = trio.current_time()
    await stage.hub.until_unfenced(stage.channel, "c11")
    assert trio.current_time() - start == 60
    assert (await stage.hold("c11")).current


async def test_returning_or_dropped_holder_counts_for_no_takeover_limit(
    autojump_clock: MockClock, stage: Stage
) -> None:
    for n in range(11):
        holder = await stage.hold(f"c{n}")
    for _ in range(20):
        holder = await stage.hold("c10")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(stage.hub.until_unfenced, stage.channel, "c11")
        await trio.testing.wait_all_tasks_blocked()
        stage.hub.leave(holder, for_good=False)
    assert trio.current_time() == 0
    assert (await stage.hold("c11")).current


async def test_confirmation_of_the_old_holder_is_ignored_after_a_takeover(
    autojump_clock: MockClock, stage: Stage
) -> None:
    old = await stage.hold("c1")
    events = await stage.emit(3)
    new = await stage.hold("c2")
    stage.hub.confirm(old, events[-1].position)
    stage.hub.leave(new, for_good=False)
    again = await stage.hold("c2")
    assert [number(event) for event in (await next_batch(again)).events] == [0, 1, 2]


async def test_the_listing_shows_holder_position_and_lag(autojump_clock: MockClock, stage: Stage) -> None:
    """Decisions 5: each channel's holder, its start, confirmed position and lag."""
    holder = await stage.hold("c1")
    events = await stage.emit(3)
    stage.hub.confirm(holder, events[0].position)
    (status,) = await stage.hub.consumers(stage.project)
    assert (status.channel, status.consumer_id, status.connected) == (stage.channel.name, "c1", True)
    assert (status.confirmed, status.lag) == (events[0].id, 2)
    stage.hub.leave(holder, for_good=False)
    (status,) = await stage.hub.consumers(stage.project)
    assert not status.connected


async def test_no_consumer_is_listed_as_connected_after_a_restart(
    autojump_clock: MockClock, stage: Stage, store: JumpStore
) -> None:
    await stage.hold("c1")
    (status,) = await (await jump_stage(store)).hub.consumers(stage.project)
    assert (status.consumer_id, status.connected) == ("c1", False)


async def test_idle_leases_are_evicted_beyond_the_maximum(
    autojump_clock: MockClock, stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Leases with unsaved positions are not evicted."""
    monkeypatch.setattr(hub, "_LEASES_MAX", 3)
    await stage.hold("c1", channel="private-contact-held")
    stage.hub.leave(await stage.hold("c1", channel="private-contact-idle"), for_good=False)
    async with trio.open_nursery() as nursery:
        await nursery.start(stage.hub.run)
        nursery.cancel_scope.cancel()
    unsaved = await stage.hold("c1", channel="private-contact-unsaved")
    (event,) = await stage.emit(1)
    stage.hub.confirm(unsaved, event.position)
    stage.hub.leave(unsaved, for_good=False)
    assert len(stage.hub._leases) == 3
    await stage.hold("c1", channel="private-contact-new")
    names = [channel.name.removeprefix("private-contact-") for channel in stage.hub._leases]
    assert names == ["held", "unsaved", "new"]
    again = await stage.hold("c1", channel="private-contact-unsaved")
    assert again.start.resumed_after == event.id


async def test_lease_with_a_waiting_consumer_is_not_evicted(
    autojump_clock: MockClock, stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Keep the lease, because otherwise the waiting consumer would not be notified of its release."""
    monkeypatch.setattr(hub, "_LEASES_MAX", 1)
    await stage.hold("c1")
    stage.hub.leave(await stage.hold("c2"), for_good=False)
    async with trio.open_nursery() as nursery:
        await nursery.start(stage.hub.run)
        with trio.move_on_after(2):
            await stage.hub.until_unfenced(stage.channel, "c1")
        async with trio.open_nursery() as waiting:
            waiting.start_soon(stage.hub.until_unfenced, stage.channel, "c1")
            await wait_all_tasks_blocked()
            await stage.hold("c3", channel="private-contact-u1")
            stage.hub.leave(await stage.hold("c2"), for_good=True)
        assert trio.current_time() == 2
        nursery.cancel_scope.cancel()
