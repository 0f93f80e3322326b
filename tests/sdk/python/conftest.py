"""A real service, and sockets that fail."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar

import pytest
import trio

from deskwire_sdk import AsyncDeskwire, Deskwire
from tests.support.api.service import Service, running
from tests.support.sockets.receivers import Behaviour, Receiver

T = TypeVar("T")


@pytest.fixture
async def service(tmp_path: Path) -> AsyncIterator[Service]:
    """Yield a service on an empty directory."""
    async with running(tmp_path / "service") as started:
        yield started


@pytest.fixture
async def client(service: Service) -> AsyncIterator[AsyncDeskwire]:
    """Yield a client with the demo's server key."""
    async with AsyncDeskwire(service.demo["serverKey"], base_url=service.url) as made:
        yield made


@pytest.fixture
def sync_client(service: Service) -> Iterator[Deskwire]:
    """Yield a synchronous client, which works in a thread only: `await in_thread(...)`."""
    with Deskwire(service.demo["serverKey"], base_url=service.url) as made:
        yield made


async def in_thread(call: Callable[[], T]) -> T:
    """Run a blocking call beside the service, which is in this thread."""
    return await trio.to_thread.run_sync(call)


async def under_asyncio(call: Callable[[], Awaitable[T]]) -> T:
    """Run an asynchronous call under asyncio, in a thread."""

    async def main() -> T:
        return await call()

    return await trio.to_thread.run_sync(lambda: asyncio.run(main()))


@asynccontextmanager
async def serving(behaviour: Behaviour) -> AsyncIterator[Receiver]:
    """Yield a server on a real socket that does to each request what `behaviour` says."""
    server = Receiver(behaviour)
    async with trio.open_nursery() as nursery:
        (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
        server.port = listener.socket.getsockname()[1]
        nursery.start_soon(trio.serve_listeners, server.serve, [listener])
        yield server
        nursery.cancel_scope.cancel()
