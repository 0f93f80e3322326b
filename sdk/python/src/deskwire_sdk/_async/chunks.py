"""The body of a response, read while it arrives."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Self

import httpx

from deskwire_sdk._async.transport import AsyncTransport
from deskwire_sdk._requests import Request
from deskwire_sdk.errors import ConnectionFailed


class AsyncChunks:
    """An iterator of the bytes of a response. The request is sent when the first ones are asked for.

    Leave it early only inside `async with`, which closes the connection.
    """

    def __init__(self, transport: AsyncTransport, request: Request) -> None:
        self._transport = transport
        self._request = request
        self._response: httpx.Response | None = None
        self._chunks: AsyncIterator[bytes] | None = None
        self._ended = False

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        """Return the next bytes.

        Raises:
            DeskwireError: the request failed, or the connection broke.
        """
        if self._ended:
            raise StopAsyncIteration
        if self._chunks is None:
            self._response = await self._transport.send(self._request, stream=True)
            self._chunks = self._response.aiter_bytes()
        try:
            chunk: bytes | None = await anext(self._chunks, None)
        except httpx.RequestError as error:
            await self.aclose()
            raise ConnectionFailed(f"{type(error).__name__}: {error}") from error
        if chunk is None:
            await self.aclose()
            raise StopAsyncIteration
        return chunk

    async def aclose(self) -> None:
        """Close the connection; bytes that were not read are lost."""
        self._ended = True
        response, self._response = self._response, None
        if response is None or self._chunks is None:
            return
        await response.aclose()
        # httpx reads through a chain of generators, of which Trio warns if they are left unfinished. They finish when
        # they notice that their connection is closed.
        with suppress(httpx.RequestError, httpx.StreamError):
            while await anext(self._chunks, None) is not None:
                pass

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()
