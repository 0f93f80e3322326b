"""The one task that writes what is new to every connection that keeps up.

A commit may have something for thousands of connections. Waking a task of each costs more than the write itself;
and what one connection is to get on several channels goes out in one write. A connection that does not take
its frames at once, or needs some from the disk, gets a task of its own until it has caught up, and delays nobody.
"""

from __future__ import annotations

from typing import Final, Protocol

import structlog
import trio

log: Final = structlog.get_logger(__name__)

_TURN: Final = 16
"""Connections written to before other tasks have their turn: about a third of a millisecond."""


class Flushable(Protocol):
    """A connection that may have something to write."""

    def flush(self) -> None:
        """Write what is new, without waiting."""

    def break_off(self) -> None:
        """End the connection without a goodbye."""


class Flusher:
    """The queue of connections that are `due`, flushed in the order in which they came."""

    def __init__(self) -> None:
        self._due: dict[Flushable, None] = {}
        self._wakeup = trio.Event()

    def due(self, connection: Flushable) -> None:
        """Have the connection flushed soon, once however often it is called."""
        self._due[connection] = None
        self._wakeup.set()

    async def run(self) -> None:
        """Flush until cancelled."""
        while True:
            await self._wakeup.wait()
            due, self._due, self._wakeup = self._due, {}, trio.Event()
            for count, connection in enumerate(due, 1):
                self._flush(connection)
                if not count % _TURN:
                    await trio.lowlevel.checkpoint()

    @staticmethod
    def _flush(connection: Flushable) -> None:
        try:
            connection.flush()
        except Exception:  # the task's top: one connection's bug ends that connection and nothing else
            log.exception("stream.connection_failed")
            connection.break_off()
