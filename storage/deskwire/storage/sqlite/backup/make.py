"""Makes a backup: one file with a snapshot of the database, its uploads, and optionally the secret.

The file is written under a temporary name in the same folder, verified from disk, and renamed. The next backup to the
same file overwrites a temporary file that a crash has left.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import BinaryIO, Final

from msgspec import Struct

from deskwire.engine.core.encryption import Encryption
from deskwire.engine.core.secret import Secrets
from deskwire.engine.core.values import ProgressReporter, no_progress
from deskwire.engine.uploads.ports import FileContent
from deskwire.storage.check.rules import CheckProblem
from deskwire.storage.files import DiskFiles, sync
from deskwire.storage.sqlite.backup.archive import DATABASE, HEAD, MANIFEST, SEAL, SECRET, ArchiveWriter
from deskwire.storage.sqlite.backup.manifest import FORMAT, MISSING_SHOWN, Head, Manifest, seal, secret_id
from deskwire.storage.sqlite.backup.snapshot import (
    CopyError,
    applied,
    damage,
    database_bytes,
    opened,
    require_room,
    row_counts,
    snapshot,
)
from deskwire.storage.sqlite.backup.snapshot import problems as problems_in
from deskwire.storage.sqlite.backup.unpack import read_archive
from deskwire.storage.sqlite.directory import FILE_NAME, DataDirectoryError, require_whole
from deskwire.storage.sqlite.installation import require_own_database
from deskwire.storage.sqlite.migrations.records import newer_words
from deskwire.storage.tables.webhooks.endpoints import renew_seals

_SPARE: Final = 1 << 20
"""Bytes reserved for headers and the manifest in the check of free space."""


class BackupRequest(Struct, frozen=True):
    """The options of a backup.

    Args:
        directory: the data directory.
        target: the file to make.
        secrets: the installation's secrets; None if there are none.
        with_secret: whether the current secret goes into the file.
        force: whether a file of that name may be replaced.
        version: of this program.
        created_at: ISO 8601.
        tell: called with the progress.
    """

    directory: Path
    target: Path
    secrets: Secrets | None
    with_secret: bool
    force: bool
    version: str
    created_at: str
    tell: ProgressReporter = no_progress


class Backup(Struct, frozen=True):
    """A completed backup; `problems` are those of its database."""

    path: Path
    size: int
    head: Head
    manifest: Manifest
    problems: list[CheckProblem]


def back_up(order: BackupRequest) -> Backup:
    """Make the backup. It is complete and durable on return; on failure no file is left.

    Raises CopyError.
    """
    database = order.directory / FILE_NAME
    try:
        require_whole(order.directory)
        require_own_database(order.directory)
    except DataDirectoryError as error:
        raise CopyError(str(error)) from error
    if not database.exists():
        raise CopyError(
            f"There is no Deskwire in the data directory {order.directory}; --data names another."
        )
    if order.with_secret and order.secrets is None:
        raise CopyError(f"There is no secret in {order.directory} yet: the first `deskwire serve` makes it.")
    _refuse_existing(order)
    try:
        with _part(order.target) as (file, part):
            staged = part.with_name(f"{part.name}.sqlite3")
            try:
                return _made(order, database, file, part, staged)
            finally:
                for left in (staged, staged.with_name(f"{staged.name}-journal")):
                    left.unlink(missing_ok=True)
    except OSError as error:
        raise CopyError(f"The backup {order.target} can't be written: {error.strerror or error}") from error


class _Staged(Struct, frozen=True):
    """The snapshot of the database for the archive, with its head, problems and uploads."""

    path: Path
    head: Head
    problems: list[CheckProblem]
    contents: list[tuple[FileContent, int]]
    rows: dict[str, int]
    last_event: str | None


def _made(order: BackupRequest, database: Path, file: BinaryIO, part: Path, copy: Path) -> Backup:
    needed = 2 * database_bytes(database) + _SPARE
    require_room(part.parent, needed, "The copy of the database needs its room twice for a while.")
    copy.unlink(missing_ok=True)
    order.tell("Copying the database")
    snapshot(database, copy)
    _renew_seals(order, copy)
    order.tell("Checking the copy")
    staged = _staged(order, copy)
    needed = copy.stat().st_size + sum(size for _, size in staged.contents) + _SPARE
    require_room(part.parent, needed, "Make room, or write the backup to another disk.")
    manifest = _write(order, staged, ArchiveWriter(file))
    _put_on_disk(file)
    read_archive(part, order.secrets, tell=order.tell)
    _rename(order, part)
    return Backup(order.target, order.target.stat().st_size, staged.head, manifest, staged.problems)


def _renew_seals(order: BackupRequest, copy: Path) -> None:
    """Re-encrypt the snapshot with the current secret only, after an interrupted rotation of the secret."""
    if order.secrets is None or not order.secrets.previous:
        return
    try:
        with closing(opened(copy)) as connection:
            renew_seals(connection, Encryption(order.secrets).renewed)
    except sqlite3.Error as error:
        raise CopyError(f"The database is damaged: {error}") from error


def _staged(order: BackupRequest, copy: Path) -> _Staged:
    try:
        with closing(opened(copy, writing=False)) as connection:
            head, problems = _examined(order, connection)
            contents, rows = _contents(connection), row_counts(connection)
            return _Staged(copy, head, problems, contents, rows, _last_event(connection))
    except sqlite3.Error as error:
        raise CopyError(f"The database is damaged: {error}") from error


def _write(order: BackupRequest, staged: _Staged, writer: ArchiveWriter) -> Manifest:
    """Write the archive, and remove the snapshot of the database."""
    _add_document(writer, HEAD, staged.head.encoded())
    size = staged.path.stat().st_size
    order.tell("Writing the database")
    with staged.path.open("rb") as source:
        digest = writer.add(DATABASE, source, size)
    staged.path.unlink()  # the uploads need its space
    uploads = _add_uploads(writer, DiskFiles(order.directory), staged.contents, order.tell)
    manifest = Manifest(
        database_bytes=size,
        database_sha256=digest,
        files=uploads.files,
        file_bytes=uploads.bytes,
        file_list=uploads.names.hexdigest(),
        missing=uploads.missing[:MISSING_SHOWN],
        missing_files=len(uploads.missing),
        secret=order.with_secret,
        secret_id=None if order.secrets is None else secret_id(order.secrets.current),
        rows=staged.rows,
        last_event=staged.last_event,
    )
    _add_end(writer, order, staged.head, manifest)
    return manifest


def _examined(order: BackupRequest, connection: sqlite3.Connection) -> tuple[Head, list[CheckProblem]]:
    """Return the head, and problems of the data that are no reason to refuse the backup."""
    if words := newer_words(connection):
        raise CopyError(f"The database was written by {words} Use that one.")
    if faults := damage(connection):
        raise CopyError("The database is damaged, `deskwire check` shows more: " + "; ".join(faults[:3]))
    head = Head(
        format=FORMAT, version=order.version, created_at=order.created_at, migrations=applied(connection)
    )
    return head, problems_in(connection)


def _contents(connection: sqlite3.Connection) -> list[tuple[FileContent, int]]:
    rows = connection.execute("SELECT DISTINCT project, sha256, size FROM uploads ORDER BY project, sha256")
    return [(FileContent(project, digest), size) for project, digest, size in rows]


def _last_event(connection: sqlite3.Connection) -> str | None:
    row = connection.execute("SELECT id FROM events ORDER BY position DESC LIMIT 1").fetchone()
    return None if row is None else str(row[0])


class _Uploads:
    """The uploads added to a backup, and the names of missing ones."""

    def __init__(self) -> None:
        self.files = self.bytes = 0
        self.names = sha256()
        self.missing: list[str] = []


def _add_uploads(
    writer: ArchiveWriter, files: DiskFiles, contents: list[tuple[FileContent, int]], tell: ProgressReporter
) -> _Uploads:
    """Add the files of the uploads.

    The manifest lists uploads that were erased after the snapshot, or whose files are damaged.
    """
    done = _Uploads()
    for number, (content, size) in enumerate(contents):
        tell("Writing the uploads", number, len(contents))
        name = f"uploads/{content.project}/{content.sha256[:2]}/{content.sha256}"
        if _add_upload(writer, files.place(content), name, size, content.sha256):
            done.files += 1
            done.bytes += size
            done.names.update(f"{name}\n".encode())
        else:
            done.missing.append(name)
    return done


def _add_upload(writer: ArchiveWriter, path: Path, name: str, size: int, digest: str) -> bool:
    try:
        source = path.open("rb")
    except FileNotFoundError:
        return False
    with source:
        return os.fstat(source.fileno()).st_size == size and writer.add_if(name, source, size, digest)


def _add_end(writer: ArchiveWriter, order: BackupRequest, head: Head, manifest: Manifest) -> None:
    if order.secrets is not None and order.with_secret:
        _add_document(writer, SECRET, f"{order.secrets.current}\n".encode())
    _add_document(writer, MANIFEST, manifest.encoded())
    if order.secrets is not None:
        _add_document(writer, SEAL, seal(order.secrets.current, head.encoded(), manifest.encoded()))
    writer.finish()


def _add_document(writer: ArchiveWriter, name: str, data: bytes) -> None:
    writer.add(name, BytesIO(data), len(data))


@contextmanager
def _part(target: Path) -> Iterator[tuple[BinaryIO, Path]]:
    """Open a locked temporary file in the target's folder; it is removed at the end unless it was renamed."""
    part = target.with_name(f".{target.name}.part")
    handle = os.open(part, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    with os.fdopen(handle, "r+b") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise _under_way(target) from None
        if not _names(part, file):  # another process has renamed it to its target since it was opened
            raise _under_way(target)
        file.truncate()
        os.fchmod(file.fileno(), 0o600)
        try:
            yield file, part
        finally:
            if _names(part, file):
                part.unlink()


def _names(part: Path, file: BinaryIO) -> bool:
    """Return whether the path, and no other path, refers to this open file."""
    status = os.fstat(file.fileno())
    return part.exists() and os.path.samestat(part.stat(), status) and status.st_nlink == 1


def _under_way(target: Path) -> CopyError:
    return CopyError(f"Another backup to {target} is under way.")


def _put_on_disk(file: BinaryIO) -> None:
    """Sync the file and evict it from the page cache, so that the verification reads it from disk."""
    file.flush()
    os.fsync(file.fileno())
    if hasattr(os, "posix_fadvise"):
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def _refuse_existing(order: BackupRequest) -> None:
    if order.target.is_dir():
        raise CopyError(f"{order.target} is a directory: name a file.")
    if not order.force and order.target.exists():
        raise CopyError(f"{order.target} already exists; use --force to replace it.")


def _rename(order: BackupRequest, part: Path) -> None:
    """Rename the file to its target, unless the target exists by now."""
    _refuse_existing(order)
    part.replace(order.target)
    sync(order.target.absolute().parent)
