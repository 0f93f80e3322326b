"""Keeps files and rows in step: where a file is put before its row is written, and removed after.

A file's bytes are in their place before its row is, and its row is gone before they are. What a crash leaves in between is a
file without a row, never a row without a file. `SingleNodeFileStore` serves the only node there is. `SharedFileStore` serves many, of which
any may stop anywhere and go on later (ADR 17).
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
from deskwire.engine.core.store import Inline, Store
from deskwire.engine.core.values import replace
from deskwire.engine.idempotency.idempotent_requests import StoredResponseTransaction
from deskwire.engine.uploads.ports import FileContent, FileDraft, Files, UploadReader, UploadTransaction

log: Final = structlog.get_logger(__name__)
T = TypeVar("T")

BATCH_SIZE: Final = 200
"""The files that are looked at in one go."""

ABANDONED_AGE_MS: Final = 24 * 3_600_000
"""The age from which on a shared entry without an upload is that of a request which has ended, in milliseconds."""


class IntakeTransaction(UploadTransaction, StoredResponseTransaction, Protocol):
    """The changes that an upload's commit makes: its row, and the kept answer of the request that brought it."""


Job = Callable[[IntakeTransaction], None]


class FileStore(Protocol):
    """The files, and what keeps them in step with their rows."""

    @property
    def files(self) -> Files:
        """The files themselves; they are put there and removed by the file_store alone."""

    async def keep(self, content: FileContent, draft: FileDraft, job: Job) -> None:
        """Put a finished draft in its place and do the job that writes its row; neither stays without the other.

        Raises Unavailable, and what the job does.
        """

    async def locate(self, content: FileContent) -> FileContent | None:
        """Return the content as its file is named; None if it is gone."""

    async def remove_unused(self, content: FileContent) -> None:
        """Remove a content's file, unless an upload refers to it."""

    async def sweep(self, now: int) -> None:
        """Remove what crashes have left: files without an upload."""


class SingleNodeFileStore:
    """The file_store of a node that has the files to itself.

    One lock separates "put in place and write the row" from "nothing refers to it: remove", so that a content that is sent
    again while it is removed is not lost.
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
        if await self._store.read(Inline(lambda reader: reader.contents_without_upload([content]))):
            await in_thread(partial(self.files.remove, content))


class _Superseded(Exception):
    """The entry under which a file was put is going: another has to be made."""


class SharedFileStore:
    """The file_store of nodes that share files and store, without a lock that one of them could take with it.

    A file is named by the key of its entry, which is never given again. Who sends a content takes its entry or makes one, puts
    the file, and holds the entry in the commit that writes the upload's row. Who removes marks the entry as going in a commit
    that finds no upload; from then on it belongs to nobody, and whoever sends the content again makes another entry. So a
    node that was stopped in the middle removes what nobody reads any more, however late it goes on.
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
        except BaseException:  # re-raised: a file that no upload uses is removed, and its entry with it
            await self._undo(content)
            raise

    async def locate(self, content: FileContent) -> FileContent | None:
        """See `FileStore.locate`."""
        entry = await self._store.read(Inline(lambda reader: reader.content_entry(content)))
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
        """Put the file under the present entry and do the job; False, with nothing done, if the entry went meanwhile."""
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
        except Unavailable as error:  # the sweep comes to it
            log.warning("uploads.removal_delayed", reason=error.reason, error=str(error))


def _deleting_entry(entry: int) -> Callable[[UploadTransaction], None]:
    return lambda tx: tx.delete_content_entry(entry)


async def in_thread(work: Callable[[], T]) -> T:
    """Run `work` in a worker thread and return its result. Raises Unavailable (`storage_failed`) if the disk refuses."""
    try:
        return await trio.to_thread.run_sync(work)
    except OSError as error:
        log.error("uploads.disk_failed", error=str(error))
        raise Unavailable(
            f"The file could not be stored or read: {error.strerror}.", code="storage_failed"
        ) from error
