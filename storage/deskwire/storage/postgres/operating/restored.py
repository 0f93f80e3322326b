"""The things that a database restored to an earlier moment needs before a node starts on it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import psycopg

from deskwire.engine.conversations.held_messages import RESTORED
from deskwire.storage.postgres.driver.thread_session import ThreadSession
from deskwire.storage.postgres.driver.unusable import DatabaseUnusableError
from deskwire.storage.postgres.migrations.apply import require_migrated
from deskwire.storage.postgres.operating.installation import accept_server
from deskwire.storage.postgres.operating.preflight import connected
from deskwire.storage.tables.conversations.held_messages import problem_as_stored

SKIPPED: Final = "restored from a backup"
_LIVE: Final = "SELECT node FROM nodes WHERE expires > lease_now() ORDER BY node"
_SKIP: Final = """
UPDATE deliveries SET status = 'skipped', ended_at = %s, reason = %s WHERE status = 'pending'
"""


def accept_moved(url: str) -> None:
    """Accept the server that a whole database was moved to. Raises DatabaseUnusableError as `begin_anew` does."""
    require_migrated(url)
    with _alone(url) as connection:
        accept_server(connection)


def begin_anew(url: str, *, skip_pending: bool, now: int) -> int:
    """Forget the nodes of the moment, and what they were at; returns the number of deliveries that are skipped.

    From then on the present server is the installation's.

    Args:
        skip_pending: whether pending deliveries are not made.
        now: milliseconds.

    Raises DatabaseUnusableError, if nodes run on it, for one.
    """
    require_migrated(url)
    with _alone(url) as connection:
        accept_server(connection)
        connection.execute("DELETE FROM nodes")
        connection.execute("DELETE FROM lanes")
        connection.execute("UPDATE consumers SET connected = 0, node = '', incarnation = 0, wanted = NULL")
        connection.execute("DELETE FROM sessions")  # one that has ended since is not to be good again
        connection.execute("UPDATE installation SET epoch = epoch + 1")
        if not skip_pending:
            return 0
        connection.execute(
            "UPDATE held_messages SET problem = %s WHERE problem IS NULL", (problem_as_stored(RESTORED),)
        )
        return connection.execute(_SKIP, (now, SKIPPED)).rowcount


@contextmanager
def _alone(url: str) -> Iterator[ThreadSession]:
    """Begin a transaction on a database that no node runs on. Raises DatabaseUnusableError."""
    try:
        with connected(url, "restored") as connection, connection.transaction():
            live = connection.execute(_LIVE).fetchall()
            if live:
                names = ", ".join(name for (name,) in live)
                raise DatabaseUnusableError(
                    f"Nodes run on the database ({names}), or did some seconds before the moment it is of: stop them, wait ten "
                    "seconds, and try again."
                )
            yield connection
    except psycopg.Error as error:
        raise DatabaseUnusableError(
            f"The database can't be made ready: {' '.join(str(error).split())}"
        ) from error
