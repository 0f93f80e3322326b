"""Hypercorn with the app, as the server of what is not plain."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import trio
from hypercorn.app_wrappers import ASGIWrapper
from hypercorn.config import Config
from hypercorn.trio.lifespan import Lifespan
from hypercorn.trio.worker_context import WorkerContext
from hypercorn.typing import (
    ASGIFramework,
    ASGIReceiveCallable,
    ASGISendCallable,
    ASGISendEvent,
    ConnectionState,
    LifespanState,
    Scope,
)

from deskwire.http.server.connection import FrontStream, TlsFrontStream
from deskwire.http.server.connections import PLACE
from deskwire.http.server.fast_path import FastPath
from deskwire.http.server.hypercorn_h1 import StrictServer

_LAST_S: Final = 5.0
"""Bound on the end of a response; the body has been sent by then. It is of the order of how long the whole
process may stand still (a slow disk, a stopped machine), as that counts, too."""


class HypercornServer:
    """A server of whole connections by Hypercorn's own handler of them, whatever is asked on them.

    Args:
        app: the ASGI application, given everything but `GET /app/...`.
        idle_s: how long a connection may wait for its next request.
        head_s: how long the head of a request may take from its first byte (HTTP/1.1).
        fast_path: takes the connection back with the first request that it serves; None to have the app serve all.
    """

    def __init__(
        self, app: ASGIFramework, *, idle_s: float, head_s: float, fast_path: FastPath | None = None
    ) -> None:
        self._app = app
        self._config = _settings(idle_s)
        self._head_s = head_s
        self._fast_path = fast_path
        self._state: LifespanState = {}
        self._context = WorkerContext(None)

    @asynccontextmanager
    async def up(self) -> AsyncIterator[None]:
        """Return a context in which it serves, that of the app's lifespan; left when no connection is. Raises what the app's startup raises."""
        lifespan = Lifespan(ASGIWrapper(self._app), self._config, self._state)
        async with trio.open_nursery() as nursery:
            await nursery.start(lifespan.handle_lifespan)
            await lifespan.wait_for_startup()
            yield
            await lifespan.wait_for_shutdown()
            nursery.cancel_scope.cancel()

    async def serve(self, stream: FrontStream) -> bool:
        """Serve a connection; return True if its next request is for others, with its bytes pushed back."""
        connection = trio.CancelScope()
        stream.bound_heads(self._head_s, connection)
        app = ASGIWrapper(_finishing(self._app, stream))
        own = ConnectionState({**self._state, PLACE: stream.place})
        secure = isinstance(stream, TlsFrontStream)

        def elsewhere(head: bytes) -> bool:
            return self._fast_path is not None and self._fast_path.takes(head, secure=secure)

        server = StrictServer(app, self._config, self._context, own, stream, elsewhere)
        with connection:
            await server
        return server.handed_on

    async def stop(self) -> None:
        """Let connections end: those that wait for a request at once, the others with their response."""
        await self._context.terminated.set()


def _settings(idle_s: float) -> Config:
    settings = Config()
    settings.errorlog = logging.getLogger("hypercorn.error")  # the log's own way, redaction included
    settings.keep_alive_timeout = idle_s
    settings.include_server_header = False
    return settings


def _finishing(app: ASGIFramework, stream: FrontStream) -> ASGIFramework:
    """`app` with its last message of a response kept from being cancelled.

    Hypercorn closes a connection whose request body was left unread within that very call, after telling the
    app of the disconnect; on hearing of which quart-trio cancels the call, and the connection would stay. The
    same call makes a connection ready for its next request: one for which it was cut off is closed, as it
    would never read again.
    """

    async def finishing(scope: Scope, receive: ASGIReceiveCallable, send: ASGISendCallable) -> None:
        async def send_whole(message: ASGISendEvent) -> None:
            if message["type"] == "http.response.body" and not message.get("more_body", False):
                with trio.move_on_after(_LAST_S, shield=True) as sending:
                    await send(message)
                if sending.cancelled_caught:
                    await trio.aclose_forcefully(stream)
            else:
                await send(message)

        with stream.serving():
            await stream.hold_turn()
            await app(scope, receive, send_whole)

    return finishing
