"""Fair scheduling of anonymous connections: each gets its turn, and others keep their time."""

from __future__ import annotations

from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from random import Random

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from deskwire.http.transport.fair_scheduling import TURN_MAX_S, FairScheduler
from tests.support.deadlines import HANG_TIMEOUT_S
from tests.support.streaming import NOON, real_front, real_stage, small_app

HELLO = b"GET /hello HTTP/1.1\r\nHost: x\r\n\r\n"


async def order(
    turns: FairScheduler, *waiting: tuple[str, str], held_s: float = 0.001
) -> list[tuple[float, str]]:
    """Return when each of these has its turn, if all wait for one that holds it."""
    called: list[tuple[float, str]] = []
    began = trio.current_time()

    async def one(name: str, network: str) -> None:
        await turns.acquire(name, network)
        called.append((round(trio.current_time() - began, 6), name))
        await trio.sleep(held_s)  # virtual time: the mock clock jumps
        turns.release(name)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(turns.run)
        await turns.acquire("first", "elsewhere")
        async with trio.open_nursery() as asking:
            for name, network in waiting:
                asking.start_soon(one, name, network)
                await trio.lowlevel.checkpoint()
                await wait_all_tasks_blocked()
            turns.release("first")
        nursery.cancel_scope.cancel()
    return called


async def test_networks_take_turns(autojump_clock: MockClock) -> None:
    many = [(f"a{n}", "a") for n in range(5)]
    called = await order(FairScheduler(trio.current_time), *many, ("b0", "b"), ("c0", "c"), ("b1", "b"))
    assert [name for _, name in called] == ["a0", "b0", "c0", "a1", "b1", "a2", "a3", "a4"]


async def test_no_pause_without_an_authenticated_connection(autojump_clock: MockClock) -> None:
    assert [
        at for at, _ in await order(FairScheduler(trio.current_time), ("a", "a"), ("b", "b"), ("c", "c"))
    ] == [
        0,
        0.001,
        0.002,
    ]


async def test_turn_is_followed_by_a_pause_next_to_an_authenticated_connection(
    autojump_clock: MockClock,
) -> None:
    turns = FairScheduler(trio.current_time)
    turns.note_identified()
    assert [at for at, _ in await order(turns, ("a", "a"), ("b", "b"), ("c", "c"))] == [0, 0.003, 0.006]


async def test_unreleased_turn_expires(autojump_clock: MockClock) -> None:
    called = await order(FairScheduler(trio.current_time), ("a", "a"), ("b", "b"), held_s=60)
    assert [at for at, _ in called] == [0, TURN_MAX_S]


async def test_long_unused_turn_causes_no_long_pause(autojump_clock: MockClock) -> None:
    turns = FairScheduler(trio.current_time)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(turns.run)
        await turns.acquire("slow", "a")
        await trio.sleep(30)  # virtual time: the mock clock jumps
        turns.note_identified()
        with trio.fail_after(0.2):
            await turns.acquire("b", "b")
            turns.release("b")
            await turns.acquire("c", "c")
        nursery.cancel_scope.cancel()


async def test_two_tasks_of_one_connection_may_both_wait(autojump_clock: MockClock) -> None:
    """Hypercorn reads on while a request is answered."""
    called = await order(
        FairScheduler(trio.current_time), ("reader", "a"), ("b", "b"), ("reader", "a"), held_s=0.001
    )
    assert [name for _, name in called] == ["reader", "b", "reader"]


@pytest.mark.parametrize("seed", range(20))
async def test_every_waiter_gets_a_turn_when_others_leave_the_queue(
    autojump_clock: MockClock, seed: int
) -> None:
    rng, turns, served, holding = Random(seed), FairScheduler(trio.current_time), set[int](), set[int]()

    async def one(number: int) -> None:
        patience_s = rng.choice((0.001, 0.01, 1_000))
        with trio.move_on_after(patience_s):
            await trio.sleep(rng.random() * 0.05)  # virtual time: the mock clock jumps
            await turns.acquire(number, str(number % 3))
            assert not holding
            holding.add(number)
            try:
                await trio.sleep(rng.random() * TURN_MAX_S * 0.9)  # virtual time: the mock clock jumps
            finally:
                holding.discard(number)
                turns.release(number)
            served.add(number)
        if patience_s == 1_000:
            assert number in served

    async with trio.open_nursery() as nursery:
        nursery.start_soon(turns.run)
        if seed % 2:
            turns.note_identified()
        async with trio.open_nursery() as all_of_them:
            for number in range(60):
                all_of_them.start_soon(one, number)
        nursery.cancel_scope.cancel()
    assert served


async def answer(stream: trio.SocketStream) -> None:
    """Read one."""
    got = b""
    while b"0\r\n\r\n" not in got:
        data = await stream.receive_some()
        if not data:
            raise trio.BrokenResourceError
        got += data


