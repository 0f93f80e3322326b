"""A body that is not read is not received either."""

from __future__ import annotations

import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from deskwire.http.server.adapters.quart_app import BUFFERED_BYTES_MAX, BackpressureBody


async def test_full_buffer_pauses_the_body_until_it_is_read() -> None:
    body = BackpressureBody(None, None)
    piece, taken = b"x" * 65_536, 0

    async def come() -> None:
        for _ in range(100):
            body.append(piece)
            await body.room()
        body.set_complete()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(come)
        await wait_all_tasks_blocked()
        first = await anext(body)
        assert BUFFERED_BYTES_MAX < len(first) <= BUFFERED_BYTES_MAX + len(piece)
        taken = len(first)
        async for data in body:
            assert len(data) <= BUFFERED_BYTES_MAX + len(piece)
            taken += len(data)
    assert taken == 100 * len(piece)


async def test_rest_of_the_body_is_discarded_once_the_response_begins(autojump_clock: MockClock) -> None:
    body = BackpressureBody(None, None)
    body.append(b"x" * (BUFFERED_BYTES_MAX + 1))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(body.room)
        await wait_all_tasks_blocked()
        await body.abandon()
    for _ in range(10):
        body.append(b"y" * BUFFERED_BYTES_MAX)
    await body.room()
    body.set_complete()
    assert b"y" not in await anext(body)
