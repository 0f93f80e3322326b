"""A model of PostgreSQL as the one database of several nodes, with its effects on them.

It runs on one SQLite file and one connection, so a transaction takes no time; the delays are around it. Rows and heads
are locked by their sessions, in the order of a real batch; a session that waits too long is rolled back. A session can
be cut at any phase, also just before or after its commit. If its node is stopped within a transaction, the session
keeps its locks until the server ends it. Only the server knows which commits succeeded.
"""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import trio

from deskwire.engine.conversations.conversation import Conversation
from deskwire.engine.conversations.ports import Claimed
from deskwire.engine.core.errors import Unavailable
from deskwire.engine.core.values import replace
from deskwire.engine.events.ports import Advance, ProjectHead
from deskwire.engine.events.types import ERASURE
from deskwire.engine.ports import Commit, Reader, Transaction
from deskwire.storage.sqlite.database import connect_reader, connect_writer
from deskwire.storage.sqlite.search.file import prepared
from deskwire.storage.sqlite.search.writer import SqliteSearchIndex
from deskwire.storage.sqlite.transaction import SqliteTransaction
from tests.simulation.nodes.heads import NodesReader
from tests.support.streaming import NOON

_PROJECT: Final = 1
"""The storage key of the one project."""
HEAD: Final = ("head", _PROJECT)
"""The project's head, which is locked last."""
LOCK_TIMEOUT_S: Final = 8.0
IDLE_S: Final = 2.0
"""The limit for a session that is idle in a transaction."""
WATCHDOG_S: Final = 10.0
"""The limit for a session within a pipeline."""


class Broken(Exception):
    """The connection is gone, or the server has ended the transaction."""


@dataclass(eq=False)
class Job:
    """A write that a node was asked for, and its outcome."""

    run: Callable[[Transaction], Any]
    brief: bool
    ended: Callable[[Any], None]
    outcome: Any = None


class _Rows(SqliteTransaction):
    """A transaction that records which rows it locks."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        super().__init__(connection)
        self.locked: set[int] = set()

    def claim(self, state: Conversation) -> Claimed:
        self.locked.add(state.rowid)
        return super().claim(state)

    def erase_conversation_rows(self, rowid: int) -> None:
        self.locked.add(rowid)
        super().erase_conversation_rows(rowid)

    def erase_events(self, conversation: int) -> None:
        """Record the erasure in the log as well, so that every follower sees it (ADR 60)."""
        super().erase_events(conversation)
        self._event_position += 1
        self.conn.execute(
            "INSERT INTO events (position, id, type, project, body, created_at, internal) VALUES (?, ?, ?, 0, ?, 0, 1)",
            (self._event_position, self._event_ids.new("evt", 0), ERASURE, b"%d" % conversation),
        )

    def head(self, project: int) -> ProjectHead:
        """Return the project's head after this transaction."""
        return ProjectHead(project, self._event_position, self._delivery_position)

    def begin_anew(self, head: ProjectHead) -> None:
        """Reload the state from the database, because a rollback has made it invalid.

        Args:
            head: the project's head after the last commit; a position whose row is erased is not assigned again.
        """
        self.forget()
        self.start_events()
        self.start_deliveries()
        self._delivery_position = max(self._delivery_position, head.deliveries)
        self.locked.clear()
        for gathered in (
            *(self.published, self.deliveries, self.due, self.runs_due),
            *(self.snoozes_due, self.sessions_ended),
        ):
            gathered.clear()
        self.erased.clear()
        self.callers_changed = self.people_changed = self.scrub_wanted = False


@dataclass(eq=False)
class Session:
    """A connection of one node, with the locks of its transaction."""

    dead: bool = False
    locks: set[tuple[str, int]] = field(default_factory=set)


class Locks:
    """Locks with owners, taken in order of arrival."""

    def __init__(self) -> None:
        self._owners: dict[tuple[str, int], Session] = {}
        self._freed = trio.Event()

    def free(self, name: tuple[str, int], session: Session) -> bool:
        """Return whether no other session has it."""
        return self._owners.get(name, session) is session

    def take(self, names: Iterable[tuple[str, int]], session: Session) -> None:
        """Take these free locks."""
        for name in names:
            self._owners[name] = session
            session.locks.add(name)

    async def wait(self, names: Sequence[tuple[str, int]], session: Session) -> None:
        """Take all locks in turn. Raises Broken if that takes too long, or the session is ended."""
        with trio.move_on_after(LOCK_TIMEOUT_S):
            for name in sorted(names):
                while not self.free(name, session):
                    await self._freed.wait()
                    if session.dead:
                        raise Broken
                self.take([name], session)
            return
        raise Broken

    def release(self, session: Session) -> None:
        """Release all locks of a session."""
        for name in session.locks:
            del self._owners[name]
        session.locks.clear()
        freed, self._freed = self._freed, trio.Event()
        freed.set()


