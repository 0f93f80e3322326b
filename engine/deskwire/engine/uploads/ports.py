"""The queries and changes of a store that uploads need, and the files themselves."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Protocol

from msgspec import Struct

from deskwire.engine.uploads.upload import Upload


class FileContent(Struct, frozen=True):
    """A content that a project has: all its uploads with these bytes share one file.

    Args:
        project: storage key.
        sha256: 64 hex digits.
        entry: the key of its entry on a file_store that nodes share, which the file is named by as well; 0 on a file_store of one's own.
    """

    project: int
    sha256: str
    entry: int = 0


class OrphanedContent(Struct, frozen=True):
    """A content that nothing refers to any more, so that its file is to be removed; `rowid` is the key of this entry."""

    rowid: int
    content: FileContent


class UploadReader(Protocol):
    """Queries on uploads."""

    def upload(self, project: int | None, upload_id: str) -> Upload | None:
        """Return the upload, None if the project, or with None any project, has none with this id."""

    def is_attached(self, upload_id: str) -> bool:
        """True if a message refers to the upload with this id."""

    def uploads_size(self, project: int) -> int:
        """Return the bytes that the project's uploads take, each content counted once."""

    def contents_without_upload(self, contents: Sequence[FileContent]) -> Sequence[FileContent]:
        """Return those of the contents that no upload refers to."""

    def orphaned_contents(self, limit: int) -> Sequence[OrphanedContent]:
        """Return contents whose files are to be removed, in the order in which that was noticed."""

    def content_entry(self, content: FileContent) -> int | None:
        """Return the key of the content's entry on a shared file_store, None if it has none that is not going."""

    def abandoned_contents(self, older_than: int, limit: int) -> Sequence[FileContent]:
        """Return entries that are going, or made before `older_than` (ms) and without an upload."""

    def contents_without_entry(self, contents: Sequence[FileContent]) -> Sequence[FileContent]:
        """Return those of the contents whose entry on the shared file_store is gone."""


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

    def delete_orphan(self, rowid: int) -> None:
        """Note that a doomed content's file is gone."""

    def claim_content(self, content: FileContent, now: int) -> int:
        """Return the key of the content's entry on a shared file_store, made if it has none that is not going."""

    def lock_content_entry(self, entry: int) -> bool:
        """Keep an entry from going until this transaction has ended; False if it is going or gone."""

    def retire_content(self, content: FileContent) -> Sequence[int]:
        """Have the content's entry go unless an upload refers to it; return its entries that are going."""

    def delete_content_entry(self, entry: int) -> None:
        """Remove an entry that was going: its file is gone."""


class EraseCommit(Protocol):
    """The conversations that a commit has erased, and those of which it has redacted messages."""

    @property
    def erased(self) -> frozenset[int]:
        """The conversations that are gone, by their storage keys."""

    @property
    def redacted(self) -> frozenset[int]:
        """The conversations of which messages were redacted or deleted."""


class FileDraft(Protocol):
    """A file that is being received. It is used by one thread at a time; every method may raise OSError.

    On a file_store that nodes share a finished draft may be kept again, under another entry.
    """

    def write(self, data: bytes) -> None:
        """Add bytes."""

    def finish(self) -> str:
        """Take no more; return the SHA-256 as hex digits. A draft on a disk is written through to it."""

    def keep(self, content: FileContent) -> None:
        """Make the finished draft the file of this content, durably; a file that is there already is kept instead."""

    def discard(self) -> None:
        """Remove the draft, unless it was kept."""


class Files(Protocol):
    """The contents, on a disk or elsewhere. Every method may wait, and may raise OSError."""

    def clear_drafts(self) -> None:
        """Remove what an earlier process was receiving or removing."""

    def draft(self) -> FileDraft:
        """Open a new file to receive into."""

    def size(self, content: FileContent) -> int | None:
        """Return the size of the file in bytes, None if there is none."""

    def read(self, content: FileContent, start: int, length: int) -> bytes:
        """Read a part of the file; fewer bytes at its end."""

    def remove(self, content: FileContent) -> None:
        """Remove the file, overwritten where that can be done; nothing happens if there is none."""

    def contents(self) -> Iterator[FileContent]:
        """Yield every content that has a file, in no order; of a file_store that nodes share only what is a day old."""

    def close(self) -> None:
        """Let go of what is open; nothing is asked any more."""
