"""The check of a PostgreSQL database: rules between rows, secrets, uploads, settings.

All rows are read in one snapshot, and nodes may keep running.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Any, Final

import psycopg

from deskwire.engine.core.clock import wall_clock
from deskwire.engine.core.ids import day_of
from deskwire.engine.core.secret import Secrets
from deskwire.engine.core.values import ProgressReporter, no_progress
from deskwire.engine.uploads.ports import FileContent, Files
from deskwire.storage.check.credentials import broken_seals, stray_credentials
from deskwire.storage.check.rules import CheckProblem, CheckReport, broken_rules
from deskwire.storage.connection import Rows
from deskwire.storage.dialect import POSTGRES
from deskwire.storage.postgres.admin.installation import other_server
from deskwire.storage.postgres.admin.preflight import connected, examine
from deskwire.storage.postgres.driver.blocking import ThreadSession
from deskwire.storage.postgres.driver.errors import DatabaseUnusableError
from deskwire.storage.postgres.migrations.apply import require_migrated
from deskwire.storage.postgres.schema.days import DAY_TABLES, TODAY

_CHUNK_BYTES: Final = 1 << 20
_CONTENTS: Final = """
SELECT DISTINCT u.project, u.sha256, u.size, coalesce(c.rowid, 0) FROM uploads u
LEFT JOIN contents c ON c.project = u.project AND c.sha256 = u.sha256 AND c.going = 0
"""

_PENDING: Final = "SELECT id, day FROM deliveries WHERE status = 'pending'"
_STRAY: Final = """
SELECT a.number, d.id FROM attempts a JOIN deliveries d ON d.position = a.delivery WHERE a.day <> d.day
"""


def check(
    url: str, secrets: Secrets | None, files: Files, *, contents: bool, tell: ProgressReporter = no_progress
) -> CheckReport:
    """Check a database.

    Args:
        secrets: the installation's secrets, if there are any.
        files: the store of uploads.
        contents: True to read the bytes of all uploads as well.
        tell: receives the progress.

    Raises DatabaseUnusableError if the database has no installation, or a schema that this program does not
    know.
    """
    found = examine(url)
    require_migrated(url)
    report = CheckReport(notes=[*found.notes, *_standby(synchronous=found.synchronous)])
    try:
        with connected(url, "check") as connection:
            report.problems += _other_servers(connection)
            connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            connection.read_only = True
            with connection.transaction():
                rules_connection = CheckConnection(connection)
                report.problems += broken_rules(rules_connection, POSTGRES, tell)
                report.problems += broken_seals(rules_connection, secrets)
                report.problems += _wrong_days(connection)
                report.notes += stray_credentials(rules_connection, wall_clock())
                report.rows = _row_counts(connection)
                report.notes += _missing_days(connection)
                uploads = connection.execute(_CONTENTS).fetchall()
    except psycopg.Error as error:
        raise DatabaseUnusableError(f"The database can't be read: {' '.join(str(error).split())}") from error
    report.problems += _broken_files(uploads, files, tell, contents=contents)
    report.files = len(uploads)
    return report


def _other_servers(connection: ThreadSession) -> Iterator[CheckProblem]:
    """Yield a problem for a server of another installation, and for a replaced primary."""
    if (difference := other_server(connection)) is not None:
        yield CheckProblem("database_identity", difference)
    if (beside := connection.servers.identity.found) is not None:
        yield CheckProblem("database_identity", beside.detail)


def _standby(*, synchronous: bool) -> Iterator[str]:
    if not synchronous:
        yield "No standby confirms commits: if the server's disk fails, all changes since the last backup are lost."


def _missing_days(connection: psycopg.Connection[Any]) -> Iterator[str]:
    """Yield a note for each table that lacks the partition of today or tomorrow."""
    ((today,),) = connection.execute(TODAY.encode()).fetchall()
    for table in DAY_TABLES:
        there = {name for (name,) in connection.execute(table.partitions.encode()).fetchall()}
        missing = [name for name in map(table.partition, (today, today + 1)) if name not in there]
        if missing:
            yield (
                f"{table.name} has no {' and no '.join(missing)}: rows of these days are in {table.default}, and are deleted one by "
                "one. The log of the nodes says why (storage.days_not_added)."
            )


def _wrong_days(connection: psycopg.Connection[Any]) -> Iterator[CheckProblem]:
    """Yield a problem for each pending delivery and each attempt under a wrong day."""
    with connection.cursor("pending") as pending:
        for delivery_id, day in pending.execute(_PENDING):
            if day_of(delivery_id) != day:
                yield CheckProblem(
                    "delivery_day",
                    f"Delivery {delivery_id} is pending and stored under day {day}, where its results can't be recorded.",
                )
    for number, delivery_id in connection.execute(_STRAY):
        yield CheckProblem(
            "attempt_day",
            f"Attempt {number} at delivery {delivery_id} is stored under another day than the delivery.",
        )


def _row_counts(connection: psycopg.Connection[Any]) -> dict[str, int]:
    names = connection.execute(
        "SELECT relname FROM pg_class WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p') "
        "AND NOT relispartition ORDER BY 1"
    ).fetchall()
    return {
        name: connection.execute(f'SELECT count(*) FROM "{name}"'.encode()).fetchall()[0][0]
        for (name,) in names
    }


def _broken_files(
    uploads: list[tuple[int, str, int, int]], files: Files, tell: ProgressReporter, *, contents: bool
) -> Iterator[CheckProblem]:
    for number, (project, digest, size, entry) in enumerate(uploads):
        tell("Checking the uploads", number, len(uploads))
        wrong = _file_problem(files, FileContent(project, digest, entry), size, contents=contents)
        if wrong is not None:
            yield CheckProblem(
                "upload_file", f"The file with SHA-256 {digest} of project row {project} {wrong}."
            )


def _file_problem(files: Files, content: FileContent, size: int, *, contents: bool) -> str | None:
    try:
        found = files.size(content)
        if found is None:
            return "is missing"
        if found != size:
            return f"has {found:,} bytes and not {size:,}"
        if contents and _digest(files, content, size) != content.sha256:
            return "has other bytes than were uploaded"
    except OSError as error:
        return f"can't be read ({error.strerror or error})"
    return None


def _digest(files: Files, content: FileContent, size: int) -> str:
    digest = sha256()
    for start in range(0, size, _CHUNK_BYTES):
        digest.update(files.read(content, start, min(_CHUNK_BYTES, size - start)))
    return digest.hexdigest()


class CheckConnection:
    """`connection.Connection` on a psycopg connection, for statements without values."""

    dialect: Final = "postgres"

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._connection = connection

    def execute(self, sql: str, values: Sequence[Any] | Mapping[str, Any] = (), /) -> Rows:
        """See `Connection.execute`."""
        assert not values, "rules have none"
        return self._connection.execute(sql.encode())

    def executemany(self, sql: str, rows: Iterable[Sequence[Any]], /) -> None:
        """Raise TypeError, because rules change nothing."""
        raise TypeError("rules change nothing")
