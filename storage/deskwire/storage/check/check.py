"""Looks whether a data directory is well: the file, the rules between rows, uploads and their files, sealed secrets.

It only reads, and a server may run meanwhile: all rows are those of one moment, and what concerns files is looked at again
before it is said, as a file comes before its row and goes after it.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from typing import Final

from msgspec import Struct, field

from deskwire.engine.accounts.machines import state_of_user
from deskwire.engine.core.clock import wall_clock
from deskwire.engine.core.progress import Tell, nobody
from deskwire.engine.core.sealing import SealBroken, Sealing
from deskwire.engine.core.secret import Secrets
from deskwire.engine.uploads.ports import FileContent
from deskwire.storage.check.rules import Problem, broken_rules
from deskwire.storage.check.search import index_problems
from deskwire.storage.connection import Connection
from deskwire.storage.dialect import SQLITE
from deskwire.storage.files import FOLDER, DiskFiles
from deskwire.storage.sqlite.backup.manifest import ANY_SECRET, secret_id
from deskwire.storage.sqlite.backup.snapshot import damage, opened, pending, row_counts, unknown
from deskwire.storage.sqlite.directory import FILE_NAME, RESCUED, RESTORING, DataDirectoryError, rescued
from deskwire.storage.sqlite.installation import foreign_database

SETTLED_S: Final = 60.0
"""A file younger than this may still get its row."""
_PIECE: Final = 1 << 20


class Report(Struct):
    """The result of a check; with no problems all is well. `rows` are counted by table, `files` are uploads."""

    problems: list[Problem] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    rows: dict[str, int] = field(default_factory=dict)
    files: int = 0


def check(
    directory: Path,
    secrets: Secrets | None,
    *,
    contents: bool,
    settled_s: float = SETTLED_S,
    tell: Tell = nobody,
) -> Report:
    """Check a data directory.

    Args:
        secrets: the installation's, if there are any.
        contents: whether the bytes of all uploads are read, too.
        tell: takes how far it is.

    Raises DataDirectoryError if there is no database of ours, or this program is too old for it.
    """
    path = directory / FILE_NAME
    report = Report(problems=list(_identity_problems(directory)))
    if not path.exists():
        if report.problems:
            return report
        raise DataDirectoryError(
            f"There is no Deskwire in the data directory {directory}; --data names another."
        )
    if (directory / RESTORING).exists():
        report.problems.append(Problem("restore_unfinished", f"A restore into {directory} was not finished."))
    try:
        with closing(opened(path, writing=False)) as connection:
            if _look(connection, path, report, tell):
                tell("Checking the search index and sealed secrets")
                report.problems += _other_secret(connection, secrets)
                report.problems += broken_seals(connection, secrets)
                report.notes += stray_credentials(connection, wall_clock())
                report.problems += index_problems(directory, connection)
                files = _Files(connection, DiskFiles(directory), contents, settled_s, tell)
                report.problems += files.problems()
                report.files = files.seen
    except sqlite3.DatabaseError as error:
        report.problems.append(Problem("database_damaged", f"The database {path} can't be read: {error}"))
    return report


def _identity_problems(directory: Path) -> Iterator[Problem]:
    """Yield how the database is not that of the other parts in its directory."""
    if (directory / RESCUED).exists():
        yield Problem("database_identity", rescued(directory))
    try:
        difference = foreign_database(directory)
    except (OSError, sqlite3.Error):
        return  # the next step opens the database, and reports the error
    if difference is not None:
        yield Problem(
            "database_identity", f"{difference} Put the installation's database back, or restore a backup."
        )


def _other_secret(connection: sqlite3.Connection, secrets: Secrets | None) -> Iterator[Problem]:
    """Yield whether the database belongs to another secret than the one at hand."""
    if secrets is None:
        return
    (claimed,) = connection.execute("SELECT secret_id FROM installation").fetchone()
    ids = [secret_id(each) for each in secrets.known]
    if claimed not in (None, ANY_SECRET, *ids):
        yield Problem(
            "secret_wrong",
            f"The database belongs to the secret whose id is {claimed}, and the id of this one is {ids[0]}.",
        )


def _look(connection: sqlite3.Connection, path: Path, report: Report, tell: Tell) -> bool:
    """Check the database by itself. Return whether there is sense in looking further."""
    connection.execute("PRAGMA temp_store = MEMORY")
    connection.execute("BEGIN")
    if newer := unknown(connection):
        raise DataDirectoryError(
            f"The database {path} was written by a newer Deskwire (it has {', '.join(newer)})."
        )
    tell("Checking the database file")
    if found := damage(connection):
        report.problems += (Problem("database_damaged", each) for each in found)
        return False
    report.rows = row_counts(connection)
    if older := pending(connection):
        report.notes.append(
            f"The next start brings the database up to date ({', '.join(older)}): rows and files can be checked after that."
        )
        return False
    report.problems += broken_rules(connection, SQLITE, tell)
    connection.execute("COMMIT")
    return True


def broken_seals(connection: Connection, secrets: Secrets | None) -> Iterator[Problem]:
    """Yield the endpoints whose signing secret the installation's secret does not open."""
    rows = connection.execute("SELECT id, sealed_secret FROM endpoints WHERE status <> 'removed'").fetchall()
    if not rows:
        return
    if secrets is None:
        yield Problem(
            "secret_missing", f"There are {len(rows)} webhook endpoints, and no secret to sign with."
        )
        return
    sealing = Sealing(secrets)
    for endpoint, sealed in rows:
        try:
            sealing.open(sealed)
        except SealBroken:
            yield Problem(
                "secret_wrong", f"The signing secret of {endpoint} was sealed under another secret."
            )