async def test_client_with_endless_requests_leaves_half_of_the_turns_to_another(tmp_path: Path) -> None:
    answered = 0

    async with real_stage(tmp_path, lambda: NOON) as stage, real_front(stage, small_app) as front:

        async def attack() -> None:
            nonlocal answered
            made = trio.socket.socket()
            await made.bind(("127.0.0.2", 0))
            await made.connect(("127.0.0.1", front.port))
            async with trio.SocketStream(made) as stream:
                with suppress(trio.BrokenResourceError):
                    while True:
                        await stream.send_all(HELLO)
                        await answer(stream)
                        answered += 1

        async with trio.open_nursery() as attackers:
            for _ in range(60):
                attackers.start_soon(attack)
            stream = await front.raw()
            with trio.fail_after(HANG_TIMEOUT_S):
                while answered < 100:  # noqa: ASYNC110  # poll: there is no notification of the count
                    await trio.sleep(0.001)  # poll: there is no notification of the count
                before = answered
                for _ in range(50):
                    await stream.send_all(HELLO)
                    await answer(stream)
            assert answered - before < 50 * 6
            attackers.cancel_scope.cancel()


class Work:
    """Time that the thread has worked, which only these tests spend."""

    def __init__(self) -> None:
        self.spent_s = 0.0

    def spend(self, seconds: float) -> None:
        self.spent_s += seconds


async def turns_after_delay(
    clock: MockClock, before_s: float, each_s: float, waiting: int = 40
) -> list[float]:
    """Return the seconds after a delay at which turns begin, which were due 30 ms ago when other tasks ran.

    Args:
        before_s: length of each of the turns before.
        each_s: length of each of the delayed turns.
    """
    work, began = Work(), list[float]()
    turns = FairScheduler(lambda: work.spent_s)

    async def one(name: str, seconds: float) -> None:
        await turns.acquire(name, "a")
        began.append(trio.current_time())
        work.spend(seconds)
        turns.release(name)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(turns.run)
        for number in range(80):
            await one(f"early {number}", before_s)
        await trio.sleep(1)  # virtual time: the mock clock jumps
        began.clear()
        turns.note_identified()
        await turns.acquire("holder", "b")
        async with trio.open_nursery() as asking:
            for number in range(waiting):
                asking.start_soon(one, str(number), each_s)
            await wait_all_tasks_blocked()
            clock.jump(0.03)
            over = trio.current_time()
            turns.note_identified()
            turns.release("holder")
        nursery.cancel_scope.cancel()
    return [each - over for each in began]


async def test_delayed_turns_begin_together_within_a_third_of_the_delay(autojump_clock: MockClock) -> None:
    began = await turns_after_delay(autojump_clock, 0.0005, 0.0005)
    together = [each for each in began if each == 0]
    assert 18 <= len(together) <= 22  # a third is 20; the last one begins when its pause is over
    later = began[len(together) :]
    assert len(later) == 40 - len(together)
    assert all(after - before >= 0.0014 for before, after in pairwise(later))


async def test_long_turns_do_not_begin_together(autojump_clock: MockClock) -> None:
    began = await turns_after_delay(autojump_clock, TURN_MAX_S, TURN_MAX_S, waiting=6)
    assert len([each for each in began if each < 0.001]) <= 3
    assert began[-1] >= 6 * 3 * TURN_MAX_S - 0.03 - 3 * TURN_MAX_S


async def test_no_turns_are_saved_up_while_nobody_waits(autojump_clock: MockClock) -> None:
    work, began = Work(), list[float]()
    turns = FairScheduler(lambda: work.spent_s)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(turns.run)
        await turns.acquire("early", "a")
        turns.release("early")
        await trio.sleep(10)  # virtual time: the mock clock jumps
        since = trio.current_time()
        for number in range(3):
            turns.note_identified()
            await turns.acquire(number, "a")
            began.append(round(trio.current_time() - since, 6))
            work.spend(0.001)
            turns.release(number)
        nursery.cancel_scope.cancel()
    assert began == [0, 0.003, 0.006]


async def test_time_until_another_task_takes_a_turn_over_does_not_count(autojump_clock: MockClock) -> None:
    work = Work()
    turns = FairScheduler(lambda: work.spent_s)
    turns.note_identified()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(turns.run)
        await turns.acquire("a", "a")
        since = trio.current_time()
        work.spend(0.001)
        turns.pass_on("a")
        work.spend(0.02)  # of other tasks
        await turns.ensure("a", "a")
        work.spend(0.001)
        turns.release("a")
        await turns.acquire("b", "b")
        assert trio.current_time() - since == pytest.approx(0.006)
        nursery.cancel_scope.cancel()


async def test_turns_of_one_network_do_not_delay_another_by_more_than_one_each(
    autojump_clock: MockClock,
) -> None:
    """Also if several begin together, networks take turns."""
    work, called = Work(), list[str]()
    turns = FairScheduler(lambda: work.spent_s)

    async def one(name: str) -> None:
        await turns.acquire(name, name[0])
        called.append(name)
        work.spend(0.0001)
        turns.release(name)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(turns.run)
        for _ in range(80):
            await one("early")
        called.clear()
        turns.note_identified()
        await turns.acquire("holder", "h")
        async with trio.open_nursery() as asking:
            for number in range(20):
                asking.start_soon(one, f"a{number}")
            await wait_all_tasks_blocked()
            asking.start_soon(one, "b")
            await wait_all_tasks_blocked()
            autojump_clock.jump(0.0007)
            turns.release("holder")
        nursery.cancel_scope.cancel()
    assert "b" in called[:3]
