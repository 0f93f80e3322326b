"""The bytes that leave a stream connection: at once as far as the system takes them, the rest in its own time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import structlog
import trio

from deskwire.engine.core.tasks.mutex import Mutex
from deskwire.http.metrics.measurements import Traffic

log: Final = structlog.get_logger(__name__)


class SocketWriter:
    """The writing end of one connection.

    There is one writer at a time: `lock` is held for each write, except for `put_now`, which is for a caller that
    finds it free. A write that was cut off leaves no whole frame behind, so it ends the connection.

    Args:
        stream: the transport, perhaps with a `send_now` as `FrontStream` has it.
        timeout_s: how long one write may take.
        traffic: counts what is written, and why connections are ended.

    Attributes:
        rest: bytes that the system has not taken; they go before the next write.
        ending: set once the connection is ending; from then on only its goodbye is written.
        scope: cancelled when the connection is broken off.
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
        """Write whole frames; return False if they were not, or not for sure, written."""
        async with self.lock:
            return not self.ending and await self.put(frames)

    def put_now(self, data: bytes) -> bool:
        """Write what can be written at once; return whether that is all. Raises BrokenResourceError."""
        data = self.rest + data if self.rest else data
        if data and self._send_now is not None:
            data = self._send_now(data)  # nearly always all of it, for a tenth of the price
        self.rest = data
        return not data

    async def put(self, data: bytes) -> bool:
        """Write under the lock; return False, and break the connection off, if that fails or takes too long.

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
        """End the connection without a goodbye: it is gone, or a frame was cut off."""
        self.ending = True
        assert self.scope is not None, "the connection is served"
        self.scope.cancel()
