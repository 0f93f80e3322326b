"""The writing end of a stream connection, and its end.

Data is written at once as far as the system accepts it, and the rest later. A connection ends once: with a
goodbye (`pusher:error`, close frame, then reading until the peer's close frame; Pusher protocol, close
codes), or by being aborted. After that no event is written.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

import structlog
import trio
from wsproto.connection import ConnectionState
from wsproto.events import CloseConnection

from deskwire.engine.core.tasks.mutex import Mutex
from deskwire.http.measurements import Traffic
from deskwire.http.stream import pusher
from deskwire.http.stream.websocket import WebsocketConnection, text_frame

log: Final = structlog.get_logger(__name__)


class SocketWriter:
    """The writing end of one connection.

    There is one writer at a time, which holds `lock`; a caller of `put_now` has checked that the lock is
    free. An interrupted write may leave an incomplete frame, so it ends the connection.

    Args:
        stream: the transport, maybe with a `send_now` like `FrontStream`'s.
        timeout_s: how long one write may take.
        traffic: counts frames written and the reasons of ends.

    Attributes:
        rest: bytes that the system has not accepted; they precede the next write.
        ending: True if nothing but the goodbye is written any longer.
        scope: cancelled when the connection is aborted.
    """

    __slots__ = ("_send_now", "_stream", "_timeout_s", "ending", "lock", "rest", "scope", "traffic")

    def __init__(self, stream: trio.abc.Stream, timeout_s: float, traffic: Traffic) -> None:
        self._stream = stream
        self._send_now: Callable[[bytes], bytes] | None = getattr(stream, "send_now", None)
        self._timeout_s = timeout_s
        self.traffic = traffic
        self.lock = Mutex()
        self.rest = b""
        self.ending = False
        self.scope: trio.CancelScope | None = None

    async def write(self, frames: bytes) -> bool:
        """Write whole frames.

        Returns False if they were not, or maybe not, written.
        """
        async with self.lock:
            return not self.ending and await self.put(frames)

    def put_now(self, data: bytes) -> bool:
        """Write as much as possible at once.

        Returns whether that is all. Raises BrokenResourceError.
        """
        data = self.rest + data if self.rest else data
        if data and self._send_now is not None:
            data = self._send_now(data)  # usually sends all of it, at a tenth of the cost of `send_all`
        self.rest = data
        return not data

    async def put(self, data: bytes) -> bool:
        """Write under the lock.

        If that fails or takes too long, abort the connection and return False.

        It is a checkpoint only if it has to wait.
        """
        try:
            if self.put_now(data):
                return True
            with trio.move_on_after(self._timeout_s):
                await self.put_last(b"")
                return True
            self.traffic.write_timeouts += 1
            log.info("stream.write_timeout")
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            pass
        self.break_off()
        return False

    async def put_last(self, data: bytes) -> None:
        """Write without a time limit. Raises BrokenResourceError and ClosedResourceError."""
        rest, self.rest = self.rest, b""
        await self._stream.send_all(rest + data)

    def break_off(self) -> None:
        """Abort the connection without a goodbye.

        The peer has disconnected, or a frame is incomplete.
        """
        self.ending = True
        assert self.scope is not None, "the connection is served"
        self.scope.cancel()


# Time limit of a goodbye, from its first byte to the peer's close frame.
CLOSE_TIMEOUT_S: Final = 5.0


class Lifetime:
    """The tasks of one connection, and its end.

    Attributes:
        goodbye_s: time limit of its goodbye.
        sent_code: the code of the close frame that was sent, None before.
    """

    __slots__ = ("_nursery", "_wire", "_writer", "goodbye_s", "sent_code")

    def __init__(self, writer: SocketWriter, wire: WebsocketConnection) -> None:
        self._writer = writer
        self._wire = wire
        self._nursery: trio.Nursery | None = None
        self.goodbye_s = CLOSE_TIMEOUT_S
        self.sent_code: int | None = None

    def begin(self, nursery: trio.Nursery) -> None:
        """Set the nursery of the connection's tasks.

        It is cancelled when the connection is aborted.
        """
        self._nursery = nursery
        self._writer.scope = nursery.cancel_scope

    def spawn(self, task: Callable[[], Awaitable[None]]) -> None:
        """Run `task` while the connection is open.

        Does nothing if it is ending.
        """
        assert self._nursery is not None, "the connection is served"
        if not self._writer.ending:
            self._nursery.start_soon(task)

    def end(self, goodbye: pusher.StreamClose) -> None:
        """End the connection with a goodbye.

        Only the first call has an effect.
        """
        if self._writer.ending or self._nursery is None:
            return
        self._writer.ending = True
        self._nursery.start_soon(self._say_goodbye, goodbye)

    async def _say_goodbye(self, goodbye: pusher.StreamClose) -> None:
        with trio.move_on_after(self.goodbye_s):
            async with self._writer.lock:
                await self._write_goodbye(goodbye)
            await trio.sleep_forever()  # the reader ends the connection at the peer's close frame
        self._writer.break_off()

    async def _write_goodbye(self, goodbye: pusher.StreamClose) -> None:
        data = b""
        if goodbye.code >= pusher.FIRST_OWN_CODE:  # websocket's own codes are in the close frame only
            data += text_frame(pusher.error(goodbye.message, goodbye.code))
        if self._wire.state in (ConnectionState.OPEN, ConnectionState.REMOTE_CLOSING):
            data += self._wire.send(CloseConnection(goodbye.code, goodbye.message))
            self.sent_code = goodbye.code
        try:
            await self._writer.put_last(data)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            self._writer.break_off()
