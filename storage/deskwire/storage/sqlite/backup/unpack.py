"""Reads a backup and verifies everything: names, sizes, checksums, order and HMAC."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

from msgspec import Struct

from deskwire.engine.core.secret import Secrets
from deskwire.engine.core.values import ProgressReporter, no_progress
from deskwire.storage.files import sync
from deskwire.storage.sqlite.backup.archive import (
    DATABASE,
    HEAD,
    MANIFEST,
    SEAL,
    SECRET,
    UPLOAD,
    ArchiveMember,
    is_document,
    members,
)
from deskwire.storage.sqlite.backup.manifest import (
    Head,
    Manifest,
    fitting,
    head_of,
    is_sealed,
    manifest_of,
    secret_id,
)
from deskwire.storage.sqlite.backup.snapshot import NEW, CopyError
from deskwire.storage.sqlite.migrations.list import known_migrations
from deskwire.storage.versions import newer_program, this_program


class Contents(Struct, frozen=True):
    """The contents of a backup; `sealed` is True if the HMAC with the installation's secret was verified."""

    head: Head
    manifest: Manifest
    secret: str | None
    sealed: bool


class _Reading:
    """The state of reading a backup."""

    def __init__(self) -> None:
        self.documents: dict[str, bytes] = {}
        self.database: tuple[int, str] | None = None
        self.files = self.file_bytes = 0
        self.names = sha256()


def read_archive(
    path: Path, secrets: Secrets | None, into: Path | None = None, *, tell: ProgressReporter = no_progress
) -> Contents:
    """Read a whole backup and verify it.

    Args:
        secrets: the installation's if known; they must include the backup's.
        into: an empty directory for the database and the uploads; None only verifies.
        tell: called with the progress.

    Raises CopyError.
    """
    with _named(path), path.open("rb") as source:
        reading = _Reading()
        size = os.fstat(source.fileno()).st_size
        for member in members(source):
            tell("Reading the backup", source.tell(), size)
            _take(reading, member, into)
        if into is not None:
            _sync_folders(into)
        return _checked(reading, secrets)


@contextmanager
def _named(path: Path) -> Iterator[None]:
    try:
        yield
    except CopyError as error:
        raise CopyError(f"The backup {path} can't be used. {error}") from error
    except OSError as error:
        raise CopyError(f"The backup {path} can't be used: {error.strerror or error}") from error


def _take(reading: _Reading, member: ArchiveMember, into: Path | None) -> None:
    """Process a member. Raises CopyError if it is not allowed at this point."""
    if not reading.documents and member.name != HEAD:
        raise CopyError("It does not begin with a backup's first document.")
    if MANIFEST in reading.documents and member.name != SEAL:
        raise CopyError(f"{member.name} comes after the manifest.")
    if is_document(member.name):
        reading.documents[member.name] = member.document()
        if member.name == HEAD:
            _require_known(head_of(reading.documents[HEAD]))
        return
    _receive(member, None if into is None else into / member.name)
    if member.name == DATABASE:
        reading.database = (member.size, member.sha256)
        return
    expected = UPLOAD.fullmatch(member.name)
    if expected is None or member.sha256 != expected[3]:
        raise CopyError(f"{member.name} was altered.")
    reading.files += 1
    reading.file_bytes += member.size
    reading.names.update(f"{member.name}\n".encode())


def _require_known(head: Head) -> None:
    newer = sorted(set(head.migrations) - known_migrations())
    if newer:
        raise CopyError(
            f"It was made by {newer_program(newer, {newer[-1]: head.version})}. {this_program()} Use that one."
        )


def _receive(member: ArchiveMember, place: Path | None) -> None:
    """Consume a member, writing it to a new file if `place` is given."""
    if place is None:
        for _ in member.pieces():
            pass
        return
    for folder in reversed(place.parents):
        if not folder.exists():
            folder.mkdir(mode=0o700)
    with os.fdopen(os.open(place, NEW, 0o600), "wb") as file:
        for piece in member.pieces():
            file.write(piece)
        file.flush()
        os.fsync(file.fileno())


def _sync_folders(root: Path) -> None:
    for folder, _, _ in os.walk(root):
        sync(Path(folder))


def _checked(reading: _Reading, secrets: Secrets | None) -> Contents:
    """Return the contents after a comparison with the manifest. Raises CopyError if they differ."""
    documents = reading.documents
    if MANIFEST not in documents or reading.database is None:
        raise CopyError("It is not complete: the database or the manifest is missing.")
    head, manifest = head_of(documents[HEAD]), manifest_of(documents[MANIFEST])
    if reading.database != (manifest.database_bytes, manifest.database_sha256):
        raise CopyError("Its database was altered.")
    counted = (reading.files, reading.file_bytes, reading.names.hexdigest())
    if counted != (manifest.files, manifest.file_bytes, manifest.file_list):
        raise CopyError("Its uploads are not those that the manifest names.")
    own = documents[SECRET].decode(errors="replace").strip() if SECRET in documents else None
    if (own is not None) != manifest.secret or (own is not None and secret_id(own) != manifest.secret_id):
        raise CopyError("Its secret was altered.")
    if (SEAL in documents) != (manifest.secret_id is not None):
        raise CopyError("Its seal is missing, or there is one too many.")
    known = (own,) if own else () if secrets is None else secrets.known
    sealed = _is_unaltered(documents, fitting(known, manifest.secret_id))
    return Contents(head, manifest, own, sealed)


def _is_unaltered(documents: dict[str, bytes], secret: str | None) -> bool:
    """Return whether the HMAC was verified; False if its secret is unknown. Raises CopyError on a mismatch."""
    if secret is None:
        return False
    if not is_sealed(secret, documents[HEAD], documents[MANIFEST], documents[SEAL]):
        raise CopyError("It was altered: the seal that the installation's secret made does not fit.")
    return True
