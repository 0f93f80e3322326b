"""Files that are downloaded: uploads and tables in CSV."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from pathlib import Path

import anyio
import httpx

from deskwire_sdk._async.transport import AsyncTransport
from deskwire_sdk._requests import Request
from deskwire_sdk.errors import ConnectionFailed


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

    async def chunks(self) -> AsyncGenerator[bytes]:
        """Yield the content while it arrives.

        Raises:
            DeskwireError: the request failed, or the connection broke.
        """
        response = await self._transport.send(self._request, stream=True)
        try:
            async for chunk in response.aiter_bytes():
                yield chunk
        except httpx.RequestError as error:
            raise ConnectionFailed(f"{type(error).__name__}: {error}") from error
        finally:
            await response.aclose()

    async def save(self, path: str | Path) -> Path:
        """Write the content to a file, which appears when it is complete; return its path.

        Raises:
            DeskwireError: the request failed, or the connection broke.
            OSError: the file cannot be written.
        """
        target = Path(path)
        part = target.with_name(f".{target.name}.part")
        try:
            async with await anyio.open_file(part, "wb") as file, aclosing(self.chunks()) as chunks:
                async for chunk in chunks:
                    await file.write(chunk)
            part.replace(target)
        finally:
            part.unlink(missing_ok=True)
        return target
