"""The start of a consumer (decisions 5, `resume`)."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any, cast

import pytest
import trio
import trio.testing
from trio.testing import MockClock

from deskwire.engine.core.errors import Unavailable
from deskwire.engine.core.ids import new_id
from deskwire.engine.events.types import StoredEvent
from deskwire.engine.stream.ports import StreamReader
from deskwire.engine.stream.subscription import Subscription, find_start, is_lost, is_resume
from tests.support.streaming import NOON, JumpStore, Stage, jump_stage, next_batch, number, real_stage, typing


async def numbers(held: Subscription, count: int) -> list[int]:
    found: list[int] = []
    while len(found) < count:
        found += [number(event) for event in (await next_batch(held)).events]
    return found


async def saved(stage: Stage) -> None:
    """Save confirmed positions, as at a shutdown."""
    async with trio.open_nursery() as nursery:
        await nursery.start(stage.hub.run)
        nursery.cancel_scope.cancel()


async def test_the_first_consumer_ever_begins_now(autojump_clock: MockClock, stage: Stage) -> None:
    await stage.emit(2)
    held = await stage.hold("c1")
    assert (held.start.resumed_after, held.start.gap) == (None, False)
    await stage.emit(1)
    assert await numbers(held, 1) == [2]


async def test_successor_begins_at_the_last_confirmed_event_of_its_predecessor(
    autojump_clock: MockClock, stage: Stage
) -> None:
    first = await stage.hold("c1")
    events = await stage.emit(4)
    stage.hub.confirm(first, events[1].position)
    second = await stage.hold("c2")
    assert second.start.resumed_after == events[1].id
    assert await numbers(second, 2) == [2, 3]


async def test_idle_consumer_resumes_after_events_of_other_channels(
    autojump_clock: MockClock, stage: Stage
) -> None:
    """The gap is the age of the oldest missed event, not the time since the last event."""
    first = await stage.hold("c1")
    await trio.sleep(80_000)  # virtual time: the mock clock jumps
    stage.hub.leave(first, for_good=False)
    await stage.emit(1)
    again = await stage.hold("c1")
    assert again.start.gap is False
    assert await numbers(again, 1) == [0]


async def test_gap_longer_than_the_window_is_reported_and_not_filled(
    autojump_clock: MockClock, stage: Stage
) -> None:
    """Decisions 5: `auto` if the gap is at most 2 h."""
    stage.hub.leave(await stage.hold("c1"), for_good=False)
    await stage.emit(1)
    await trio.sleep(7_201)  # virtual time: the mock clock jumps
    again = await stage.hold("c1")
    assert (again.start.resumed_after, again.start.gap) == (None, True)
    await stage.emit(1)
    assert await numbers(again, 1) == [1]


async def test_gap_is_reported_again_until_a_later_position_is_confirmed(
    autojump_clock: MockClock, stage: Stage, store: JumpStore
) -> None:
    """Repeat the gap, because a connection may end before the consumer has received its notification."""
    stage.hub.leave(await stage.hold("c1"), for_good=False)
    await stage.emit(1)
    await trio.sleep(7_201)  # virtual time: the mock clock jumps
    stage.hub.leave(await stage.hold("c1"), for_good=False)
    assert (await stage.hold("c2")).start.gap
    restarted = await jump_stage(store)
    held = await restarted.hold("c2")
    assert held.start.gap
    restarted.hub.confirm(held, held.start.position)
    assert not (await restarted.hold("c2")).start.gap


async def test_confirmation_during_a_takeovers_commit_counts_for_the_next(
    autojump_clock: MockClock, stage: Stage, store: JumpStore
) -> None:
    first = await stage.hold("c1")
    events = await stage.emit(2)

    def confirm_meanwhile(_: list[StoredEvent]) -> None:
        stage.hub.confirm(first, events[1].position)

    store.publish = confirm_meanwhile
    second = await stage.hold("c2")
    store.publish = stage.log.publish
    assert await numbers(second, 2) == [0, 1]
    await saved(stage)
    restarted = await jump_stage(store)
    for again in (restarted, stage):
        assert (await again.hold("c3")).start.resumed_after == events[1].id


async def test_position_stored_by_a_takeover_is_not_saved_again(
    autojump_clock: MockClock, stage: Stage, store: JumpStore
) -> None:
    first = await stage.hold("c1")
    (event,) = await stage.emit(1)
    stage.hub.confirm(first, event.position)
    assert (await stage.hold("c2")).start.resumed_after == event.id
    commits: list[float] = []
    store.publish = lambda _: commits.append(trio.current_time())
    await saved(stage)
    assert commits == []


async def test_live_begins_now_despite_a_confirmed_position(autojump_clock: MockClock, stage: Stage) -> None:
    stage.hub.leave(await stage.hold("c1"), for_good=False)
    await stage.emit(1)
    live = await stage.hold("c1", "live")
    await stage.emit(1)
    assert (live.start.gap, await numbers(live, 1)) == (False, [1])


async def test_resume_by_event_id_begins_after_that_event(autojump_clock: MockClock, stage: Stage) -> None:
    events = await stage.emit(3)
    held = await stage.hold("c1", events[0].id)
    assert (held.start.resumed_after, held.start.gap) == (events[0].id, False)
    assert await numbers(held, 2) == [1, 2]


@pytest.mark.parametrize("late", [True, False])
async def test_unknown_or_pruned_event_id_is_a_gap(
    autojump_clock: MockClock, stage: Stage, store: JumpStore, late: bool
) -> None:
    """Decisions 5: `gap` says that stored events no longer reach back that far."""
    events = await stage.emit(3)
    await trio.sleep(1)  # virtual time: the mock clock jumps
    now = stage.clock()
    await store.write(lambda tx: tx.prune_events(now, 2, now))
    unknown = new_id("evt", NOON * 2) if late else events[0].id
    held = await stage.hold("c1", unknown)
    assert held.start.gap


async def pruned(stage: Stage, store: JumpStore) -> None:
    """Take the two oldest events out of the log."""
    await trio.sleep(1)  # virtual time: the mock clock jumps
    now = stage.clock()
    assert await store.write(lambda tx: tx.prune_events(now, 2, now)) == 2


@pytest.mark.parametrize("last", [1, 2])
async def test_last_pruned_and_newest_event_ids_are_no_gap(
    autojump_clock: MockClock, stage: Stage, store: JumpStore, last: int
) -> None:
    events = await stage.emit(3)
    await pruned(stage, store)
    held = await stage.hold("c1", events[last].id)
    assert (held.start.resumed_after, held.start.gap) == (events[last].id, False)
    await stage.emit(1)
    assert await numbers(held, 3 - last) == [2, 3][last - 1 :]


@pytest.mark.parametrize(("confirmed", "gap"), [(0, True), (1, False), (2, False)])
async def test_confirmed_position_before_a_pruned_event_is_a_gap(
    autojump_clock: MockClock, stage: Stage, store: JumpStore, confirmed: int, gap: bool
) -> None:
    first = await stage.hold("c1")
    events = await stage.emit(3)
    stage.hub.confirm(first, events[confirmed].position)
    stage.hub.leave(first, for_good=False)
    await pruned(stage, store)
    assert (await stage.hold("c1")).start.gap is gap


async def test_erasure_after_the_confirmed_position_is_no_gap(
    autojump_clock: MockClock, stage: Stage, store: JumpStore
) -> None:
    """The same holds if retention has deleted all earlier events."""
    first = await stage.hold("c1")
    events = await stage.emit(5)
    stage.hub.confirm(first, events[2].position)
    stage.hub.leave(first, for_good=False)
    await pruned(stage, store)
    store.tx.conn.execute("DELETE FROM events WHERE position BETWEEN ? AND ?", (3, 4))
    held = await stage.hold("c1")
    assert (held.start.resumed_after, held.start.gap) == (None, False)


async def test_a_gap_as_long_as_the_window_is_filled(autojump_clock: MockClock, stage: Stage) -> None:
    stage.hub.leave(await stage.hold("c1"), for_good=False)
    await stage.emit(1)
    await trio.sleep(7_200)  # virtual time: the mock clock jumps
    again = await stage.hold("c1")
    assert (again.start.gap, await numbers(again, 1)) == (False, [0])


@pytest.mark.parametrize(
    ("text", "fits"),
    [
        ("auto", True),
        ("live", True),
        ("evt_01M3250V00EEEEEEEEEEEEEEEE", True),
        ("msg_01M3250V00EEEEEEEEEEEEEEEE", False),
        ("", False),
    ],
)
def test_a_resume_choice_is_one_of_two_words_or_an_event_id(text: str, fits: bool) -> None:
    assert is_resume(text) is fits


async def test_confirmed_positions_survive_the_process(tmp_path: Path) -> None:
    """Decisions 5: it is saved; the same consumer after the server's restart starts at it."""
    async with real_stage(tmp_path, lambda: NOON) as stage:
        held = await stage.hold("c1")
        events = await stage.emit(3)
        stage.hub.confirm(held, events[1].position)
    async with real_stage(tmp_path, lambda: NOON) as stage:
        again = await stage.hold("c1")
        assert again.start.resumed_after == events[1].id
        assert await numbers(again, 1) == [2]


