"""A websocket client that sends only on explicit request: no automatic pong, close or other answer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson
import trio
from wsproto.connection import Connection, ConnectionType
from wsproto.events import CloseConnection, Event, Ping, TextMessage

from tests.support.streaming import CHANNEL, STREAM_KEY, authorization


def upgrade(query: str = "?protocol=7", key: str = STREAM_KEY, *extra: str) -> bytes:
    """Return a websocket upgrade request."""
    lines = [
        f"GET /app/{key}{query} HTTP/1.1",
        "Host: x",
        "Connection: keep-alive, Upgrade",
        "Upgrade: websocket",
        "Sec-WebSocket-Version: 13",
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
        *extra,
    ]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


class RawPeer:
    """A websocket client on any stream; call `open` first."""

    def __init__(self, stream: trio.abc.Stream) -> None:
        self.stream = stream
        self.wire = Connection(ConnectionType.CLIENT)
        self._events: list[Event] = []
        self._text = ""

    async def open(self, request: bytes | None = None) -> bytes:
        """Request the upgrade; return the head of the answer. Raises BrokenResourceError if none comes."""
        await self.stream.send_all(request or upgrade())
        answer = b""
        while b"\r\n\r\n" not in answer:
            data = await self.stream.receive_some(4096)
            if not data:
                raise trio.BrokenResourceError("the connection has ended without an answer")
            answer += data
        head, _, rest = answer.partition(b"\r\n\r\n")
        self.wire.receive_data(rest)
        return head

    async def event(self) -> Event | None:
        """Return the next event on the wire, None at its end."""
        while not self._events:
            self._events += self._coming()
            if not self._events:
                data = await self.stream.receive_some(65_536)
                if not data:
                    return None
                self.wire.receive_data(bytes(data))
        return self._events.pop(0)

    async def until(self, *kinds: type[Event]) -> Any:
        """Return the next event of one of these kinds, None if the connection ends first."""
        while (event := await self.event()) is not None:
            if isinstance(event, kinds):
                return event
        return None

    async def message(self) -> dict[str, Any]:
        """Return the next text message."""
        event = await self.until(TextMessage)
        message: dict[str, Any] = orjson.loads(event.data)
        return message

    async def send(self, event: Event) -> None:
        """Send one well-formed event."""
        await self.stream.send_all(self.wire.send(event))

    async def say(self, name: str, data: object = None) -> None:
        """Send one message."""
        await self.send(TextMessage(orjson.dumps({"event": name, "data": data}).decode()))

    async def socket_id(self) -> str:
        """Return the socket id in the next message, which must be the greeting."""
        return str(orjson.loads((await self.message())["data"])["socket_id"])

    async def subscribe(
        self, socket_id: str, now_ms: int, channel: str = CHANNEL, consumer_id: str = "c1"
    ) -> None:
        """Subscribe to a channel with a valid authorization, without reading the answer."""
        auth = authorization(socket_id, now_ms, channel, consumer_id)
        await self.say("pusher:subscribe", {"channel": channel, "auth": auth})

    async def answer_pings(self) -> None:
        """Answer every ping until the connection ends."""
        while (ping := await self.until(Ping)) is not None:
            await self.send(ping.response())

    async def close_code(self) -> int | None:
        """Return the code of the server's close frame, None if it dropped the connection."""
        closed = await self.until(CloseConnection)
        return None if closed is None else int(closed.code)

    def _coming(self) -> Iterator[Event]:
        """Yield the received events, with the parts of a text joined."""
        for event in self.wire.events():
            if isinstance(event, TextMessage):
                self._text += event.data
                if event.message_finished:
                    yield TextMessage(self._text)
                    self._text = ""
            else:
                yield event
