"""The event log: the window in memory and the table behind it must tell the same story."""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar, cast

import orjson
import trio
from hypothesis import given, settings
from hypothesis import strategies as st
from trio.testing import MockClock, wait_all_tasks_blocked

from deskwire.engine.events import StoredEvent
from deskwire.engine.lane import Lane, lanes_of
from deskwire.engine.log import EventLog
from deskwire.engine.ports import Reader, Store, Transaction

T = TypeVar("T")


@dataclass
class Table:
    """The events' table as a list, and a store and reader of nothing else."""

    rows: list[StoredEvent] = field(default_factory=list)
    reads: int = 0

    async def write(self, job: Callable[[Transaction], T]) -> T:
        raise NotImplementedError

    async def read(self, query: Callable[[Reader], T]) -> T:
        self.reads += 1
        await trio.lowlevel.checkpoint()
        return self.peek(query)

    def peek(self, query: Callable[[Reader], T]) -> T:
        return query(cast(Reader, self))

    def events(self, project: int, after: int, limit: int, types: frozenset[str]) -> Sequence[StoredEvent]:
        found = [row for row in self.rows if row.project == project and row.position > after]
        return [row for row in found if not types or row.type in types][:limit]

    def lane_events(
        self, lane: Lane, after: int, limit: int, types: frozenset[str] = frozenset()
    ) -> Sequence[StoredEvent]:
        found = [row for row in self.rows if row.position > after and lane in lanes_of(row)]
        return [row for row in found if not types or row.type in types][:limit]

    def erase(self, conversations: frozenset[int]) -> None:
        self.rows = [row for row in self.rows if row.conversation not in conversations]


def event(
    position: int, project: int = 1, conversation: int = 1, kind: str = "message.created"
) -> StoredEvent:
    return StoredEvent(position, f"evt_{position:026}", kind, project, conversation, position, b"x" * 10)


def laned(position: int, conversation: int, project: int = 1, *, deleted: bool = False) -> StoredEvent:
    """An event with an envelope; a deletion belongs to nothing that is stored."""
    data = {"conversation": {"id": f"cnv_{conversation}", "contact": {"userId": f"u{conversation % 2}"}}}
    body = orjson.dumps({"data": data})
    kind = "conversation.deleted" if deleted else "message.created"
    owner = None if deleted else conversation
    return StoredEvent(position, f"evt_{position:026}", kind, project, owner, position, body)


LANES: Final = [
    *(Lane(1, "conversation", f"cnv_{number}") for number in range(1, 5)),
    Lane(2, "conversation", "cnv_1"),
    Lane(1, "contact", "u0"),
    Lane(1, "contact", "u1"),
    Lane(1, "contact", "nobody"),
]


def opened(table: Table, ring_events: int = 100, ring_bytes: int = 1 << 20) -> EventLog:
    start = table.rows[-1].position if table.rows else 0
    store: Store = table
    return EventLog(store, start, ring_events=ring_events, ring_bytes=ring_bytes)


def publish(table: Table, log: EventLog, *events: StoredEvent, erased: frozenset[int] = frozenset()) -> None:
    table.erase(erased)
    table.rows.extend(events)
    log.publish(events, erased)


async def read_all(
    log: EventLog, project: int, after: int, limit: int, types: frozenset[str] = frozenset()
) -> list[int]:
    """What a reader gets that goes on from each chunk's `upto` until it has caught up."""
    found: list[int] = []
    while after < log.position:
        chunk = await log.read(project, after, limit, types)
        assert chunk.upto > after, "no progress"
        assert all(after < event.position <= chunk.upto for event in chunk.events)
        found += [event.position for event in chunk.events]
        after = chunk.upto
    return found


COMMITS = st.lists(
    st.tuples(
        st.lists(
            st.tuples(
                st.integers(1, 3),  # the step to the next position: there may be holes
                st.integers(1, 2),  # project
                st.integers(1, 4),  # conversation
                st.sampled_from(["message.created", "conversation.closed"]),
            ),
            max_size=4,
        ),
        st.frozensets(st.integers(1, 4), max_size=1),  # conversations erased by this commit
    ),
    max_size=30,
)


