"""One thread owns the write connection and puts all jobs that are waiting into one transaction.

A job that raises before it has written is merely reported. One that raises after a write takes its
batch's transaction back; the others are then run again, each by itself, so that a bad neighbour costs
time and nothing else. A failed COMMIT fails the whole batch: nothing of it may be taken for stored.
"""

from __future__ import annotations

import queue
import sqlite3
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final, Generic, TypeVar

import structlog
import trio

from deskwire.engine.deliveries import Delivery
from deskwire.engine.errors import Unavailable
from deskwire.engine.events import StoredEvent
from deskwire.engine.ports import Transaction
from deskwire.engine.tally import Commits
from deskwire.storage.scrub import Scrubber
from deskwire.storage.ticket_search import SearchMerge
from deskwire.storage.transaction import SqliteTransaction

T = TypeVar("T")
log: Final = structlog.get_logger(__name__)

WAITING_MAX: Final = 10_000
"""Jobs that may wait by default: some seconds of a slow disk's work."""


@dataclass(frozen=True, slots=True)
class Commit:
    """What a group commit made known, in commit order.

    `due` are times (ms) at which tickets need something, `runs_due` those at which running workflows do.
    """

    events: Sequence[StoredEvent]
    deliveries: Sequence[Delivery]
    erased: frozenset[int]
    due: Sequence[int] = ()
    runs_due: Sequence[int] = ()


@dataclass(slots=True, eq=False)
class _Job(Generic[T]):
    run: Callable[[Transaction], T]
    done: trio.Event = field(default_factory=trio.Event)
    result: T | None = None
    error: Exception | None = None


