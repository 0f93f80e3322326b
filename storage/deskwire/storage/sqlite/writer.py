"""The task that owns the write connection and commits all queued jobs in one transaction (group commit).

Slow work runs in a worker thread: COMMIT with its fsync, and whole transactions that contain a job other than
`InlineJob`. Inline jobs run on Trio's thread, because in a worker thread each statement would hand the GIL over and back,
which takes longer than the statement (docs/performance.md). The COMMIT of a single job also runs on Trio's thread while
the disk is fast (`CommitPlacement`).

A job that raises before its first write only fails itself. A job that raises after a write causes a rollback, and the
other jobs of the batch are run again one by one, so a failing job costs others time but nothing else. If COMMIT fails,
all jobs of the batch fail, because nothing of it is stored for certain.

Before each transaction the writer checks the database file (`DatabaseFile`). After a difference it refuses all jobs, and
saves the content of the open file (`Rescue`).
"""

from __future__ import annotations

import sqlite3
import time
from collections import deque
from collections.abc import Callable, Sequence, Sized
from math import inf
from typing import Any, Final, Generic, TypeVar, TypeVarTuple

import structlog
import trio
from msgspec import Struct

from deskwire.engine.core.counters import CommitCounters
from deskwire.engine.core.database_identity import WRONG_DATABASE, IdentityRefusal
from deskwire.engine.core.errors import Unavailable
from deskwire.engine.core.store import InlineJob
from deskwire.engine.core.tasks.oneshot import OneShot
from deskwire.engine.ports import Commit, Transaction
from deskwire.storage.sqlite.file_identity import DatabaseFile, is_damage
from deskwire.storage.sqlite.rescue import Rescue
from deskwire.storage.sqlite.scrub import Scrubber
from deskwire.storage.sqlite.ticket_search import SearchMerge
from deskwire.storage.sqlite.transaction import SqliteTransaction

T = TypeVar("T")
R = TypeVar("R")
Ts = TypeVarTuple("Ts")
log: Final = structlog.get_logger(__name__)

WAITING_MAX: Final = 10_000
"""Default maximum of queued jobs, a few seconds of work for a slow disk."""


class _Job(Struct, Generic[T], eq=False):
    run: Callable[[Transaction], T]
    inline: bool
    ended: Callable[[T | Exception], None]
    outcome: T | Exception | None = None


