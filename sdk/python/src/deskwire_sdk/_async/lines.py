"""Responses of one JSON object per line: exports, which are streamed."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any, Self

import httpx

from deskwire_sdk._async.transport import AsyncTransport
from deskwire_sdk._requests import Request
from deskwire_sdk.errors import ConnectionFailed, ExportCut


class AsyncLineReader:
    """Reads a response line by line. It is sent when the first line is read."""

    def __init__(self, transport: AsyncTransport, request: Request) -> None:
        self._transport = transport
        self._request = request
        self._response: httpx.Response | None = None
        self._chunks: AsyncIterator[bytes] | None = None
        self._buffer = b""
        self._complete: list[bytes] = []

    async def next_line(self) -> bytes | None:
        """Return the next line without its end; None after the last one. The end of a line is a line feed only.

        Raises:
            DeskwireError: the request failed, or the connection broke.
        """
        while not self._complete:
            chunk = await self._next_chunk()
            if chunk is None:
                last, self._buffer = self._buffer, b""
                return last or None
            *lines, self._buffer = (self._buffer + chunk).split(b"\n")
            self._complete = lines[::-1]
        return self._complete.pop()

    async def _next_chunk(self) -> bytes | None:
        if self._chunks is None:
            self._response = await self._transport.send(self._request, stream=True)
            self._chunks = self._response.aiter_bytes()
        try:
            async for chunk in self._chunks:
                return chunk
        except httpx.RequestError as error:
            await self.aclose()
            raise ConnectionFailed(f"{type(error).__name__}: {error}") from error
        await self.aclose()
        return None

    async def aclose(self) -> None:
        """Close the connection; lines that were not read are lost."""
        if self._response is not None:
            await self._response.aclose()


class AsyncExport:
    """The lines of an export, as dicts, read while they arrive.

    It is an iterator. Leave it early only inside `async with`, which closes the connection.
    """

    def __init__(self, transport: AsyncTransport, request: Request) -> None:
        self._lines = AsyncLineReader(transport, request)

    def __aiter__(self) -> AsyncExport:
        return self

    async def __anext__(self) -> dict[str, Any]:
        """Return the next line.

        Raises:
            DeskwireError: the request failed, or the connection broke.
        """
        line = await self._lines.next_line()
        if line is None:
            raise StopAsyncIteration
        found: dict[str, Any] = json.loads(line)
        return found

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connection; lines that were not read are lost."""
        await self._lines.aclose()


class AsyncResumableExport(AsyncExport):
    """An export that can be continued later.

    Attributes:
        next_cursor: the `cursor` of the next export, which has the changes since; None until the last line is read.
        end: the whole last line, `{"nextCursor", "exportedAt", "deletions"}`; None until it is read.
    """

    def __init__(self, transport: AsyncTransport, request: Request) -> None:
        super().__init__(transport, request)
        self.end: dict[str, Any] | None = None

    @property
    def next_cursor(self) -> str | None:
        """The `cursor` of the next export; None until the last line is read."""
        return None if self.end is None else self.end["nextCursor"]

    async def __anext__(self) -> dict[str, Any]:
        """Return the next object.

        Raises:
            ExportCut: the export ended without its last line.
            DeskwireError: the request failed, or the connection broke.
        """
        if self.end is not None:
            raise StopAsyncIteration
        try:
            line = await super().__anext__()
        except StopAsyncIteration:
            raise ExportCut(
                "The export ended before its last line: repeat it with the same cursor."
            ) from None
        if "nextCursor" in line and "exportedAt" in line:
            self.end = line
            await self.aclose()
            raise StopAsyncIteration
        return line