async def test_saving_continues_after_the_disk_refused_once(
    autojump_clock: MockClock, stage: Stage, store: JumpStore
) -> None:
    held = await stage.hold("c1")
    (event,) = await stage.emit(1)
    store.write_failure = Unavailable("full")
    async with trio.open_nursery() as nursery:
        await nursery.start(stage.hub.run)
        stage.hub.confirm(held, event.position)
        await trio.sleep(3)  # virtual time: the mock clock jumps
        store.write_failure = None
        await trio.sleep(3)  # virtual time: the mock clock jumps
        nursery.cancel_scope.cancel()
    restarted = await jump_stage(store)
    assert (await restarted.hold("c1")).start.resumed_after == event.id


async def test_positions_are_stored_within_a_second_and_only_if_they_have_moved(
    autojump_clock: MockClock, stage: Stage, store: JumpStore
) -> None:
    """Save nothing for a quiet consumer, which confirms the same position with each heartbeat."""
    held = await stage.hold("c1")
    events = await stage.emit(2)
    commits: list[float] = []
    store.publish = lambda _: commits.append(trio.current_time())
    async with trio.open_nursery() as nursery:
        await nursery.start(stage.hub.run)
        await trio.testing.wait_all_tasks_blocked()
        assert commits == [0], "long unused channels were deleted"
        stage.hub.confirm(held, events[0].position)
        await trio.sleep(1.5)  # virtual time: the mock clock jumps
        stage.hub.confirm(held, events[0].position)
        await trio.sleep(2)  # virtual time: the mock clock jumps
        stage.hub.confirm(held, events[1].position)
        await trio.sleep(1)  # virtual time: the mock clock jumps
        nursery.cancel_scope.cancel()
    assert commits == [0, 1, 3.5]


