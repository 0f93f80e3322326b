"""The writer: jobs in, commits out.

Brief jobs share transactions on Trio's thread. The others, and those that a batch can't carry out, run by themselves in two
threads. Jobs of one `order` are committed as they were handed in: while one of them is away, those behind it wait.
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
from deskwire.storage.postgres.commit.batcher import Batcher
from deskwire.storage.postgres.commit.jobs import Job, job_of
from deskwire.storage.postgres.commit.lanes import Lane
from deskwire.storage.postgres.commit.lone import PATIENCE_S, Lone
from deskwire.storage.postgres.driver.refusals import LANE_TAKEN, ConnectionLost, DatabaseError, unavailable
from deskwire.storage.postgres.driver.session import Database

T = TypeVar("T")
log: Final = structlog.get_logger(__name__)

WAITING_MAX: Final = 10_000
"""Jobs that may wait by default."""

LONE_LANES: Final = 2
_TRIES: Final = 3
_PASSED_MAX: Final = 3
"""How often a batch goes without a job before that waits for what it needs, by itself."""

_PAUSE_S: Final = 0.05
_LOOK_S: Final = 0.005


class Writer:
    """The writer of one node.

    Args:
        batch: how many jobs one transaction takes at most.
        on_commit: called for each commit, before any of its jobs is answered; those of two lanes come in any order.
        waiting_max: how many jobs may wait.
        patience_s: how long a database that can't be reached is waited for before jobs are refused.
    """

    def __init__(
        self,
        database: Database,
        batch: int,
        on_commit: Callable[[Commit], None],
        waiting_max: int = WAITING_MAX,
        patience_s: float = PATIENCE_S,
    ) -> None:
        self.commits: Final = CommitCounters()
        self.shared: Final = SharedCommitCounters()
        self._batcher = Batcher(database, Lane(database.node, 0), patience_s, self.shared)
        self._lones = [
            Lone(database, Lane(database.node, 1 + number), patience_s, self.shared)
            for number in range(LONE_LANES)
        ]
        self._last = Lone(database, Lane(database.node, 1 + LONE_LANES), patience_s, self.shared)
        self._batch = batch
        self._on_commit = on_commit
        self._waiting_max = waiting_max
        self._patience_s = patience_s
        self._jobs: deque[Job[Any]] = deque()
        self._alone: deque[Job[Any]] = deque()
        self._behind: dict[str, deque[Job[Any]]] = {}
        self._wakeup = trio.Event()
        self._wakeup_alone = trio.Event()
        self._threads = trio.CapacityLimiter(LONE_LANES + 1)
        self._under_way: list[float] = []
        self._pressed = False
        self._stopped = False
        self._lost = False

    @property
    def backlog(self) -> Sized:
        """The jobs that no commit has taken yet."""
        return _Backlog(self)

    @property
    def waiting(self) -> int:
        """The number of jobs that no commit has taken yet."""
        return len(self._jobs) + len(self._alone) + sum(map(len, self._behind.values()))

    @property
    def waited_s(self) -> float:
        """The seconds for which the oldest transaction under way has been; 0 if there is none."""
        return time.perf_counter() - min(self._under_way) if self._under_way else 0.0

    def submit(self, job: Callable[[Transaction], T], ended: Callable[[T | Exception], None]) -> None:
        """See `Store.submit`."""
        if self._stopped:
            raise _shutting_down()
        if self.waiting >= self._waiting_max:
            raise Unavailable("Too many changes wait for the database; nothing was done.", code="overloaded")
        self._jobs.append(job_of(job, ended))
        self._wakeup.set()

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Commit jobs until cancelled; those that are queued by then are still committed.

        Raises what is a bug: without the writer nothing may go on.
        """
        try:
            async with trio.open_nursery() as nursery:
                for lone in self._lones:
                    nursery.start_soon(self._run_alone, lone)
                task_status.started()
                try:
                    while True:
                        await self._wakeup.wait()
                        with trio.CancelScope(shield=True):
                            await self._turn()
                except trio.Cancelled:
                    self._stopped = True
                    with trio.CancelScope(shield=True):
                        await self._finish()
                    raise
        finally:
            self._stopped = True
            for job in chain(self._jobs, self._alone, *self._behind.values()):  # after a bug; otherwise none
                job.ended(_shutting_down())

    async def open(self) -> None:
        """Open the session of batches before it is used. Raises ConnectionLost."""
        await self._batcher.open()

    def close(self) -> None:
        """Close the connections."""
        self._batcher.close()
        for lone in (*self._lones, self._last):
            lone.close()

    async def _finish(self) -> None:
        """Carry out all that waits, unless the database is gone; what waits behind those that run now is put back by them."""
        while (self.waiting and not self._lost) or self._threads.borrowed_tokens:
            await self._turn()
            while self._alone and not self._lost:
                await self._carry_out_alone(self._last, self._alone.popleft())
            await trio.sleep(_LOOK_S)

    async def _turn(self) -> None:
        """Commit what waits, a batch of it, and answer."""
        batch: list[Job[Any]] = []
        while self._jobs and len(batch) < self._batch:
            job = self._jobs.popleft()
            if job.order in self._behind:
                self._behind[job.order].append(job)
            elif not job.brief or job.passed >= _PASSED_MAX:
                self._leave_alone(job)
            else:
                batch.append(job)
        if not self._jobs:
            self._wakeup = trio.Event()
        if batch:
            chosen = len(batch)
            with self._counted():
                await self._commit(batch)
            self._pressed = bool(self._jobs) or len(batch) > chosen

    def _fill(self, batch: list[Job[Any]], projects: Collection[int], count: int) -> None:
        """Fill a batch up to `count` jobs with waiting ones that write to these projects' logs only; the others keep their order."""
        left, held = list[Job[Any]](), set[str | None]()
        while self._jobs and len(batch) < min(count, self._batch):
            job = self._jobs.popleft()
            if job.order in self._behind:
                self._behind[job.order].append(job)
            elif job.brief and job.log in projects and job.passed < _PASSED_MAX and job.order not in held:
                batch.append(job)
            else:
                left.append(job)
                held.add(job.order)
        self._jobs.extendleft(reversed(left))

    async def _commit(self, batch: list[Job[Any]]) -> None:
        began, until = time.perf_counter(), trio.current_time() + self._patience_s
        tries = 0
        while True:
            tries += 1
            try:
                carried = await self._batcher.carry_out(
                    batch, partial(self._fill, batch), pressed=self._pressed
                )
            except ConnectionLost as lost:
                log.warning("storage.connection_lost", error=str(lost), jobs=len(batch))
                if lost.final or trio.current_time() >= until:
                    self._lost = True
                    self._refuse(batch, unavailable(lost))
                    return
                await trio.sleep(_PAUSE_S)
            except DatabaseError as error:
                if error.sqlstate == LANE_TAKEN:
                    self._refuse(batch, unavailable(error))
                    return
                log.info("storage.batch_failed", error=str(error), jobs=len(batch))
                if not error.again or tries >= _TRIES:  # one of them is to blame: each by itself
                    for job in batch:
                        self._leave_alone(job)
                    return
            except Unavailable as unknown:
                self._refuse(batch, unknown)
                return
            else:
                self._lost = False
                break
        for job in carried.alone:
            self._leave_alone(job)
        self._put_back(carried.later)
        if carried.commit is not None:
            self._note(carried.commit, len(carried.done), time.perf_counter() - began)
        for job in carried.done:
            job.ended(job.outcome)

    @contextmanager
    def _counted(self) -> Iterator[None]:
        """Count what happens in the context as a transaction under way."""
        began = time.perf_counter()
        self._under_way.append(began)
        try:
            yield
        finally:
            self._under_way.remove(began)

    async def _run_alone(self, lone: Lone) -> None:
        while True:
            while not self._alone:
                self._wakeup_alone = trio.Event()
                await self._wakeup_alone.wait()
            with trio.CancelScope(shield=True):
                await self._carry_out_alone(lone, self._alone.popleft())

    async def _carry_out_alone(self, lone: Lone, job: Job[Any]) -> None:
        began = time.perf_counter()
        with self._counted():
            done = await trio.to_thread.run_sync(lone.carry_out, job, limiter=self._threads)
        if done.commit is not None:
            self._note(done.commit, 1, time.perf_counter() - began)
        elif done.refused:
            self.commits.refused += 1
            self.commits.failure = str(done.outcome)
        job.ended(done.outcome)
        if job.order is not None:
            self._put_back(self._behind.pop(job.order))

    def _leave_alone(self, job: Job[Any]) -> None:
        """Have a job run by itself; those of its order wait until it has."""
        if job.order is not None:
            if job.order in self._behind:
                self._behind[job.order].append(job)
                return
            self._behind[job.order] = deque()
        self._alone.append(job)
        self._wakeup_alone.set()

    def _put_back(self, jobs: Sequence[Job[Any]] | deque[Job[Any]]) -> None:
        """Put jobs before all others that wait, in their order."""
        if jobs:
            self._jobs.extendleft(reversed(jobs))
            self._wakeup.set()

    def _note(self, commit: Commit, jobs: int, seconds: float) -> None:
        self.commits.seconds.observe(seconds)
        self.commits.jobs.observe(jobs)
        self.commits.failure, self.commits.done_at = None, trio.current_time()
        self._on_commit(commit)

    def _refuse(self, batch: Sequence[Job[Any]], refusal: Unavailable) -> None:
        """Tell a batch that the database did not take it, or that nobody knows."""
        self.commits.refused += 1
        self.commits.failure = str(refusal)
        log.error("storage.commit_failed", error=str(refusal), jobs=len(batch))
        for job in batch:
            job.ended(refusal)


class _Backlog:
    """The number of jobs that wait, as something that has a length."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer

    def __len__(self) -> int:
        return self._writer.waiting


def _shutting_down() -> Unavailable:
    return Unavailable("The service is shutting down.", code="shutting_down")