class Database:
    """The server.

    Args:
        committed: called at the moment of each commit, before any other code learns about it.
    """

    def __init__(
        self, path: Path, dice: random.Random, committed: Callable[[Commit, sqlite3.Connection], None]
    ) -> None:
        self.path = path
        self.dice = dice
        self.locks = Locks()
        self.lanes: dict[str, int] = {}
        self.away = False
        self.sessions: list[Session] = []
        self._committed = committed
        self._connection = connect_writer(path)
        self._connection.execute("PRAGMA synchronous = OFF")  # power losses are simulated, not real
        looking = connect_reader(path)
        for connection in (self._connection, looking):
            _give_clock(connection)
        self._tx = _Rows(self._connection)
        self.head = self._tx.head(_PROJECT)
        self._reader = NodesReader(looking, lambda: self.head)
        self.index = SqliteSearchIndex(prepared(path))

    def close(self) -> None:
        """Close the file."""
        self._reader.conn.close()
        self._connection.close()
        self.index.close()

    def at_once(self, job: Callable[[Transaction], Any]) -> Any:
        """Run a write immediately, before any node runs."""
        (done,) = self._run([Job(job, True, lambda _: None)])
        self._connection.execute("COMMIT")
        self._taken()
        return done.outcome

    def read(self, query: Callable[[Reader], Any]) -> Any:
        """Run a query at one moment."""
        if self.away:
            raise Broken
        return query(self._reader)

    # Transactions

    def session(self) -> Session:
        """Return a new connection. Raises Broken if the server is unreachable."""
        if self.away:
            raise Broken
        session = Session()
        self.sessions.append(session)
        return session

    def end(self, session: Session) -> None:
        """End a session and roll back its transaction."""
        session.dead = True
        if session in self.sessions:
            self.sessions.remove(session)
        self.locks.release(session)

    def end_all(self) -> None:
        """End every session."""
        for session in list(self.sessions):
            self.end(session)

    def locked_by(self, job: Job) -> set[tuple[str, int]]:
        """Return the rows that a job would lock if it ran now; nothing is stored."""
        self._connection.execute("BEGIN IMMEDIATE")
        self._tx.begin_anew(self.head)
        try:
            job.outcome = job.run(self._tx)
        except sqlite3.OperationalError:
            raise
        except Exception as error:  # noqa: BLE001  # the job's own error: its caller receives it
            job.outcome = error
        locked = {("conversation", rowid) for rowid in self._tx.locked}
        if self._tx.head(_PROJECT) != self.head:
            locked.add(HEAD)
        self._connection.execute("ROLLBACK")
        self._tx.begin_anew(self.head)
        return locked

    def commit(self, session: Session, jobs: Sequence[Job], lane: str, number: int) -> Commit:
        """Run jobs on the current data, and commit. Raises Broken if the session was ended."""
        if session.dead or self.away:
            raise Broken
        self._run(jobs)
        self._connection.execute("COMMIT")
        commit = self._taken()
        self.lanes[lane] = number
        self._committed(commit, self._connection)
        self.locks.release(session)
        return commit

    def hide(self, position: int) -> None:
        """Hide an event, as if its transaction were visible later than a following one: a bug to plant."""
        self._reader.hidden.add(position)

    def show(self, position: int) -> None:
        """Make the event visible."""
        self._reader.hidden.discard(position)

    def _run(self, jobs: Sequence[Job]) -> Sequence[Job]:
        """Run jobs in one transaction; a failed job leaves no changes."""
        left = list(jobs)
        while True:
            self._connection.execute("BEGIN IMMEDIATE")
            self._tx.begin_anew(self.head)
            spoiler = next((job for job in left if self._spoils(job)), None)
            if spoiler is None:
                return jobs
            self._connection.execute("ROLLBACK")
            left.remove(spoiler)

    def _spoils(self, job: Job) -> bool:
        changes = self._connection.total_changes
        try:
            job.outcome = job.run(self._tx)
        except sqlite3.OperationalError:
            raise
        except Exception as error:  # noqa: BLE001  # the job's own error: its caller receives it
            job.outcome = error
            return self._connection.total_changes != changes
        return False

    def _taken(self) -> Commit:
        tx = self._tx
        commit = Commit(
            tuple(tx.published),
            tuple(tx.deliveries),
            frozenset(tx.erased),
            tuple(tx.due),
            tuple(tx.runs_due),
            tuple(tx.snoozes_due),
            tx.callers_changed,
            tuple(tx.sessions_ended),
            people=tx.people_changed,
        )
        before, self.head = self.head, tx.head(_PROJECT)
        if self.head != before:
            commit = replace(commit, advances=(Advance(before, self.head),))
        tx.begin_anew(self.head)
        return commit


def server_ms() -> int:
    """Return the server's own time, which differs from that of every node."""
    return NOON + 400 + round(trio.current_time() * 1000)


def _give_clock(connection: sqlite3.Connection) -> None:
    """Make leases use the server's clock."""
    for name in ("lease_now", "clock_ms"):
        connection.create_function(name, 0, server_ms)
    connection.create_function("lease_end", 1, lambda ms: server_ms() + ms)
    connection.create_function("lease_left", 1, lambda end: end - server_ms())


def unavailable() -> Unavailable:
    """Return the error of a node that can't reach the database."""
    return Unavailable("The database can't be reached.", code="storage_failed")