async def test_idle_consumer_has_reached_events_of_other_channels(
    autojump_clock: MockClock, stage: Stage
) -> None:
    """Heartbeats confirm events of other channels, so the consumer has no lag and retention never overtakes it."""
    idle = await stage.hold("c1", channel="private-contact-u1")
    with trio.move_on_after(1):
        await next_batch(idle)
    (passed_over,) = await stage.emit(1)
    assert idle.reached < idle.start.position, "its consumer was not notified of its start yet"
    idle.written = idle.start.position
    assert idle.reached == passed_over.position
    own = await stage.announce("contact.updated", {"contact": {"userId": "u1"}})
    assert idle.reached < own.position, "its own event is not written yet"
    idle.written = (await next_batch(idle)).upto
    assert idle.reached == own.position


async def test_events_being_written_are_not_reached(autojump_clock: MockClock, stage: Stage) -> None:
    held = await stage.hold("c1")
    before = held.reached
    await stage.emit(1)
    await next_batch(held)
    await stage.emit(1)
    assert held.reached == before


async def test_batch_has_a_bounded_size(autojump_clock: MockClock, stage: Stage) -> None:
    held = await stage.hold("c1")
    await stage.emit(10, padding=30_000)
    batches = [[number(event) for event in (await next_batch(held)).events] for _ in range(5)]
    assert batches == [[0, 1], [2, 3], [4, 5], [6, 7], [8, 9]]


@pytest.mark.parametrize(("more", "batches"), [(0, [[1, 2]]), (1, [[1], [2]])])
async def test_batch_holds_64_kib_or_a_single_event(
    autojump_clock: MockClock, stage: Stage, more: int, batches: list[list[int]]
) -> None:
    (empty,) = await stage.emit(1)
    padding = 32 * 1024 - len(empty.body)
    held = await stage.hold("c1", empty.id)
    await stage.emit(1, padding=padding)
    await stage.emit(1, padding=padding + more)
    found = [[number(event) for event in (await next_batch(held)).events] for _ in batches]
    assert found == batches


@pytest.mark.parametrize(("count", "sizes"), [(63, [63]), (64, [64, 0]), (130, [64, 64, 2])])
async def test_each_batch_continues_after_the_previous_one(
    autojump_clock: MockClock, stage: Stage, count: int, sizes: list[int]
) -> None:
    held = await stage.hold("c1")
    events = await stage.emit(count)
    found: list[StoredEvent] = []
    for size in sizes:
        batch = held.recent() or await held.stored()
        found += batch.events
        assert (len(batch.events), batch.more) == (size, size == 64)
        assert batch.upto == found[-1].position
    assert [event.id for event in found] == [event.id for event in events]


