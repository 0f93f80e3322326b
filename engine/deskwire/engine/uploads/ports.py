"""The storage that uploads need: rows and files."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Protocol

from msgspec import Struct

from deskwire.engine.uploads.upload import Upload


class FileContent(Struct, frozen=True):
    """The content of a project's uploads. Uploads with the same bytes share one file.

    Args:
        project: storage key.
        sha256: 64 hex digits.
        entry: storage key of its entry in a shared file store, which is part of the file's name; 0 in a
            single node's file store.
    """

    project: int
    sha256: str
    entry: int = 0


class OrphanedContent(Struct, frozen=True):
    """A content without references, whose file must be removed.

    `rowid` is the storage key of this record.
    """

    rowid: int
    content: FileContent


class UploadReader(Protocol):
    """Queries on uploads."""

    def upload(self, project: int | None, upload_id: str) -> Upload | None:
        """Return the project's upload with this id, or None.

        Args:
            project: storage key; None for any project.
        """

    def is_attached(self, upload_id: str) -> bool:
        """Return whether a message refers to the upload with this id."""

    def uploads_size(self, project: int) -> int:
        """Return the bytes that the project's uploads use, each content counted once."""

    def contents_without_upload(self, contents: Sequence[FileContent]) -> Sequence[FileContent]:
        """Return those of the contents to which no upload refers."""

    def orphaned_contents(self, limit: int) -> Sequence[OrphanedContent]:
        """Return up to `limit` contents whose files must be removed, oldest record first."""

    def content_entry(self, content: FileContent) -> int | None:
        """Return the key of the content's active entry in a shared file store, or None."""

    def abandoned_contents(self, older_than: int, limit: int) -> Sequence[FileContent]:
        """Return retired entries and old entries without an upload.

        An entry is old if it was created before `older_than` (ms).
        """

    def contents_without_entry(self, contents: Sequence[FileContent]) -> Sequence[FileContent]:
        """Return those of the contents whose entry in the shared file store is gone."""


class UploadTransaction(UploadReader, Protocol):
    """Changes of uploads."""

    def insert_upload(self, upload: Upload, quota: int) -> None:
        """Store an upload.

        Raises Conflict if the project's uploads would use more than `quota` bytes.
        """

    def attach_uploads(self, project: int, conversation: int, upload_ids: Collection[str]) -> Collection[str]:
        """Store that a conversation's message refers to these uploads.

        Returns the ids that do not exist.
        """

    def expire_uploads(self, older_than: int, limit: int) -> int:
        """Delete up to `limit` unattached uploads created before `older_than` (ms).

        Returns their number.
        """

    def remove_upload(self, upload: Upload) -> bool:
        """Delete an upload if no message refers to it.

        Returns False, with nothing changed, if a message does or the upload is gone.
        """

    def delete_orphan(self, rowid: int) -> None:
        """Delete the record of an orphaned content, whose file is gone."""

    def claim_content(self, content: FileContent, now: int) -> int:
        """Return the key of the content's active entry in a shared file store.

        Creates an entry if there is no active one.
        """

    def lock_content_entry(self, entry: int) -> bool:
        """Keep an entry active until this transaction ends.

        Returns False if the entry is retired or gone.
        """

    def retire_content(self, content: FileContent) -> Sequence[int]:
        """Retire the content's entry unless an upload refers to it.

        Returns all its retired entries.
        """

    def delete_content_entry(self, entry: int) -> None:
        """Delete a retired entry, whose file is gone."""


class EraseCommit(Protocol):
    """The conversations that a commit has erased or redacted."""

    @property
    def erased(self) -> frozenset[int]:
        """Storage keys of erased conversations."""

    @property
    def redacted(self) -> frozenset[int]:
        """Storage keys of conversations with redacted or deleted messages."""


class FileDraft(Protocol):
    """A file being received.

    One thread at a time uses it. Every method may raise OSError. In a shared file store, a finished draft may be kept more than once, under different entries.
    """

    def write(self, data: bytes) -> None:
        """Append bytes."""

    def finish(self) -> str:
        """Finish the file; return its SHA-256 as hex digits.

        A draft on a disk is synced.
        """

    def keep(self, content: FileContent) -> None:
        """Make the finished draft the durable file of this content.

        If the file exists already, it is kept instead.
        """

    def discard(self) -> None:
        """Delete the draft, unless it was kept."""


class Files(Protocol):
    """The files of contents, on a disk or elsewhere.

    Every method may block, and may raise OSError.
    """

    def clear_drafts(self) -> None:
        """Delete the drafts and partly removed files of an earlier process."""

    def draft(self) -> FileDraft:
        """Open a new draft."""

    def size(self, content: FileContent) -> int | None:
        """Return the size of the file in bytes, None if there is none."""

    def read(self, content: FileContent, start: int, length: int) -> bytes:
        """Return a part of the file, shorter at its end."""

    def remove(self, content: FileContent) -> None:
        """Delete the file if it exists, overwritten where possible."""

    def contents(self) -> Iterator[FileContent]:
        """Yield every content that has a file, in any order.

        In a shared file store, only files at least a day old are included.
        """

    def close(self) -> None:
        """Release open resources. No other method is called afterwards."""
