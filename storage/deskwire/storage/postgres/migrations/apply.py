"""Application of migrations by one node at a time, and refusal of unfit schemas."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

import psycopg
from psycopg import errors

from deskwire.engine.core.build import version
from deskwire.storage.postgres.admin.preflight import connected, database_location, require_fit
from deskwire.storage.postgres.driver.errors import DatabaseUnusableError
from deskwire.storage.postgres.driver.servers import Servers
from deskwire.storage.postgres.migrations.list import MIGRATIONS, RECORDS, Migration
from deskwire.storage.versions import newer_program, outdated

_LOCK: Final = 0x6465736B77697265  # "deskwire"
_POLL_INTERVAL_S: Final = 0.05
# The index in a statement, if an earlier attempt left it invalid.
_INVALID: Final = r"""
SELECT quote_ident(c.relname) FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
WHERE NOT i.indisvalid AND c.relnamespace = current_schema()::regnamespace AND %s ~ ('\m' || c.relname || '\M')
"""
_RECORDS: Final = f"""
CREATE TABLE IF NOT EXISTS {RECORDS} (
    name text COLLATE "C" PRIMARY KEY, at timestamptz NOT NULL DEFAULT clock_timestamp(), oldest_program text COLLATE "C" NOT NULL,
    program text COLLATE "C"
);
ALTER TABLE {RECORDS} ADD COLUMN IF NOT EXISTS program text COLLATE "C"
"""
# Tables that belong to no extension.
_FOREIGN_TABLES: Final = f"""
SELECT relname FROM pg_class c WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p')
AND relname <> '{RECORDS}' AND NOT EXISTS
    (SELECT 1 FROM pg_depend d WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e')
ORDER BY 1 LIMIT 3
"""


def migrate(
    url: str, migrations: Sequence[Migration] = MIGRATIONS, servers: Servers | None = None
) -> list[str]:
    """Bring a database up to date, or set up an empty one.

    Returns the names of the applied migrations. Nodes that start together wait for the one that migrates. An
    account without rights on the schema is enough if no migration is pending.

    Args:
        servers: those of a node that starts.

    Raises DatabaseUnusableError if the database can't be reached or used, or its schema needs a newer
    program.
    """
    with _connected(url, servers) as connection:
        if not _pending(connection, migrations):
            return []
        # Polled, because a session that waits within a statement keeps a snapshot, for which CREATE INDEX
        # CONCURRENTLY waits.
        while connection.execute("SELECT pg_try_advisory_lock(%s)", (_LOCK,)).fetchone() != (True,):
            time.sleep(_POLL_INTERVAL_S)  # released when the connection closes
        pending = _pending(connection, migrations)
        if pending and _applied(connection):
            _require_no_nodes(connection, pending)
        elif pending:
            _require_empty(connection)
        connection.execute(_RECORDS)
        for migration in pending:
            _apply(connection, migration)
        return [migration.name for migration in pending]


def require_migrated(url: str, migrations: Sequence[Migration] = MIGRATIONS) -> None:
    """Make sure that a database is up to date, without changing it.

    Raises DatabaseUnusableError.
    """
    with _connected(url) as connection:
        # Raises if a newer program has applied migrations that exclude this one.
        _pending(connection, migrations)
        applied = _applied(connection)
        if words := outdated(applied, [migration.name for migration in migrations]):
            raise DatabaseUnusableError(
                f"The database {database_location(url)} {words} Run `deskwire migrate`, or start a node with `deskwire serve`."
            )


def _apply(connection: psycopg.Connection, migration: Migration) -> None:
    if migration.indexes:
        for statement in migration.indexes:
            for (name,) in connection.execute(_INVALID, (statement,)).fetchall():
                connection.execute(f"DROP INDEX CONCURRENTLY {name}".encode())
            connection.execute(statement.encode())
        _record(connection, migration)
    elif migration.steps is not None:
        migration.steps(connection)
        _record(connection, migration)
    else:
        with connection.transaction():
            connection.execute(migration.sql.encode(), prepare=False)
            if migration.fill is not None:
                migration.fill(connection)
            _record(connection, migration)


def _record(connection: psycopg.Connection, migration: Migration) -> None:
    connection.execute(
        "INSERT INTO schema_migrations (name, oldest_program, program) VALUES (%s, %s, %s)",
        (migration.name, migration.oldest_program, version()),
    )


def _pending(connection: psycopg.Connection, migrations: Sequence[Migration]) -> list[Migration]:
    """Return the known migrations that the database does not have.

    Raises DatabaseUnusableError if it has a migration that excludes this program.
    """
    applied = _applied(connection)
    known = {migration.name for migration in migrations}
    newest = max(known)
    unfit = sorted(name for name, oldest in applied.items() if name not in known and oldest > newest)
    if unfit:
        raise DatabaseUnusableError(
            f"The database was brought up to date by {newer_program(unfit, _programs(connection))}, beside which this one "
            f"({version()}, which knows {newest}) can't run. Start that version on this node as well."
        )
    return [migration for migration in migrations if migration.name not in applied]


def _applied(connection: psycopg.Connection) -> dict[str, str]:
    """Return the recorded migrations, each with the oldest program that may run beside it."""
    if connection.execute("SELECT to_regclass('schema_migrations')").fetchone() == (None,):
        return {}
    return dict(connection.execute("SELECT name, oldest_program FROM schema_migrations").fetchall())


def _programs(connection: psycopg.Connection) -> dict[str, str | None]:
    """Return the version of the program that applied each migration, None before 0.2.0."""
    rows = connection.execute("SELECT to_jsonb(m) FROM schema_migrations m").fetchall()
    return {record["name"]: record.get("program") for (record,) in rows}


def _require_empty(connection: psycopg.Connection) -> None:
    """Raise DatabaseUnusableError if a new database has tables of another program."""
    if found := connection.execute(_FOREIGN_TABLES.encode()).fetchall():
        raise DatabaseUnusableError(
            f"The database has tables of another program ({', '.join(name for (name,) in found)}): name an empty one."
        )


def _require_no_nodes(connection: psycopg.Connection, pending: Sequence[Migration]) -> None:
    """Raise DatabaseUnusableError if a migration excludes the nodes that are running."""
    hard = [migration.name for migration in pending if not migration.additive]
    if not hard:
        return
    rows = connection.execute(
        "SELECT node FROM nodes WHERE expires > clock_timestamp() ORDER BY node"
    ).fetchall()
    if rows:
        raise DatabaseUnusableError(
            f"The upgrade ({', '.join(hard)}) can't be done while older nodes run. Stop all of them first "
            f"({', '.join(node for (node,) in rows)}), and start again."
        )


@contextmanager
def _connected(url: str, servers: Servers | None = None) -> Iterator[psycopg.Connection]:
    try:
        with connected(url, "migrate", servers=servers) as connection:
            require_fit(connection, url)
            yield connection
    except errors.InsufficientPrivilege as error:
        raise DatabaseUnusableError(
            f"The database's schema has to be changed, which this account may not do ({_message(error)}). Run `deskwire migrate` "
            "with the URL of an account that may."
        ) from error
    except psycopg.Error as error:
        raise DatabaseUnusableError(
            f"The database {database_location(url)} can't be used: {_message(error)}"
        ) from error


def _message(error: psycopg.Error) -> str:
    return " ".join(str(error).split())
