"""One task owns the write connection and puts all jobs that are waiting into one transaction.

What takes time is done in a thread: a COMMIT, with its fsync, and all of a transaction with a job in it that is
not `InlineJob`. Brief ones are run right here: in a thread each of their statements would change hands with everything
else that runs, which takes longer than the statements (docs/performance.md). The COMMIT of a job by itself is made here
as well while the disk is quick (`Pace`).

A job that raises before it has written is merely reported. One that raises after a write takes its
batch's transaction back; the others are then run again, each by itself, so that a bad neighbour costs
time and nothing else. A failed COMMIT fails the whole batch: nothing of it may be taken for stored.

Before each transaction the writer compares the database file with what it should be (`DatabaseFile`). After a difference it
refuses all jobs, and saves what the open file still has (`Rescue`).
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
from deskwire.storage.sqlite.pace import Pace
from deskwire.storage.sqlite.rescue import Rescue
from deskwire.storage.sqlite.scrub import Scrubber
from deskwire.storage.sqlite.ticket_search import SearchMerge
from deskwire.storage.sqlite.transaction import SqliteTransaction

T = TypeVar("T")
R = TypeVar("R")
Ts = TypeVarTuple("Ts")
log: Final = structlog.get_logger(__name__)

WAITING_MAX: Final = 10_000
"""Jobs that may wait by default: some seconds of a slow disk's work."""


class _Job(Struct, Generic[T], eq=False):
    run: Callable[[Transaction], T]
    brief: bool
    ended: Callable[[T | Exception], None]
    outcome: T | Exception | None = None


