"""Pages of lists, which continue with the next page when iterated."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace
from typing import Any, Generic, Self, TypeVar

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

    @property
    def next_request(self) -> Request | None:
        """The request for the next page; None on the last page."""
        if self.next_cursor is None:
            return None
        return replace(self._request, query={**self._request.query, "cursor": self.next_cursor})

    async def next_page(self) -> AsyncPage[Item] | None:
        """Return the next page; None after the last one.

        Raises:
            DeskwireError: the request failed.
        """
        request = self.next_request
        return None if request is None else await first_page(self._transport, request)

    def pages(self) -> AsyncPages[Item]:
        """Return an iterator of this page and all further ones."""
        return AsyncPages(self._transport, self._request, self)

    def __aiter__(self) -> AsyncItems[Item]:
        """Return an iterator of the items of this page and of all further ones."""
        return AsyncItems(self.pages())


# Iterators are classes: Trio warns of asynchronous generators that a `break` leaves unfinished.
class AsyncPages(Generic[Item]):
    """An iterator of the pages of a list."""

    def __init__(
        self, transport: AsyncTransport, request: Request, first: AsyncPage[Item] | None = None
    ) -> None:
        self._transport = transport
        self._request: Request | None = request
        self._first = first

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> AsyncPage[Item]:
        """Return the next page.

        Raises:
            DeskwireError: the request failed.
        """
        page, self._first = self._first, None
        if page is None:
            if self._request is None:
                raise StopAsyncIteration
            page = await first_page(self._transport, self._request)
        self._request = page.next_request
        return page


class AsyncItems(Generic[Item]):
    """An iterator of the items of all pages."""

    def __init__(self, pages: AsyncPages[Item]) -> None:
        self._pages = pages
        self._ahead: list[Item] = []

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Item:
        """Return the next item.

        Raises:
            DeskwireError: the request for a page failed.
        """
        while not self._ahead:
            self._ahead = (await anext(self._pages)).items[::-1]
        return self._ahead.pop()


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

    def __aiter__(self) -> AsyncItems[Item]:
        """Return an iterator of the items of all pages."""
        return AsyncItems(AsyncPages(self._transport, self._request))


# end of async only
