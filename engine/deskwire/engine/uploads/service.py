"""The upload service: receives uploads, serves them, and removes those without a reference (ADR 17)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from math import inf
from typing import Final

import structlog
import trio

from deskwire.engine.accounts.people import Project
from deskwire.engine.cluster.cluster import Alone, Cluster
from deskwire.engine.core.clock import Clock
from deskwire.engine.core.clock_jumps import SetForward
from deskwire.engine.core.commits import Commits
from deskwire.engine.core.errors import (
    Conflict,
    Invalid,
    NotFound,
    Problem,
    TooLarge,
    TooManyRequests,
    Unavailable,
)
from deskwire.engine.core.ids import new_id
from deskwire.engine.core.limits.fair_share import Shares
from deskwire.engine.core.store import Store
from deskwire.engine.core.wrapper import Wrapper, wrapped
from deskwire.engine.uploads.file_store import FileStore, IntakeTransaction, Job, in_thread
from deskwire.engine.uploads.file_type import HEAD_BYTES, sniff
from deskwire.engine.uploads.links import Links
from deskwire.engine.uploads.ports import (
    EraseCommit,
    FileContent,
    FileDraft,
    UploadReader,
    UploadTransaction,
)
from deskwire.engine.uploads.upload import Upload, clean_name

log: Final = structlog.get_logger(__name__)
JobWrapper = Callable[[Job, Upload], Job]
"""A function that puts a wrapper around the commit of an upload."""

UPLOADS_MAX: Final = 32
"""The uploads that may be under way together; each takes a thread now and then, and room on the disk."""

BATCH_SIZE: Final = 200
"""The rows that are looked at or removed in one go."""

_SWEEP_INTERVAL_S: Final = 6 * 3_600.0
"""The time between two looks at all files for what crashes have left."""

_RETRY_DELAY_S: Final = 1.0


class UploadSession:
    """One upload while it is received; made by `UploadService.receiving`.

    Args:
        limit: bytes that the file may have.
    """

    def __init__(self, uploads: UploadService, project: Project, draft: FileDraft, limit: int) -> None:
        self._uploads = uploads
        self._project = project
        self._draft = draft
        self._limit = limit
        self._head = b""
        self._size = 0

    async def write(self, data: bytes) -> None:
        """Add bytes. Raises TooLarge, and Unavailable if the disk refuses."""
        self._size += len(data)
        if self._size > self._limit:
            raise TooLarge(f"A file may have at most {self._limit:,} bytes.")
        if len(self._head) < HEAD_BYTES:
            self._head += data[: HEAD_BYTES - len(self._head)]
        await in_thread(partial(self._draft.write, data))

    async def finish(self, filename: str, around: JobWrapper = lambda job, _: job) -> Upload:
        """Keep what was received under this name.

        Args:
            around: puts a wrapper around the upload's commit; it is given the job and the upload.

        Raises what the wrapper does; Invalid if nothing was received; Conflict (`upload_quota_exceeded`); Unavailable.
        Cancellation: from the moment at which the file is put in its place, it is carried out.
        """
        if not self._size:
            raise Invalid(Problem("/file", "too_short", "The file is empty."))
        sha256 = await in_thread(self._draft.finish)
        now = self._uploads.clock()
        name, kind = clean_name(filename), sniff(self._head)
        upload = Upload(new_id("upl", now), self._project.rowid, name, kind, self._size, sha256, now)
        with trio.CancelScope(shield=True):
            await self._uploads.put(upload, self._draft, self._project.settings.upload_quota_bytes, around)
        return upload


class UploadService:
    """All uploads of all projects.

    `expired` counts those that were removed since the start as no message came to refer to them.

    Args:
        file_store: where their files are.
        links: makes their URLs.
        limit: bytes that one file may have.
        unattached_s: how long an upload that no message refers to is kept.
    """

    def __init__(
        self,
        store: Store[UploadReader, IntakeTransaction],
        file_store: FileStore,
        clock: Clock,
        links: Links,
        *,
        limit: int,
        unattached_s: float,
    ) -> None:
        self.clock = clock
        self.links = links
        self.limit = limit
        self.expired = 0
        self._store = store
        self._file_store = file_store
        self._unattached_ms = int(unattached_s * 1000)
        self._under_way = Shares(UPLOADS_MAX)
        self._wake = trio.Event()

    @asynccontextmanager
    async def receiving(self, project: Project) -> AsyncIterator[UploadSession]:
        """Receive an upload; nothing is left of it unless it is finished.

        Raises Unavailable if the disk refuses, or too many uploads are under way (`uploads_busy`), and TooManyRequests
        (`too_many_at_once`) if too many of them are the project's.
        """
        who, under_way = project.rowid, self._under_way
        if under_way.full():
            raise Unavailable("Too many uploads are under way.", code="uploads_busy")
        if not under_way.fits(who):
            raise TooManyRequests("Too many uploads of yours are under way.", code="too_many_at_once")
        under_way.take(who)
        try:
            draft = await in_thread(self._file_store.files.draft)
            try:
                yield UploadSession(self, project, draft, self.limit)
            finally:
                with trio.CancelScope(shield=True):
                    await in_thread(draft.discard)
        finally:
            under_way.give_back(who)

    async def put(self, upload: Upload, draft: FileDraft, quota: int, around: JobWrapper) -> None:
        """Put a finished draft in its place and write its row; neither stays without the other."""
        job = around(lambda tx: tx.insert_upload(upload, quota), upload)
        await self._file_store.keep(FileContent(upload.project, upload.sha256), draft, job)

    async def remove(
        self, project: Project, upload_id: str, wrapper: Wrapper[Upload] | None = None
    ) -> Upload:
        """Remove an upload that no message refers to; return what it was. Its file goes right after the commit.

        Args:
            wrapper: adds to the commit.

        Raises NotFound, and Conflict (`upload_attached`) if a message has it.
        """

        def remove(tx: UploadTransaction) -> Upload:
            return _remove(tx, project.rowid, upload_id)

        upload = await self._store.write(wrapped(remove, wrapper))
        self.wake_nowait()
        return upload

    async def size(self, upload: Upload) -> int | None:
        """Return the bytes of the upload that are stored, None if its file is not there."""
        place = await self._file_store.locate(FileContent(upload.project, upload.sha256))
        return None if place is None else await in_thread(partial(self._file_store.files.size, place))

    async def read(self, upload: Upload, start: int, length: int) -> bytes:
        """Read a part of the upload's bytes. Raises Unavailable if the disk refuses, or the upload was removed."""
        place = await self._file_store.locate(FileContent(upload.project, upload.sha256))
        if place is None:
            raise Unavailable("The upload was removed while it was read.", code="storage_failed")
        return await in_thread(partial(self._file_store.files.read, place, start, length))

    def follow(self, commits: Commits[EraseCommit]) -> None:
        """Remove the files of what commits erase or redact from now on."""
        commits.subscribe(lambda _: self.wake_nowait(), "erased", "redacted")

    def wake_nowait(self) -> None:
        """Wake the task that removes files: something was erased."""
        self._wake.set()

    async def clear(self) -> None:
        """Remove what an earlier process was receiving; called before the first upload."""
        await in_thread(self._file_store.files.clear_drafts)

    async def run(self, interval_s: float, cluster: Cluster = Alone()) -> None:  # noqa: B008  # it has no state
        """Remove what nothing refers to, until cancelled.

        What this node's commits erase goes at once. Whoever has the duties removes at the start and now and then whatever
        crashes have left, and every `interval_s` seconds what was never attached, and what other nodes did not come to.
        """
        async with trio.open_nursery() as nursery:
            nursery.start_soon(cluster.on_duty, partial(self._tidy, interval_s))
            while True:
                await self._wake.wait()
                self._wake = trio.Event()
                await _until_done(self._remove_doomed)

    async def _tidy(self, interval_s: float) -> None:
        forward = SetForward(self.clock)
        sweep_at = -inf
        while True:
            if not forward.noticed():
                if trio.current_time() >= sweep_at:
                    await _until_done(lambda: self._file_store.sweep(self.clock()))
                    sweep_at = trio.current_time() + _SWEEP_INTERVAL_S
                await _until_done(self._expire)
            await _until_done(self._remove_doomed)
            await trio.sleep(interval_s)

    async def _expire(self) -> None:
        older_than = self.clock() - self._unattached_ms
        count = BATCH_SIZE
        while count == BATCH_SIZE:
            count = await self._store.write(lambda tx: tx.expire_uploads(older_than, BATCH_SIZE))
            self.expired += count

    async def _remove_doomed(self) -> None:
        while doomed := await self._store.read(lambda reader: reader.orphaned_contents(BATCH_SIZE)):
            for doom in doomed:
                await self._file_store.remove_unused(doom.content)
                await self._store.write(_deleting_orphan(doom.rowid))


async def _until_done(work: Callable[[], Awaitable[object]]) -> None:
    """Do something, again and again while the disk or the store refuses."""
    while True:
        try:
            await work()
        except Unavailable as error:
            log.warning("uploads.removal_delayed", reason=error.reason, error=str(error))
            await trio.sleep(_RETRY_DELAY_S)
        else:
            return


def find_upload(reader: UploadReader, project: int, upload_id: str) -> Upload:
    """Return the stored upload. Raises NotFound."""
    upload = reader.upload(project, upload_id)
    if upload is None:
        raise NotFound("There is no such upload, or it has been removed.", code="upload_not_found")
    return upload


def _remove(tx: UploadTransaction, project: int, upload_id: str) -> Upload:
    upload = find_upload(tx, project, upload_id)
    if not tx.remove_upload(upload):
        message = "A message has this upload; it goes with the last conversation that does."
        raise Conflict(message, code="upload_attached")
    return upload


def _deleting_orphan(rowid: int) -> Callable[[UploadTransaction], None]:
    return lambda tx: tx.delete_orphan(rowid)
