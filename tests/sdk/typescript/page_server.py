"""A shop's backend for one page: it serves the page and the SDK's modules, and authorizes the stream for its customer."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import h11
import httpx
import trio

_TYPES: Final = {".html": "text/html; charset=utf-8", ".js": "text/javascript", ".json": "application/json"}


@dataclass
class Backend:
    """The backend.

    Args:
        api: a client with the server key, which the page never sees.
        channel: the only channel that its customer may follow.
        asked: the requests for an authorization so far.
    """

    folder: Path
    api: httpx.AsyncClient | None = None
    url: str = ""
    channel: str = ""
    asked: list[dict[str, Any]] = field(default_factory=list)

    async def serve(self, stream: trio.SocketStream) -> None:
        """Answer the requests of a connection."""
        connection = h11.Connection(h11.SERVER)
        async with stream:
            while request := await self._request(stream, connection):
                status, kind, body = await self._answer(*request)
                head = h11.Response(
                    status_code=status, headers=[("Content-Type", kind), ("Content-Length", str(len(body)))]
                )
                for event in (head, h11.Data(body), h11.EndOfMessage()):
                    await stream.send_all(connection.send(event) or b"")
                connection.start_next_cycle()

    async def _request(
        self, stream: trio.SocketStream, connection: h11.Connection
    ) -> tuple[h11.Request, bytes] | None:
        request: h11.Request | None = None
        body = b""
        while not isinstance(event := connection.next_event(), h11.EndOfMessage):
            if event is h11.NEED_DATA:
                connection.receive_data(await stream.receive_some())
            elif isinstance(event, h11.Request):
                request = event
            elif isinstance(event, h11.Data):
                body += bytes(event.data)
            elif isinstance(event, h11.ConnectionClosed):
                return None
        assert request is not None
        return request, body

    async def _answer(self, request: h11.Request, body: bytes) -> tuple[int, str, bytes]:
        if request.method == b"POST":
            return await self._authorize(json.loads(body))
        path = trio.Path(self.folder / request.target.decode().lstrip("/"))
        if not await path.is_file():
            return 404, "text/plain", b"There is no such file."
        return 200, _TYPES[path.suffix], await path.read_bytes()

    async def _authorize(self, given: dict[str, Any]) -> tuple[int, str, bytes]:
        self.asked.append(given)
        if given["channel_name"] != self.channel:
            return 403, "application/json", b'{"code": "not_yours", "detail": "This is another customer\'s."}'
        assert self.api is not None
        answer = await self.api.post("/s2s/stream/auth", json=given)
        return answer.status_code, "application/json", answer.content


@asynccontextmanager
async def backend(folder: Path) -> AsyncIterator[Backend]:
    """Run such a backend."""
    server = Backend(folder)
    async with trio.open_nursery() as nursery:
        (listener, *_) = await trio.open_tcp_listeners(0, host="127.0.0.1")
        server.url = f"http://127.0.0.1:{listener.socket.getsockname()[1]}"
        nursery.start_soon(trio.serve_listeners, server.serve, [listener])
        yield server
        nursery.cancel_scope.cancel()
