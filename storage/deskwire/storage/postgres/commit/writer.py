"""The queue of jobs to commit, and the tasks that commit them.

Brief jobs (`InlineJob`) share transactions on Trio's thread. Other jobs, and those that a batch can't carry
out, get a transaction of their own in one of two worker threads. Of jobs that are not brief, only one runs at
a time on all nodes, by an advisory lock (`single_jobs`). Jobs of one `order` are committed in the order of their submission: while one of
them runs alone, the later ones wait.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence, Sized
from contextlib import contextmanager
from functools import partial
from itertools import chain
from typing import Any, Final, TypeVar

import structlog
import trio
import trio.lowlevel

from deskwire.engine.core.counters import CommitCounters, SharedCommitCounters
from deskwire.engine.core.errors import Unavailable
from deskwire.engine.ports import Commit, Transaction
from deskwire.storage.postgres.commit.batch_run import Job, make_job
from deskwire.storage.postgres.commit.batcher import Batcher
from deskwire.storage.postgres.commit.commit_log import Lane
from deskwire.storage.postgres.commit.single_jobs import DATABASE_TIMEOUT_S, SingleJobRunner
from deskwire.storage.postgres.driver.errors import LANE_TAKEN, ConnectionLost, DatabaseError, unavailable
from deskwire.storage.postgres.driver.session import Database

T = TypeVar("T")
log: Final = structlog.get_logger(__name__)

QUEUE_MAX: Final = 10_000  # Default number of queued jobs.

SINGLE_JOB_RUNNERS: Final = 2
_ATTEMPTS_MAX: Final = 3
# Number of batches that leave out a blocked job before it gets a transaction of its own, which may wait.
_SKIPS_MAX: Final = 3

_RETRY_DELAY_S: Final = 0.05
_POLL_INTERVAL_S: Final = 0.005


class Writer:
    """The writer of one node.

    Args:
        batch: maximum number of jobs in one transaction.
        on_commit: called for each commit, before its jobs end. Commits of two lanes arrive in any order.
        waiting_max: maximum number of queued jobs.
        timeout_s: time for the database to become reachable before jobs are refused.
    """

    def __init__(
        self,
        database: Database,
        batch: int,
        on_commit: Callable[[Commit], None],
        waiting_max: int = QUEUE_MAX,
        timeout_s: float = DATABASE_TIMEOUT_S,
    ) -> None:
        self.commits: Final = CommitCounters()
        self.shared: Final = SharedCommitCounters()
        self._batcher = Batcher(database, Lane(database.node, 0), timeout_s, self.shared)
        self._runners = [
            SingleJobRunner(database, Lane(database.node, 1 + number), timeout_s, self.shared)
            for number in range(SINGLE_JOB_RUNNERS)
        ]
        self._shutdown_runner = SingleJobRunner(
            database, Lane(database.node, 1 + SINGLE_JOB_RUNNERS), timeout_s, self.shared
        )
        self._batch = batch
        self._on_commit = on_commit
        self._waiting_max = waiting_max
        self._timeout_s = timeout_s
        self._jobs: deque[Job[Any]] = deque()
        self._single_jobs: deque[Job[Any]] = deque()
        self._waiting_by_order: dict[str, deque[Job[Any]]] = {}
        self._wakeup = trio.Event()
        self._wakeup_single = trio.Event()
        self._threads = trio.CapacityLimiter(SINGLE_JOB_RUNNERS + 1)
        self._started_at: list[float] = []
        self._under_load = False
        self._stopped = False
        self._unreachable = False

    @property
    def backlog(self) -> Sized:
        """The jobs that are not part of a commit yet."""
        return _Backlog(self)

    @property
    def waiting(self) -> int:
        """The number of jobs that are not part of a commit yet."""
        return len(self._jobs) + len(self._single_jobs) + sum(map(len, self._waiting_by_order.values()))

    @property
    def waited_s(self) -> float:
        """The age of the oldest running transaction in seconds; 0 if there is none."""
        return time.perf_counter() - min(self._started_at) if self._started_at else 0.0

    def submit(self, job: Callable[[Transaction], T], ended: Callable[[T | Exception], None]) -> None:
        """See `Store.submit`."""
        if self._stopped:
            raise _shutting_down()
        if self.waiting >= self._waiting_max:
            raise Unavailable("Too many changes wait for the database; nothing was done.", code="overloaded")
        self._jobs.append(make_job(job, ended))
        self._wakeup.set()

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Commit jobs until cancelled, then commit those that are queued.

        Any exception here is a bug and stops the process, which can't work without a writer.
        """
        try:
            async with trio.open_nursery() as nursery:
                for runner in self._runners:
                    nursery.start_soon(self._run_single_jobs, runner)
                task_status.started()
                try:
                    while True:
                        await self._wakeup.wait()
                        with trio.CancelScope(shield=True):
                            await self._commit_next()
                except trio.Cancelled:
                    self._stopped = True
                    with trio.CancelScope(shield=True):
                        await self._finish()
                    raise
        finally:
            self._stopped = True
            # Queues have jobs only after a bug.
            for job in chain(self._jobs, self._single_jobs, *self._waiting_by_order.values()):
                job.ended(_shutting_down())

    async def open(self) -> None:
        """Open the session of batches before it is used. Raises ConnectionLost."""
        await self._batcher.open()

    def close(self) -> None:
        """Close all connections."""
        self._batcher.close()
        for runner in (*self._runners, self._shutdown_runner):
            runner.close()

    async def _finish(self) -> None:
        """Commit all queued jobs, unless the database is unreachable.

        Jobs that wait for their order are queued again first.
        """
        while (self.waiting and not self._unreachable) or self._threads.borrowed_tokens:
            await self._commit_next()
            while self._single_jobs and not self._unreachable:
                await self._run_single_job(self._shutdown_runner, self._single_jobs.popleft())
            await trio.sleep(_POLL_INTERVAL_S)

    async def _commit_next(self) -> None:
        """Commit one batch of queued jobs, and end them."""
        batch: list[Job[Any]] = []
        while self._jobs and len(batch) < self._batch:
            job = self._jobs.popleft()
            if job.order in self._waiting_by_order:
                self._waiting_by_order[job.order].append(job)
            elif not job.brief or job.skips >= _SKIPS_MAX:
                self._queue_single(job)
            else:
                batch.append(job)
        if not self._jobs:
            self._wakeup = trio.Event()
        if batch:
            chosen = len(batch)
            with self._timed():
                await self._commit(batch)
            self._under_load = bool(self._jobs) or len(batch) > chosen

    def _add_jobs(self, batch: list[Job[Any]], projects: Collection[int], count: int) -> None:
        """Add queued jobs that write only to these projects' logs, up to `count`.

        The other jobs keep their order.
        """
        left, held = list[Job[Any]](), set[str | None]()
        while self._jobs and len(batch) < min(count, self._batch):
            job = self._jobs.popleft()
            if job.order in self._waiting_by_order:
                self._waiting_by_order[job.order].append(job)
            elif job.brief and job.log in projects and job.skips < _SKIPS_MAX and job.order not in held:
                batch.append(job)
            else:
                left.append(job)
                held.add(job.order)
        self._jobs.extendleft(reversed(left))

    async def _commit(self, batch: list[Job[Any]]) -> None:
        began, until = time.perf_counter(), trio.current_time() + self._timeout_s
        tries = 0
        while True:
            tries += 1
            try:
                outcome = await self._batcher.carry_out(
                    batch, partial(self._add_jobs, batch), under_load=self._under_load
                )
            except ConnectionLost as lost:
                log.warning("storage.connection_lost", error=str(lost), jobs=len(batch))
                if lost.final or trio.current_time() >= until:
                    self._unreachable = True
                    self._fail(batch, unavailable(lost))
                    return
                await trio.sleep(_RETRY_DELAY_S)
            except DatabaseError as error:
                if error.sqlstate == LANE_TAKEN:
                    self._fail(batch, unavailable(error))
                    return
                log.info("storage.batch_failed", error=str(error), jobs=len(batch))
                if not error.retryable or tries >= _ATTEMPTS_MAX:
                    # One job is to blame, so each gets its own transaction.
                    for job in batch:
                        self._queue_single(job)
                    return
            except Unavailable as unknown:
                self._fail(batch, unknown)
                return
            else:
                self._unreachable = False
                break
        for job in outcome.single:
            self._queue_single(job)
        self._requeue(outcome.postponed)
        if outcome.commit is not None:
            self._record_commit(outcome.commit, len(outcome.done), time.perf_counter() - began)
        for job in outcome.done:
            job.ended(job.outcome)

    @contextmanager
    def _timed(self) -> Iterator[None]:
        """Count the body as a running transaction."""
        began = time.perf_counter()
        self._started_at.append(began)
        try:
            yield
        finally:
            self._started_at.remove(began)

    async def _run_single_jobs(self, runner: SingleJobRunner) -> None:
        while True:
            while not self._single_jobs:
                self._wakeup_single = trio.Event()
                await self._wakeup_single.wait()
            with trio.CancelScope(shield=True):
                await self._run_single_job(runner, self._single_jobs.popleft())

    async def _run_single_job(self, runner: SingleJobRunner, job: Job[Any]) -> None:
        began = time.perf_counter()
        with self._timed():
            done = await trio.to_thread.run_sync(runner.carry_out, job, limiter=self._threads)
        if done.commit is not None:
            self._record_commit(done.commit, 1, time.perf_counter() - began)
        elif done.refused:
            self.commits.refused += 1
            self.commits.failure = str(done.outcome)
        job.ended(done.outcome)
        if job.order is not None:
            self._requeue(self._waiting_by_order.pop(job.order))

    def _queue_single(self, job: Job[Any]) -> None:
        """Queue a job for a transaction of its own; later jobs of its order wait for it."""
        if job.order is not None:
            if job.order in self._waiting_by_order:
                self._waiting_by_order[job.order].append(job)
                return
            self._waiting_by_order[job.order] = deque()
        self._single_jobs.append(job)
        self._wakeup_single.set()

    def _requeue(self, jobs: Sequence[Job[Any]] | deque[Job[Any]]) -> None:
        """Put jobs before all queued ones, in their order."""
        if jobs:
            self._jobs.extendleft(reversed(jobs))
            self._wakeup.set()

    def _record_commit(self, commit: Commit, jobs: int, seconds: float) -> None:
        self.commits.seconds.observe(seconds)
        self.commits.jobs.observe(jobs)
        self.commits.failure, self.commits.done_at = None, trio.current_time()
        self._on_commit(commit)

    def _fail(self, batch: Sequence[Job[Any]], refusal: Unavailable) -> None:
        """End a batch with an error, because it was not stored or its result is unknown."""
        self.commits.refused += 1
        self.commits.failure = str(refusal)
        log.error("storage.commit_failed", error=str(refusal), jobs=len(batch))
        for job in batch:
            job.ended(refusal)


class _Backlog:
    """A sized view of the number of queued jobs."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer

    def __len__(self) -> int:
        return self._writer.waiting


def _shutting_down() -> Unavailable:
    return Unavailable("The service is shutting down.", code="shutting_down")
