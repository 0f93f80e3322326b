"""Responses of one JSON object per line: exports, which are streamed."""

from __future__ import annotations

import json
from typing import Any, Self

from deskwire_sdk._async.chunks import AsyncChunks
from deskwire_sdk._async.transport import AsyncTransport
from deskwire_sdk._requests import Request
from deskwire_sdk.errors import ExportCut


class AsyncLineReader:
    """Reads a response line by line. It is sent when the first line is read."""

    def __init__(self, transport: AsyncTransport, request: Request) -> None:
        self._chunks = AsyncChunks(transport, request)
        self._buffer = b""
        self._complete: list[bytes] = []

    async def next_line(self) -> bytes | None:
        """Return the next line without its end; None after the last one. The end of a line is a line feed only.

        Raises:
            DeskwireError: the request failed, or the connection broke.
        """
        while not self._complete:
            chunk = await anext(self._chunks, None)
            if chunk is None:
                last, self._buffer = self._buffer, b""
                return last or None
            *lines, self._buffer = (self._buffer + chunk).split(b"\n")
            self._complete = lines[::-1]
        return self._complete.pop()

    async def aclose(self) -> None:
        """Close the connection; lines that were not read are lost."""
        await self._chunks.aclose()


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
            while await self._lines.next_line() is not None:
                pass  # the connection can be reused once its response is read to the end
            raise StopAsyncIteration
        return line