@given(COMMITS, st.integers(0, 12), st.integers(10, 200), st.integers(1, 4), st.booleans())
@settings(max_examples=200, deadline=None, derandomize=True)
def test_a_reader_gets_the_same_from_the_window_and_from_the_table(
    commits: list[tuple[list[tuple[int, int, int, str]], frozenset[int]]],
    ring_events: int,
    ring_bytes: int,
    limit: int,
    filtered: bool,
) -> None:
    table = Table()
    log = opened(table, ring_events, ring_bytes)
    types = frozenset({"conversation.closed"} if filtered else ())
    position = 0

    async def compare() -> None:
        for project in (1, 2, 3):
            for after in range(position + 1):
                expected = [row.position for row in table.events(project, after, 10_000, types)]
                assert await read_all(log, project, after, limit, types) == expected

    for made, erased in commits:
        events = []
        for step, project, conversation, kind in made:
            position += step
            events.append(event(position, project, conversation, kind))
        publish(table, log, *events, erased=erased)
    trio.run(compare)


@given(COMMITS, st.integers(0, 12), st.integers(0, 20))
@settings(max_examples=200, deadline=None, derandomize=True)
def test_how_far_a_position_is_behind_is_right_where_it_is_said_to_be_and_never_too_much(
    commits: list[tuple[list[tuple[int, int, int, str]], frozenset[int]]], ring_events: int, before: int
) -> None:
    table = Table([event(position, 1 + position % 2) for position in range(1, before + 1)])
    log, position = opened(table, ring_events), before
    for made, erased in commits:
        events = []
        for step, project, conversation, kind in made:
            position += step
            events.append(event(position, project, conversation, kind))
        publish(table, log, *events, erased=erased)
        assert log.kept == (min(log.kept[0], ring_events), 10 * log.kept[0])
        for asked in (1, 2, 3):
            for after in range(position + 1):
                count, exact = log.behind(asked, after)
                truth = len(table.events(asked, after, 10_000, frozenset()))
                assert count == truth if exact else count <= truth
            assert log.behind(asked, position) == (0, True)


@given(st.integers(1, 40), st.integers(1, 40))
@settings(max_examples=30, deadline=None, derandomize=True)
def test_a_reader_that_keeps_up_never_touches_the_table(count: int, ring_events: int) -> None:
    async def follow() -> None:
        table = Table([event(7)])
        log = opened(table, ring_events)
        after = log.position
        for position in range(8, 8 + count):
            publish(table, log, event(position))
            chunk = await log.read(1, after, 10)
            assert [found.position for found in chunk.events] == [position]
            after = chunk.upto
        assert table.reads == 0

    trio.run(follow)


async def test_what_was_stored_before_the_start_is_read_from_the_table() -> None:
    table = Table([event(3), event(5)])
    log = opened(table)
    assert log.position == 5
    assert await read_all(log, 1, 0, 10) == [3, 5]
    assert table.reads == 1


async def test_a_waiting_reader_wakes_when_its_project_has_an_event() -> None:
    table = Table()
    log = opened(table)
    woken: list[int] = []

    async def follow(project: int) -> None:
        await log.wait(project, 0)
        woken.append(project)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(follow, 1)
        nursery.start_soon(follow, 2)
        await wait_all_tasks_blocked()
        publish(table, log, event(1, project=2))
        await wait_all_tasks_blocked()
        assert woken == [2]
        publish(table, log, event(2, project=1))
        await wait_all_tasks_blocked()
        assert woken == [2, 1]


async def test_a_reader_that_is_behind_does_not_wait(autojump_clock: MockClock) -> None:
    table = Table()
    log = opened(table, ring_events=2)
    publish(table, log, *(event(position) for position in range(1, 6)))
    for after in range(5):
        with trio.fail_after(1):
            await log.wait(1, after)


