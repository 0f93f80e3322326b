"""Concurrent attempts at one endpoint and at several: limited and independent.

Source: decisions 6.
"""

from __future__ import annotations

from pathlib import Path

import trio
from trio.testing import MockClock

from tests.support.sockets.receivers import Receivers, Request, answering, opened


async def test_conversations_do_not_wait_for_each_other_and_sixteen_run_in_parallel(
    tmp_path: Path, receivers: Receivers, mock_clock: MockClock
) -> None:
    """Decisions 6: limited concurrency, default 16. Hanging attempts are tested below."""
    go = trio.Event()

    async def wait(stream: trio.abc.Stream, request: Request) -> None:
        await go.wait()
        await answering("200 OK")(stream, request)

    receiver = await receivers(wait)
    async with opened(tmp_path) as installation:
        await installation.endpoint(receiver)
        for conversation in range(20):
            await installation.send(1, 2, conversation=conversation + 1)
        await receiver.wait(16)
        await trio.sleep(0.5)  # virtual time: the mock clock jumps
        assert receiver.now == 16
        go.set()
        await receiver.wait(40)
        await trio.sleep(1)  # virtual time: the mock clock jumps
    assert receiver.most == 16
    assert receiver.connections == 16


async def test_hanging_attempts_do_not_block_prompt_ones(
    tmp_path: Path, receivers: Receivers, mock_clock: MockClock
) -> None:
    """Our choice: after a second without a response, an attempt moves to a waiting slot (ADR 6)."""

    async def odd_ones_hang(stream: trio.abc.Stream, request: Request) -> None:
        if int(request.body) % 2:
            await trio.sleep_forever()
        await answering("200 OK")(stream, request)

    receiver = await receivers(odd_ones_hang)
    async with opened(tmp_path, concurrency=4) as installation:
        await installation.endpoint(receiver)
        for number in range(1, 17):
            await installation.send(number, conversation=number)
        with trio.fail_after(3):
            await receiver.wait(16)
        await trio.sleep(0.1)  # virtual time: the mock clock jumps
        assert receiver.now == 8


async def test_the_number_of_hanging_attempts_is_limited(
    tmp_path: Path, receivers: Receivers, mock_clock: MockClock
) -> None:
    """Our choice: the number of sockets is limited (ADR 6)."""

    async def silent(_stream: trio.abc.Stream, _request: Request) -> None:
        await trio.sleep_forever()

    receiver = await receivers(silent)
    async with opened(tmp_path, concurrency=2, waiting=3) as installation:
        await installation.endpoint(receiver)
        for number in range(1, 9):
            await installation.send(number, conversation=number)
        await trio.sleep(4)  # virtual time: the mock clock jumps
        assert (receiver.now, len(receiver.requests)) == (5, 5)
        await receiver.wait(8)  # after the first have timed out


async def test_a_dead_endpoint_does_not_delay_another_one(
    tmp_path: Path, receivers: Receivers, mock_clock: MockClock
) -> None:
    """Decisions 6: endpoints are isolated."""

    async def silent(_stream: trio.abc.Stream, _request: Request) -> None:
        await trio.sleep_forever()

    dead, alive = await receivers(silent), await receivers()
    async with opened(tmp_path) as installation:
        await installation.endpoint(dead)
        await installation.endpoint(alive)
        for conversation in range(1, 31):
            await installation.send(1, conversation=conversation)
        await alive.wait(30)
        assert alive.requests[-1].at - alive.requests[0].at < 2
