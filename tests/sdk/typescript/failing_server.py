"""A server that fails as scripted, on a real socket."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final

import h11
import trio

DROP: Final = "drop"
"""Close the connection without a response."""
SILENT: Final = "silent"
"""Read the request, and never respond."""


@dataclass(frozen=True)
class Reply:
    """A response; with `cut` the connection breaks before the end of the body."""

    status: int
    body: bytes = b"{}"
    headers: tuple[tuple[str, str], ...] = ()
    cut: bool = False


@dataclass
class FailingServer:
    """Answers each request with the next part of its script. `requests` has the headers of each."""

    script: list[Reply | str]
    url: str = ""
    requests: list[dict[str, str]] = field(default_factory=list)

    async def serve(self, stream: trio.SocketStream) -> None:
        """Answer the requests of a connection."""
        connection = h11.Connection(h11.SERVER)
        async with stream:
            while await self._answer_one(stream, connection):
                connection.start_next_cycle()

    async def _answer_one(self, stream: trio.SocketStream, connection: h11.Connection) -> bool:
        headers: dict[str, str] | None = None
        while not isinstance(event := connection.next_event(), h11.EndOfMessage):
            if event is h11.NEED_DATA:
                connection.receive_data(await stream.receive_some())
            elif isinstance(event, h11.Request):
                headers = {name.decode(): value.decode() for name, value in event.headers}
            elif isinstance(event, h11.ConnectionClosed):
                return False
        assert headers is not None
        self.requests.append(headers)
        reply = self.script.pop(0)
        if isinstance(reply, str):
            if reply == SILENT:
                await stream.receive_some()  # until the client gives up
            return False
        await self._send(stream, connection, reply)
        return not reply.cut

    async def _send(self, stream: trio.SocketStream, connection: h11.Connection, reply: Reply) -> None:
        length = len(reply.body) + reply.cut
        head = h11.Response(
            status_code=reply.status, headers=[*reply.headers, ("Content-Length", str(length))]
        )
        await stream.send_all((connection.send(head) or b"") + (connection.send(h11.Data(reply.body)) or b""))
        if not reply.cut:
            await stream.send_all(connection.send(h11.EndOfMessage()) or b"")


@asynccontextmanager
async def failing(script: Sequence[Reply | str]) -> AsyncIterator[FailingServer]:
    """Run such a server."""
    server = FailingServer([*script])
    async with trio.open_nursery() as nursery:
        (listener, *_) = await trio.open_tcp_listeners(0, host="127.0.0.1")
        server.url = f"http://127.0.0.1:{listener.socket.getsockname()[1]}"
        nursery.start_soon(trio.serve_listeners, server.serve, [listener])
        yield server
        nursery.cancel_scope.cancel()
