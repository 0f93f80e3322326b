"""File store: keeps files and their rows consistent.

A file is stored before its row, and its row is deleted before the file. A crash in between can leave a file
without a row, never a row without a file. `SingleNodeFileStore` is for one node. `SharedFileStore` is for
many nodes, each of which can stop at any point and continue later (ADR 17).
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AsyncExitStack
from functools import partial
from itertools import islice
from typing import Final, Protocol, TypeVar

import structlog
import trio

from deskwire.engine.core.clock import Clock
from deskwire.engine.core.errors import Unavailable
from deskwire.engine.core.store import InlineQuery, Store
from deskwire.engine.core.values import replace
from deskwire.engine.idempotency.idempotent_requests import StoredResponseTransaction
from deskwire.engine.uploads.ports import FileContent, FileDraft, Files, UploadReader, UploadTransaction

log: Final = structlog.get_logger(__name__)
T = TypeVar("T")

# Files examined at a time.
BATCH_SIZE: Final = 200

# A shared entry of this age without an upload belongs to a request that has ended.
ABANDONED_AGE_MS: Final = 24 * 3_600_000


class IntakeTransaction(UploadTransaction, StoredResponseTransaction, Protocol):
    """The changes of an upload's commit: its row and the stored response."""


Job = Callable[[IntakeTransaction], None]


class FileStore(Protocol):
    """Stores files and keeps them consistent with their rows."""

    @property
    def files(self) -> Files:
        """The files; only the file store adds and removes any."""

    async def keep(self, content: FileContent, draft: FileDraft, job: Job) -> None:
        """Store a finished draft and run the job that writes its row.

        Either both are stored or none. Raises Unavailable, and the job's errors.
        """

    async def locate(self, content: FileContent) -> FileContent | None:
        """Return the content with the entry that names its file; None if it is gone."""

    async def remove_unused(self, content: FileContent) -> None:
        """Delete a content's file, unless an upload refers to it."""

    async def sweep(self, now: int) -> None:
        """Delete files without an upload, which crashes have left."""


class SingleNodeFileStore:
    """File store of a node that has the files to itself.

    A lock separates "store the file and write the row" from "no row refers to the file: delete it". A content
    that is uploaded again during its deletion is not lost.
    """

    def __init__(self, store: Store[UploadReader, IntakeTransaction], files: Files) -> None:
        self.files: Final = files
        self._store = store
        self._lock = trio.Lock()

    async def keep(self, content: FileContent, draft: FileDraft, job: Job) -> None:
        """See `FileStore.keep`."""
        async with self._lock:
            await in_thread(partial(draft.keep, content))
            async with AsyncExitStack() as undo:
                undo.push_async_callback(self._remove_if_unused, content)
                await self._store.write(job)
                undo.pop_all()

    async def locate(self, content: FileContent) -> FileContent:
        """See `FileStore.locate`."""
        return content

    async def remove_unused(self, content: FileContent) -> None:
        """See `FileStore.remove_unused`."""
        async with self._lock:
            await self._remove_if_unused(content)

    async def sweep(self, now: int) -> None:
        """See `FileStore.sweep`."""
        contents = self.files.contents()
        while batch := await in_thread(lambda: list(islice(contents, BATCH_SIZE))):
            for content in await self._store.read(lambda reader, b=batch: reader.contents_without_upload(b)):  # type: ignore[misc]
                await self.remove_unused(content)

    async def _remove_if_unused(self, content: FileContent) -> None:
        if await self._store.read(InlineQuery(lambda reader: reader.contents_without_upload([content]))):
            await in_thread(partial(self.files.remove, content))


class _Superseded(Exception):
    """The entry of a stored file was retired: another entry is needed."""


class SharedFileStore:
    """File store of nodes that share files and database.

    It needs no lock, which a stopped node would keep. A file is named by the key of its entry, and keys are never reused. An upload uses the content's active
    entry or creates one, stores the file, and locks the entry in the commit that writes the upload's row. A
    deletion retires the entry in a commit that finds no upload. From then on no upload uses that entry, and a
    new upload of the content creates another. So a node that was stopped in the middle only deletes files
    that no upload reads, however late it continues.
    """

    def __init__(self, store: Store[UploadReader, IntakeTransaction], files: Files, clock: Clock) -> None:
        self.files: Final = files
        self._store = store
        self._clock = clock

    async def keep(self, content: FileContent, draft: FileDraft, job: Job) -> None:
        """See `FileStore.keep`."""
        try:
            while not await self._try_keep(content, draft, job):
                log.info("uploads.content_was_going", project=content.project)
        except BaseException:  # re-raised after the unused file and its entry are deleted
            await self._undo(content)
            raise

    async def locate(self, content: FileContent) -> FileContent | None:
        """See `FileStore.locate`."""
        entry = await self._store.read(InlineQuery(lambda reader: reader.content_entry(content)))
        return None if entry is None else replace(content, entry=entry)

    async def remove_unused(self, content: FileContent) -> None:
        """See `FileStore.remove_unused`."""
        for entry in await self._store.write(lambda tx: tx.retire_content(content)):
            await in_thread(partial(self.files.remove, replace(content, entry=entry)))
            await self._store.write(_deleting_entry(entry))

    async def sweep(self, now: int) -> None:
        """See `FileStore.sweep`."""
        before = now - ABANDONED_AGE_MS
        while left := await self._store.read(lambda reader: reader.abandoned_contents(before, BATCH_SIZE)):
            for content in left:
                await self.remove_unused(content)
        contents = self.files.contents()
        while batch := await in_thread(lambda: list(islice(contents, BATCH_SIZE))):
            for content in await self._store.read(lambda reader, b=batch: reader.contents_without_entry(b)):  # type: ignore[misc]
                await in_thread(partial(self.files.remove, content))

    async def _try_keep(self, content: FileContent, draft: FileDraft, job: Job) -> bool:
        """Store the file under the active entry and run the job.

        Returns False, with no row written, if the entry was retired in the meantime.
        """
        now = self._clock()
        entry = await self._store.write(lambda tx: tx.claim_content(content, now))
        await in_thread(partial(draft.keep, replace(content, entry=entry)))

        def hold_and_do(tx: IntakeTransaction) -> None:
            if not tx.lock_content_entry(entry):
                raise _Superseded
            job(tx)

        try:
            await self._store.write(hold_and_do)
        except _Superseded:
            return False
        return True

    async def _undo(self, content: FileContent) -> None:
        try:
            await self.remove_unused(content)
        except Unavailable as error:  # the next sweep deletes it
            log.warning("uploads.removal_delayed", reason=error.reason, error=str(error))


def _deleting_entry(entry: int) -> Callable[[UploadTransaction], None]:
    return lambda tx: tx.delete_content_entry(entry)


async def in_thread(work: Callable[[], T]) -> T:
    """Run `work` in a worker thread and return its result.

    Raises Unavailable (`storage_failed`) if the disk fails.
    """
    try:
        return await trio.to_thread.run_sync(work)
    except OSError as error:
        log.error("uploads.disk_failed", error=str(error))
        raise Unavailable(
            f"The file could not be stored or read: {error.strerror}.", code="storage_failed"
        ) from error