class Writer:
    """The writer.

    `scrubbing` says whether bytes of something that was erased may still be in the file, `scrub_since` since when,
    by Trio's clock.

    Args:
        file: a descriptor of the database file: see `Scrubber`.
        batch: how many jobs one transaction takes at most.
        on_commit: called for each commit, before any of its jobs is answered.
        waiting_max: how many jobs may wait.
        database: the file that the connection should have; None compares nothing.
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
        self._pace = Pace(connection)
        self._erased = False
        self._stopped = False

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Commit jobs until cancelled; those that are queued by then are still committed.

        Raises what is a bug: without the writer nothing may go on.
        """
        tx = SqliteTransaction(self._connection)
        search = SearchMerge(self._connection)
        scrubber = Scrubber(self._connection, self._file, trio.current_time, search)
        task_status.started()
        try:
            pause_s = await self._scrub(scrubber)
            while True:
                if pause_s == inf:  # a scope for each commit takes a tenth of what a lone one does
                    await self._wakeup.wait()
                else:
                    with trio.move_on_after(pause_s):
                        await self._wakeup.wait()
                await self._turn(tx)
                if self._database is not None and self._database.refusal is not None:
                    pause_s = await self._rescued()
                else:
                    pause_s = await self._scrub(scrubber) if self.scrubbing else inf
        except trio.Cancelled:
            self._stopped = True
            while self._jobs:
                await self._turn(tx)
            if self._database is not None:
                self._database.look()
                await self._rescued()
            raise
        finally:
            self._stopped = True
            for job in self._jobs:  # after a bug; otherwise there are none
                job.ended(_shutting_down())

    @property
    def backlog(self) -> Sized:
        """The jobs that no commit has taken yet."""
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
        """Raise Unavailable if the refused database is still not the right one."""
        database.look()
        if (refusal := database.refusal) is not None:
            raise Unavailable(refusal.detail, code=WRONG_DATABASE)

    async def _rescued(self) -> float:
        """Save what the refused database has; return the seconds until the next try."""
        assert self._rescue is not None, "only a database that is compared is refused"
        if self._rescue.due:
            pause_s = await self._shielded(self._rescue.step)
            self._rescue.report()
            return pause_s
        if self._database is not None and self._database.refusal is None and not self._rescue.idle:
            await self._shielded(self._rescue.discard)
        return inf

    def close(self) -> None:
        """Remove what a rescued database leaves, once all connections are closed."""
        if self._rescue is not None:
            self._rescue.end()

    def _wake(self) -> None:
        self._wakeup.set()

    async def _scrub(self, scrubber: Scrubber) -> float:
        """Do the next part of the scrubber's work; return how long to wait for a job before the part after it."""
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

    async def _turn(self, tx: SqliteTransaction) -> None:
        """Commit what waits, a batch of it, and answer."""
        batch = [self._jobs.popleft() for _ in range(min(self._batch, len(self._jobs)))]
        if not self._jobs:
            self._wakeup = trio.Event()
        if batch:
            for job in await self._commit(tx, batch):
                await self._commit(tx, [job])

    async def _commit(self, tx: SqliteTransaction, batch: list[_Job[Any]]) -> list[_Job[Any]]:
        """Commit the batch and answer its jobs; or undo it, and return the jobs to run by themselves."""
        if self._database is not None and (refusal := await self._compared(self._database)) is not None:
            _answer(batch, Unavailable(refusal.detail, code=WRONG_DATABASE))
            return []
        began, changes = time.perf_counter(), tx.conn.total_changes
        try:
            if all(job.brief for job in batch):
                spoiler = _carry_out(tx, batch)
                if spoiler is None:
                    await self._end(tx, alone=len(batch) == 1 and not self._jobs)
            else:
                spoiler = await self._shielded(_whole, tx, batch)
        except sqlite3.Error as error:
            self._undo(tx)
            self._refuse(batch, error)
            return []
        if spoiler is not None:
            self._undo(tx)
            spoiler.ended(spoiler.outcome)
            # Those it refused before, too: what they were refused for may be undone by now.
            return [job for job in batch if job is not spoiler]
        seconds, commit = time.perf_counter() - began, self._take(tx)
        self.commits.seconds.observe(seconds)
        self.commits.jobs.observe(len(batch))
        if tx.conn.total_changes != changes:  # of one without a change the disk has heard nothing
            self.commits.failure, self.commits.done_at = None, trio.current_time()
        self._on_commit(commit)
        for job in batch:
            job.ended(job.outcome)
        return []

    async def _compared(self, database: DatabaseFile) -> IdentityRefusal | None:
        """Return why the database takes no more writes; None if it is the right one."""
        refusal = database.before_write()
        if refusal is None and self._rescue is not None and not self._rescue.idle:
            await self._shielded(self._rescue.discard)
        if refusal is None and database.doubtful:
            refusal = await self._shielded(database.examine)
        return refusal

    async def _end(self, tx: SqliteTransaction, *, alone: bool) -> None:
        """Commit; it is on disk afterwards.

        Args:
            alone: whether nobody else waits for a commit, so that a quick one may be made right here.
        """
        self._pace.took(_end(tx) if self._here(alone=alone) else await self._shielded(_end, tx))

    def _here(self, *, alone: bool) -> bool:
        return self._pace.may_block(alone=alone)

    async def _shielded(self, work: Callable[[*Ts], R], *given: *Ts) -> R:
        """Have a thread do the work; no cancellation comes in between."""
        with trio.CancelScope(shield=True):
            result = await self._threaded(work, *given)
        return result

    async def _threaded(self, work: Callable[[*Ts], R], *given: *Ts) -> R:
        return await trio.to_thread.run_sync(work, *given, limiter=self._thread)

    def _refuse(self, batch: Sequence[_Job[Any]], error: sqlite3.Error) -> None:
        """Tell a batch that the disk did not take it."""
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
        tx.writing.clear()
        tx.callers_changed = False
        tx.sessions_ended.clear()
        tx.people_changed = False
        tx.scrub_wanted = False
        return commit


def commit_of(tx: SqliteTransaction) -> Commit:
    """The commit of what a transaction has gathered so far."""
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
    )


def _answer(batch: Sequence[_Job[Any]], refusal: Unavailable) -> None:
    for job in batch:
        job.ended(refusal)


def _shutting_down() -> Unavailable:
    return Unavailable("The service is shutting down.", code="shutting_down")


def _whole(tx: SqliteTransaction, batch: Sequence[_Job[Any]]) -> _Job[Any] | None:
    """Carry out a transaction from its begin to its end; see `_carry_out`."""
    spoiler = _carry_out(tx, batch)
    if spoiler is None:
        _end(tx)
    return spoiler


def _carry_out(tx: SqliteTransaction, batch: Sequence[_Job[Any]]) -> _Job[Any] | None:
    """Begin a transaction and run the jobs in it; return the job that has spoiled it, None if it may be committed.

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
        except Exception as error:  # noqa: BLE001  # a refusal or a bug of the job: it becomes the job's outcome
            job.outcome = error
            if tx.conn.total_changes != changes:
                return job
    return None


def _end(tx: SqliteTransaction) -> float:
    """Commit; return the seconds that it has taken."""
    began = time.perf_counter()
    tx.conn.execute("COMMIT")
    return time.perf_counter() - began
