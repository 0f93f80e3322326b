"""A store on a real SQLite file whose delays come from a seed, and whose process may be killed at any of them."""

from __future__ import annotations

import random
import shutil
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, Final, TypeVar

import trio

from deskwire.engine.errors import Unavailable
from deskwire.engine.ports import Reader, Transaction
from deskwire.storage.database import FILE_NAME, connect_writer, migrate
from deskwire.storage.transaction import SqliteTransaction
from deskwire.storage.writer import Commit

T = TypeVar("T")
_BATCH: Final = 8
_COMMIT_S: Final = 0.05
_ANSWER_S: Final = 0.01
_READ_S: Final = 0.01


@cache
def _migrated() -> bytes:
    path = Path(mkdtemp(prefix="deskwire-simulation-")) / FILE_NAME
    migrate(path)
    content = path.read_bytes()
    shutil.rmtree(path.parent)
    return content


def new_disk(directory: Path) -> Path:
    """A database that is migrated and empty."""
    path = directory / FILE_NAME
    path.write_bytes(_migrated())
    return path


@dataclass(eq=False)
class _Job:
    run: Callable[[Transaction], Any]
    done: trio.Event = field(default_factory=trio.Event)
    result: Any = None
    error: Exception | None = None


class Disk:
    """`ports.Store` as one process has it.

    Args:
        committed: called in the moment of each commit, before anybody else knows of it.
        published: called some time later, just before the commit's jobs are answered.
    """

    def __init__(
        self,
        path: Path,
        dice: random.Random,
        committed: Callable[[Commit], None],
        published: Callable[[Commit], None],
    ) -> None:
        self.refusing = False
        self._dice = dice
        self._committed = committed
        self._published = published
        self._conn = connect_writer(path)
        self._conn.execute("PRAGMA synchronous = OFF")  # processes are killed here, machines are not
        self._tx = SqliteTransaction(self._conn)
        self._jobs: deque[_Job] = deque()
        self._under_way: list[_Job] = []
        self._news = trio.Event()
        self._dead = False

    async def write(self, job: Callable[[Transaction], T]) -> T:
        """See `ports.Store.write`."""
        if self._dead:
            raise Unavailable("The process is dead.")
        waiting = _Job(job)
        self._jobs.append(waiting)
        self._news.set()
        await waiting.done.wait()
        if waiting.error is not None:
            raise waiting.error
        result: T = waiting.result
        return result

    async def read(self, query: Callable[[Reader], T]) -> T:
        """See `ports.Store.read`."""
        await trio.sleep(self._dice.random() * _READ_S)  # virtual time: the mock clock jumps
        return self.peek(query)

    def peek(self, query: Callable[[Reader], T]) -> T:
        """See `ports.Store.peek`."""
        if self._dead:
            raise Unavailable("The process is dead.")
        return query(self._tx)

    def at_once(self, job: Callable[[Transaction], T]) -> T:
        """Write before anything runs."""
        return job(self._tx)

    async def run(self) -> None:
        """Commit what is written, until killed."""
        while True:
            await self._news.wait()
            self._news = trio.Event()
            while self._jobs:
                await trio.sleep(self._dice.random() * _COMMIT_S)  # virtual time: the mock clock jumps
                batch = [self._jobs.popleft() for _ in range(min(_BATCH, len(self._jobs)))]
                self._under_way = batch
                commits = [self._commit(job) for job in batch]
                await trio.sleep(self._dice.random() * _ANSWER_S)  # virtual time: the mock clock jumps
                for job, commit in zip(batch, commits, strict=True):
                    self._published(commit)
                    job.done.set()

    def kill(self) -> None:
        """Write nothing any more; what is not committed is lost."""
        self._dead = True
        for job in (*self._under_way, *self._jobs):
            job.error = Unavailable("The process is dead.")
            job.done.set()
        self._conn.close()

    def _commit(self, job: _Job) -> Commit:
        try:
            if self.refusing:
                raise Unavailable("The disk is full.", code="storage_failed")
            self._conn.execute("BEGIN IMMEDIATE")
            job.result = job.run(self._tx)
            self._conn.execute("COMMIT")
        except Exception as error:  # noqa: BLE001  # the job's own; `write` raises it
            job.error = error
            if self._conn.in_transaction:
                self._conn.execute("ROLLBACK")
        tx = self._tx
        made = Commit((), (), frozenset())
        if job.error is None:
            made = Commit(tuple(tx.published), (), frozenset(tx.erased))
            self._committed(made)
        tx.published.clear()
        tx.deliveries.clear()
        tx.erased.clear()
        return made
