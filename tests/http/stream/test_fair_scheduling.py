"""Fair scheduling of anonymous connections: each gets its turn, and others keep their time."""

from __future__ import annotations

from contextlib import suppress
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
    called = await order(FairScheduler(), *many, ("b0", "b"), ("c0", "c"), ("b1", "b"))
    assert [name for _, name in called] == ["a0", "b0", "c0", "a1", "b1", "a2", "a3", "a4"]


async def test_no_pause_without_an_authenticated_connection(autojump_clock: MockClock) -> None:
    assert [at for at, _ in await order(FairScheduler(), ("a", "a"), ("b", "b"), ("c", "c"))] == [
        0,
        0.001,
        0.002,
    ]


async def test_turn_is_followed_by_a_pause_next_to_an_authenticated_connection(
    autojump_clock: MockClock,
) -> None:
    turns = FairScheduler()
    turns.note_identified()
    assert [at for at, _ in await order(turns, ("a", "a"), ("b", "b"), ("c", "c"))] == [0, 0.003, 0.006]


async def test_unreleased_turn_expires(autojump_clock: MockClock) -> None:
    called = await order(FairScheduler(), ("a", "a"), ("b", "b"), held_s=60)
    assert [at for at, _ in called] == [0, TURN_MAX_S]


async def test_long_unused_turn_causes_no_long_pause(autojump_clock: MockClock) -> None:
    turns = FairScheduler()
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
    called = await order(FairScheduler(), ("reader", "a"), ("b", "b"), ("reader", "a"), held_s=0.001)
    assert [name for _, name in called] == ["reader", "b", "reader"]


@pytest.mark.parametrize("seed", range(20))
async def test_every_waiter_gets_a_turn_when_others_leave_the_queue(
    autojump_clock: MockClock, seed: int
) -> None:
    rng, turns, served, holding = Random(seed), FairScheduler(), set[int](), set[int]()

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
