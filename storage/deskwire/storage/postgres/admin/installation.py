"""The installation of a database: its secret, its place of uploads, its server.

The first node records them, and every other node must have the same. A database with rows and without this
record is an incomplete copy.

Commands that only read open the database here, and a restored database is prepared here for its first node.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any, Final

import psycopg
from msgspec import Struct

from deskwire.engine.cluster.ports import JoiningNode
from deskwire.engine.conversations.held_messages import RESTORED
from deskwire.engine.core.database_identity import Reason
from deskwire.storage.dialect import POSTGRES
from deskwire.storage.postgres.admin.preflight import connected
from deskwire.storage.postgres.driver.blocking import BlockingConnection, ThreadSession
from deskwire.storage.postgres.driver.errors import DatabaseError, DatabaseUnusableError
from deskwire.storage.postgres.driver.server_identity import KnownServer, ServerIdentity
from deskwire.storage.postgres.driver.servers import Servers, watched
from deskwire.storage.postgres.driver.session import Database
from deskwire.storage.postgres.migrations.apply import require_migrated
from deskwire.storage.tables.cluster import BARS
from deskwire.storage.tables.conversations.held_messages import problem_as_stored
from deskwire.storage.tables.read_queries import AdminReads

_NOTIFY_TIMEOUT_S: Final = 10.0
_POLL_INTERVAL_S: Final = 0.05
_NOT_NOTIFIED: Final = "SELECT 1 FROM nodes WHERE expires > lease_now() AND epoch_seen < %s LIMIT 1"
_BARRING: Final = (
    f"SELECT incarnation, expires, node, files FROM nodes WHERE expires > lease_now() AND {BARS}".replace(
        "?", "%s"
    )
)
# A known system identifier is kept: only a server with the same identifier, or with an unknown one, is
# recorded.
NOTE_SEEN: Final = (
    "UPDATE installation SET system_id = coalesce(system_id, CAST(? AS text)), "
    "timeline = greatest(timeline, CAST(? AS bigint))"
)
_OTHER: Final[dict[Reason, str]] = {
    "other_system": (
        "The database is on another PostgreSQL (system identifier {found.system}) than this installation has used "
        "({known.system}): it is a copy or was moved."
    ),
    "older_timeline": (
        "The PostgreSQL writes on timeline {found.timeline}, and this installation has been on timeline {known.timeline}: it is an "
        "old primary, or the database was moved there."
    ),
}
_ACCEPT_ADVICE: Final = (
    " Correct DESKWIRE_DATABASE_URL. If the installation is to continue there, stop all other nodes and run `deskwire restored` if "
    "it was restored to an earlier moment, `deskwire restored --moved` if it is whole."
)
_LOCK_TIMEOUT_S: Final = 10  # for another node that records the installation at this moment


class InstallationIdentity(Struct, frozen=True):
    """The settings that all nodes of an installation must share.

    Args:
        secret_ids: the ids of the present secret and of previous ones, in this order.
        files: the place of uploads: `disk`, `database`, or a bucket.
    """

    secret_ids: Sequence[str]
    files: str


def claim(url: str, identity: InstallationIdentity, name: str | None, servers: Servers | None = None) -> None:
    """Make sure that this node belongs to the database's installation.

    The first node creates the installation. If a node with a conflicting lease exists, waits for the end of
    that lease, because the node may have been killed.

    Args:
        name: the node's name; None for a command, which conflicts with no node.
        servers: those of the node.

    Raises DatabaseUnusableError, and NotAdmitted if the other node renews its lease.
    """
    with connected(url, "setup", servers=servers) as connection:
        require_same_server(connection)
        if name is not None:
            _require_room(connection, JoiningNode(name, "", "", identity.files))
        _claim(connection, identity)
        note_server(connection)


def require_same_server(connection: ThreadSession) -> None:
    """Make sure that the server is the installation's, or was promoted from it.

    Raises DatabaseUnusableError.
    """
    if (difference := other_server(connection)) is not None:
        raise DatabaseUnusableError(difference)


def other_server(connection: ThreadSession) -> str | None:
    """Return how the server differs from the installation's; None if it does not.

    None as well if that is unknown.
    """
    row = connection.execute("SELECT system_id, timeline FROM installation").fetchone()
    assert row is not None, "the first migration inserts the row"
    known, found = KnownServer(row[0], row[1] or None), connection.servers.seen
    reason = known.refusal(ServerIdentity(found.system, found.timeline))
    return None if reason is None else _OTHER[reason].format(known=known, found=found) + _ACCEPT_ADVICE


def note_server(connection: ThreadSession) -> None:
    """Record the server with the installation, if it is newer than all recorded ones."""
    found = connection.servers.seen
    connection.execute(NOTE_SEEN.replace("?", "%s").encode(), (found.system, found.timeline))


def accept_server(connection: ThreadSession) -> None:
    """Record the server as the installation's, in place of the recorded one."""
    found = connection.servers.seen
    connection.execute(
        "UPDATE installation SET system_id = %s, timeline = %s", (found.system, found.timeline or 0)
    )


