"""Upload service: receives and serves uploads, and deletes unused ones (ADR 17)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Hashable
from contextlib import asynccontextmanager
from functools import partial
from math import inf
from typing import Final

import structlog
import trio

from deskwire.engine.accounts.people import Project
from deskwire.engine.cluster.cluster import Cluster, SingleNode
from deskwire.engine.core.clock import Clock
from deskwire.engine.core.clock_jumps import ClockJumpDetector
from deskwire.engine.core.commits import CommitHook, Commits, with_hook
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
# Adds a commit hook to the commit of an upload.
JobWrapper = Callable[[Job, Upload], Job]

# Concurrent uploads. Each needs a thread at times, and disk space.
UPLOADS_MAX: Final = 32
_CUSTOMERS_PERCENT: Final = 90  # of a project's quota; the rest is for its agents and its backend

# Rows examined or deleted at a time.
BATCH_SIZE: Final = 200

# Interval of scans for files left by crashes.
_SWEEP_INTERVAL_S: Final = 6 * 3_600.0

_RETRY_DELAY_S: Final = 1.0


class UploadSession:
    """One upload being received; made by `UploadService.receiving`.

    Args:
        limit: maximum size of the file in bytes.
        contact: the `con_` id of the customer who sends it, if one does.
    """

    def __init__(
        self,
        uploads: UploadService,
        project: Project,
        draft: FileDraft,
        limit: int,
        contact: str | None = None,
    ) -> None:
        self._uploads = uploads
        self._project = project
        self._draft = draft
        self._limit = limit
        self._contact = contact
        self._head = b""
        self._size = 0

    async def write(self, data: bytes) -> None:
        """Append bytes. Raises TooLarge, and Unavailable if the disk fails."""
        self._size += len(data)
        if self._size > self._limit:
            raise TooLarge(f"A file may have at most {self._limit:,} bytes.")
        if len(self._head) < HEAD_BYTES:
            self._head += data[: HEAD_BYTES - len(self._head)]
        await in_thread(partial(self._draft.write, data))

    async def finish(self, filename: str, around: JobWrapper = lambda job, _: job) -> Upload:
        """Store the received file under this name.

        Args:
            around: adds a commit hook to the upload's commit; it is given the job and the upload.

        Raises the hook's errors; Invalid if the file is empty; Conflict (`upload_quota_exceeded`);
        Unavailable. Cancellation: after the file has moved to its final place, the upload completes.
        """
        if not self._size:
            raise Invalid(Problem("/file", "too_short", "The file is empty."))
        sha256 = await in_thread(self._draft.finish)
        now = self._uploads.clock()
        name, kind = clean_name(filename), sniff(self._head)
        upload = Upload(
            new_id("upl", now), self._project.rowid, name, kind, self._size, sha256, now, self._contact
        )
        with trio.CancelScope(shield=True):
            await self._uploads.put(upload, self._draft, self._quota(), around)
        return upload

    def _quota(self) -> int:
        """Return the bytes up to which the sender may fill the project's quota.

        Customers leave a part of it to agents and the backend.
        """
        whole = self._project.settings.upload_quota_bytes
        return whole if self._contact is None else whole * _CUSTOMERS_PERCENT // 100


class UploadService:
    """All uploads of all projects.

    Args:
        file_store: stores their files.
        links: makes their URLs.
        limit: maximum size of a file in bytes.
        unattached_s: how long an upload without a message is kept.

    Attributes:
        expired: uploads deleted since the start because no message referred to them.
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
    async def receiving(
        self, project: Project, contact: str | None = None, limit: int | None = None
    ) -> AsyncIterator[UploadSession]:
        """Receive an upload; discard it unless it is finished.

        Args:
            contact: the `con_` id of the customer who sends it. The uploads of all customers of a project have a share of
                their own among those under way.
            limit: maximum size of the file in bytes, if it is smaller than that of the service.

        Raises Unavailable if the disk fails or too many uploads are running (`uploads_busy`), and
        TooManyRequests (`too_many_at_once`) if too many of them are the project's.
        """
        who: Hashable = project.rowid if contact is None else ("customers", project.rowid)
        under_way = self._under_way
        if under_way.full():
            raise Unavailable("Too many uploads are under way.", code="uploads_busy")
        if not under_way.fits(who):
            raise TooManyRequests("Too many uploads of yours are under way.", code="too_many_at_once")
        under_way.take(who)
        try:
            draft = await in_thread(self._file_store.files.draft)
            try:
                most = self.limit if limit is None else min(limit, self.limit)
                yield UploadSession(self, project, draft, most, contact)
            finally:
                with trio.CancelScope(shield=True):
                    await in_thread(draft.discard)
        finally:
            under_way.give_back(who)

    async def put(self, upload: Upload, draft: FileDraft, quota: int, around: JobWrapper) -> None:
        """Store a finished draft and its row; either both are stored or none."""
        job = around(lambda tx: tx.insert_upload(upload, quota), upload)
        await self._file_store.keep(FileContent(upload.project, upload.sha256), draft, job)

    async def remove(
        self, project: Project, upload_id: str, hook: CommitHook[Upload] | None = None
    ) -> Upload:
        """Delete an upload that no message refers to; return it.

        Its file is deleted right after the commit.

        Args:
            hook: runs around the commit's job.

        Raises NotFound, and Conflict (`upload_attached`) if a message refers to it.
        """

        def remove(tx: UploadTransaction) -> Upload:
            return _remove(tx, project.rowid, upload_id)

        upload = await self._store.write(with_hook(remove, hook))
        self.wake_nowait()
        return upload

    async def size(self, upload: Upload) -> int | None:
        """Return the stored size of the upload's file, None if the file is missing."""
        place = await self._file_store.locate(FileContent(upload.project, upload.sha256))
        return None if place is None else await in_thread(partial(self._file_store.files.size, place))

    async def read(self, upload: Upload, start: int, length: int) -> bytes:
        """Return a part of the upload's bytes.

        Raises Unavailable if the disk fails, or if the upload was deleted.
        """
        place = await self._file_store.locate(FileContent(upload.project, upload.sha256))
        if place is None:
            raise Unavailable("The upload was removed while it was read.", code="storage_failed")
        return await in_thread(partial(self._file_store.files.read, place, start, length))

    def follow(self, commits: Commits[EraseCommit]) -> None:
        """Subscribe to commits and delete the files of erased or redacted content."""
        commits.subscribe(lambda _: self.wake_nowait(), "erased", "redacted")

    def wake_nowait(self) -> None:
        """Wake the task that deletes files, because content was erased."""
        self._wake.set()

    async def clear(self) -> None:
        """Delete drafts left by an earlier process; call it before the first upload."""
        await in_thread(self._file_store.files.clear_drafts)

    async def run(self, interval_s: float, cluster: Cluster = SingleNode()) -> None:  # noqa: B008  # Alone has no state
        """Delete unused uploads and files until cancelled.

        Content erased by this node's commits is deleted at once. The node that has the duties also deletes,
        at the start and at intervals, files left by crashes, and every `interval_s` seconds unattached
        uploads and the content that other nodes did not delete.
        """
        async with trio.open_nursery() as nursery:
            nursery.start_soon(cluster.while_leader, partial(self._tidy, interval_s))
            while True:
                await self._wake.wait()
                self._wake = trio.Event()
                await _until_done(self._remove_orphans)

    async def _tidy(self, interval_s: float) -> None:
        forward = ClockJumpDetector(self.clock)
        sweep_at = -inf
        while True:
            if not forward.noticed():
                if trio.current_time() >= sweep_at:
                    await _until_done(lambda: self._file_store.sweep(self.clock()))
                    sweep_at = trio.current_time() + _SWEEP_INTERVAL_S
                await _until_done(self._expire)
            await _until_done(self._remove_orphans)
            await trio.sleep(interval_s)

    async def _expire(self) -> None:
        older_than = self.clock() - self._unattached_ms
        count = BATCH_SIZE
        while count == BATCH_SIZE:
            count = await self._store.write(lambda tx: tx.expire_uploads(older_than, BATCH_SIZE))
            self.expired += count

    async def _remove_orphans(self) -> None:
        while orphans := await self._store.read(lambda reader: reader.orphaned_contents(BATCH_SIZE)):
            for orphan in orphans:
                await self._file_store.remove_unused(orphan.content)
                await self._store.write(_deleting_orphan(orphan.rowid))


async def _until_done(work: Callable[[], Awaitable[object]]) -> None:
    """Run `work` repeatedly until the disk and the store succeed."""
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
        message = "A message has this upload; it is deleted with the last such conversation."
        raise Conflict(message, code="upload_attached")
    return upload


def _deleting_orphan(rowid: int) -> Callable[[UploadTransaction], None]:
    return lambda tx: tx.delete_orphan(rowid)
