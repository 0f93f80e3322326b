"""Calls that wait while the database is unavailable: for how long, and how many (ADR 60)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from itertools import pairwise

import pytest
import trio
from trio.testing import MockClock

from deskwire.engine.core.errors import NotFound, Unavailable
from deskwire.http.api.admission import HELD_ANONYMOUS_MAX, HELD_CALLS_MAX, HOLD_TIMEOUT_S, HeldCalls

AWAY = Unavailable("The database could not be read.", code="storage_failed")


def away_until(back_at: float, error: Exception = AWAY) -> Callable[[], Awaitable[str]]:
    """Return work that fails until that time."""

    async def work() -> str:
        await trio.lowlevel.checkpoint()
        if trio.current_time() < back_at:
            raise error
        return "done"

    return work


async def test_call_is_answered_when_the_database_is_back(autojump_clock: MockClock) -> None:
    holding = HeldCalls()
    assert await holding.hold(away_until(4), HOLD_TIMEOUT_S, "shop", anonymous=False) == "done"
    assert 4 <= trio.current_time() < 4.6
    assert (holding.held, holding.waited, holding.refused) == (0, 1, 0)


async def test_call_that_waits_pauses_before_each_further_try(autojump_clock: MockClock) -> None:
    tries = list[float]()

    async def work() -> None:
        tries.append(trio.current_time())
        raise AWAY

    with pytest.raises(Unavailable):
        await HeldCalls().hold(work, 1.0, "shop", anonymous=False)
    assert len(tries) > 2
    assert all(later - earlier >= 0.125 for earlier, later in pairwise(tries))


async def test_call_that_succeeds_at_once_takes_no_place(autojump_clock: MockClock) -> None:
    holding = HeldCalls()
    assert await holding.hold(away_until(0), HOLD_TIMEOUT_S, "shop", anonymous=True) == "done"
    assert holding.waited == 0


async def test_call_is_refused_with_the_last_reason_when_its_time_is_over(autojump_clock: MockClock) -> None:
    holding = HeldCalls()
    with pytest.raises(Unavailable) as refused:
        await holding.hold(away_until(60), HOLD_TIMEOUT_S, "shop", anonymous=False)
    assert refused.value.reason == "storage_failed"
    assert trio.current_time() == HOLD_TIMEOUT_S
    assert holding.held == 0


@pytest.mark.parametrize("error", [NotFound("None."), Unavailable("Too many.", code="overloaded")])
async def test_other_refusals_do_not_wait(error: Exception, autojump_clock: MockClock) -> None:
    with pytest.raises(type(error)):
        await HeldCalls().hold(away_until(60, error), HOLD_TIMEOUT_S, "shop", anonymous=False)
    assert trio.current_time() == 0


@pytest.mark.parametrize(("anonymous", "total"), [(True, HELD_ANONYMOUS_MAX), (False, HELD_CALLS_MAX)])
async def test_no_caller_has_all_places(anonymous: bool, total: int, autojump_clock: MockClock) -> None:
    """Strangers can't pile calls up, and take no place of those who are known."""
    holding, refused = HeldCalls(), list[str]()

    async def call(who: str) -> None:
        try:
            await holding.hold(away_until(60), HOLD_TIMEOUT_S, who, anonymous=anonymous)
        except Unavailable:
            if trio.current_time() < HOLD_TIMEOUT_S:
                refused.append(who)

    async with trio.open_nursery() as nursery:
        for _ in range(2 * total):
            nursery.start_soon(call, "greedy")
        await trio.sleep(1)  # virtual time: the mock clock jumps
        assert holding.held == total // 2
        nursery.start_soon(call, "modest")
        with pytest.raises(Unavailable):
            await holding.hold(away_until(60), 5.0, "another kind", anonymous=not anonymous)
        assert trio.current_time() >= 5.0, "it had a place"
    assert set(refused) == {"greedy"}
    assert holding.refused == 2 * total - total // 2


async def test_calls_that_wait_are_refused_if_another_node_is_ready(autojump_clock: MockClock) -> None:
    holding = HeldCalls()
    async with trio.open_nursery() as nursery:

        async def call() -> None:
            with pytest.raises(Unavailable) as refused:
                await holding.hold(away_until(60), HOLD_TIMEOUT_S, "shop", anonymous=False)
            assert refused.value.reason == "storage_failed"

        nursery.start_soon(call)
        await trio.sleep(2)  # virtual time: the mock clock jumps
        holding.refuse_all_nowait()
    assert trio.current_time() == 2
    assert holding.held == 0


async def test_place_of_a_client_that_has_gone_is_free(autojump_clock: MockClock) -> None:
    holding = HeldCalls()
    with trio.move_on_after(1):
        await holding.hold(away_until(60), HOLD_TIMEOUT_S, "shop", anonymous=True)
    assert holding.held == 0
