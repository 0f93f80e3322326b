"""Server-sent events: the stream of an agent's client."""

from __future__ import annotations

import json
from typing import Any, Self, TypedDict

from deskwire_sdk._async.lines import AsyncLineReader
from deskwire_sdk._async.transport import AsyncTransport
from deskwire_sdk._requests import Request


class ServerEvent(TypedDict):
    """A server-sent event: `id` is for the next `after`, and `data` is decoded JSON."""

    id: str | None
    event: str
    data: Any


class AsyncServerEvents:
    """The events of a response, read while they arrive. It ends with the connection.

    It is an iterator. Leave it early only inside `async with`, which closes the connection.
    """

    def __init__(self, transport: AsyncTransport, request: Request) -> None:
        self._lines = AsyncLineReader(transport, request)
        self._id: str | None = None

    def __aiter__(self) -> AsyncServerEvents:
        return self

    async def __anext__(self) -> ServerEvent:
        """Return the next event.

        Raises:
            DeskwireError: the request failed, or the connection broke.
        """
        kind, data = "message", []
        while (line := await self._lines.next_line()) is not None:
            name, _, value = line.rstrip(b"\r").decode().partition(":")
            value = value.removeprefix(" ")
            if name == "event":
                kind = value
            elif name == "id":
                self._id = value
            elif name == "data":
                data.append(value)
            elif not line.rstrip(b"\r") and data:
                return {"id": self._id, "event": kind, "data": json.loads("\n".join(data))}
        raise StopAsyncIteration

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connection."""
        await self._lines.aclose()
