"""The jobs of one batch, and the loop that runs them in memory until no read is missing.

A job runs on the rows that were fetched so far. If it needs a row that was not fetched, the batch fetches
that row and runs the job again. A job that the batch can't carry out is left to a later batch or to a
transaction of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, Final, Generic, TypeVar

from msgspec import Struct, field

from deskwire.engine.core.counters import SharedCommitCounters
from deskwire.engine.core.errors import StaleState
from deskwire.engine.core.store import InlineJob
from deskwire.engine.ports import Commit, Transaction
from deskwire.storage.postgres.commit.batch_transaction import NotLocked
from deskwire.storage.postgres.commit.overlay import NeedsOwnTransaction
from deskwire.storage.postgres.driver.recorded_reads import MissingRead, ReadKey

T = TypeVar("T")


class Job(Struct, Generic[T], eq=False):
    """A job that was submitted to the writer.

    Args:
        brief: True if the job may share a transaction with others.
        again: decides the job again on the stored state; None if the job can't be decided again.
        needs: returns the job's first reads, and with `again=True` also those of `again`; None if they are
            unknown.
        order: jobs with the same `order` are committed in the order of their submission; None for any order.
        log: the project whose log the job adds to, if that is the only log and the job never waits for
            another transaction; else None.
        skips: how many batches left the job out because another transaction had locked a row that it needs.
    """

    run: Callable[[Transaction], T]
    brief: bool
    ended: Callable[[T | Exception], None]
    again: Callable[[Transaction], T] | None = None
    needs: Callable[..., Iterable[Callable[[Transaction], object]]] | None = None
    order: str | None = None
    log: int | None = None
    outcome: T | Exception | None = None
    skips: int = 0


def make_job(job: Callable[[Transaction], T], ended: Callable[[T | Exception], None]) -> Job[T]:
    """Return a submitted job; see `engine.core.store.Revisable` for its attributes."""
    brief = isinstance(job, InlineJob)
    inner: Any = job.job if isinstance(job, InlineJob) else job
    again = getattr(inner, "again", None)
    if again is None:
        return Job(inner, brief, ended)
    return Job(inner, brief, ended, again, inner.needs, inner.order, inner.log)


# Approximate bytes of a batch's last exchange. Other writers wait for the log heads while it is sent.
_BYTES_MAX: Final = 256 * 1024


class BatchOutcome(Struct):
    """The result of one batch.

    Args:
        commit: the commit; None if nothing was stored.
        done: the jobs that have an outcome.
        postponed: the jobs for a later batch, in order, because another transaction blocks them.
        single: the jobs that need a transaction of their own.
    """

    commit: Commit | None = None
    done: list[Job[Any]] = field(default_factory=list)
    postponed: list[Job[Any]] = field(default_factory=list)
    single: list[Job[Any]] = field(default_factory=list)


def split_by_log(jobs: Sequence[Job[Any]], *, logged: bool) -> tuple[list[Job[Any]], list[Job[Any]]]:
    """Divide jobs into those for this batch and those for a later one.

    A job is left to a later batch if an earlier job of its `order` is.

    Args:
        logged: True to choose the jobs with a `log`, False to choose the others.
    """
    chosen, left = list[Job[Any]](), list[Job[Any]]()
    held = set[str]()
    for job in jobs:
        if (job.log is not None) is logged and job.order not in held:
            chosen.append(job)
            continue
        left.append(job)
        if job.order is not None:
            held.add(job.order)
    return chosen, left


def may_block(key: ReadKey) -> bool:
    """Return whether a read locks rows, and so may wait for another transaction."""
    return " FOR " in key[0]


class _Missing(Struct):
    keys: dict[ReadKey, None] = field(default_factory=dict)
    rowids: set[int] = field(default_factory=set)

    def __bool__(self) -> bool:
        return bool(self.keys or self.rowids)


class BatchRun:
    """The progress of one batch: its decided jobs, and the missing reads of the others."""

    def __init__(
        self,
        jobs: Sequence[Job[Any]],
        tx: Any,  # a `BufferedTransaction`
        counters: SharedCommitCounters,
    ) -> None:
        # The projects whose log heads are locked; None if there are none. Jobs that may block are postponed
        # in the meantime.
        self.heads: Collection[int] | None = None
        self.postponed_any = False  # True if a job was left to a later batch, which locks the heads last.
        self.result: Final = BatchOutcome()
        self.missing = _Missing()
        self.tried_locks: Final[set[int]] = set()
        self.stale = False  # True if a job was decided again because its state was out of date.
        self._jobs = jobs
        self._tx = tx
        self._counters = counters
        self._next = 0
        self._blocked_orders: set[str] = set()

    def prefetch(self, *, again: bool) -> None:
        """Collect the reads that the jobs certainly need.

        Args:
            again: True to add the reads for deciding the jobs again.
        """
        tx = self._tx
        for job in self._jobs:
            for need in (job.run,) if job.needs is None else job.needs(again=again):
                tx.begin_job()
                try:
                    need(tx)
                except (MissingRead, NotLocked) as needed:
                    if not self._may_block(needed):
                        self._note(needed)
                except (NeedsOwnTransaction, Exception):  # noqa: BLE001, S110  # the job is run again, and that run counts
                    pass
                tx.undo_job()

    def run(self) -> None:
        """Run the jobs up to the first one that misses a read.

        The jobs after it are run only to collect their missing reads.
        """
        tx, self.missing = self._tx, _Missing()
        for job in self._jobs[self._next :]:
            if job.order in self._blocked_orders or tx.buffer.size > _BYTES_MAX:
                if not self.missing:
                    self._decide(job, self.result.postponed)
                continue
            tx.begin_job()
            try:
                job.outcome, again = self._run_job(job)
            except (MissingRead, NotLocked) as needed:
                tx.undo_job()
                if self._may_block(needed):
                    if not self.missing:
                        self._postpone(job)
                elif isinstance(needed, MissingRead) or needed.rowid not in self.tried_locks:
                    self._note(needed)
                elif not self.missing:
                    job.skips += 1
                    self._decide(job, self.result.postponed)
                continue
            except NeedsOwnTransaction:
                tx.undo_job()
                if not self.missing:
                    self._decide(job, self.result.single)
                continue
            if self.missing:
                tx.undo_job()
                continue
            if self.heads is not None and not tx.never_blocks(self.heads):
                tx.undo_job()
                self._postpone(job)
                continue
            self._counters.decided_again += again
            if isinstance(job.outcome, Exception):
                tx.undo_job()
            self._decide(job, self.result.done)

    def leave_rest_single(self) -> None:
        """Leave all undecided jobs to transactions of their own, because they keep missing reads."""
        self.result.single += self._jobs[self._next :]

    def _decide(self, job: Job[Any], fate: list[Job[Any]]) -> None:
        self._next += 1
        fate.append(job)
        if fate is not self.result.done and job.order is not None:
            self._blocked_orders.add(job.order)

    def _run_job(self, job: Job[Any]) -> tuple[Any, bool]:
        """Run a job, and decide it again if its state is out of date.

        Returns the result or the exception of the job, and whether the job was decided again.
        """
        try:
            return job.run(self._tx), False
        except StaleState as stale:
            if job.again is None:
                return stale, False
        except Exception as error:  # noqa: BLE001  # a refusal or a bug of the job: it becomes the job's outcome
            return error, False
        self.stale = True
        self._tx.undo_job()
        try:
            return job.again(self._tx), True
        except Exception as error:  # noqa: BLE001  # likewise the job's outcome
            return error, True

    def _postpone(self, job: Job[Any]) -> None:
        """Leave a job to a later batch, which locks the heads last."""
        job.log, self.postponed_any = None, True
        self._decide(job, self.result.postponed)

    def _may_block(self, needed: MissingRead | NotLocked) -> bool:
        """Return whether a missing read may wait for another transaction while heads are locked."""
        return self.heads is not None and isinstance(needed, MissingRead) and any(map(may_block, needed.keys))

    def _note(self, needed: MissingRead | NotLocked) -> None:
        if isinstance(needed, MissingRead):
            self.missing.keys.update(dict.fromkeys(needed.keys))
        else:
            self.missing.rowids.add(needed.rowid)
