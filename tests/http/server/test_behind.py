"""The server behind the fast path: loaded with the first connection that needs it, once, and told of the stop."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import cast

import pytest
import trio

from deskwire.http.server.behind import Behind
from deskwire.http.server.connection import FrontStream


class Recorded:
    """A server that notes what becomes of it."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    @asynccontextmanager
    async def up(self) -> AsyncIterator[None]:
        self.seen.append("up")
        yield
        self.seen.append("down")

    async def serve(self, stream: FrontStream) -> bool:
        self.seen.append(f"serves {stream}")
        return True

    async def stop(self) -> None:
        self.seen.append("stops")


def connection(name: str) -> FrontStream:
    return cast(FrontStream, name)


async def test_nothing_is_loaded_for_those_who_do_not_need_it() -> None:
    behind = Behind(lambda: pytest.fail("nobody needs it"))
    async with behind.open():
        await behind.stop()


async def test_however_many_need_it_first_it_is_loaded_once_and_in_a_thread() -> None:
    made: list[tuple[Recorded, threading.Thread]] = []

    def load() -> Recorded:
        made.append((Recorded(), threading.current_thread()))
        return made[-1][0]

    behind = Behind(load)
    async with behind.open():
        async with trio.open_nursery() as nursery:
            for _ in range(3):
                nursery.start_soon(behind.serve, connection("a"))
        await behind.stop()
    ((server, thread),) = made
    assert thread is not threading.current_thread()
    assert server.seen == ["up", *["serves a"] * 3, "stops", "down"]


async def test_a_server_that_can_not_be_loaded_fails_that_connection_and_the_next_one_tries_again() -> None:
    server, tries = Recorded(), iter([ImportError("half upgraded"), None])

    def load() -> Recorded:
        if (failure := next(tries)) is not None:
            raise failure
        return server

    behind = Behind(load)
    async with behind.open():
        with pytest.raises(ImportError, match="half upgraded"):
            await behind.serve(connection("a"))
        assert await behind.serve(connection("b"))
    assert server.seen == ["up", "serves b", "down"]


async def test_a_server_that_is_loaded_behind_the_stop_knows_of_it() -> None:
    server = Recorded()
    behind = Behind(lambda: server)
    async with behind.open():
        await behind.stop()
        await behind.serve(connection("a"))
    assert server.seen == ["up", "stops", "serves a", "down"]


async def test_the_end_waits_for_the_thread_that_loads_and_serves_nobody_any_more() -> None:
    loading, go_on = threading.Event(), threading.Event()
    server = Recorded()

    def load() -> Recorded:
        loading.set()
        assert go_on.wait(10)
        server.seen.append("loaded")
        return server

    behind = Behind(load)
    with trio.CancelScope() as scope:
        async with behind.open(), trio.open_nursery() as nursery:
            nursery.start_soon(behind.serve, connection("a"))
            await trio.to_thread.run_sync(loading.wait)
            scope.cancel()
            go_on.set()
    assert server.seen[0] == "loaded"
    assert "serves a" not in server.seen
