"""The course of a batch's jobs in memory: run until nothing is wanted any more, or left to another commit."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Final

from msgspec import Struct, field

from deskwire.engine.core.counters import SharedCommitCounters
from deskwire.engine.core.errors import StaleState
from deskwire.engine.ports import Commit
from deskwire.storage.postgres.commit.batch import NotLocked
from deskwire.storage.postgres.commit.buffer import NeedsAlone
from deskwire.storage.postgres.commit.jobs import Job
from deskwire.storage.postgres.driver.recall import Key, Wanted

_BYTES_MAX: Final = 256 * 1024
"""What a batch sends in its last round, about: the longer that takes, the longer others wait for the heads."""


class Carried(Struct):
    """The course that a batch has taken.

    Args:
        commit: what it makes known; None if nothing was stored.
        done: the jobs that have their outcome.
        later: those that somebody else is in the way of, in order.
        alone: those that a batch can't carry out.
    """

    commit: Commit | None = None
    done: list[Job[Any]] = field(default_factory=list)
    later: list[Job[Any]] = field(default_factory=list)
    alone: list[Job[Any]] = field(default_factory=list)


def divided(jobs: Sequence[Job[Any]], *, logged: bool) -> tuple[list[Job[Any]], list[Job[Any]]]:
    """Divide jobs into those for this batch and those for a later one.

    A job is left to a later batch if an earlier one of its `order` is.

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


def may_wait(key: Key) -> bool:
    """Return whether a read may wait for another transaction, because it locks rows."""
    return " FOR " in key[0]


class _Wants(Struct):
    keys: dict[Key, None] = field(default_factory=dict)
    rowids: set[int] = field(default_factory=set)

    def __bool__(self) -> bool:
        return bool(self.keys or self.rowids)


class Course:
    """The course of one batch: which of its jobs have been decided, and what the others want."""

    def __init__(
        self,
        jobs: Sequence[Job[Any]],
        tx: Any,  # a `BatchTransaction`
        counters: SharedCommitCounters,
    ) -> None:
        self.heads: Collection[int] | None = None
        """The projects whose heads are locked; None if none is. A job that may wait is left to a later batch while they are."""
        self.put_off = False
        """True if a job was left to a later batch, which locks the heads last."""
        self.carried: Final = Carried()
        self.wants = _Wants()
        self.tried: Final[set[int]] = set()
        self.stale = False
        """True if a job had to be decided again, because the stored state was another one."""
        self._jobs = jobs
        self._tx = tx
        self._counters = counters
        self._next = 0
        self._held: set[str] = set()

    def look_ahead(self, *, again: bool) -> None:
        """Note the reads that the jobs certainly need; with `again` also those for deciding them again."""
        tx = self._tx
        for job in self._jobs:
            for need in (job.run,) if job.needs is None else job.needs(again=again):
                tx.begin()
                try:
                    need(tx)
                except (Wanted, NotLocked) as wish:
                    if not self._may_wait(wish):
                        self._note(wish)
                except (NeedsAlone, Exception):  # noqa: BLE001, S110  # the job is run again, and that run counts
                    pass
                tx.cut()

    def run(self) -> None:
        """Run the jobs up to the first that wants something; and those behind it, to hear what they want."""
        tx, self.wants = self._tx, _Wants()
        for job in self._jobs[self._next :]:
            if job.order in self._held or tx.buffer.size > _BYTES_MAX:
                if not self.wants:
                    self._decide(job, self.carried.later)
                continue
            tx.begin()
            try:
                job.outcome, again = self._outcome(job)
            except (Wanted, NotLocked) as wish:
                tx.cut()
                if self._may_wait(wish):
                    if not self.wants:
                        self._put_off(job)
                elif isinstance(wish, Wanted) or wish.rowid not in self.tried:
                    self._note(wish)
                elif not self.wants:
                    job.passed += 1
                    self._decide(job, self.carried.later)
                continue
            except NeedsAlone:
                tx.cut()
                if not self.wants:
                    self._decide(job, self.carried.alone)
                continue
            if self.wants:
                tx.cut()
                continue
            if self.heads is not None and not tx.never_waits(self.heads):
                tx.cut()
                self._put_off(job)
                continue
            self._counters.decided_again += again
            if isinstance(job.outcome, Exception):
                tx.cut()
            self._decide(job, self.carried.done)

    def give_up(self) -> None:
        """Have those alone that want more and more."""
        self.carried.alone += self._jobs[self._next :]

    def _decide(self, job: Job[Any], fate: list[Job[Any]]) -> None:
        self._next += 1
        fate.append(job)
        if fate is not self.carried.done and job.order is not None:
            self._held.add(job.order)

    def _outcome(self, job: Job[Any]) -> tuple[Any, bool]:
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
        self._tx.cut()
        try:
            return job.again(self._tx), True
        except Exception as error:  # noqa: BLE001  # likewise the job's outcome
            return error, True

    def _put_off(self, job: Job[Any]) -> None:
        """Leave a job to a later batch, which locks the heads last."""
        job.log, self.put_off = None, True
        self._decide(job, self.carried.later)

    def _may_wait(self, wish: Wanted | NotLocked) -> bool:
        """Return whether a read may wait for another transaction while heads are locked."""
        return self.heads is not None and isinstance(wish, Wanted) and any(map(may_wait, wish.keys))

    def _note(self, wish: Wanted | NotLocked) -> None:
        if isinstance(wish, Wanted):
            self.wants.keys.update(dict.fromkeys(wish.keys))
        else:
            self.wants.rowids.add(wish.rowid)