async def test_an_event_too_large_for_the_window_still_wakes_its_reader() -> None:
    table = Table()
    log = opened(table, ring_bytes=1)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(log.wait, 1, 0)
        await wait_all_tasks_blocked()
        publish(table, log, event(1))
    assert await read_all(log, 1, 0, 10) == [1]


async def test_a_project_without_events_is_not_kept_busy_by_the_others() -> None:
    table = Table()
    log = opened(table, ring_events=2)
    rounds = 0

    async def follow() -> None:
        nonlocal rounds
        after = 0
        while True:
            await log.wait(1, after)
            chunk = await log.read(1, after, 10)
            assert not chunk.events
            after = chunk.upto
            rounds += 1

    async with trio.open_nursery() as nursery:
        nursery.start_soon(follow)
        for position in range(1, 50):
            publish(table, log, event(position, project=2))
            await wait_all_tasks_blocked()
        assert rounds <= 1  # at most once, to move its position over what was dropped unseen
        nursery.cancel_scope.cancel()


async def test_an_erased_conversation_is_gone_from_the_window_at_once() -> None:
    table = Table()
    log = opened(table)
    publish(table, log, event(1, conversation=1), event(2, conversation=2), event(3, conversation=1))
    publish(table, log, event(4, conversation=3), erased=frozenset({1}))
    assert await read_all(log, 1, 0, 10) == [2, 4]
    assert table.reads == 0


async def test_the_window_still_drops_the_right_events_after_an_erasure() -> None:
    table = Table()
    log = opened(table, ring_events=3)
    publish(table, log, *(event(n, project=1 + n % 2, conversation=n) for n in range(1, 6)))
    publish(table, log, erased=frozenset({4}))
    publish(table, log, *(event(n, project=1 + n % 2, conversation=n) for n in range(6, 20)))
    for project, expected in ((1, [2, 6, 8, 10, 12, 14, 16, 18]), (2, [*range(1, 20, 2)])):
        assert await read_all(log, project, 0, 2) == expected


async def test_a_tail_that_is_cut_now_and_then_loses_nothing() -> None:
    table = Table()
    log = opened(table, ring_events=10)
    for position in range(1, 2_500):
        publish(table, log, event(position, project=1))
    assert await read_all(log, 1, 2_489, 3) == list(range(2_490, 2_500))
    assert table.reads == 0


async def test_a_filter_lets_a_reader_pass_over_everything_else_in_one_go() -> None:
    table = Table()
    log = opened(table)
    publish(
        table, log, *(event(position) for position in range(1, 30)), event(30, kind="conversation.closed")
    )
    chunk = await log.read(1, 0, 5, frozenset({"conversation.closed"}))
    assert ([found.position for found in chunk.events], chunk.upto) == ([30], 30)
    nothing = await log.read(1, 0, 5, frozenset({"conversation.deleted"}))
    assert (list(nothing.events), nothing.upto) == ([], 30)


STEPS = st.lists(
    st.one_of(
        st.tuples(
            st.just("commit"),
            st.lists(st.tuples(st.integers(1, 3), st.integers(1, 2), st.integers(1, 4)), max_size=4),
            st.frozensets(st.integers(1, 4), max_size=1),
        ),
        st.tuples(st.just("open"), st.sampled_from(LANES), st.booleans()),
        st.tuples(st.just("close"), st.integers(0, 9), st.none()),
        st.tuples(st.just("read"), st.integers(0, 9), st.integers(1, 3)),
        st.tuples(st.just("read"), st.integers(0, 9), st.integers(1, 3)),
    ),
    max_size=60,
)


