"""The client's side of the stream's protocol, without a socket: bytes of a websocket in, messages out."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from wsproto.connection import Connection, ConnectionType
from wsproto.events import CloseConnection, Ping, TextMessage
from wsproto.events import Message as Data
from wsproto.utilities import LocalProtocolError, RemoteProtocolError

ABNORMAL: Final = 1006
"""The close code of a connection that ended without one (RFC 6455, 7.1.5)."""


@dataclass(frozen=True, slots=True)
class Message:
    """A message of the server; `data` is decoded."""

    event: str
    channel: str | None
    data: Any


@dataclass(frozen=True, slots=True)
class Closed:
    """The end of the connection, with its close code and reason."""

    code: int
    reason: str


@dataclass(frozen=True, slots=True)
class Send:
    """Bytes to send before the next item is taken."""

    data: bytes


class PusherConnection:
    """A connection after the upgrade.

    `receive` takes bytes, and `items` yields what follows from them one after the other. A ping is answered when its
    turn comes: after the events before it were taken. So the pong, which confirms those events, is a promise that
    they were handed on.
    """

    def __init__(self) -> None:
        self._websocket = Connection(ConnectionType.CLIENT)
        self._text: list[str] = []

    def receive(self, data: bytes) -> None:
        """Take bytes from the socket; no bytes mean its end."""
        self._websocket.receive_data(data or None)

    def items(self) -> Iterator[Message | Closed | Send]:
        """Yield the items of the bytes so far, in order."""
        try:
            for event in self._websocket.events():
                if isinstance(event, Ping):
                    yield Send(self._websocket.send(event.response()))
                elif isinstance(event, CloseConnection):
                    yield from self._closed(event)
                elif isinstance(event, TextMessage):
                    self._text.append(event.data)
                    if event.message_finished:
                        text, self._text = "".join(self._text), []
                        yield message(text)
        except (RemoteProtocolError, ValueError) as error:
            yield Closed(ABNORMAL, f"The server broke the protocol: {error}")

    def _closed(self, event: CloseConnection) -> Iterator[Message | Closed | Send]:
        try:
            yield Send(self._websocket.send(event.response()))
        except LocalProtocolError:
            pass  # the socket has ended, or this side has closed first
        yield Closed(event.code or ABNORMAL, event.reason or "The connection broke.")

    def command(self, event: str, data: object) -> bytes:
        """Return the bytes that send a message."""
        return self._websocket.send(Data(json.dumps({"event": event, "data": data})))

    def close(self) -> bytes:
        """Return the bytes that end the connection; none if it has ended."""
        try:
            return self._websocket.send(CloseConnection(code=1000))
        except LocalProtocolError:
            return b""


def message(text: str) -> Message:
    """Return a message from its text.

    Raises:
        ValueError: it is none.
    """
    found = json.loads(text)
    if not isinstance(found, dict) or not isinstance(found.get("event"), str):
        raise ValueError(f"no message: {text[:80]}")  # noqa: TRY004  # a value of the wire, not an argument
    data = found.get("data")
    if isinstance(data, str) and data:
        data = json.loads(data)
    return Message(found["event"], found.get("channel"), data)