class Writer:
    """Commits queued jobs in batches.

    `scrubbing` is True while bytes of erased rows may still be in the file, since `scrub_since` on Trio's clock.

    Args:
        file: a descriptor of the database file: see `Scrubber`.
        batch: maximum jobs of a transaction.
        on_commit: called for each commit, before its jobs are resolved.
        waiting_max: maximum queued jobs.
        database: checks the database file; None for no check.
    """

    def __init__(
        self,
        connection: sqlite3.Connection,
        file: int,
        batch: int,
        on_commit: Callable[[Commit], None],
        waiting_max: int = WAITING_MAX,
        database: DatabaseFile | None = None,
    ) -> None:
        self.commits: Final = CommitCounters()
        self.scrubbing = False
        self.scrub_since: float | None = None
        self._connection = connection
        self._file = file
        self._batch = batch
        self._on_commit = on_commit
        self._waiting_max = waiting_max
        self._database = database
        self._rescue = None if database is None else Rescue(connection, database)
        if database is not None:
            database.on_refused = self._wake
        self._jobs: deque[_Job[Any]] = deque()
        self._wakeup = trio.Event()
        self._thread = trio.CapacityLimiter(1)
        self._placement = CommitPlacement(connection)
        self._erased = False
        self._stopped = False

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Commit jobs until cancelled; jobs that are queued by then are still committed.

        An exception is a bug and must stop the program, which can't work without its writer.
        """
        tx = SqliteTransaction(self._connection)
        search = SearchMerge(self._connection)
        scrubber = Scrubber(self._connection, self._file, trio.current_time, search)
        task_status.started()
        try:
            pause_s = await self._scrub(scrubber)
            while True:
                if pause_s == inf:  # a cancel scope would cost a tenth of a single commit
                    await self._wakeup.wait()
                else:
                    with trio.move_on_after(pause_s):
                        await self._wakeup.wait()
                await self._commit_batch(tx)
                if self._database is not None and self._database.refusal is not None:
                    pause_s = await self._rescued()
                else:
                    pause_s = await self._scrub(scrubber) if self.scrubbing else inf
        except trio.Cancelled:
            self._stopped = True
            while self._jobs:
                await self._commit_batch(tx)
            if self._database is not None:
                self._database.check()
                await self._rescued()
            raise
        finally:
            self._stopped = True
            for job in self._jobs:  # only after a bug
                job.ended(_shutting_down())

    @property
    def backlog(self) -> Sized:
        """The queued jobs."""
        return self._jobs

    def submit(self, job: Callable[[Transaction], T], ended: Callable[[T | Exception], None]) -> None:
        """See `Store.submit`."""
        if self._stopped:
            raise _shutting_down()
        if self._database is not None and self._database.refusal is not None:
            self._refuse_wrong_database(self._database)
        if len(self._jobs) >= self._waiting_max:
            raise Unavailable("Too many changes wait for the disk; nothing was done.", code="overloaded")
        self._jobs.append(
            _Job(job.job, True, ended) if isinstance(job, InlineJob) else _Job(job, False, ended)
        )
        if len(self._jobs) == 1:
            self._wakeup.set()

    async def write(self, job: Callable[[Transaction], T]) -> T:
        """See `Store.write`."""
        slot = OneShot[T]()
        self.submit(job, slot.put)
        return await slot.take()

    def _refuse_wrong_database(self, database: DatabaseFile) -> None:
        """Check a refused database again; raise Unavailable if it is still wrong."""
        database.check()
        if (refusal := database.refusal) is not None:
            raise Unavailable(refusal.detail, code=WRONG_DATABASE)

    async def _rescued(self) -> float:
        """Save the content of a refused database; return the seconds until the next attempt."""
        assert self._rescue is not None, "only a checked database is refused"
        if self._rescue.due:
            pause_s = await self._shielded(self._rescue.step)
            self._rescue.report()
            return pause_s
        if self._database is not None and self._database.refusal is None and not self._rescue.idle:
            await self._shielded(self._rescue.discard)
        return inf

    def close(self) -> None:
        """Remove the WAL of a rescued database; all connections must be closed."""
        if self._rescue is not None:
            self._rescue.end()

    def _wake(self) -> None:
        self._wakeup.set()

    async def _scrub(self, scrubber: Scrubber) -> float:
        """Run one step of the scrubber; return how long to wait for a job before the next step."""
        if self._erased:
            self._erased = False
            scrubber.want()
        pause_s = inf
        if scrubber.due:
            pause_s = await self._shielded(scrubber.step)
            if self._database is not None:
                self._database.note()
        self.scrubbing = scrubber.due
        self.scrub_since = scrubber.since
        return pause_s

    async def _commit_batch(self, tx: SqliteTransaction) -> None:
        """Commit one batch of queued jobs and resolve them."""
        batch = [self._jobs.popleft() for _ in range(min(self._batch, len(self._jobs)))]
        if not self._jobs:
            self._wakeup = trio.Event()
        if batch:
            for job in await self._commit(tx, batch):
                await self._commit(tx, [job])

    async def _commit(self, tx: SqliteTransaction, batch: list[_Job[Any]]) -> list[_Job[Any]]:
        """Commit the batch and resolve its jobs, or roll it back and return the jobs to run again one by one."""
        if self._database is not None and (refusal := await self._checked(self._database)) is not None:
            _answer(batch, Unavailable(refusal.detail, code=WRONG_DATABASE))
            return []
        began, changes = time.perf_counter(), tx.conn.total_changes
        try:
            if all(job.inline for job in batch):
                spoiler = _carry_out(tx, batch)
                if spoiler is None:
                    await self._end(tx, alone=len(batch) == 1 and not self._jobs)
            else:
                spoiler = await self._shielded(_run_transaction, tx, batch)
        except sqlite3.Error as error:
            self._undo(tx)
            self._refuse(batch, error)
            return []
        if spoiler is not None:
            self._undo(tx)
            spoiler.ended(spoiler.outcome)
            # Rejected jobs run again as well: the state that rejected them was rolled back.
            return [job for job in batch if job is not spoiler]
        seconds, commit = time.perf_counter() - began, self._take(tx)
        self.commits.seconds.observe(seconds)
        self.commits.jobs.observe(len(batch))
        if tx.conn.total_changes != changes:  # a commit without changes does not sync
            self.commits.failure, self.commits.done_at = None, trio.current_time()
        self._on_commit(commit)
        for job in batch:
            job.ended(job.outcome)
        return []

    async def _checked(self, database: DatabaseFile) -> IdentityRefusal | None:
        """Check the database file; return its refusal, if any."""
        refusal = database.before_write()
        if refusal is None and self._rescue is not None and not self._rescue.idle:
            await self._shielded(self._rescue.discard)
        if refusal is None and database.doubtful:
            refusal = await self._shielded(database.examine)
        return refusal

    async def _end(self, tx: SqliteTransaction, *, alone: bool) -> None:
        """Make the transaction durable.

        Args:
            alone: whether no other job is waiting for a commit, so that a fast one may block Trio's thread.
        """
        inline = self._may_block(alone=alone)
        self._placement.took(_end(tx) if inline else await self._shielded(_end, tx))

    def _may_block(self, *, alone: bool) -> bool:
        return self._placement.may_block(alone=alone)

    async def _shielded(self, work: Callable[[*Ts], R], *given: *Ts) -> R:
        """Run the work in a worker thread, shielded from cancellation."""
        with trio.CancelScope(shield=True):
            result = await self._threaded(work, *given)
        return result

    async def _threaded(self, work: Callable[[*Ts], R], *given: *Ts) -> R:
        return await trio.to_thread.run_sync(work, *given, limiter=self._thread)

    def _refuse(self, batch: Sequence[_Job[Any]], error: sqlite3.Error) -> None:
        """Fail a batch whose transaction the disk has refused."""
        self.commits.refused += 1
        self.commits.failure = str(error)
        log.error("storage.commit_failed", error=str(error), jobs=len(batch))
        if self._database is not None and is_damage(error):
            _answer(batch, Unavailable(self._database.met_damage(error).detail, code=WRONG_DATABASE))
        else:
            detail = "The disk refused the change; nothing of it is stored."
            _answer(batch, Unavailable(detail, code="storage_failed"))

    def _undo(self, tx: SqliteTransaction) -> None:
        if tx.conn.in_transaction:
            tx.conn.execute("ROLLBACK")
        tx.forget()
        self._take(tx)

    def _take(self, tx: SqliteTransaction) -> Commit:
        commit = commit_of(tx)
        if tx.erased or tx.scrub_wanted:
            self._erased = self.scrubbing = True
        tx.published.clear()
        tx.deliveries.clear()
        tx.erased.clear()
        tx.redacted.clear()
        tx.rewritten.clear()
        tx.due.clear()
        tx.runs_due.clear()
        tx.snoozes_due.clear()
        tx.held_due.clear()
        tx.bulk_due.clear()
        tx.writing.clear()
        tx.callers_changed = False
        tx.sessions_ended.clear()
        tx.people_changed = False
        tx.scrub_wanted = False
        return commit


def commit_of(tx: SqliteTransaction) -> Commit:
    """Return the commit with everything that a transaction has collected."""
    return Commit(
        tuple(tx.published),
        tuple(tx.deliveries),
        frozenset(tx.erased),
        tuple(tx.due),
        tuple(tx.runs_due),
        tuple(tx.snoozes_due),
        tx.callers_changed,
        tuple(tx.sessions_ended),
        people=tx.people_changed,
        redacted=frozenset(tx.redacted),
        rewritten=tuple(tx.rewritten),
        held_due=tuple(tx.held_due),
        writing=tuple(tx.writing),
        bulk_due=tuple(tx.bulk_due),
    )


def _answer(batch: Sequence[_Job[Any]], refusal: Unavailable) -> None:
    for job in batch:
        job.ended(refusal)


def _shutting_down() -> Unavailable:
    return Unavailable("The service is shutting down.", code="shutting_down")


def _run_transaction(tx: SqliteTransaction, batch: Sequence[_Job[Any]]) -> _Job[Any] | None:
    """Run and commit a whole transaction; see `_carry_out`."""
    spoiler = _carry_out(tx, batch)
    if spoiler is None:
        _end(tx)
    return spoiler


def _carry_out(tx: SqliteTransaction, batch: Sequence[_Job[Any]]) -> _Job[Any] | None:
    """Begin a transaction and run the jobs; return the job that requires a rollback, or None.

    Raises sqlite3.DatabaseError if the disk fails or the file is damaged.
    """
    tx.conn.execute("BEGIN IMMEDIATE")
    for job in batch:
        changes = tx.conn.total_changes
        try:
            job.outcome = job.run(tx)
        except sqlite3.DatabaseError as error:
            if isinstance(error, sqlite3.OperationalError) or is_damage(error):
                raise  # the disk, not the job
            job.outcome = error
            if tx.conn.total_changes != changes:
                return job
        except Exception as error:  # noqa: BLE001  # an error or a bug of the job becomes its outcome
            job.outcome = error
            if tx.conn.total_changes != changes:
                return job
    return None


def _end(tx: SqliteTransaction) -> float:
    """Commit; return the duration in seconds."""
    began = time.perf_counter()
    tx.conn.execute("COMMIT")
    return time.perf_counter() - began


# Maximum average duration of commits on Trio's thread. A thread switch and back costs a third of that.
INLINE_COMMIT_MAX_S: Final = 0.000_5
_NEWEST_SHARE: Final = 1 / 8  # of the last commit in the moving average
# After this many commits on Trio's thread one is made in a worker thread, which also checkpoints the WAL.
INLINE_COMMITS_MAX: Final = 64
_CHECKPOINT_PAGES: Final = 1_000  # of the WAL, from which a commit checkpoints it (SQLite's default)


class CommitPlacement:
    """Chooses the thread of each COMMIT: Trio's own while commits are fast, else a worker thread (ADR 4)."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._average_s = 2 * INLINE_COMMIT_MAX_S
        self._inline_commits = 0
        self._checkpoints = True

    def may_block(self, *, alone: bool) -> bool:
        """Return whether the next commit may block Trio's thread; if so, keep it from checkpointing the WAL.

        Args:
            alone: whether no other job is waiting for a commit.
        """
        inline = (
            alone and self._average_s <= INLINE_COMMIT_MAX_S and self._inline_commits < INLINE_COMMITS_MAX
        )
        self._inline_commits = self._inline_commits + 1 if inline else 0
        if inline is self._checkpoints:
            pages = 0 if inline else _CHECKPOINT_PAGES
            self._connection.execute(f"PRAGMA wal_autocheckpoint = {pages}").fetchall()
            self._checkpoints = not inline
        return inline

    def took(self, seconds: float) -> None:
        """Record the duration of a commit."""
        self._average_s += (seconds - self._average_s) * _NEWEST_SHARE
