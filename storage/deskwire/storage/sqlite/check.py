"""Checks a data directory: the database file, rules between rows, uploads and their files, and sealed secrets.

The check only reads, and a server may be running. All rows come from one snapshot. Findings about files are checked a
second time, because a file is created before its row and removed after it.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from typing import Final

from deskwire.engine.core.clock import wall_clock
from deskwire.engine.core.secret import Secrets
from deskwire.engine.core.values import ProgressReporter, no_progress
from deskwire.engine.uploads.ports import FileContent
from deskwire.storage.check.credentials import broken_seals, stray_credentials
from deskwire.storage.check.rules import SHOWN, CheckProblem, CheckReport, broken_rules
from deskwire.storage.dialect import SQLITE
from deskwire.storage.files import FOLDER, DiskFiles
from deskwire.storage.sqlite.backup.manifest import ANY_SECRET, secret_id
from deskwire.storage.sqlite.backup.snapshot import damage, opened, row_counts
from deskwire.storage.sqlite.directory import FILE_NAME, RESCUED, RESTORING, DataDirectoryError, rescued
from deskwire.storage.sqlite.installation import foreign_database
from deskwire.storage.sqlite.migrations.records import newer_words, pending_migrations
from deskwire.storage.sqlite.search.file import FILE_NAME as INDEX_FILE_NAME
from deskwire.storage.sqlite.search.file import VERSION as INDEX_VERSION

SETTLED_S: Final = 60.0
"""A newer file may still get its row."""
_PIECE: Final = 1 << 20


def check(
    directory: Path,
    secrets: Secrets | None,
    *,
    contents: bool,
    settled_s: float = SETTLED_S,
    tell: ProgressReporter = no_progress,
) -> CheckReport:
    """Check a data directory.

    Args:
        secrets: the installation's secrets, None if there are none.
        contents: whether to read the bytes of all uploads.
        tell: called with the progress.

    Raises DataDirectoryError if there is no database of ours, or this program is too old for it.
    """
    path = directory / FILE_NAME
    report = CheckReport(problems=list(_identity_problems(directory)))
    if not path.exists():
        if report.problems:
            return report
        raise DataDirectoryError(
            f"There is no Deskwire in the data directory {directory}; --data names another."
        )
    if (directory / RESTORING).exists():
        report.problems.append(
            CheckProblem("restore_unfinished", f"A restore into {directory} was not finished.")
        )
    try:
        with closing(opened(path, writing=False)) as connection:
            if _check_database(connection, path, report, tell):
                tell("Checking the search index and sealed secrets")
                report.problems += _other_secret(connection, secrets)
                report.problems += broken_seals(connection, secrets)
                report.notes += stray_credentials(connection, wall_clock())
                report.problems += index_problems(directory, connection)
                files = _Files(connection, DiskFiles(directory), contents, settled_s, tell)
                report.problems += files.problems()
                report.files = files.seen
    except sqlite3.DatabaseError as error:
        report.problems.append(
            CheckProblem("database_damaged", f"The database {path} can't be read: {error}")
        )
    return report


def _identity_problems(directory: Path) -> Iterator[CheckProblem]:
    """Yield a problem if the database does not belong to the other files of the directory."""
    if (directory / RESCUED).exists():
        yield CheckProblem("database_identity", rescued(directory))
    try:
        difference = foreign_database(directory)
    except (OSError, sqlite3.Error):
        return  # the next step opens the database, and reports the error
    if difference is not None:
        yield CheckProblem(
            "database_identity", f"{difference} Put the installation's database back, or restore a backup."
        )


def _other_secret(connection: sqlite3.Connection, secrets: Secrets | None) -> Iterator[CheckProblem]:
    """Yield a problem if the database belongs to another secret."""
    if secrets is None:
        return
    (claimed,) = connection.execute("SELECT secret_id FROM installation").fetchone()
    ids = [secret_id(each) for each in secrets.known]
    if claimed not in (None, ANY_SECRET, *ids):
        yield CheckProblem(
            "secret_wrong",
            f"The database belongs to the secret whose id is {claimed}, and the id of this one is {ids[0]}.",
        )


def _check_database(
    connection: sqlite3.Connection, path: Path, report: CheckReport, tell: ProgressReporter
) -> bool:
    """Check the database file. Return whether further checks make sense."""
    connection.execute("PRAGMA temp_store = MEMORY")
    connection.execute("BEGIN")
    if words := newer_words(connection):
        raise DataDirectoryError(f"The database {path} was written by {words}")
    tell("Checking the database file")
    if found := damage(connection):
        report.problems += (CheckProblem("database_damaged", each) for each in found)
        return False
    report.rows = row_counts(connection)
    if older := pending_migrations(connection):
        report.notes.append(
            f"The next start brings the database up to date ({', '.join(older)}): rows and files can be checked after that."
        )
        return False
    report.problems += broken_rules(connection, SQLITE, tell)
    connection.execute("COMMIT")
    return True


class _Files:
    """Compares the rows of uploads with their files."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        files: DiskFiles,
        contents: bool,
        settled_s: float,
        tell: ProgressReporter,
    ) -> None:
        self.seen = 0
        self._connection = connection
        self._files = files
        self._contents = contents
        self._settled = time.time() - settled_s
        self._tell = tell

    def problems(self) -> Iterator[CheckProblem]:
        """Yield the differences between rows and files of uploads."""
        rows = self._connection.execute(
            "SELECT project, sha256, size, min(id) FROM uploads GROUP BY project, sha256 ORDER BY project, sha256"
        ).fetchall()
        for number, (project, digest, size, upload) in enumerate(rows):
            self._tell("Checking the uploads", number, len(rows))
            content = FileContent(project, digest)
            wrong = self._wrong(content, size)
            if wrong is not None and self._is_kept(content):
                yield CheckProblem(
                    "upload_file", f"The file of {upload}, {FOLDER}/{self._name(content)}, {wrong}."
                )
        yield from self._unreferenced_files()

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

    def _unreferenced_files(self) -> Iterator[CheckProblem]:
        """Yield files without a row; the server removes them at its start."""
        for content in self._files.contents():
            path = self._files.place(content)
            try:
                if path.stat().st_ctime > self._settled:
                    continue
            except FileNotFoundError:
                continue
            if not self._is_kept(content) and not self._is_doomed(content) and path.exists():
                yield CheckProblem(
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


def index_problems(directory: Path, database: sqlite3.Connection) -> Iterator[CheckProblem]:
    """Yield the problems of the search index; none if it is missing, or if the next start rebuilds it."""
    path = directory / INDEX_FILE_NAME
    if not path.exists():
        return
    try:
        with closing(opened(path, writing=False)) as index:
            if found := damage(index):
                yield from (_damaged(each) for each in found)
                return
            state = index.execute("SELECT version FROM state").fetchone()
            if state is not None and state[0] == INDEX_VERSION:
                yield from _strays(index, database)
    except sqlite3.DatabaseError as error:
        yield _damaged(str(error))


def _damaged(what: str) -> CheckProblem:
    advice = f"Stop the server and remove {INDEX_FILE_NAME}: the next start rebuilds it."
    return CheckProblem("search_index_damaged", f"The search index is damaged: {what}. {advice}")


def _strays(index: sqlite3.Connection, database: sqlite3.Connection) -> Iterator[CheckProblem]:
    """Yield the conversations that only the index has, except those whose removal from the index is pending."""
    indexed = [row for (row,) in index.execute("SELECT conversation FROM words").fetchall()]
    known = {row for (row,) in database.execute("SELECT rowid FROM conversations")}
    changed = {row for (row,) in database.execute("SELECT conversation FROM search_changes")}
    strays = (
        row for row in indexed if row not in known and row not in changed and _is_still_there(index, row)
    )
    for row, _ in zip(strays, range(SHOWN), strict=False):
        yield CheckProblem(
            "search_index_stray",
            f"The search index has words of a deleted conversation (row {row}). "
            f"Stop the server and remove {INDEX_FILE_NAME}: the next start rebuilds it.",
        )


def _is_still_there(index: sqlite3.Connection, row: int) -> bool:
    """Return whether the index still has this row, because a running server may have removed it since."""
    return index.execute("SELECT 1 FROM words WHERE conversation = ?", (row,)).fetchone() is not None
