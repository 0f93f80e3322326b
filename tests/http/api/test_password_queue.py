"""Places in the line for hashing: a few for each network, so that none fills it."""

from __future__ import annotations

import threading

import pytest
import trio
import trio.testing

from deskwire.engine.core.errors import Unavailable
from deskwire.http.api.auth.passwords import QUEUE_MAX, QUEUE_PER_NETWORK_MAX, THREADS, PasswordHashing

HERE, THERE = "192.0.2.1", "192.0.2.2"


class Slow:
    """Jobs that run until they are released."""

    def __init__(self, hashing: PasswordHashing, nursery: trio.Nursery) -> None:
        self.begun = 0
        self._hashing = hashing
        self._nursery = nursery
        self._go = threading.Event()

    async def asked(self, network: str | None, times: int = 1) -> int:
        """Return the number of admitted jobs; the others are refused as busy."""
        before = self.begun
        for _ in range(times):
            self._nursery.start_soon(self._ask, network)
        await trio.testing.wait_all_tasks_blocked()
        return self.begun - before

    def let_go(self) -> None:
        """Let all of them end."""
        self._go.set()

    async def _ask(self, network: str | None) -> None:
        self.begun += 1
        try:
            await self._hashing.run(network, self._go.wait, 10)
        except Unavailable:
            self.begun -= 1


async def test_one_network_has_at_most_two_jobs() -> None:
    hashing = PasswordHashing()
    async with trio.open_nursery() as nursery:
        slow = Slow(hashing, nursery)
        assert await slow.asked(HERE, 500) == QUEUE_PER_NETWORK_MAX
        assert await slow.asked(THERE) == 1
        slow.let_go()
    assert await hashing.run(HERE, str, 5) == "5"
    assert hashing._taken == 0
    assert not hashing._turns


async def test_busy_network_leaves_a_thread_for_the_others() -> None:
    hashing = PasswordHashing()
    async with trio.open_nursery() as nursery:
        slow = Slow(hashing, nursery)
        await slow.asked(HERE, 500)
        assert await hashing.run(THERE, str, 5) == "5"
        slow.let_go()


async def test_caller_with_a_credential_waits_for_a_full_queue_at_most() -> None:
    async with trio.open_nursery() as nursery:
        slow = Slow(PasswordHashing(), nursery)
        assert await slow.asked(None, 500) == QUEUE_MAX
        assert await slow.asked(HERE) == 0
        slow.let_go()


async def test_cancelled_job_leaves_the_queue() -> None:
    hashing = PasswordHashing()
    async with trio.open_nursery() as nursery:
        slow = Slow(hashing, nursery)
        assert await slow.asked(THERE, THREADS) == THREADS
        with trio.CancelScope() as left:
            async with trio.open_nursery() as waiting:
                assert (
                    await Slow(hashing, waiting).asked(HERE, QUEUE_PER_NETWORK_MAX) == QUEUE_PER_NETWORK_MAX
                )
                left.cancel()
        assert await slow.asked(HERE, 3) == QUEUE_PER_NETWORK_MAX
        slow.let_go()


async def test_exception_of_a_job_reaches_its_caller_and_frees_its_place() -> None:
    hashing = PasswordHashing()
    for _ in range(2 * QUEUE_MAX):
        with pytest.raises(ValueError, match="invalid literal"):
            await hashing.run(HERE, int, "x")
