"""Sessions of psycopg, for threads and commands, among those that end together when a server is left."""

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
"""Time that a server has to answer on another session while one works for a command. The work itself may take hours: a
bound on its time would end an index or a copy that goes on well."""


class ThreadSession(psycopg.Connection[Any]):
    """A session that commits each statement by itself.

    Args:
        connection: as `Servers.open` returns it.
    """

    def __init__(self, connection: pq.abc.PGconn, servers: Servers) -> None:
        connection.nonblocking = 1  # psycopg waits by itself
        super().__init__(connection)
        self.servers: Final = servers
        self.autocommit = True

    def close(self) -> None:
        """End the session."""
        super().close()
        self.servers.release(self.pgconn)


@contextmanager
def watched(servers: Servers, options: bytes) -> Iterator[None]:
    """End sessions with a server that has stopped answering, while the context is open; for work that no beat watches over."""
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