class Writer:
    """The writer thread. `scrubbing` says whether bytes of something that was erased may still be in the file.

    Args:
        file: a descriptor of the database file: see `Scrubber`.
        batch: how many jobs one transaction takes at most.
        on_commit: called on the Trio thread for each commit, before any of its jobs is answered.
        waiting_max: how many jobs may wait.
    """

    def __init__(
        self,
        connection: sqlite3.Connection,
        file: int,
        batch: int,
        on_commit: Callable[[Commit], None],
        waiting_max: int = WAITING_MAX,
    ) -> None:
        self.commits: Final = Commits()
        self.scrubbing = False
        self._connection = connection
        self._file = file
        self._batch = batch
        self._on_commit = on_commit
        self._waiting_max = waiting_max
        self._jobs: queue.SimpleQueue[_Job[Any] | None] = queue.SimpleQueue()
        self._erased = False
        self._stopped = False
        self._crashed = trio.Event()
        self._crash: Exception | None = None

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Commit jobs until cancelled; those that are queued by then are still committed.

        Raises what broke the thread, if anything does: without it nothing may go on.
        """
        token = trio.lowlevel.current_trio_token()
        thread = threading.Thread(target=self._guard, args=(token,), name="deskwire-writer", daemon=True)
        thread.start()
        task_status.started()
        try:
            await self._crashed.wait()
            assert self._crash is not None
            raise self._crash
        finally:
            self._stopped = True
            self._jobs.put(None)
            with trio.CancelScope(shield=True):
                await trio.to_thread.run_sync(thread.join)

    @property
    def waiting(self) -> int:
        """How many jobs no commit has taken yet."""
        return self._jobs.qsize()

    async def write(self, job: Callable[[Transaction], T]) -> T:
        """See `ports.Store.write`."""
        if self._stopped:
            raise Unavailable("The service is shutting down.", code="shutting_down")
        if self.waiting >= self._waiting_max:
            raise Unavailable("Too many changes wait for the disk; nothing was done.", code="overloaded")
        waiting = _Job(job)
        self._jobs.put(waiting)
        await waiting.done.wait()
        if waiting.error is not None:
            raise waiting.error
        return waiting.result  # type: ignore[return-value]  # set whenever there is no error

    def _guard(self, token: trio.lowlevel.TrioToken) -> None:
        try:
            self._loop(token)
        except Exception as error:  # the thread's top: `run` raises it where it is seen
            log.exception("storage.writer_failed")
            self._crash = error
            with suppress(trio.RunFinishedError):
                token.run_sync_soon(self._crashed.set)

    def _loop(self, token: trio.lowlevel.TrioToken) -> None:
        tx = SqliteTransaction(self._connection)
        scrubber = Scrubber(self._connection, self._file, SearchMerge(self._connection))
        pause_s = scrubber.step() if scrubber.due else None
        while True:
            batch, more = self._gather(pause_s)
            if batch:
                self._commit_and_tell(tx, batch, token)
            if self._erased:
                self._erased = False
                scrubber.restart()
            pause_s = scrubber.step() if scrubber.due else None
            self.scrubbing = scrubber.due
            if not more:
                return

    def _gather(self, timeout_s: float | None) -> tuple[list[_Job[Any]], bool]:
        """The jobs of the next batch, and whether to go on after it."""
        batch: list[_Job[Any]] = []
        try:
            job = self._jobs.get(timeout=timeout_s)
            while job is not None:
                batch.append(job)
                if len(batch) == self._batch:
                    return batch, True
                job = self._jobs.get_nowait()
        except queue.Empty:
            return batch, True
        return batch, False

    def _commit_and_tell(
        self, tx: SqliteTransaction, batch: list[_Job[Any]], token: trio.lowlevel.TrioToken
    ) -> None:
        spoiled = self._commit(tx, batch, token)
        for job in spoiled:
            self._commit(tx, [job], token)

    def _commit(
        self, tx: SqliteTransaction, batch: list[_Job[Any]], token: trio.lowlevel.TrioToken
    ) -> list[_Job[Any]]:
        """Commit the batch and answer its jobs; or undo it and return the jobs to run by themselves."""
        began = time.perf_counter()
        try:
            tx.conn.execute("BEGIN IMMEDIATE")
            for job in batch:
                changes, job.error = tx.conn.total_changes, None
                try:
                    job.result = job.run(tx)
                except sqlite3.OperationalError:
                    raise  # the disk, not the job
                except Exception as error:  # noqa: BLE001  # the job's own; `write` raises it
                    job.error = error
                    if tx.conn.total_changes != changes:
                        self._undo(tx)
                        self._tell(token, None, [job])
                        # Those it refused before, too: what they were refused for may be undone by now.
                        return [other for other in batch if other is not job]
            tx.conn.execute("COMMIT")
        except sqlite3.Error as error:
            self._undo(tx)
            self.commits.refused += 1
            log.error("storage.commit_failed", error=str(error), jobs=len(batch))
            for job in batch:
                job.error = Unavailable(
                    "The disk refused the change; nothing of it is stored.", code="storage_failed"
                )
            self._tell(token, None, batch)
            return []
        self.commits.seconds.observe(time.perf_counter() - began)
        self.commits.jobs.observe(len(batch))
        self._tell(token, self._take(tx), batch)
        return []

    def _undo(self, tx: SqliteTransaction) -> None:
        if tx.conn.in_transaction:
            tx.conn.execute("ROLLBACK")
        tx.forget_endpoints()
        self._take(tx)

    def _take(self, tx: SqliteTransaction) -> Commit:
        commit = Commit(
            tuple(tx.published), tuple(tx.deliveries), frozenset(tx.erased), tuple(tx.due), tuple(tx.runs_due)
        )
        if tx.erased or tx.scrub_wanted:
            self._erased = self.scrubbing = True
        tx.published.clear()
        tx.deliveries.clear()
        tx.erased.clear()
        tx.due.clear()
        tx.runs_due.clear()
        tx.scrub_wanted = False
        return commit

    def _tell(self, token: trio.lowlevel.TrioToken, commit: Commit | None, jobs: Sequence[_Job[Any]]) -> None:
        with suppress(trio.RunFinishedError):  # nobody is left to be told; what is committed stays so
            token.run_sync_soon(self._answer, commit, jobs)

    def _answer(self, commit: Commit | None, jobs: Sequence[_Job[Any]]) -> None:
        if commit is not None:
            self._on_commit(commit)
        for job in jobs:
            job.done.set()
