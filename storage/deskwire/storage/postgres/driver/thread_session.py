"""psycopg sessions for threads and commands, which end with all others when the process leaves their server."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import psycopg
from psycopg import pq

from deskwire.storage.postgres.driver.servers import Servers

_LOOK_EACH_S: Final = 5.0
_SILENT_S: Final = 15.0
"""Time in which the server has to answer on another session while a command works. The work itself may take hours: a bound on
its time would end an index build or a copy that makes progress."""


class ThreadSession(psycopg.Connection[Any]):
    """A session that commits after each statement.

    Args:
        connection: as `Servers.open` returns it.
    """

    def __init__(self, connection: pq.abc.PGconn, servers: Servers) -> None:
        connection.nonblocking = 1  # psycopg polls the socket in Python
        super().__init__(connection)
        self.servers: Final = servers
        self.autocommit = True

    def close(self) -> None:
        """End the session."""
        super().close()
        self.servers.release(self.pgconn)


@contextmanager
def watched(servers: Servers, options: bytes) -> Iterator[None]:
    """End the sessions with a server that stops answering while the context is open; for work outside a node's beats."""
    over = threading.Event()

    def look() -> None:
        while not over.wait(_LOOK_EACH_S):
            servers.look_around(options, _SILENT_S, given_up=over.is_set)

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
