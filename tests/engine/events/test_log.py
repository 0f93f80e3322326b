"""The event log: reads from memory and from the table must give the same events."""

from __future__ import annotations

from typing import TypeVar

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st
from trio.testing import MockClock, wait_all_tasks_blocked

T = TypeVar("T")

from deskwire.engine.events.types import AgentsSource
from tests.engine.events.event_table import Table, event, opened, publish, read_all

COMMITS = st.lists(
    st.tuples(
        st.lists(
            st.tuples(
                st.integers(1, 3),  # the step to the next position: there may be holes
                st.integers(1, 2),  # project
                st.integers(1, 4),  # conversation
                st.sampled_from(["message.created", "conversation.closed", "note.created"]),
            ),
            max_size=4,
        ),
        st.frozensets(st.integers(1, 4), max_size=1),  # conversations erased by this commit
    ),
    max_size=30,
)


@pytest.mark.thorough
@given(COMMITS, st.integers(0, 12), st.integers(10, 200), st.integers(1, 4), st.booleans())
@settings(max_examples=200)
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
                everything = [row.position for row in table.agents_events(project, after, 10_000)]
                assert await read_all(log, AgentsSource(project), after, limit) == everything

    for made, erased in commits:
        events = []
        for step, project, conversation, kind in made:
            position += step
            events.append(event(position, project, conversation, kind))
        publish(table, log, *events, erased=erased)
    trio.run(compare)


@pytest.mark.thorough
@given(COMMITS, st.integers(0, 12), st.integers(0, 20))
@settings(max_examples=200)
def test_count_of_later_events_is_never_too_large_and_correct_when_exact(
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
        assert log.memory_size == (min(log.memory_size[0], ring_events), 10 * log.memory_size[0])
        for asked in (1, 2, 3):
            for after in range(position + 1):
                count, exact = log.count_after(asked, after)
                truth = len(table.events(asked, after, 10_000, frozenset()))
                assert count == truth if exact else count <= truth
            assert log.count_after(asked, position) == (0, True)


@given(st.integers(1, 40), st.integers(1, 40))
@settings(max_examples=30)
def test_a_reader_that_keeps_up_never_touches_the_table(count: int, ring_events: int) -> None:
    async def follow() -> None:
        table = Table([event(7)])
        log = opened(table, ring_events)
        after = log.position(1)
        for position in range(8, 8 + count):
            publish(table, log, event(position))
            chunk = await log.read(1, after, 10)
            assert [found.position for found in chunk.events] == [position]
            after = chunk.upto
        assert table.reads == 0

    trio.run(follow)


async def test_events_from_before_the_start_are_read_from_the_table() -> None:
    table = Table([event(3), event(5)])
    log = opened(table)
    assert (log.position(1), log.progress) == (5, 5)
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


async def test_late_reader_does_not_wait(autojump_clock: MockClock) -> None:
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


async def test_reader_of_a_quiet_project_is_not_woken_by_other_projects() -> None:
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
        assert rounds <= 1  # at most once, to move its position past evicted events
        nursery.cancel_scope.cancel()


async def test_erased_conversation_is_evicted_at_once() -> None:
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


async def test_repeatedly_trimmed_tail_loses_no_event() -> None:
    table = Table()
    log = opened(table, ring_events=10)
    for position in range(1, 2_500):
        publish(table, log, event(position, project=1))
    assert await read_all(log, 1, 2_489, 3) == list(range(2_490, 2_500))
    assert table.reads == 0


async def test_filtered_read_skips_other_events_in_one_read() -> None:
    table = Table()
    log = opened(table)
    publish(
        table, log, *(event(position) for position in range(1, 30)), event(30, kind="conversation.closed")
    )
    chunk = await log.read(1, 0, 5, frozenset({"conversation.closed"}))
    assert ([found.position for found in chunk.events], chunk.upto) == ([30], 30)
    nothing = await log.read(1, 0, 5, frozenset({"conversation.deleted"}))
    assert (list(nothing.events), nothing.upto) == ([], 30)
