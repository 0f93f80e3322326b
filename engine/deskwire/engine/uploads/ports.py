"""The queries and changes of a store that uploads need, and the files on a disk."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from deskwire.engine.uploads.upload import Upload


@dataclass(frozen=True, slots=True)
class Content:
    """A content that a project has: all its uploads with these bytes share one file on the disk.

    Args:
        project: storage key.
        sha256: 64 hex digits.
    """

    project: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Doomed:
    """A content that nothing refers to any more, so that its file is to be removed; `rowid` is the key of this entry."""

    rowid: int
    content: Content


class UploadReader(Protocol):
    """Queries on uploads."""

    def upload(self, project: int | None, upload_id: str) -> Upload | None:
        """Return the upload, None if the project, or with None any project, has none with this id."""

    def uploads_size(self, project: int) -> int:
        """Return the bytes that the project's uploads take, each content counted once."""

    def without_upload(self, contents: Sequence[Content]) -> Sequence[Content]:
        """Return those of the contents that no upload refers to."""

    def doomed_contents(self, limit: int) -> Sequence[Doomed]:
        """Return contents whose files are to be removed, in the order in which that was noticed."""


class UploadTransaction(UploadReader, Protocol):
    """Changes of uploads."""

    def insert_upload(self, upload: Upload, quota: int) -> None:
        """Store an upload. Raises Conflict if the project's uploads would take more than `quota` bytes."""

    def attach_uploads(self, project: int, conversation: int, upload_ids: Collection[str]) -> Collection[str]:
        """Note that a conversation's message refers to these uploads; return those that do not exist."""

    def expire_uploads(self, older_than: int, limit: int) -> int:
        """Remove up to `limit` uploads made before `older_than` (ms) that no message refers to; return their number."""

    def remove_upload(self, upload: Upload) -> bool:
        """Remove an upload that no message refers to; return False, and change nothing, if one does or it is gone."""

    def forget_doomed(self, rowid: int) -> None:
        """Note that a doomed content's file is gone."""


class EraseCommit(Protocol):
    """The conversations that a commit has erased."""

    @property
    def erased(self) -> frozenset[int]:
        """The conversations, by their storage keys."""


class Draft(Protocol):
    """A file that is being received. It is used by one thread at a time; every method may raise OSError."""

    def write(self, data: bytes) -> None:
        """Add bytes."""

    def finish(self) -> str:
        """Write everything through to the disk; return its SHA-256 as hex digits."""

    def keep(self, content: Content) -> None:
        """Make the finished draft the file of this content, durably; a file that is there already is kept instead."""

    def discard(self) -> None:
        """Remove the draft, unless it was kept."""


class Files(Protocol):
    """The contents on a disk. Every method may wait for the disk, and may raise OSError."""

    def clear_drafts(self) -> None:
        """Remove what an earlier process was receiving or removing."""

    def draft(self) -> Draft:
        """Open a new file to receive into."""

    def size(self, content: Content) -> int | None:
        """Return the size of the file in bytes, None if there is none."""

    def read(self, content: Content, start: int, length: int) -> bytes:
        """Read a part of the file; fewer bytes at its end."""

    def remove(self, content: Content) -> None:
        """Overwrite the file and remove it; nothing happens if there is none."""

    def contents(self) -> Iterator[Content]:
        """Yield every content that has a file, in no order."""
