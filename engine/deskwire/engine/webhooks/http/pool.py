"""Idle connections to one receiver, to be used again. No two endpoints share one, so none waits for another's."""

from __future__ import annotations

from collections import deque
from typing import Final

from deskwire.engine.webhooks.http.connection import Connection

KEEPALIVE_S: Final = 4.0
"""Seconds for which an idle connection is kept. Many servers close theirs after 5 s (Node's default); a request
sent just then would fail."""


class IdleConnections:
    """The connections that have had a response and may have another request."""

    def __init__(self) -> None:
        self._idle: deque[Connection] = deque()

    def take(self, now: float) -> Connection | None:
        """Take the connection used last, if it is still good, so that surplus ones grow old. `now` is on Trio's clock."""
        oldest_kept = now - KEEPALIVE_S
        while self._idle and self._idle[0].idle_since < oldest_kept:
            self._idle.popleft().close()
        while self._idle:
            connection = self._idle.pop()
            if connection.quiet:
                return connection
            connection.close()
        return None

    def give(self, connection: Connection, now: float) -> None:
        """Keep a connection, or close it if it has had its last response. `now` is on Trio's clock."""
        if connection.next_cycle():
            connection.idle_since = now
            self._idle.append(connection)
        else:
            connection.close()

    def close(self) -> None:
        """Close all connections."""
        while self._idle:
            self._idle.pop().close()
