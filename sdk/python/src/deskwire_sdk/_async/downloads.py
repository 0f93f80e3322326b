"""Files that are downloaded: uploads and tables in CSV."""

from __future__ import annotations

from pathlib import Path

import anyio

from deskwire_sdk._async.chunks import AsyncChunks
from deskwire_sdk._async.transport import AsyncTransport
from deskwire_sdk._requests import Request


class AsyncDownload:
    """A file of the service; the request is sent when the content is read."""

    def __init__(self, transport: AsyncTransport, request: Request) -> None:
        self._transport = transport
        self._request = request

    async def read(self) -> bytes:
        """Return the whole content.

        Raises:
            DeskwireError: the request failed.
        """
        return (await self._transport.send(self._request)).content

    async def text(self) -> str:
        """Return the whole content as text in UTF-8, without a byte order mark.

        Raises:
            DeskwireError: the request failed.
        """
        return (await self.read()).decode("utf-8-sig")

    def chunks(self) -> AsyncChunks:
        """Return an iterator of the content while it arrives."""
        return AsyncChunks(self._transport, self._request)

    async def save(self, path: str | Path) -> Path:
        """Write the content to a file, which appears when it is complete; return its path.

        Raises:
            DeskwireError: the request failed, or the connection broke.
            OSError: the file cannot be written.
        """
        target = Path(path)
        part = target.with_name(f".{target.name}.part")
        try:
            async with await anyio.open_file(part, "wb") as file, self.chunks() as chunks:
                async for chunk in chunks:
                    await file.write(chunk)
            part.replace(target)
        finally:
            part.unlink(missing_ok=True)
        return target
