"""The real store on a real SQLite file, controlled by a seed: it is slow, fails, fills up, and is killed.

Only the threads of the storage layer are replaced: their work runs on Trio's thread, with time passing before and after
it, so that each seed has one order of steps, and an answer may be outdated when it comes.
A crash leaves an image of the files, which the next process opens. When a process is killed, the image has everything
it wrote. When the machine loses its power, the image has any part of the sectors that were not synced, or none.
"""

from __future__ import annotations

import random
import shutil
import sqlite3
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, Final, Literal, TypeVar, TypeVarTuple, cast

import trio

from deskwire.engine.core.errors import Unavailable
from deskwire.engine.ports import Commit, Reader, Transaction
from deskwire.storage.sqlite.database import migrate
from deskwire.storage.sqlite.directory import FILE_NAME
from deskwire.storage.sqlite.search.file import prepared
from deskwire.storage.sqlite.store import SqliteStore
from deskwire.storage.sqlite.transaction import SqliteTransaction
from deskwire.storage.sqlite.writer import WAITING_MAX, Writer, _end, _Job, _run_transaction, commit_of

T = TypeVar("T")
Ts = TypeVarTuple("Ts")
End = Literal[
    "killed", "killed in a commit", "power lost", "power lost in a commit", "power lost in a checkpoint"
]
"""A way for a process to end without an orderly stop."""
ENDS: Final[tuple[End, ...]] = (
    "killed",
    "killed in a commit",
    "power lost",
    "power lost in a commit",
    "power lost in a checkpoint",
)
_COMMIT_S: Final = 0.05
_ANSWER_S: Final = 0.01
_READ_S: Final = 0.01
_SECTOR: Final = 512
_FULL: Final = 2
_UNLIMITED: Final = 1 << 30
_STATEMENTS: Final = 40
"""The number of statements among which a failing one is chosen."""


@cache
def _migrated() -> bytes:
    path = Path(mkdtemp(prefix="deskwire-simulation-")) / FILE_NAME
    migrate(path)
    content = path.read_bytes()
    shutil.rmtree(path.parent)
    return content


def new_disk(directory: Path) -> Path:
    """Return the path of a new database, migrated and empty."""
    path = directory / FILE_NAME
    path.write_bytes(_migrated())
    return path


class _Killed(BaseException):
    """Raised in the writer of a process that was killed."""


class _Writer(Writer):
    """The writer on Trio's thread: its work takes time, and stops once the process is killed."""

    dice: random.Random
    committed: Callable[[Commit], None]
    killed = False
    batch: Sequence[_Job[Any]] = ()
    """The batch that is being committed."""

    @property
    def asked(self) -> list[_Job[Any]]:
        """Jobs that have no answer yet."""
        return [*self.batch, *self._jobs]

    async def _commit(self, tx: SqliteTransaction, batch: list[_Job[Any]]) -> list[_Job[Any]]:
        self.batch = batch
        left = await super()._commit(tx, batch)
        self.batch = ()
        return left

    def _may_block(self, *, alone: bool) -> bool:
        return False  # every commit takes time, and may be the last

    async def _threaded(self, work: Callable[[*Ts], T], *given: *Ts) -> T:
        await trio.sleep(self.dice.random() * _COMMIT_S)  # virtual time: the mock clock jumps
        if self.killed:
            raise _Killed
        result = work(*given)
        tx = given[0] if given and work in cast(tuple[object, ...], (_end, _run_transaction)) else None
        if isinstance(tx, SqliteTransaction) and not tx.conn.in_transaction:
            self.committed(commit_of(tx))
        await trio.sleep(self.dice.random() * _ANSWER_S)  # virtual time: the mock clock jumps
        if self.killed:
            raise _Killed
        return result


