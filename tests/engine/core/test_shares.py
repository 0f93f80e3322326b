"""Few places for many tasks: no key gets all places, and no task waits forever."""

from __future__ import annotations

import threading
from collections.abc import Hashable

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st
from trio.testing import MockClock, wait_all_tasks_blocked

from deskwire.engine.core.limits.fair_share import FairLimiter, PacedSection, Shares, thread_limiter

WHO = st.sampled_from("abcde")


def take_all(shares: Shares, who: Hashable) -> int:
    """How many `who` gets when it takes what it can."""
    got = 0
    while shares.fits(who):
        shares.take(who)
        got += 1
    return got


@given(st.integers(1, 200), st.lists(WHO, min_size=1, unique=True))
def test_each_key_gets_half_of_the_free_places(total: int, greedy: list[str]) -> None:
    shares, free = Shares(total), total
    for who in greedy:
        got = take_all(shares, who)
        assert got == -(-free // 2)  # half, rounded up
        free -= got
    assert shares.fits("late") == (free > 0)
    assert shares.taken == total - free


@given(st.integers(1, 50), st.lists(st.tuples(WHO, st.integers(1, 9)), max_size=60))
def test_released_places_can_be_taken_again(total: int, asked: list[tuple[str, int]]) -> None:
    shares, had = Shares(total), list[tuple[str, int]]()
    for who, size in asked:
        if shares.fits(who, size):
            assert not shares.full(size)
            shares.take(who, size)
            had.append((who, size))
    for who, size in had:
        shares.give_back(who, size)
    assert shares.taken == 0
    assert take_all(shares, "a") == -(-total // 2)


def test_service_itself_gets_all_free_places() -> None:
    shares = Shares(4)
    assert take_all(shares, None) == 4
    assert not shares.fits("a")


async def test_key_with_a_hundred_waiting_tasks_gets_one_turn_like_any_other(
    autojump_clock: MockClock,
) -> None:
    turns, order = FairLimiter(2), list[Hashable]()

    async def work(who: Hashable) -> None:
        await turns.take(who)
        order.append(who)
        await trio.sleep(1)  # virtual time: the mock clock jumps
        turns.give_back(who)

    async with trio.open_nursery() as nursery:
        for _ in range(100):
            nursery.start_soon(work, "greedy")
        await wait_all_tasks_blocked()
        assert order == ["greedy"]  # one of two places, though the other one is free
        began = trio.current_time()
        for who in ("b", "c", "b", "c"):
            nursery.start_soon(work, who)
        await trio.sleep(4.5)  # virtual time: the mock clock jumps
        assert [who for who in order if who != "greedy"].count("b") == 2
        assert [who for who in order if who != "greedy"].count("c") == 2
        assert trio.current_time() - began < 5
        nursery.cancel_scope.cancel()


async def test_cancelled_waiter_takes_no_place(autojump_clock: MockClock) -> None:
    turns = FairLimiter(1)
    await turns.take("a")
    with trio.move_on_after(1):
        await turns.take("b")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(turns.take, "c")
        await wait_all_tasks_blocked()
        turns.give_back("a")
    turns.give_back("c")
    with trio.fail_after(1):
        await turns.take("d")


async def test_task_cancelled_at_its_turn_passes_the_turn_on() -> None:
    turns = FairLimiter(1)
    await turns.take("a")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(turns.take, "b")
        await wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
        turns.give_back("a")  # to b, who has not run yet
    with trio.fail_after(1):
        await turns.take("c")


async def test_abandoned_thread_keeps_its_place_until_it_ends() -> None:
    turns, ended = FairLimiter(1), threading.Event()

    async def leave_behind() -> None:
        await trio.to_thread.run_sync(ended.wait, abandon_on_cancel=True, limiter=thread_limiter(turns, "a"))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(leave_behind)
        await wait_all_tasks_blocked(0.01)
        nursery.cancel_scope.cancel()
    with pytest.raises(trio.TooSlowError), trio.fail_after(0.05):
        await turns.take("b")
    ended.set()
    with trio.fail_after(10):
        await turns.take("b")


async def test_blocking_work_takes_a_third_of_the_time_in_turns(
    autojump_clock: MockClock,
) -> None:
    paced, done = PacedSection(), list[tuple[Hashable, float]]()

    async def work(who: Hashable) -> None:
        async with paced.turn(who):
            await trio.sleep(1)  # as if it were computed
            done.append((who, trio.current_time() - began))

    began = trio.current_time()
    async with trio.open_nursery() as nursery:
        for who in ("greedy", "greedy", "greedy", "modest"):
            nursery.start_soon(work, who)
            await wait_all_tasks_blocked()
    assert done == [("greedy", 1), ("greedy", 4), ("modest", 7), ("greedy", 10)]
    assert trio.current_time() - began == 12


async def test_work_that_fails_is_followed_by_a_pause_and_by_the_next(autojump_clock: MockClock) -> None:
    paced, began = PacedSection(), trio.current_time()

    async def fail() -> None:
        async with paced.turn("a"):
            await trio.sleep(1)  # virtual time: the mock clock jumps
            raise ValueError("bad")

    for _ in range(2):
        with pytest.raises(ValueError, match="bad"):
            await fail()
    assert trio.current_time() - began == 6
