"""A page's stream in a test: server-sent events from a real connection."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import h11
import httpx
import orjson
import trio

from tests.support.deadlines import HANG_TIMEOUT_S


@dataclass(frozen=True, slots=True)
class Told:
    """One event with its name, its id and its data."""

    name: str
    id: str | None
    raw: str

    @property
    def data(self) -> Any:
        """The event's parsed data."""
        return orjson.loads(self.raw)


class Page:
    """An open stream, after its `hello`."""

    def __init__(self, wire: trio.abc.Stream) -> None:
        self.wire = wire
        self.headers: dict[str, str] = {}
        self.hello: Any = None
        self._http = h11.Connection(h11.CLIENT)
        self._text = b""
        self._over = False

    async def open(self, target: str, headers: Mapping[str, str]) -> None:
        """Request the stream and read its head; raises AssertionError with the text of a refusal."""
        request = h11.Request(method="GET", target=target, headers=[("Host", "x"), *headers.items()])
        await self.wire.send_all(self._http.send(request) or b"")
        await self.wire.send_all(self._http.send(h11.EndOfMessage()) or b"")
        head = await self._received()
        assert isinstance(head, h11.Response)
        self.headers = {name.decode(): value.decode() for name, value in head.headers}
        if head.status_code != 200:
            raise AssertionError(f"{head.status_code} {await self._body()}")

    async def next(self, name: str | None = None) -> Told:
        """Return the next event, or the next with this name. Raises EOFError when the stream ends."""
        with trio.fail_after(HANG_TIMEOUT_S):
            while True:
                told = await self._told()
                if told is None:
                    raise EOFError("the stream is over")
                if name in (None, told.name):
                    return told

    async def event(self) -> Any:
        """Return the data of the next stored event."""
        return (await self.next("message")).data

    async def passing(self, kind: str) -> Any:
        """Return the data of the next ephemeral event of this type."""
        while (told := (await self.next("passing")).data)["type"] != kind:
            pass
        return told["data"]

    async def until(self, event_id: str) -> list[Any]:
        """Return the stored events up to the one with this id."""
        found: list[Any] = []
        while not found or found[-1]["id"] != event_id:
            found.append(await self.event())
        return found

    async def rest(self) -> list[Told]:
        """Return all events until the stream ends."""
        found = []
        with trio.fail_after(HANG_TIMEOUT_S):
            while (told := await self._told()) is not None:
                found.append(told)
        return found

    async def bye(self) -> str:
        """Return the reason of the goodbye, which must be the last event."""
        *_, last = await self.rest()
        assert last.name == "bye", last
        return str(last.data["reason"])

    async def _told(self) -> Told | None:
        while True:
            piece, found, rest = self._text.partition(b"\n\n")
            if found:
                self._text = rest
                fields = dict(line.split(": ", 1) for line in piece.decode().split("\n") if line[0] != ":")
                if "data" in fields:
                    return Told(fields.get("event", "message"), fields.get("id"), fields["data"])
            elif self._over:
                return None
            else:
                await self._more()

    async def _more(self) -> None:
        event = await self._received()
        if isinstance(event, h11.Data):
            self._text += bytes(event.data)
        else:
            self._over = True

    async def _body(self) -> str:
        while not self._over:
            await self._more()
        return self._text.decode()

    async def _received(self) -> Any:
        while True:
            event = self._http.next_event()
            if not isinstance(event, type) or event is h11.PAUSED:
                return event
            self._http.receive_data(bytes(await self.wire.receive_some()))


@asynccontextmanager
async def page(
    client: httpx.AsyncClient, headers: Mapping[str, str] | None = None, /, **params: str
) -> AsyncIterator[Page]:
    """Yield a stream opened with this client's credential on a connection of its own, after its `hello`."""
    url = client.base_url.join("stream").copy_merge_params(params)
    own = {
        name: value
        for name, value in client.headers.items()
        if name in ("authorization", "project", "cookie")
    }
    async with await trio.open_tcp_stream(url.host, url.port or 80) as wire:
        opened = Page(wire)
        with trio.fail_after(HANG_TIMEOUT_S):
            await opened.open(url.raw_path.decode(), {**own, **(headers or {})})
        opened.hello = (await opened.next("hello")).data
        yield opened
