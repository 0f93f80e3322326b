"""Readers of one conversation's or contact's events."""

from __future__ import annotations

import gc
from collections.abc import Sequence
from typing import Any, TypeVar

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st
from trio.testing import wait_all_tasks_blocked

from deskwire.engine.events.types import AgentsSource, StoredEvent, Topic

T = TypeVar("T")

from tests.engine.events.event_table import LANES, Table, event, internal, laned, opened, publish

AGENTS = [AgentsSource(1), AgentsSource(2)]
STEPS = st.lists(
    st.one_of(
        st.tuples(
            st.just("commit"),
            st.lists(
                st.tuples(st.integers(1, 3), st.integers(1, 2), st.integers(1, 4), st.booleans()), max_size=4
            ),
            st.frozensets(st.integers(1, 4), max_size=1),
        ),
        st.tuples(st.just("open"), st.sampled_from([*LANES, *AGENTS]), st.booleans()),
        st.tuples(st.just("close"), st.integers(0, 9), st.none()),
        st.tuples(st.just("read"), st.integers(0, 9), st.integers(1, 3)),
        st.tuples(st.just("read"), st.integers(0, 9), st.integers(1, 3)),
    ),
    max_size=60,
)


@pytest.mark.thorough
@given(STEPS, st.integers(0, 12), st.integers(80, 1_600))
@settings(max_examples=300)
def test_topic_reader_gets_events_in_order_for_any_ring_content(
    steps: list[tuple[Any, ...]], ring_events: int, ring_bytes: int
) -> None:
    """Readers start at any time, from the first event or from now, and stop; conversations are erased in between."""
    table = Table()
    log = opened(table, ring_events, ring_bytes)
    readers: list[tuple[Topic | AgentsSource, list[int]]] = []
    position = 0

    def commit(made: list[tuple[int, int, int, bool]], erased: frozenset[int]) -> None:
        nonlocal position
        events = []
        for number in sorted(erased):
            position += 1
            events.append(laned(position, number, deleted=True))
        for step, project, conversation, noted in made:
            position += step
            events.append((internal if noted else laned)(position, conversation, project))
        publish(table, log, *events, erased=erased)

    def rows(lane: Topic | AgentsSource, after: int, limit: int) -> Sequence[StoredEvent]:
        if isinstance(lane, AgentsSource):
            return table.agents_events(lane.project, after, limit)
        return table.topic_events(lane, after, limit)

    async def read(lane: Topic | AgentsSource, cursor: list[int], limit: int) -> None:
        expected = rows(lane, cursor[0], limit)
        chunk = await log.read(lane, cursor[0], limit)
        assert list(chunk.events) == expected
        assert chunk.upto == (expected[-1].position if len(expected) == limit else log.position(lane.project))
        cursor[0] = chunk.upto

    async def play() -> None:
        for kind, first, second in steps:
            if kind == "commit":
                commit(first, second)
            elif kind == "open":
                await log.open(first)
                readers.append((first, [log.position(first.project) if second else 0]))
            elif readers and kind == "close":
                log.close(readers.pop(first % len(readers))[0])
            elif readers:
                lane, cursor = readers[first % len(readers)]
                await read(lane, cursor, second)
        for lane, cursor in readers:
            settled = log.settled(lane, cursor[0])
            assert not [row for row in rows(lane, cursor[0], 1) if row.position <= settled]
            await read(lane, cursor, 10_000)
            with trio.move_on_after(0) as waiting:
                await log.wait(lane, cursor[0])
            assert waiting.cancelled_caught, "there is nothing new"
            assert log.settled(lane, cursor[0]) == log.position(lane.project)
        everything: list[Topic | AgentsSource] = [*LANES, *AGENTS]
        for lane in everything:
            await read(lane, [0], 10_000)

    trio.run(play)


async def test_topic_is_read_from_memory_in_a_busy_project() -> None:
    table = Table()
    log = opened(table, ring_events=5)
    lane = Topic(1, "conversation", "cnv_1")
    await log.open(lane)
    after = 0
    for position in range(1, 200):
        publish(table, log, laned(position, 1 if position % 50 == 0 else 2))
        if position % 50 == 0:
            await log.wait(lane, after)
            chunk = await log.read(lane, after, 10)
            assert [found.position for found in chunk.events] == [position]
            after = chunk.upto
    assert table.reads == 0


async def test_topic_reader_is_not_woken_by_events_of_other_topics() -> None:
    table = Table()
    log = opened(table)
    woken: list[str] = []

    async def follow(lane: Topic) -> None:
        await log.open(lane)
        await log.wait(lane, 0)
        woken.append(lane.subject)

    async with trio.open_nursery() as nursery:
        for lane in (Topic(1, "conversation", "cnv_1"), Topic(1, "contact", "u1"), Topic(1, "contact", "u0")):
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


async def test_closing_a_topic_ends_its_wait() -> None:
    log = opened(Table())
    lane = Topic(1, "conversation", "cnv_1")
    await log.open(lane)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(log.wait, lane, 0)
        await wait_all_tasks_blocked()
        log.close(lane)


async def test_evicted_events_are_in_no_tail() -> None:
    table = Table()
    log = opened(table, ring_events=10)
    project = 1_000_001  # of no other test
    for lane in LANES:
        await log.open(lane._replace(project=project))
    for position in range(1, 1_000):
        log.publish([laned(position, 1 + position % 4, project)])
    gc.collect()
    kept = [each for each in gc.get_objects() if isinstance(each, StoredEvent) and each.project == project]
    assert 0 < len(kept) <= 10


async def test_internal_event_wakes_only_agents_and_is_evicted_with_them() -> None:
    table = Table()
    log = opened(table)
    publish(table, log, internal(1, 1))
    assert log.memory_size == (0, 0), "no reader has it open"
    woken: list[object] = []
    for source in (
        1,
        AgentsSource(1),
        AgentsSource(2),
        Topic(1, "conversation", "cnv_1"),
        Topic(1, "contact", "u1"),
    ):
        (await log.open(source)).listen(lambda source=source: woken.append(source))  # type: ignore[misc]
    publish(table, log, internal(2, 1))
    assert (woken, log.memory_size[0]) == ([AgentsSource(1)], 1)
    assert log.count_after(1, 0) == (0, True)
    publish(table, log, event(3))
    assert woken == [AgentsSource(1), 1, AgentsSource(1)]
    recent = log.recent(AgentsSource(1), 1, 10)
    assert recent is not None
    assert [found.position for found in recent.events] == [2, 3]
    log.close(AgentsSource(1))
    assert log.recent(AgentsSource(1), 1, 10) is None
    assert [found.position for found in (await log.read(AgentsSource(1), 0, 10)).events] == [1, 2, 3]
    assert [found.position for found in (await log.read(1, 0, 10)).events] == [3]
