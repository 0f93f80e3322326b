"""The fast path lets others have their turn, and begins nothing that would be cancelled half way (ADR 7)."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import cast

import pytest
import trio
import trio.testing

from deskwire.http.api.pipeline import ApiRequest, ApiResponse
from deskwire.http.api.services import Services
from deskwire.http.app import ROUTES
from deskwire.http.server import fast_path as fast_path_module
from deskwire.http.server.fast_path import FastPath
from deskwire.http.transport.connection import FrontStream

_REQUEST = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The paths of the requests that were begun; each is answered at once."""
    paths: list[str] = []

    async def handled(_services: Services, asked: ApiRequest) -> tuple[ApiResponse, None]:
        paths.append(asked.route.path)
        return ApiResponse(200, "application/json", b"{}"), None

    monkeypatch.setattr(fast_path_module, "handle", handled)
    monkeypatch.setattr(fast_path_module, "record_response", lambda *_: None)
    return paths


class _Clock:
    clock = staticmethod(lambda: 1_790_000_000_000)


@asynccontextmanager
async def _connected() -> AsyncIterator[tuple[FastPath, FrontStream, trio.SocketStream]]:
    ours, theirs = (trio.SocketStream(end) for end in trio.socket.socketpair())
    async with ours, theirs:
        yield (
            FastPath(cast(Services, _Clock()), ROUTES, idle_s=60),
            FrontStream(ours, write_timeout_s=5),
            theirs,
        )


@asynccontextmanager
async def _kept() -> AsyncIterator[tuple[FastPath, trio.SocketStream, trio.Nursery]]:
    """A connection that waits for its next request, and the nursery in which it is served."""
    async with _connected() as (fast_path, stream, client), trio.open_nursery() as connection:
        connection.start_soon(fast_path.serve, stream)
        await trio.testing.wait_all_tasks_blocked()
        yield fast_path, client, connection


async def test_pipelined_requests_leave_turns_to_others(begun: list[str]) -> None:
    seen: list[int] = []

    async def neighbour() -> None:
        while True:
            seen.append(len(begun))
            await trio.lowlevel.checkpoint()

    async with _connected() as (fast_path, stream, client), trio.open_nursery() as others:
        await client.send_all(_REQUEST * 50)
        others.start_soon(neighbour)
        others.start_soon(fast_path.serve, stream)
        while len(begun) < 50:
            await trio.lowlevel.checkpoint()
        others.cancel_scope.cancel()
    assert len(set(seen)) > 25  # and not all of them in one turn


class InTheMoment(trio.abc.Instrument):
    """Does something between the moment in which the serving task is woken and that in which it goes on."""

    def __init__(self, act: Callable[[], object]) -> None:
        self.serving: trio.lowlevel.Task | None = None
        self._act = act

    def task_scheduled(self, task: trio.lowlevel.Task) -> None:
        """See trio.abc.Instrument."""
        if task is self.serving:
            self._act()

    async def serve(self, fast_path: FastPath, stream: FrontStream) -> None:
        """Serve a connection; it is over with the first request."""
        self.serving = trio.lowlevel.current_task()
        assert not await fast_path.serve(stream)


async def test_request_that_arrives_with_the_stop_is_answered(begun: list[str]) -> None:
    """Otherwise its client would not know whether it was carried out."""
    async with _connected() as (fast_path, stream, client), trio.open_nursery() as connection:
        moment = InTheMoment(fast_path.stop)
        connection.start_soon(moment.serve, fast_path, stream)
        await trio.testing.wait_all_tasks_blocked()
        trio.lowlevel.add_instrument(moment)
        await client.send_all(_REQUEST)
        assert b"connection: close" in await client.receive_some()
        trio.lowlevel.remove_instrument(moment)
    assert begun == ["/healthz"]


async def test_unread_request_is_answered_when_the_stop_begins(
    begun: list[str], mock_clock: trio.testing.MockClock
) -> None:
    async with _kept() as (fast_path, client, _):
        mock_clock.jump(10)
        os.write(client.socket.fileno(), _REQUEST)
        fast_path.stop()
        assert b"connection: close" in await client.receive_some()
    assert begun == ["/healthz"]


async def test_stop_waits_briefly_for_a_recently_used_connection(
    begun: list[str], mock_clock: trio.testing.MockClock
) -> None:
    async with _kept() as (fast_path, client, _):
        await client.send_all(_REQUEST)
        assert b"connection: close" not in await client.receive_some()
        mock_clock.jump(0.5)
        fast_path.stop()
        await trio.testing.wait_all_tasks_blocked()
        await client.send_all(_REQUEST)
        assert b"connection: close" in await client.receive_some()
    assert begun == ["/healthz"] * 2


async def test_stop_during_a_response_leaves_time_for_the_next_request(
    begun: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The response did not say that it is the last."""
    async with _kept() as (fast_path, client, _):
        send = fast_path_module._Connection.send

        async def stop_behind(connection: fast_path_module._Connection, data: bytes) -> None:
            await send(connection, data)
            fast_path.stop()

        monkeypatch.setattr(fast_path_module._Connection, "send", stop_behind)
        for told in (False, True):
            await client.send_all(_REQUEST)
            assert (b"connection: close" in await client.receive_some()) is told
    assert begun == ["/healthz"] * 2


@pytest.mark.parametrize(("idle_s", "patience_s"), [(10, 0), (0.5, 0.3)])
async def test_idle_connection_ends_soon_after_a_stop_begins(
    begun: list[str], mock_clock: trio.testing.MockClock, idle_s: float, patience_s: float
) -> None:
    async with _kept() as (fast_path, client, connection):
        mock_clock.jump(idle_s)
        fast_path.stop()
        mock_clock.jump(patience_s)
        await trio.testing.wait_all_tasks_blocked()
        assert not connection.child_tasks
        await client.send_all(_REQUEST)
    assert begun == []


async def test_request_that_arrives_with_the_idle_timeout_is_not_started(
    begun: list[str],
) -> None:
    """It would be carried out in a scope that is cancelled, or half of it."""
    async with _connected() as (fast_path, stream, client), trio.open_nursery() as connection:
        moment = InTheMoment(lambda: [scope.cancel() for scope in fast_path._waiting])
        connection.start_soon(moment.serve, fast_path, stream)
        await trio.testing.wait_all_tasks_blocked()
        trio.lowlevel.add_instrument(moment)
        await client.send_all(_REQUEST)
        await trio.testing.wait_all_tasks_blocked(0.01)
        trio.lowlevel.remove_instrument(moment)
    assert begun == []


async def test_no_read_runs_next_to_the_close_of_a_connection() -> None:
    """Hypercorn may read again while another of its tasks closes; the end reads away what still comes."""
    async with _connected() as (_, stream, client), trio.open_nursery() as closing:
        await client.send_all(b"more")
        closing.start_soon(stream.aclose)
        await trio.testing.wait_all_tasks_blocked(0.01)
        with pytest.raises(trio.ClosedResourceError):
            await stream.receive_some()
        await client.aclose()


async def test_request_that_arrived_with_its_connection_is_answered_during_a_stop(
    begun: list[str],
) -> None:
    async with _connected() as (fast_path, stream, client):
        stream.push_back(_REQUEST)
        fast_path.stop()
        assert not await fast_path.serve(stream)
        await stream.aclose()
        assert b"connection: close" in await client.receive_some()
    assert begun == ["/healthz"]
