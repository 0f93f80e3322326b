"""What uploads need of a store, and of a disk."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from deskwire.engine.uploads.upload import Upload


@dataclass(frozen=True, slots=True)
class Content:
    """A content that a project has: its files with these bytes are one on the disk.

    Args:
        project: storage key.
        sha256: 64 hex digits.
    """

    project: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Doomed:
    """A content that nobody refers to any more, so that its file has to go; `rowid` names this very wish."""

    rowid: int
    content: Content


class UploadReader(Protocol):
    """Queries on uploads."""

    def upload(self, project: int | None, upload_id: str) -> Upload | None:
        """The upload, None if the project, or with None any project, has none with this id."""

    def uploads_size(self, project: int) -> int:
        """Bytes that the project's uploads take, each content counted once."""

    def without_upload(self, contents: Sequence[Content]) -> Sequence[Content]:
        """Those of the contents that no upload refers to."""

    def doomed_contents(self, limit: int) -> Sequence[Doomed]:
        """Contents whose files have to go, in the order in which that was found."""


class UploadTransaction(UploadReader, Protocol):
    """Changes of uploads."""

    def insert_upload(self, upload: Upload, quota: int) -> None:
        """Store an upload. Raises Conflict if the project's uploads would take more than `quota` bytes."""

    def attach_uploads(self, project: int, conversation: int, upload_ids: Collection[str]) -> Collection[str]:
        """Note that a conversation's message refers to these uploads; returns those that do not exist."""

    def expire_uploads(self, older_than: int, limit: int) -> int:
        """Remove up to `limit` uploads made before `older_than` (ms) that no message refers to; how many."""

    def remove_upload(self, upload: Upload) -> bool:
        """Remove an upload that no message refers to; False, and no change, if one does or it is gone."""

    def forget_doomed(self, rowid: int) -> None:
        """Note that a doomed content's file is gone."""


class EraseCommit(Protocol):
    """What a commit has erased."""

    @property
    def erased(self) -> frozenset[int]:
        """The conversations, by their storage keys."""


class Draft(Protocol):
    """A file that is being received. Used by one thread at a time; every method raises OSError."""

    def write(self, data: bytes) -> None:
        """Add bytes."""

    def finish(self) -> str:
        """Have everything on the disk; returns the SHA-256 of it as hex digits."""

    def keep(self, content: Content) -> None:
        """Make it, finished, the file of this content, durably; of two alike the one that is there is kept."""

    def discard(self) -> None:
        """Leave nothing of it, unless it was kept."""


class Files(Protocol):
    """The contents on a disk. Every method may wait for it, and raises OSError."""

    def clear_drafts(self) -> None:
        """Leave nothing of what an earlier process was receiving or removing."""

    def draft(self) -> Draft:
        """A new file to receive into."""

    def size(self, content: Content) -> int | None:
        """How many bytes the file has, None if there is none."""

    def read(self, content: Content, start: int, length: int) -> bytes:
        """A part of the file; fewer bytes at its end."""

    def remove(self, content: Content) -> None:
        """Overwrite the file and remove it; nothing happens if there is none."""

    def contents(self) -> Iterator[Content]:
        """Every content that has a file, in no order."""