def _claim(connection: psycopg.Connection[Any], identity: InstallationIdentity) -> None:
    with _locked(connection) as (secret_id, files):
        if secret_id is None:
            _require_empty(connection)
        else:
            _require_same(connection, identity, secret_id, files)
        connection.execute(
            "UPDATE installation SET secret_id = %s, files = %s", (identity.secret_ids[0], identity.files)
        )


def require_installation(url: str, identity: InstallationIdentity) -> None:
    """Make sure that the database is up to date and of this installation.

    Raises DatabaseUnusableError.
    """
    require_migrated(url)
    with connected(url, "setup") as connection:
        require_same_server(connection)
        row = connection.execute("SELECT secret_id, files FROM installation").fetchone()
        assert row is not None, "the first migration inserts the row"
        if row[0] is not None:
            _require_same(connection, identity, row[0], row[1])


def wait_until_nodes_notified(url: str) -> bool:
    """Wait until all live nodes have invalidated their caches.

    Returns whether all of them confirmed it in time.
    """
    try:
        with connected(url, "setup") as connection:
            epoch = connection.execute("SELECT epoch FROM installation").fetchall()[0][0]
            until = time.monotonic() + _NOTIFY_TIMEOUT_S
            while connection.execute(_NOT_NOTIFIED, (epoch,)).fetchone() is not None:
                if time.monotonic() >= until:
                    return False
                time.sleep(_POLL_INTERVAL_S)
            return True
    except (DatabaseUnusableError, psycopg.Error):
        return False


@contextmanager
def _locked(connection: psycopg.Connection[Any]) -> Iterator[tuple[str | None, str | None]]:
    """Lock the record of the installation for a transaction.

    A copy into the database holds the same lock until it is complete.
    """
    try:
        with connection.transaction():
            connection.execute(f"SET LOCAL lock_timeout = '{_LOCK_TIMEOUT_S}s'")
            row = connection.execute("SELECT secret_id, files FROM installation FOR UPDATE").fetchone()
            assert row is not None, "the first migration inserts the row"
            yield row[0], row[1]
    except psycopg.errors.LockNotAvailable as error:
        raise DatabaseUnusableError(
            "The database is being filled by `deskwire copy`: start the node when that has ended."
        ) from error


def _require_empty(connection: psycopg.Connection[Any]) -> None:
    if connection.execute("SELECT 1 FROM organisations LIMIT 1").fetchone() is not None:
        raise DatabaseUnusableError(
            "The database has rows but no record of its installation: it was filled by another program, or incompletely. Drop "
            "and create it, then copy or restore into it again."
        )


def _require_room(connection: psycopg.Connection[Any], candidate: JoiningNode) -> None:
    """Wait until no node has a conflicting lease.

    Raises NotAdmitted as soon as one renews it.
    """
    seen: dict[int, Any] = {}
    while rows := connection.execute(_BARRING, (candidate.name, candidate.files)).fetchall():
        for incarnation, expires, node, files in rows:
            if seen.setdefault(incarnation, expires) != expires:
                raise candidate.refusal(node, files)
        time.sleep(_POLL_INTERVAL_S)


