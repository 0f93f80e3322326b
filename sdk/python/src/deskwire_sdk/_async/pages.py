"""Pages of lists, which continue with the next page when iterated."""

from __future__ import annotations

from collections.abc import AsyncIterator, Generator
from dataclasses import replace
from typing import Any, Generic, TypeVar

from deskwire_sdk._async.transport import AsyncTransport
from deskwire_sdk._requests import Request

Item = TypeVar("Item")


class AsyncPage(Generic[Item]):
    """A page of a list. Iterating over it continues with the items of all further pages.

    Attributes:
        items: the items of this page.
        next_cursor: the `cursor` of the next page; None on the last page.
        raw: the whole response.
    """

    def __init__(self, transport: AsyncTransport, request: Request, raw: dict[str, Any]) -> None:
        self.items: list[Item] = raw["items"]
        self.next_cursor: str | None = raw.get("nextCursor")
        self.raw = raw
        self._transport = transport
        self._request = request

    @property
    def as_of(self) -> str | None:
        """The id of the newest event when the first page was read, to continue from; None if the list has none."""
        return self.raw.get("asOf")

    async def next_page(self) -> AsyncPage[Item] | None:
        """Return the next page; None after the last one.

        Raises:
            DeskwireError: the request failed.
        """
        if self.next_cursor is None:
            return None
        query = {**self._request.query, "cursor": self.next_cursor}
        request = replace(self._request, query=query)
        return AsyncPage(self._transport, request, await self._transport.json(request))

    async def pages(self) -> AsyncIterator[AsyncPage[Item]]:
        """Yield this page and all further ones."""
        page: AsyncPage[Item] | None = self
        while page is not None:
            yield page
            page = await page.next_page()

    async def __aiter__(self) -> AsyncIterator[Item]:
        """Yield the items of this page and of all further ones."""
        async for page in self.pages():
            for item in page.items:
                yield item


async def first_page(transport: AsyncTransport, request: Request) -> AsyncPage[Any]:
    """Return the first page of a list.

    Raises:
        DeskwireError: the request failed.
    """
    return AsyncPage(transport, request, await transport.json(request))


# async only
class AsyncPager(Generic[Item]):
    """A list: `await` returns its first page, `async for` yields all items."""

    def __init__(self, transport: AsyncTransport, request: Request) -> None:
        self._transport = transport
        self._request = request

    def __await__(self) -> Generator[Any, Any, AsyncPage[Item]]:
        """Return the first page."""
        return first_page(self._transport, self._request).__await__()

    async def __aiter__(self) -> AsyncIterator[Item]:
        """Yield the items of all pages."""
        async for item in await self:
            yield item


# end of async only
