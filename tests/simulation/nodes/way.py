"""A node's connection to the shared database: batches of three round trips, reads, and faults that cut them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final, TypeVar

import trio

from deskwire.engine.core.counters import CommitCounters, DiskSpace
from deskwire.engine.core.database_identity import DatabaseIdentity
from deskwire.engine.core.errors import Unavailable
from deskwire.engine.core.store import InlineJob
from deskwire.engine.core.tasks.oneshot import OneShot
from deskwire.engine.ports import Commit, Reader, Transaction
from tests.simulation.nodes.shared import (
    HEAD,
    IDLE_S,
    WATCHDOG_S,
    Broken,
    Database,
    Job,
    Session,
    unavailable,
)

T = TypeVar("T")
_HOP_S: Final = 0.01
_BATCH: Final = 16
_PATIENCE_S: Final = 10.0
"""The time limit for a node to reach the database for one batch."""
_AGAIN_S: Final = 0.05


class Way:
    """`ports.Store` for one node.

    Args:
        published: called with each commit of this node whose outcome it learns, before its jobs are answered.
    """

    def __init__(self, database: Database, name: str, published: Callable[[Commit], None]) -> None:
        self.commits = CommitCounters()
        self.cut = False
        self.cuts = 0.0
        """The probability that a round trip ends the connection."""
        self._database = database
        self._name = name
        self._published = published
        self._jobs: deque[Job] = deque()
        self._wakeup = trio.Event()
        self._running: trio.Event | None = None
        self._session: Session | None = None
        self._batch = database.lanes.get(name, 0)
        self.index = database.index
        self._over = False

    @property
    def backlog(self) -> deque[Job]:
        """The jobs that no commit has taken yet."""
        return self._jobs

    identity: Final = DatabaseIdentity()  # the expected one
    scrubbing = False
    scrub_delay = 0.0

    def room(self) -> DiskSpace:
        """Return the database's disk usage, which is not simulated."""
        return DiskSpace(0, 0, 0)

    # Faults

    @property
    def stopped(self) -> bool:
        """Whether the process is stopped."""
        return self._running is not None

    def stop(self) -> None:
        """Stop the process at any point; its session keeps its locks until the server ends it."""
        self._running = trio.Event()

    def go_on(self) -> None:
        """Resume the process."""
        if self._running is not None:
            self._running.set()
            self._running = None

    async def expire(self) -> None:
        """Let the server end the transaction of a stopped node after one of its timeouts."""
        session = self._session
        if session is None:
            return
        patience_s = self._database.dice.choice((IDLE_S, WATCHDOG_S))
        await trio.sleep(patience_s)  # virtual time: the mock clock jumps
        if session is self._session and self.stopped:
            self._database.end(session)

    def kill(self) -> None:
        """End the process: its locks are released immediately, and it stops sending."""
        self._over = True
        if self._session is not None:
            self._database.end(self._session)

    def let_go(self) -> None:
        """Fail the killed process's pending jobs, so that tasks that wait for them within a shield can end."""
        jobs, self._jobs = self._jobs, deque()
        for job in jobs:
            job.ended(Unavailable("The process was killed.", code="shutting_down"))

    async def gate(self) -> None:
        """Wait while the process is stopped."""
        while self._running is not None:
            await self._running.wait()

    # The port

    async def read(self, query: Callable[[Reader], T]) -> T:
        """See `Store.read`."""
        end = trio.current_time() + _PATIENCE_S
        while True:
            try:
                await self._hop()
                found: T = self._database.read(query)
                await self._hop()
            except Broken:
                if trio.current_time() > end:
                    raise unavailable() from None
                await trio.sleep(_AGAIN_S)  # virtual time: the mock clock jumps
            else:
                return found

    async def write(self, job: Callable[[Transaction], T]) -> T:
        """See `Store.write`."""
        slot = OneShot[T]()
        self.submit(job, slot.put)
        return await slot.take()

    def submit(self, job: Callable[[Transaction], T], ended: Callable[[T | Exception], None]) -> None:
        """See `Store.submit`."""
        if self._over:
            raise Unavailable("The process is dead.", code="shutting_down")
        brief = isinstance(job, InlineJob)
        self._jobs.append(Job(job.job if isinstance(job, InlineJob) else job, brief, ended))
        self._wakeup.set()

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Commit writes until cancelled."""
        task_status.started()
        while True:
            await self._wakeup.wait()
            if not self._jobs:
                self._wakeup = trio.Event()
                continue
            batch = [self._jobs.popleft()]
            while batch[0].brief and self._jobs and self._jobs[0].brief and len(batch) < _BATCH:
                batch.append(self._jobs.popleft())
            try:
                await self._settle(batch)
            except BaseException:  # cancelled or broken: requeue the jobs and re-raise
                self._jobs.extendleft(reversed(batch))  # they are answered when the process ends
                if self._over:
                    self.let_go()
                raise

    async def _settle(self, batch: list[Job]) -> None:
        """Have a batch committed, or refused; jobs whose rows are locked by others are retried later."""
        end, skipped = trio.current_time() + _PATIENCE_S, 0
        while batch:
            try:
                done = await self._attempt(batch, wait=skipped > 2)
            except Broken:
                if trio.current_time() > end:
                    for job in batch:
                        job.ended(unavailable())
                    batch.clear()
                    return
                await trio.sleep(_AGAIN_S)  # virtual time: the mock clock jumps
                continue
            skipped += 1
            for job in done:
                batch.remove(job)
                job.ended(job.outcome)

    async def _attempt(self, batch: list[Job], *, wait: bool) -> list[Job]:
        """Commit the jobs of a batch whose rows are not locked; with `wait`, wait for those of the first job."""
        session = self._session = self._database.session()
        locks = self._database.locks
        try:
            await self._hop()
            names = {id(job): self._database.locked_by(job) for job in batch}
            rows = {number: each - {HEAD} for number, each in names.items()}
            if wait or not batch[0].brief:
                await locks.wait(sorted(rows[id(batch[0])]), session)
            chosen = [job for job in batch if all(locks.free(name, session) for name in rows[id(job)])]
            for job in chosen:
                locks.take(rows[id(job)], session)
            await self._hop()
            if any(HEAD in names[id(job)] for job in chosen):
                await locks.wait([HEAD], session)
            if not chosen:
                return []
            return await self._commit(session, chosen)
        finally:
            self._session = None
            self._database.end(session)

    async def _commit(self, session: Session, chosen: list[Job]) -> list[Job]:
        number, commit = self._batch + 1, None
        try:
            await self._hop()
            commit = self._database.commit(session, chosen, self._name, number)
            await self._hop()
        except Broken:
            if not await self._stored(number):
                raise
        self._batch = number
        if commit is not None:
            self._published(commit)
        return chosen

    async def _stored(self, number: int) -> bool:
        """Return whether a commit without an answer succeeded, by the lane's number. Raises Broken if it stays unknown."""
        end = trio.current_time() + _PATIENCE_S
        while trio.current_time() < end:
            try:
                await self._hop()
                self._database.session()
                return self._database.lanes.get(self._name, 0) >= number
            except Broken:
                await trio.sleep(_AGAIN_S)  # virtual time: the mock clock jumps
        raise Broken

    async def _hop(self) -> None:
        """Wait for half a round trip. Raises Broken if the connection ends during that time."""
        await self.gate()
        await trio.sleep(self._database.dice.random() * _HOP_S)  # virtual time: the mock clock jumps
        await self.gate()
        if self.cut or (self.cuts and self._database.dice.random() < self.cuts):
            raise Broken