class _Connection:
    """The writer's connection. It raises `failure` after `fail_in` statements, or at the next commit if `at_commit`."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.fail_in: int | None = None
        self.at_commit = False
        self.failure: type[BaseException] = sqlite3.OperationalError
        self._connection = connection

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)

    def execute(self, sql: str, values: Any = ()) -> sqlite3.Cursor:
        if self.at_commit and sql == "COMMIT":
            self.at_commit, self.fail_in = False, 0
        if self.fail_in is not None and sql != "ROLLBACK":
            self.fail_in -= 1
            if self.fail_in < 0:
                self.fail_in = None
                raise self.failure("disk I/O error")
        return self._connection.execute(sql, values)


class Disk(SqliteStore):
    """`ports.Store` for one process.

    Args:
        path: the database file.
        committed: called at the moment of each commit, before any other code learns about it.
        published: called some time later, just before the commit's jobs are answered.
    """

    def __init__(
        self,
        path: Path,
        dice: random.Random,
        committed: Callable[[Commit, sqlite3.Connection], None],
        published: Callable[[Commit], None],
    ) -> None:
        super().__init__(path, 1, 1, published, WAITING_MAX, index=prepared(path))
        del (
            self.submit,
            self.run,
        )  # bound to the writer that is replaced below; the methods of this class take over
        self.reads_fail = False
        self.full = False
        self.asked = trio.Event()
        """Set with each write that is requested."""
        self.end: End | None = None
        self._dice = dice
        self._dead = False
        self._lost: list[_Job[Any]] = []
        self._synced = self._connection.execute("PRAGMA synchronous").fetchone()[0] >= _FULL
        self._connection.execute("PRAGMA synchronous = OFF")  # power losses are simulated, not real
        self._connection.execute(f"PRAGMA wal_autocheckpoint = {dice.choice((30, 1000))}")
        self._first = self._files()
        self._wire = _Connection(self._connection)
        wire = cast(sqlite3.Connection, self._wire)
        batch = dice.choice((1, 4, 64))
        self._writer = self._inline = _Writer(wire, self._file, batch, published, WAITING_MAX)
        self._inline.dice = dice
        self._inline.committed = lambda commit: committed(commit, self._connection)

    def at_once(self, job: Callable[[Transaction], T]) -> T:
        """Run a write immediately, before the store runs."""
        with self._connection:
            return job(SqliteTransaction(self._connection))

    async def write(self, job: Callable[[Transaction], T]) -> T:
        """See `Store.write`."""
        if self._dead:
            raise Unavailable("The process is dead.")
        self.asked.set()
        return await super().write(job)

    def submit(self, job: Callable[[Transaction], T], ended: Callable[[T | Exception], None]) -> None:
        """See `Store.submit`."""
        if self._dead:
            raise Unavailable("The process is dead.")
        self.asked.set()
        self._writer.submit(job, ended)

    async def read(self, query: Callable[[Reader], T]) -> T:
        """See `Store.read`."""
        await trio.sleep(self._dice.random() * _READ_S)  # virtual time: the mock clock jumps
        if self._dead or self.reads_fail:
            raise Unavailable("The disk can't be read.", code="storage_failed")
        result = query(self._here)
        await trio.sleep(self._dice.random() * _READ_S)  # virtual time: the mock clock jumps
        return result

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Commit writes until cancelled; jobs still queued then are committed, too, unless the process was killed."""
        try:
            await self._inline.run(task_status=task_status)
        except _Killed:
            await trio.sleep_forever()
        finally:
            if not self._dead:
                self.close()

    # Faults

    def fail_soon(self) -> None:
        """Make one of the next statements or the next commit fail."""
        self._wire.failure = sqlite3.OperationalError
        if self._dice.random() < 0.5:
            self._wire.at_commit = True
        else:
            self._wire.fail_in = self._dice.randrange(_STATEMENTS)

    def fill(self, *, full: bool) -> None:
        """Stop the file from growing, or allow it to grow again."""
        self.full = full
        if not self._dead:
            pages = self._connection.execute("PRAGMA page_count").fetchone()[0] if full else _UNLIMITED
            self._connection.execute(f"PRAGMA max_page_count = {pages}")

    def crash(self, how: End, path: Path) -> None:
        """End the process; `path` receives an image of the disk at that moment."""
        database, wal = self._remains(how)
        self._dead = self._inline.killed = True
        self._lost = self._inline.asked
        self._inline._jobs.clear()
        self.close()
        path.write_bytes(database)
        if wal:
            path.with_name(f"{path.name}-wal").write_bytes(wal)

    def let_go(self) -> None:
        """Fail the killed process's pending jobs, so that tasks that wait for them within a shield can end."""
        for job in self._lost:
            job.ended(Unavailable("The process was killed.", code="shutting_down"))

    def _remains(self, how: End) -> tuple[bytes, bytes]:
        before = self._files()
        if self._connection.in_transaction:
            if "commit" in how:
                self._connection.execute("COMMIT")  # the writer is gone before it learns of this commit
        elif "checkpoint" in how:
            self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)")
        after = self._files()
        if how.startswith("killed"):
            return after
        if not self._synced and before[0] == self._first[0]:
            return before[0], self._torn(self._first[1], before[1])
        if before[0] == after[0]:
            return after[0], self._torn(before[1], after[1])
        if before[1] == after[1]:  # a checkpoint: the WAL is synced before it
            return self._torn(before[0], after[0]), after[1]
        return after  # a commit followed by a checkpoint: both were synced

    def _torn(self, before: bytes, after: bytes) -> bytes:
        """Return the earlier content with any of the sectors that were written since then."""
        share = self._dice.choice((0.0, 0.5, 0.9, 1.0))
        made = bytearray(before.ljust(len(after), b"\0"))
        for start in range(0, len(after), _SECTOR):
            sector = after[start : start + _SECTOR]
            if made[start : start + _SECTOR] != sector and self._dice.random() < share:
                made[start : start + _SECTOR] = sector
        return bytes(made)

    def _files(self) -> tuple[bytes, bytes]:
        wal = self._path.with_name(f"{FILE_NAME}-wal")
        return self._path.read_bytes(), wal.read_bytes() if wal.exists() else b""