async def test_listener_is_called_until_close(autojump_clock: MockClock, stage: Stage) -> None:
    calls: list[str] = []
    first = await stage.hold("c1")
    first.listen(lambda: calls.append("first"))
    await stage.emit(1)
    assert calls == ["first"]
    second = await stage.hold("c2")
    second.listen(lambda: calls.append("second"))
    first.close()
    calls.clear()
    await stage.emit(1)
    assert calls == ["second"]


async def test_queued_typing_yields_to_other_tasks(autojump_clock: MockClock, stage: Stage) -> None:
    held = await stage.hold("c1", typing=True)
    held.offer(typing())
    with trio.testing.assert_checkpoints():
        await held.next_typing()


async def test_typing_reaches_consumers_that_asked_and_is_dropped_for_slow_readers(
    autojump_clock: MockClock, stage: Stage
) -> None:
    """Decisions 5: typing bypasses the log in a small lossy buffer that keeps the newest events."""
    held, deaf = await stage.hold("c1", typing=True), await stage.hold("c2", channel="private-contact-u1")
    for n in range(100):
        stage.hub.offer_ephemeral(typing(number=n))
    for n in range(68, 100):
        assert await held.next_typing() == typing(number=n)
    with trio.move_on_after(1) as nothing:
        await deaf.next_typing()
    assert nothing.cancelled_caught
    with trio.move_on_after(1) as waiting:
        await held.next_typing()
    assert waiting.cancelled_caught


async def test_waiting_typing_reader_is_woken_and_a_departed_one_gets_nothing(
    autojump_clock: MockClock, stage: Stage
) -> None:
    held = await stage.hold("c1", typing=True)
    woken: list[str] = []

    async def wait() -> None:
        woken.append((await held.next_typing()).id)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait)
        await trio.testing.wait_all_tasks_blocked()
        stage.hub.offer_ephemeral(typing(number=1))
    stage.hub.leave(held, for_good=True)
    stage.hub.offer_ephemeral(typing(number=2))
    with trio.move_on_after(60):
        await wait()
    assert woken == ["evt_1"]


async def test_superseded_consumer_gets_no_typing(autojump_clock: MockClock, stage: Stage) -> None:
    old, new = await stage.hold("c1", typing=True), await stage.hold("c2", typing=True)
    stage.hub.offer_ephemeral(typing(number=1))
    assert (await new.next_typing()).id == "evt_1"
    with trio.move_on_after(60) as nothing:
        await old.next_typing()
    assert nothing.cancelled_caught


class Log:
    """The methods of `StreamReader` by which a replaced log is detected."""

    def __init__(self, newest: str | None, there: str | None) -> None:
        self._newest, self._there = newest, there

    def event_window(self, project: int) -> tuple[str | None, str | None]:
        return None, self._newest

    def event_id_at(self, project: int, position: int) -> str | None:
        return self._there


@pytest.mark.parametrize(
    ("known", "newest", "there", "lost"),
    [
        ("evt_2", "evt_9", "evt_2", False),
        ("evt_2", "evt_2", "evt_2", False),
        ("evt_2", "evt_9", "evt_1", False),  # the event was erased
        ("evt_2", "evt_9", None, False),
        ("evt_2", "evt_9", "evt_3", True),  # the position was assigned again
        ("evt_2", "evt_1", "evt_1", True),  # the newest events are missing
        ("evt_2", None, None, True),
        ("", "evt_9", "evt_2", True),
        ("", None, None, True),
    ],
)
def test_log_is_lost_without_the_confirmed_event_or_with_a_reused_position(
    known: str, newest: str | None, there: str | None, lost: bool
) -> None:
    assert is_lost(cast(StreamReader, Log(newest, there)), 1, 7, known) is lost


@pytest.mark.parametrize(
    ("ahead", "shared", "lost"), [(1, True, True), (0, True, False), (1, False, False), (1, None, False)]
)
async def test_position_beyond_a_shared_logs_end_is_lost(
    autojump_clock: MockClock, stage: Stage, ahead: int, shared: bool | None, lost: bool
) -> None:
    held = await stage.hold("c1")
    await stage.emit(2)
    end = await stage.log.newest(stage.project.rowid) + ahead
    find = partial(find_start, cast(Any, stage.store), stage.log, held.channel, "auto", end, oldest_ms=0)
    start = await (find() if shared is None else find(shared=shared))
    assert (start.lost, start.gap) == (lost, lost)