@given(STEPS, st.integers(0, 12), st.integers(80, 1_600))
@settings(max_examples=300, deadline=None, derandomize=True)
def test_a_reader_of_a_lane_gets_its_events_in_order_whatever_the_ring_holds(
    steps: list[tuple[Any, ...]], ring_events: int, ring_bytes: int
) -> None:
    """Readers come at any time, from the start or from now, and go; conversations are erased in between."""
    table = Table()
    log = opened(table, ring_events, ring_bytes)
    readers: list[tuple[Lane, list[int]]] = []
    position = 0

    def commit(made: list[tuple[int, int, int]], erased: frozenset[int]) -> None:
        nonlocal position
        events = []
        for number in sorted(erased):
            position += 1
            events.append(laned(position, number, deleted=True))
        for step, project, conversation in made:
            position += step
            events.append(laned(position, conversation, project))
        publish(table, log, *events, erased=erased)

    async def read(lane: Lane, cursor: list[int], limit: int) -> None:
        expected = table.lane_events(lane, cursor[0], limit)
        chunk = await log.read(lane, cursor[0], limit)
        assert list(chunk.events) == expected
        assert chunk.upto == (expected[-1].position if len(expected) == limit else log.position)
        cursor[0] = chunk.upto

    async def play() -> None:
        for kind, first, second in steps:
            if kind == "commit":
                commit(first, second)
            elif kind == "open":
                log.open(first)
                readers.append((first, [log.position if second else 0]))
            elif readers and kind == "close":
                log.close(readers.pop(first % len(readers))[0])
            elif readers:
                lane, cursor = readers[first % len(readers)]
                await read(lane, cursor, second)
        for lane, cursor in readers:
            settled = log.settled(lane, cursor[0])
            assert not [row for row in table.lane_events(lane, cursor[0], 1) if row.position <= settled]
            await read(lane, cursor, 10_000)
            with trio.move_on_after(0) as waiting:
                await log.wait(lane, cursor[0])
            assert waiting.cancelled_caught, "there is nothing new"
            assert log.settled(lane, cursor[0]) == log.position
        for lane in LANES:
            await read(lane, [0], 10_000)

    trio.run(play)


async def test_a_lane_is_read_from_memory_however_busy_its_project_is() -> None:
    table = Table()
    log = opened(table, ring_events=5)
    lane = Lane(1, "conversation", "cnv_1")
    log.open(lane)
    after = 0
    for position in range(1, 200):
        publish(table, log, laned(position, 1 if position % 50 == 0 else 2))
        if position % 50 == 0:
            await log.wait(lane, after)
            chunk = await log.read(lane, after, 10)
            assert [found.position for found in chunk.events] == [position]
            after = chunk.upto
    assert table.reads == 0


async def test_a_waiting_reader_of_a_lane_sleeps_through_the_events_of_others() -> None:
    table = Table()
    log = opened(table)
    woken: list[str] = []

    async def follow(lane: Lane) -> None:
        log.open(lane)
        await log.wait(lane, 0)
        woken.append(lane.subject)

    async with trio.open_nursery() as nursery:
        for lane in (Lane(1, "conversation", "cnv_1"), Lane(1, "contact", "u1"), Lane(1, "contact", "u0")):
            nursery.start_soon(follow, lane)
        await wait_all_tasks_blocked()
        publish(table, log, laned(1, 3))
        await wait_all_tasks_blocked()
        assert woken == ["u1"]
        publish(table, log, laned(2, 1, project=2))
        await wait_all_tasks_blocked()
        assert woken == ["u1"]
        publish(table, log, laned(3, 1), laned(4, 2))
        await wait_all_tasks_blocked()
        assert sorted(woken) == ["cnv_1", "u0", "u1"]


async def test_closing_a_lane_ends_the_wait_for_it() -> None:
    log = opened(Table())
    lane = Lane(1, "conversation", "cnv_1")
    log.open(lane)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(log.wait, lane, 0)
        await wait_all_tasks_blocked()
        log.close(lane)


async def test_what_the_ring_has_dropped_is_in_no_lane_and_no_tail_any_more() -> None:
    table = Table()
    log = opened(table, ring_events=10)
    project = 1_000_001  # of no other test
    for lane in LANES:
        log.open(lane._replace(project=project))
    for position in range(1, 1_000):
        log.publish([laned(position, 1 + position % 4, project)])
    gc.collect()
    kept = [each for each in gc.get_objects() if isinstance(each, StoredEvent) and each.project == project]
    assert 0 < len(kept) <= 10
