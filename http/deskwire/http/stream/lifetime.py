"""The life of one stream connection: the tasks that run as long as it does, and its end.

A connection ends once: with a goodbye (`pusher:error`, close frame, then reading until the peer's close frame,
Pusher protocol, close codes), or by being broken off. After that no event is written.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

import trio
from wsproto.connection import ConnectionState
from wsproto.events import CloseConnection

from deskwire.http.stream import pusher
from deskwire.http.stream.websocket.frames import text_frame
from deskwire.http.stream.websocket.parser import Wire
from deskwire.http.stream.writer import SocketWriter

GOODBYE_S: Final = 5.0
"""How long a goodbye may take, from its first byte to the peer's close frame."""


class Lifetime:
    """The tasks of one connection, and its end.

    Attributes:
        goodbye_s: how long its goodbye may take.
        sent_code: the code of the close frame that was sent, None before that.
    """

    __slots__ = ("_nursery", "_wire", "_writer", "goodbye_s", "sent_code")

    def __init__(self, writer: SocketWriter, wire: Wire) -> None:
        self._writer = writer
        self._wire = wire
        self._nursery: trio.Nursery | None = None
        self.goodbye_s = GOODBYE_S
        self.sent_code: int | None = None

    def begin(self, nursery: trio.Nursery) -> None:
        """Take the nursery of the connection's tasks; whatever breaks the connection off cancels it."""
        self._nursery = nursery
        self._writer.scope = nursery.cancel_scope

    def spawn(self, task: Callable[[], Awaitable[None]]) -> None:
        """Run `task` as long as the connection lives; not at all if it is ending."""
        assert self._nursery is not None, "the connection is served"
        if not self._writer.ending:
            self._nursery.start_soon(task)

    def end(self, goodbye: pusher.Close) -> None:
        """End the connection with a goodbye; only the first call counts."""
        if self._writer.ending or self._nursery is None:
            return
        self._writer.ending = True
        self._nursery.start_soon(self._say_goodbye, goodbye)

    async def _say_goodbye(self, goodbye: pusher.Close) -> None:
        with trio.move_on_after(self.goodbye_s):
            async with self._writer.lock:
                await self._write_goodbye(goodbye)
            await trio.sleep_forever()  # the reader ends the session at the peer's close frame
        self._writer.break_off()

    async def _write_goodbye(self, goodbye: pusher.Close) -> None:
        data = b""
        if goodbye.code >= pusher.FIRST_OWN_CODE:  # clients know websocket's own codes from the close frame
            data += text_frame(pusher.error(goodbye.message, goodbye.code))
        if self._wire.state in (ConnectionState.OPEN, ConnectionState.REMOTE_CLOSING):
            data += self._wire.send(CloseConnection(goodbye.code, goodbye.message))
            self.sent_code = goodbye.code
        try:
            await self._writer.put_last(data)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            self._writer.break_off()
