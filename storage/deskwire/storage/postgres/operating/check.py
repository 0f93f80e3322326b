"""The look at a PostgreSQL database: the rules between its rows, sealed secrets, uploads, and the server's own settings.

All rows are those of one moment, and nodes may run meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from typing import Any, Final

import psycopg

from deskwire.engine.core.clock import wall_clock
from deskwire.engine.core.ids import day_of
from deskwire.engine.core.progress import Tell, nobody
from deskwire.engine.core.secret import Secrets
from deskwire.engine.uploads.ports import FileContent, Files
from deskwire.storage.check.check import Report, broken_seals, stray_credentials
from deskwire.storage.check.rules import Problem, broken_rules
from deskwire.storage.dialect import POSTGRES
from deskwire.storage.postgres.driver.thread_session import ThreadSession
from deskwire.storage.postgres.driver.unusable import DatabaseUnusableError
from deskwire.storage.postgres.migrations.apply import require_migrated
from deskwire.storage.postgres.operating.asked import Asked
from deskwire.storage.postgres.operating.installation import other_server
from deskwire.storage.postgres.operating.preflight import connected, examine
from deskwire.storage.postgres.schema.days import DAY_TABLES, TODAY

_PIECE: Final = 1 << 20
_CONTENTS: Final = """
SELECT DISTINCT u.project, u.sha256, u.size, coalesce(c.rowid, 0) FROM uploads u
LEFT JOIN contents c ON c.project = u.project AND c.sha256 = u.sha256 AND c.going = 0
"""

_PENDING: Final = "SELECT id, day FROM deliveries WHERE status = 'pending'"
_STRAY: Final = """
SELECT a.number, d.id FROM attempts a JOIN deliveries d ON d.position = a.delivery WHERE a.day <> d.day
"""


def check(url: str, secrets: Secrets | None, files: Files, *, contents: bool, tell: Tell = nobody) -> Report:
    """Check a database.

    Args:
        secrets: the installation's, if there are any.
        files: the uploads'.
        contents: whether the bytes of all uploads are read, too.
        tell: takes how far it is.

    Raises DatabaseUnusableError if there is no database of ours, or this program is too old for it.
    """
    found = examine(url)
    require_migrated(url)
    report = Report(notes=[*found.notes, *_standby(synchronous=found.synchronous)])
    try:
        with connected(url, "check") as connection:
            report.problems += _other_servers(connection)
            connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            connection.read_only = True
            with connection.transaction():
                asked = Asked(connection)
                report.problems += broken_rules(asked, POSTGRES, tell)
                report.problems += broken_seals(asked, secrets)
                report.problems += _wrong_days(connection)
                report.notes += stray_credentials(asked, wall_clock())
                report.rows = _row_counts(connection)
                report.notes += _missing_days(connection)
                uploads = connection.execute(_CONTENTS).fetchall()
    except psycopg.Error as error:
        raise DatabaseUnusableError(f"The database can't be read: {' '.join(str(error).split())}") from error
    report.problems += _broken_files(uploads, files, tell, contents=contents)
    report.files = len(uploads)
    return report


def _other_servers(connection: ThreadSession) -> Iterator[Problem]:
    """Yield a problem if the server is not the installation's, and another for a replaced primary that runs beside it."""
    if (difference := other_server(connection)) is not None:
        yield Problem("database_identity", difference)
    if (beside := connection.servers.identity.found) is not None:
        yield Problem("database_identity", beside.detail)


def _standby(*, synchronous: bool) -> Iterator[str]:
    if not synchronous:
        yield "No standby confirms commits: if the server's disk is lost, what was acknowledged since the last copy is, too."


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


def _wrong_days(connection: psycopg.Connection[Any]) -> Iterator[Problem]:
    """Yield a problem for each pending delivery that is not of the day of its id, and each attempt of another day than its delivery."""
    with connection.cursor("pending") as pending:
        for delivery_id, day in pending.execute(_PENDING):
            if day_of(delivery_id) != day:
                yield Problem(
                    "delivery_day",
                    f"Delivery {delivery_id} is pending and stored under day {day}, where no result finds it.",
                )
    for number, delivery_id in connection.execute(_STRAY):
        yield Problem(
            "attempt_day",
            f"Attempt {number} at delivery {delivery_id} is stored under another day than that.",
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
    uploads: list[tuple[int, str, int, int]], files: Files, tell: Tell, *, contents: bool
) -> Iterator[Problem]:
    for number, (project, digest, size, entry) in enumerate(uploads):
        tell("Checking the uploads", number, len(uploads))
        wrong = _wrong(files, FileContent(project, digest, entry), size, contents=contents)
        if wrong is not None:
            yield Problem("upload_file", f"The file with SHA-256 {digest} of project row {project} {wrong}.")


def _wrong(files: Files, content: FileContent, size: int, *, contents: bool) -> str | None:
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
    for start in range(0, size, _PIECE):
        digest.update(files.read(content, start, min(_PIECE, size - start)))
    return digest.hexdigest()
