"""How bytes leave a stream connection: at once as far as the system takes them, the rest in its own time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import structlog
import trio

from deskwire.engine.core.mutex import Mutex
from deskwire.http.metrics.measurements import Traffic

log: Final = structlog.get_logger(__name__)


class SocketWriter:
    """Writes to one connection; `lock` is held for each write, but for `put_now`, which is for who finds it free.

    Args:
        stream: the transport, perhaps with a `send_now` as `FrontStream` has it.
        timeout_s: how long one write may take.
        traffic: counts the writes that took longer.
        rest: what the system has not taken; it goes before the next write.
    """

    __slots__ = ("_send_now", "_stream", "_timeout_s", "_traffic", "lock", "rest")

    def __init__(self, stream: trio.abc.Stream, timeout_s: float, traffic: Traffic) -> None:
        self._stream = stream
        self._send_now: Callable[[bytes], bytes] | None = getattr(stream, "send_now", None)
        self._timeout_s = timeout_s
        self._traffic = traffic
        self.lock = Mutex()
        self.rest = b""

    def put_now(self, data: bytes) -> bool:
        """Write what can be written at once; whether that is all. Raises BrokenResourceError."""
        data = self.rest + data if self.rest else data
        if data and self._send_now is not None:
            data = self._send_now(data)  # nearly always all of it, for a tenth of the price
        self.rest = data
        return not data

    async def put(self, data: bytes) -> bool:
        """Write; a checkpoint only if it has to wait. False if the connection is gone, or a frame was cut off."""
        try:
            if self.put_now(data):
                return True
            with trio.move_on_after(self._timeout_s):
                await self.put_last(b"")
                return True
            self._traffic.write_timeouts += 1
            log.info("stream.write_timeout")
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            pass
        return False

    async def put_last(self, data: bytes) -> None:
        """Write without a bound. Raises BrokenResourceError and ClosedResourceError."""
        rest, self.rest = self.rest, b""
        await self._stream.send_all(rest + data)