def _require_same(
    connection: psycopg.Connection[Any], identity: InstallationIdentity, secret_id: str, files: str | None
) -> None:
    if secret_id not in identity.secret_ids:
        raise DatabaseUnusableError(
            f"The database belongs to an installation with another secret (its id is {secret_id}, that of DESKWIRE_SECRET is "
            f"{identity.secret_ids[0]}). All nodes need the same: set DESKWIRE_SECRET to that one. To replace a secret, give "
            "all nodes the new one as DESKWIRE_SECRET_PREVIOUS first, and exchange the two when all have it."
        )
    if files != identity.files and connection.execute("SELECT 1 FROM uploads LIMIT 1").fetchone():
        raise DatabaseUnusableError(
            f"The uploads of this installation are kept in {files}, and DESKWIRE_FILES names {identity.files}. All nodes need "
            f"the same: set DESKWIRE_FILES to {files}. It can be another one only while there are no uploads."
        )


class ReadOnlyQueries(AdminReads):
    """The queries of commands that only read, in one transaction."""

    dialect = POSTGRES

    def __init__(self, connection: BlockingConnection) -> None:
        self.conn = connection


@contextmanager
def open_read_only(url: str, identity: InstallationIdentity) -> Iterator[ReadOnlyQueries]:
    """Open a session for reading; all queries use one snapshot.

    Raises DatabaseUnusableError if the database can't be reached, has another schema, or is of another
    installation.
    """
    require_installation(url, identity)
    try:
        database = Database(url, "command")
        with (
            watched(database.servers, database.options("read")),
            closing(BlockingConnection(database, "read")) as connection,
        ):
            connection.command("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            yield ReadOnlyQueries(connection)
    except DatabaseError as error:
        raise DatabaseUnusableError(f"The database can't be read: {error}") from error


SKIP_REASON: Final = "restored from a backup"
_LIVE: Final = "SELECT node FROM nodes WHERE expires > lease_now() ORDER BY node"
_SKIP: Final = """
UPDATE deliveries SET status = 'skipped', ended_at = %s, reason = %s WHERE status = 'pending'
"""


def accept_moved_database(url: str) -> None:
    """Accept the server to which a whole database was moved.

    Raises DatabaseUnusableError as `reset_restored_database` does.
    """
    require_migrated(url)
    with _exclusive(url) as connection:
        accept_server(connection)


def reset_restored_database(url: str, *, skip_pending: bool, now: int) -> int:
    """Remove the nodes, leases, sessions, one-time links and mails of a restored database, and accept its server.

    Returns the number of skipped deliveries.

    Args:
        skip_pending: True to skip pending deliveries.
        now: milliseconds.

    Raises DatabaseUnusableError, for example if nodes run on the database.
    """
    require_migrated(url)
    with _exclusive(url) as connection:
        accept_server(connection)
        connection.execute("DELETE FROM nodes")
        connection.execute("DELETE FROM lanes")
        connection.execute("UPDATE consumers SET connected = 0, node = '', incarnation = 0, wanted = NULL")
        # A session or one-time link that has ended since must not become valid again; mails have such links.
        for table in (
            "sessions",
            "challenges",
            "one_time_links",
            "mails",
            "oidc_requests",
            "push_subscriptions",
            "push_cursors",
            "pushes",
        ):
            connection.execute(f"DELETE FROM {table}")
        connection.execute("UPDATE installation SET epoch = epoch + 1")
        if not skip_pending:
            return 0
        connection.execute(
            "UPDATE held_messages SET problem = %s WHERE problem IS NULL", (problem_as_stored(RESTORED),)
        )
        return connection.execute(_SKIP, (now, SKIP_REASON)).rowcount


@contextmanager
def _exclusive(url: str) -> Iterator[ThreadSession]:
    """Begin a transaction on a database without running nodes. Raises DatabaseUnusableError."""
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
