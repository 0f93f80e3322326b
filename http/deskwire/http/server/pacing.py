"""Request bodies that come no faster than they are read.

Quart keeps what has come and was not read yet, up to the largest body of all. Here what is kept is bounded: the
connection is not read on until the handler has taken its part, and TCP tells the client.

What is left of a body when its answer is ready is read away first, so that the connection can have another request.
Where that would be too much, or takes too long, the answer says that the connection ends (`strict`, RFC 9112 9.6).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

import structlog
import trio
from hypercorn.typing import ASGIReceiveCallable, ASGISendCallable, ASGISendEvent
from quart.wrappers import Request
from quart_trio.asgi import TrioASGIHTTPConnection
from quart_trio.wrappers.request import TrioBody, TrioRequest

from deskwire.engine.core.tasks.failure import contain_failures
from deskwire.http.server.connection import UNREAD_MAX, UNREAD_S
from deskwire.http.server.connections import PLACE

log: Final = structlog.get_logger(__name__)

HELD_MAX: Final = 256 * 1024
"""Bytes that may wait for the handler; the connection hands over up to 64 KiB at a time."""


class PacedBody(TrioBody):
    """A body that says when there is room for more."""

    def __init__(self, expected_content_length: int | None, max_content_length: int | None) -> None:
        super().__init__(expected_content_length, max_content_length)
        self._taken = trio.Event()
        self._over = trio.Event()
        self._abandoned = False
        self._left = expected_content_length  # None: nobody knows
        self._unread = 0
        self.ask: Callable[[], Awaitable[None]] | None = None
        """Asks the client for the body, while it waits to be asked."""

    async def __anext__(self) -> bytes:
        """The bytes that have come since the last call. The first call asks a client for them that waits to be asked."""
        if self.ask is not None:
            ask, self.ask = self.ask, None
            await ask()
        data = await super().__anext__()
        self._taken.set()
        return data

    async def room(self) -> None:
        """Return when there is room for more."""
        while len(self._data) > HELD_MAX and not self._abandoned:
            self._taken = trio.Event()
            await self._taken.wait()

    def append(self, data: bytes) -> None:
        """Hold what has come, for as long as somebody may read it."""
        self.ask = None
        if self._left is not None:
            self._left -= len(data)
        if not self._abandoned:
            super().append(data)
            return
        self._unread += len(data)
        if self._unread > UNREAD_MAX:
            self._over.set()

    def set_complete(self) -> None:
        """Note that all has come."""
        super().set_complete()
        self._over.set()

    async def abandon(self) -> None:
        """Take the rest, and forget it: the answer is ready, and Hypercorn waits until all is taken.

        Returns when all of it has come, or it is clear that the connection can't have another request.
        """
        self._abandoned = True
        self._taken.set()
        if self.ask is not None and self._left is not None and self._left <= UNREAD_MAX:
            await self.ask()  # a small body, after which the connection can have another request
        elif self.ask is not None:
            return
        if self._left is None or self._left <= UNREAD_MAX:
            with trio.move_on_after(UNREAD_S):
                await self._over.wait()


class PacedRequest(TrioRequest):
    """A request with such a body."""

    body_class = PacedBody


class PacedConnection(TrioASGIHTTPConnection):
    """Quart's handler of a request; it takes any target, and waits for room before it reads on."""

    def _create_request_from_scope(self, send: ASGISendCallable) -> Request:
        self.scope["path"] = (
            "/"  # Quart's own, which can't be read from every target; the table takes the raw one
        )
        request = super()._create_request_from_scope(send)
        if request.headers.get("expect", "").lower() == "100-continue":
            assert isinstance(request.body, PacedBody)
            request.body.ask = request.scope["state"][PLACE].continue_body
        return request

    async def handle_messages(  # type: ignore[override]  # as in quart-trio
        self, nursery: trio.Nursery, request: Request, receive: ASGIReceiveCallable
    ) -> None:
        """Pass the body on until the client is gone; that ends the handler."""
        assert isinstance(request.body, PacedBody)
        while True:
            message = await receive()
            if message["type"] == "http.request":
                request.body.append(message.get("body", b""))
                if not message.get("more_body", False):
                    request.body.set_complete()
                await request.body.room()
            elif message["type"] == "http.disconnect":
                break
        nursery.cancel_scope.cancel()

    async def handle_request(  # type: ignore[override]  # as in quart-trio
        self, nursery: trio.Nursery, request: Request, send: ASGISendCallable
    ) -> None:
        """Have the request answered; from then on nobody reads its body."""
        body = request.body
        assert isinstance(body, PacedBody)

        async def answer(message: ASGISendEvent) -> None:
            if message["type"] == "http.response.start":
                await body.abandon()
            await send(message)

        # What breaks an answer that has begun can only end it: Hypercorn closes what was left open.
        with contain_failures(lambda failure: log.error("http.failed", exc_info=failure)):
            await super().handle_request(nursery, request, answer)
        nursery.cancel_scope.cancel()