def stray_credentials(connection: Connection, now: int) -> Iterator[str]:
    """Yield a note for each credential in force at `now` (ms) whose creator has left, or lacks the permissions to create it."""
    rows = connection.execute(
        "SELECT m.id, m.name, m.permissions, m.made_by_id, m.expires_at, s.role FROM machine_credentials m "
        "JOIN projects p ON p.rowid = m.project LEFT JOIN users u ON u.id = m.made_by_id "
        'LEFT JOIN memberships s ON s.organisation = p.organisation AND s."user" = u.rowid '
        "WHERE m.made_by = 'user' AND m.revoked_at IS NULL ORDER BY m.rowid"
    )
    for credential, name, permissions, maker, ends_at, role in rows.fetchall():
        if ends_at is not None and ends_at <= now:
            continue
        match state_of_user(filter(None, permissions.split(",")), role):
            case "left":
                yield f"The machine credential {name!r} ({credential}) was created by {maker}, who has left the organisation."
            case "demoted":
                yield f"The machine credential {name!r} ({credential}) has permissions that {maker}, who created it, no longer has."


class _Files:
    """The uploads' rows and files, held against each other."""

    def __init__(
        self, connection: sqlite3.Connection, files: DiskFiles, contents: bool, settled_s: float, tell: Tell
    ) -> None:
        self.seen = 0
        self._connection = connection
        self._files = files
        self._contents = contents
        self._settled = time.time() - settled_s
        self._tell = tell

    def problems(self) -> Iterator[Problem]:
        """Yield each disagreement between the uploads' rows and their files."""
        rows = self._connection.execute(
            "SELECT project, sha256, size, min(id) FROM uploads GROUP BY project, sha256 ORDER BY project, sha256"
        ).fetchall()
        for number, (project, digest, size, upload) in enumerate(rows):
            self._tell("Checking the uploads", number, len(rows))
            content = FileContent(project, digest)
            wrong = self._wrong(content, size)
            if wrong is not None and self._is_kept(content):
                yield Problem(
                    "upload_file", f"The file of {upload}, {FOLDER}/{self._name(content)}, {wrong}."
                )
        yield from self._strangers()

    def _wrong(self, content: FileContent, size: int) -> str | None:
        path = self._files.place(content)
        try:
            size_on_disk = path.stat().st_size
            self.seen += 1
            if size_on_disk != size:
                return f"has {size_on_disk:,} bytes and not {size:,}"
            if self._contents and _digest(path) != content.sha256:
                return "has other bytes than were uploaded"
        except FileNotFoundError:
            return "is missing"
        except OSError as error:
            return f"can't be read ({error.strerror})"
        return None

    def _strangers(self) -> Iterator[Problem]:
        """Yield the files that no row refers to; the server removes those at its start."""
        for content in self._files.contents():
            path = self._files.place(content)
            try:
                if path.stat().st_ctime > self._settled:
                    continue
            except FileNotFoundError:
                continue
            if not self._is_kept(content) and not self._is_doomed(content) and path.exists():
                yield Problem(
                    "file_without_upload",
                    f"No upload refers to {FOLDER}/{self._name(content)}; the next start removes it.",
                )

    def _is_kept(self, content: FileContent) -> bool:
        return self._any("uploads", content)

    def _is_doomed(self, content: FileContent) -> bool:
        return self._any("doomed_files", content)

    def _any(self, table: str, content: FileContent) -> bool:
        row = self._connection.execute(
            f"SELECT 1 FROM {table} WHERE project = ? AND sha256 = ? LIMIT 1",
            (content.project, content.sha256),
        ).fetchone()
        return row is not None

    def _name(self, content: FileContent) -> str:
        return f"{content.project}/{content.sha256[:2]}/{content.sha256}"


def _digest(path: Path) -> str:
    digest = sha256()
    with path.open("rb") as file:
        while piece := file.read(_PIECE):
            digest.update(piece)
    return digest.hexdigest()
