"""Jobs on their way through the writer.

The course of a batch's jobs in memory: run until nothing is wanted any more, or left to another commit.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, Final, Generic, TypeVar

from msgspec import Struct, field

from deskwire.engine.core.counters import SharedCommits
from deskwire.engine.core.errors import StaleState
from deskwire.engine.core.store import Brief
from deskwire.engine.ports import Commit, Transaction
from deskwire.storage.postgres.commit.batch_transaction import NotLocked
from deskwire.storage.postgres.commit.overlay import NeedsOwnTransaction
from deskwire.storage.postgres.driver.recorded_reads import MissingRead, ReadKey

T = TypeVar("T")


class Job(Struct, Generic[T], eq=False):
    """A job that was handed in.

    Args:
        brief: whether it may share a transaction.
        again: decides anew, on what is stored; None if nothing can.
        needs: returns the reads that it begins with, and with `again=True` those of `again`; None if that is not known.
        order: jobs of the same are committed as they were handed in; None for any order.
        log: the project whose log the job adds to, if it adds to one single and waits for no other transaction; else None.
        skips: how often a batch went without it, because another transaction had locked a row that it needs.
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
    """Return what was handed in, with what is to be known of it; see `engine.core.store.Revisable`."""
    brief = isinstance(job, Brief)
    inner: Any = job.job if isinstance(job, Brief) else job
    again = getattr(inner, "again", None)
    if again is None:
        return Job(inner, brief, ended)
    return Job(inner, brief, ended, again, inner.needs, inner.order, inner.log)


_BYTES_MAX: Final = 256 * 1024
"""What a batch sends in its last round, about: the longer that takes, the longer others wait for the heads."""


class BatchOutcome(Struct):
    """The course that a batch has taken.

    Args:
        commit: what it makes known; None if nothing was stored.
        done: the jobs that have their outcome.
        postponed: those that somebody else is in the way of, in order.
        single: those that a batch can't carry out.
    """

    commit: Commit | None = None
    done: list[Job[Any]] = field(default_factory=list)
    postponed: list[Job[Any]] = field(default_factory=list)
    single: list[Job[Any]] = field(default_factory=list)


def split_by_log(jobs: Sequence[Job[Any]], *, logged: bool) -> tuple[list[Job[Any]], list[Job[Any]]]:
    """Divide jobs into those for this batch and those for a postponed one.

    A job is left to a postponed batch if an earlier one of its `order` is.

    Args:
        logged: True to choose the jobs that add to one known log, False to choose the others.
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
    """Return whether a read may wait for another transaction, because it locks rows."""
    return " FOR " in key[0]


class _Missing(Struct):
    keys: dict[ReadKey, None] = field(default_factory=dict)
    rowids: set[int] = field(default_factory=set)

    def __bool__(self) -> bool:
        return bool(self.keys or self.rowids)


class BatchRun:
    """The course of one batch: which of its jobs have been decided, and what the others want."""

    def __init__(
        self,
        jobs: Sequence[Job[Any]],
        tx: Any,  # a `BatchTransaction`
        counters: SharedCommits,
    ) -> None:
        self.heads: Collection[int] | None = None
        """The projects whose heads are locked; None if none is. A job that may wait is left to a postponed batch while they are."""
        self.postponed_any = False
        """True if a job was left to a postponed batch, which locks the heads last."""
        self.result: Final = BatchOutcome()
        self.missing = _Missing()
        self.tried_locks: Final[set[int]] = set()
        self.stale = False
        """True if a job had to be decided again, because the stored state was another one."""
        self._jobs = jobs
        self._tx = tx
        self._counters = counters
        self._next = 0
        self._blocked_orders: set[str] = set()

    def prefetch(self, *, again: bool) -> None:
        """Note the reads that the jobs certainly need; with `again` also those for deciding them again."""
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
        """Run the jobs up to the first that missing something; and those behind it, to hear what they want."""
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
        """Have those single that want more and more."""
        self.result.single += self._jobs[self._next :]

    def _decide(self, job: Job[Any], fate: list[Job[Any]]) -> None:
        self._next += 1
        fate.append(job)
        if fate is not self.result.done and job.order is not None:
            self._blocked_orders.add(job.order)

    def _run_job(self, job: Job[Any]) -> tuple[Any, bool]:
        """Run a job, and decide it again if the stored state is another one.

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
        """Leave a job to a postponed batch, which locks the heads last."""
        job.log, self.postponed_any = None, True
        self._decide(job, self.result.postponed)

    def _may_block(self, needed: MissingRead | NotLocked) -> bool:
        """Return whether a read may wait for another transaction while heads are locked."""
        return self.heads is not None and isinstance(needed, MissingRead) and any(map(may_block, needed.keys))

    def _note(self, needed: MissingRead | NotLocked) -> None:
        if isinstance(needed, MissingRead):
            self.missing.keys.update(dict.fromkeys(needed.keys))
        else:
            self.missing.rowids.add(needed.rowid)
