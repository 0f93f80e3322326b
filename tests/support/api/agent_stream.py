"""A page's stream as a test reads it: server-sent events from a real connection."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx
import orjson
import trio

WITHIN_S = 5.0
"""What an event may take at the most, on a busy machine."""


@dataclass(frozen=True, slots=True)
class Told:
    """One event as it came: its name, its id and its data."""

    name: str
    id: str | None
    raw: str

    @property
    def data(self) -> Any:
        """The data."""
        return orjson.loads(self.raw)


class Page:
    """A stream that is open, behind its `hello`."""

    def __init__(self, response: httpx.Response) -> None:
        self.response = response
        self._events = _events(response)
        self.hello: Any = None

    async def next(self, name: str | None = None) -> Told:
        """The next event; of those with this name if one is given."""
        with trio.fail_after(WITHIN_S):
            async for told in self._events:
                if name in (None, told.name):
                    return told
        raise EOFError("the stream is over")

    async def event(self) -> Any:
        """The data of the next stored event."""
        return (await self.next("message")).data

    async def passing(self, kind: str) -> Any:
        """The data of the next passing event of this type."""
        while (told := (await self.next("passing")).data)["type"] != kind:
            pass
        return told["data"]

    async def until(self, event_id: str) -> list[Any]:
        """The stored events up to the one with this id."""
        found = []
        while not found or found[-1]["id"] != event_id:
            found.append(await self.event())
        return found

    async def rest(self) -> list[Told]:
        """Everything until the stream is over."""
        with trio.fail_after(WITHIN_S):
            return [told async for told in self._events]

    async def bye(self) -> str:
        """The reason of the goodbye, behind which nothing comes."""
        *_, last = await self.rest()
        assert last.name == "bye", last
        return str(last.data["reason"])


@asynccontextmanager
async def page(
    client: httpx.AsyncClient, headers: Mapping[str, str] | None = None, /, **params: str
) -> AsyncIterator[Page]:
    """A stream, opened by this client, with what it is told first in `hello`."""
    async with client.stream("GET", "/stream", params=params, headers=headers, timeout=30) as response:
        if response.status_code != 200:
            await response.aread()
            raise AssertionError(response.text)
        opened = Page(response)
        opened.hello = (await opened.next("hello")).data
        yield opened


async def _events(response: httpx.Response) -> AsyncIterator[Told]:
    name, event_id, data = "message", None, ""
    async for line in response.aiter_lines():
        if not line:
            if data:
                yield Told(name, event_id, data)
            name, event_id, data = "message", None, ""
        elif line.startswith("event: "):
            name = line.removeprefix("event: ")
        elif line.startswith("id: "):
            event_id = line.removeprefix("id: ")
        elif line.startswith("data: "):
            data = line.removeprefix("data: ")
