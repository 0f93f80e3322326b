"""Reading a database that nodes share, for commands that only read: one transaction, which may not write."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager

from deskwire.storage.dialect import POSTGRES
from deskwire.storage.postgres.driver.blocking import BlockingConnection
from deskwire.storage.postgres.driver.refusals import DatabaseError
from deskwire.storage.postgres.driver.session import Database
from deskwire.storage.postgres.driver.thread_session import watched
from deskwire.storage.postgres.driver.unusable import DatabaseUnusableError
from deskwire.storage.postgres.operating.installation import Identity, belongs
from deskwire.storage.tables.read_queries import AdminReads


class Look(AdminReads):
    """The queries of commands that only read, in one transaction."""

    dialect = POSTGRES

    def __init__(self, connection: BlockingConnection) -> None:
        self.conn = connection


@contextmanager
def looking(url: str, identity: Identity) -> Iterator[Look]:
    """Begin a session for reading; all queries see the same state.

    Raises DatabaseUnusableError if the database can't be reached, is of an older or newer program, or of another installation.
    """
    belongs(url, identity)
    try:
        database = Database(url, "command")
        with (
            watched(database.servers, database.options("read")),
            closing(BlockingConnection(database, "read")) as connection,
        ):
            connection.command("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            yield Look(connection)
    except DatabaseError as error:
        raise DatabaseUnusableError(f"The database can't be read: {error}") from error
