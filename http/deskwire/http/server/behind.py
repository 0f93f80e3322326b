"""The server of every request that the fast path leaves, loaded when the first of them comes (ADR 88).

Hypercorn and Quart are a tenth of what the program loads, and where a backend alone calls the API nobody needs them.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Protocol

import trio

from deskwire.http.server.connection import FrontStream


class HttpServer(Protocol):
    """A server of whole connections, whatever is asked on them."""

    def up(self) -> AbstractAsyncContextManager[None]:
        """Return a context in which it serves; left when no connection is."""

    async def serve(self, stream: FrontStream) -> bool:
        """Serve a connection; return True if its next request is for others, with its bytes pushed back."""

    async def stop(self) -> None:
        """Let connections end: those that wait for a request at once, the others with their response."""


class Behind:
    """The server behind the fast path.

    Args:
        load: makes it. A thread calls it when the first connection needs it; if it fails, so does that connection, and
            the next one has it called again.
    """

    def __init__(self, load: Callable[[], HttpServer]) -> None:
        self._load = load
        self._server: HttpServer | None = None
        self._nursery: trio.Nursery | None = None
        self._loading = trio.Lock()
        self._stopping = False
        self._over = trio.Event()

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Return a context in which connections can be given to it; left when no connection is."""
        async with trio.open_nursery() as self._nursery:
            yield
            self._over.set()

    async def serve(self, stream: FrontStream) -> bool:
        """See `HttpServer.serve`."""
        server = self._server or await self._loaded()
        return await server.serve(stream)

    async def stop(self) -> None:
        """See `HttpServer.stop`; a server that is loaded later knows of it, too."""
        self._stopping = True
        if self._server is not None:
            await self._server.stop()

    async def _loaded(self) -> HttpServer:
        assert self._nursery is not None, "open it first"
        async with self._loading:  # however many need it first, it is loaded once
            if self._server is None:
                self._server = await self._nursery.start(self._keep_up)
            return self._server

    async def _keep_up(self, task_status: trio.TaskStatus[HttpServer]) -> None:
        server = await trio.to_thread.run_sync(self._load)
        async with server.up():
            if self._stopping:
                await server.stop()
            task_status.started(server)
            await self._over.wait()
