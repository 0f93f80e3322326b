"""The backup file: a tar archive (POSIX ustar), readable by any tar, with a fixed set of members.

`backup.json` comes first and describes the backup, then the database, the uploads under their SHA-256, optionally the
secret, `manifest.json` with the checksums, and `manifest.hmac`, an HMAC with the installation's secret. The reader
refuses everything else, such as other paths, links and extensions of the format.
"""

from __future__ import annotations

import re
import tarfile
from collections.abc import Iterator
from hashlib import sha256
from typing import BinaryIO, Final

from msgspec import Struct

from deskwire.storage.sqlite.backup.snapshot import CopyError

HEAD: Final = "backup.json"
DATABASE: Final = "deskwire.sqlite3"
SECRET: Final = "secret"
MANIFEST: Final = "manifest.json"
SEAL: Final = "manifest.hmac"
UPLOAD: Final = re.compile(r"uploads/([1-9][0-9]{0,18})/([0-9a-f]{2})/(\2[0-9a-f]{62})")

DOCUMENT_BYTES_MAX: Final = 8 * 1024 * 1024
"""Maximum bytes of a member that is read into memory, which is any except the database and the uploads."""
_BLOCK: Final = tarfile.BLOCKSIZE
_PIECE: Final = 1 << 20
_END: Final = bytes(2 * _BLOCK)


def is_document(name: str) -> bool:
    """Return whether a member is a document, which is read into memory."""
    return name in {HEAD, SECRET, MANIFEST, SEAL}


class ArchiveWriter:
    """Writes members in sequence."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def add(self, name: str, source: BinaryIO, size: int) -> str:
        """Add `size` bytes of `source`; return their SHA-256. Raises CopyError if there are fewer, or OSError."""
        member = tarfile.TarInfo(name)
        member.size, member.mode = size, 0o600
        self._file.write(member.tobuf(tarfile.GNU_FORMAT))
        digest = sha256()
        for piece in _pieces(source, size, f"{name} became shorter while it was copied."):
            digest.update(piece)
            self._file.write(piece)
        self._file.write(bytes(-size % _BLOCK))
        return digest.hexdigest()

    def add_if(self, name: str, source: BinaryIO, size: int, digest: str) -> bool:
        """Add the member if its SHA-256 matches, else leave the archive unchanged; return whether. Raises OSError."""
        before = self._file.tell()
        try:
            if self.add(name, source, size) == digest:
                return True
        except CopyError:
            pass  # the file was truncated while it was read, so its content has changed as well
        self._file.seek(before)
        self._file.truncate()
        return False

    def finish(self) -> None:
        """Write the end of the archive."""
        self._file.write(_END)


class ArchiveMember(Struct):
    """A member that is being read. `sha256` is set after the last piece."""

    name: str
    size: int
    _source: BinaryIO
    sha256: str = ""

    def pieces(self) -> Iterator[bytes]:
        """Yield the content in pieces. Raises CopyError if the archive is truncated, or OSError."""
        digest = sha256()
        for piece in _pieces(self._source, self.size, "It is cut short."):
            digest.update(piece)
            yield piece
        self.sha256 = digest.hexdigest()

    def document(self) -> bytes:
        """Return the whole content. Raises CopyError if it is too large or truncated."""
        if self.size > DOCUMENT_BYTES_MAX:
            raise CopyError(f"{self.name} is too large.")
        return b"".join(self.pieces())


def members(source: BinaryIO) -> Iterator[ArchiveMember]:
    """Yield the members in order; read each to its end before the next.

    Raises CopyError for anything that `ArchiveWriter` can't have written, or OSError.
    """
    seen: set[str] = set()
    while True:
        block = _exactly(source, _BLOCK)
        if block == bytes(_BLOCK):
            if _exactly(source, _BLOCK) != block or source.read(1):
                raise CopyError("There is data after its end.")
            return
        member = _member(block)
        if member.name in seen:
            raise CopyError(f"It has {member.name!r} twice.")
        seen.add(member.name)
        found = ArchiveMember(member.name, member.size, source)
        yield found
        if any(_exactly(source, -member.size % _BLOCK)):
            raise CopyError(f"There is data after {member.name}.")


def _member(block: bytes) -> tarfile.TarInfo:
    """Parse the header of a member. Raises CopyError if backups have no such member."""
    try:
        member = tarfile.TarInfo.frombuf(block, "ascii", "backslashreplace")
    except tarfile.HeaderError as error:
        raise CopyError(f"It is not a backup, or it was altered ({error}).") from error
    if not (is_document(member.name) or member.name == DATABASE or UPLOAD.fullmatch(member.name)):
        raise CopyError(f"{member.name!r} has no place in a backup.")
    if member.type != tarfile.REGTYPE or member.size < 0:
        raise CopyError(f"{member.name!r} is not an ordinary file.")
    return member


def _pieces(source: BinaryIO, size: int, too_short: str) -> Iterator[bytes]:
    left = size
    while left:
        piece = source.read(min(left, _PIECE))
        if not piece:
            raise CopyError(too_short)
        left -= len(piece)
        yield piece


def _exactly(source: BinaryIO, size: int) -> bytes:
    return b"".join(_pieces(source, size, "It is cut short."))
