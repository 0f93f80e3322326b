"""Request bodies that come no faster than they are read.

Quart keeps what has come and was not read yet, up to the largest body of all. Here what is kept is bounded: the
connection is not read on until the handler has taken its part, and TCP tells the client.
"""

from __future__ import annotations

from typing import Final

import trio
from hypercorn.typing import ASGIReceiveCallable, ASGISendCallable, ASGISendEvent
from quart.wrappers import Request
from quart_trio.asgi import TrioASGIHTTPConnection
from quart_trio.wrappers.request import TrioBody, TrioRequest

HELD_MAX: Final = 256 * 1024
"""Bytes that may wait for the handler; the connection hands over up to 64 KiB at a time."""


class PacedBody(TrioBody):
    """A body that says when there is room for more."""

    def __init__(self, expected_content_length: int | None, max_content_length: int | None) -> None:
        super().__init__(expected_content_length, max_content_length)
        self._taken = trio.Event()
        self._abandoned = False

    async def __anext__(self) -> bytes:
        """The bytes that have come since the last call."""
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
        if not self._abandoned:
            super().append(data)

    def abandon(self) -> None:
        """Take the rest, and forget it: the answer is on its way, and Hypercorn waits until all is taken."""
        self._abandoned = True
        self._taken.set()


class PacedRequest(TrioRequest):
    """A request with such a body."""

    body_class = PacedBody


class PacedConnection(TrioASGIHTTPConnection):
    """Quart's handler of a request; it takes any target, and waits for room before it reads on."""

    def _create_request_from_scope(self, send: ASGISendCallable) -> Request:
        self.scope["path"] = (
            "/"  # Quart's own, which can't be read from every target; the table takes the raw one
        )
        return super()._create_request_from_scope(send)

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
            body.abandon()
            await send(message)

        await super().handle_request(nursery, request, answer)
