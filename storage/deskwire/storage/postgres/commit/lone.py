"""Jobs that run by themselves: in a thread, statement by statement, each in a transaction of its own."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final, NamedTuple, TypeVar

import structlog

from deskwire.engine.core.counters import SharedCommitCounters
from deskwire.engine.core.errors import AlreadyAnswered, StaleState, Unavailable
from deskwire.engine.ports import Commit, Transaction
from deskwire.storage.postgres.commit.jobs import Job
from deskwire.storage.postgres.commit.lanes import ASK, COUNT, NOT_REPLICATED, OPEN, Lane
from deskwire.storage.postgres.driver.blocking import BlockingConnection
from deskwire.storage.postgres.driver.refusals import (
    LANE_TAKEN,
    UNIQUE_VIOLATION,
    ConnectionLost,
    DatabaseError,
    outcome_unknown,
    unavailable,
)
from deskwire.storage.postgres.driver.session import Database
from deskwire.storage.postgres.transaction import CHANGES, PostgresTransaction

T = TypeVar("T")
log: Final = structlog.get_logger(__name__)

PATIENCE_S: Final = 10.0
"""How long a database that can't be reached is waited for before a job is refused."""

_PAUSE_S: Final = 0.05
_TRIES: Final = 10
_ALONE: Final = "SELECT pg_advisory_xact_lock(7310868735422231918)"
"""Taken by each job that is not brief: of them one runs at a time, as of all jobs with SQLite."""


class Done(NamedTuple):
    """The end of a job; `commit` is None if nothing was stored, `refused` says that it should have been."""

    outcome: Any
    commit: Commit | None
    refused: bool = False


class Lone:
    """One lane for jobs that run by themselves; one thread uses it at a time.

    Args:
        patience_s: how long a database that can't be reached is waited for.
        counters: what the outcomes of commits without an answer are counted in.
    """

    def __init__(
        self,
        database: Database,
        lane: Lane,
        patience_s: float = PATIENCE_S,
        counters: SharedCommitCounters | None = None,
    ) -> None:
        self._counters = counters or SharedCommitCounters()
        self._conn: Final = BlockingConnection(database, "lone")
        self._lane: Final = lane
        self._patience_s = patience_s
        self._open = False

    def carry_out(self, job: Job[Any]) -> Done:
        """Run a job and commit it; again if it was its neighbours' fault, and decided anew if the state was another.

        The outcome is what the job has returned or raised, or Unavailable. Called in a thread.
        """
        again, brief = job.again, job.brief
        until = time.monotonic() + self._patience_s
        run, tries = job.run, 0
        while True:
            try:
                return self._once(run, brief=brief)
            except StaleState as stale:
                self._undo()
                if again is None or run is again:
                    tries += 1
                    if again is None or tries >= _TRIES:
                        return Done(stale, None)
                run = again
            except ConnectionLost as lost:
                log.warning("storage.connection_lost", error=str(lost))
                if lost.final or time.monotonic() >= until:
                    return Done(unavailable(lost), None, True)
                time.sleep(_PAUSE_S)
            except DatabaseError as error:
                self._undo()
                self._open = self._open and error.sqlstate != LANE_TAKEN
                tries += 1
                if tries >= _TRIES or not (error.again or error.sqlstate == UNIQUE_VIOLATION):
                    log.error("storage.commit_failed", error=str(error), jobs=1)
                    return Done(unavailable(error), None, True)
            except Unavailable as unknown:
                return Done(unknown, None, True)

    def close(self) -> None:
        """Close the session."""
        self._conn.close()

    def _once(self, run: Callable[[Transaction], T], *, brief: bool) -> Done:
        """Run a job and commit what it has written. Raises DatabaseError, StaleState, and Unavailable for an unknown end."""
        conn = self._conn
        if not self._open:
            conn.execute(OPEN, self._lane.opened())
            self._open = True
        conn.command("BEGIN")
        if not brief:
            conn.execute(_ALONE)
        tx: Any = PostgresTransaction(conn)
        conn.changed = False
        outcome: T | Exception
        try:
            outcome = run(tx)
        except (DatabaseError, StaleState):
            raise
        except Exception as error:  # noqa: BLE001  # a refusal or a bug of the job: it becomes the job's outcome
            self._undo()
            if isinstance(error, AlreadyAnswered):
                self._confirm()
            return Done(error, None)
        if not conn.changed:
            conn.command("COMMIT")
            return Done(outcome, tx.commit())
        tx.save_heads()
        (changes,) = conn.execute(CHANGES).fetchone()
        conn.execute(COUNT, self._lane.counted())
        if not self._committed():
            return self._once(run, brief=brief)
        return Done(outcome, tx.commit(changes))

    def _confirm(self) -> None:
        """Return when all that could be read is stored for good: behind a write."""
        stored = False
        while not stored:
            self._conn.command("BEGIN")
            self._conn.execute(COUNT, self._lane.counted())
            stored = self._committed()

    def _committed(self) -> bool:
        """Commit, and return whether that is stored. Raises Unavailable if it can't be known."""
        conn = self._conn
        try:
            conn.command("COMMIT", self._patience_s)
        except ConnectionLost as lost:
            log.warning("storage.commit_unanswered", error=str(lost))
        else:
            if NOT_REPLICATED not in conn.notices:
                return True
            log.warning("storage.commit_not_replicated")
        return self._asked()

    def _asked(self) -> bool:
        """Find out by a write whether the lane's last commit is stored. Raises Unavailable if nobody answers."""
        until = time.monotonic() + self._patience_s
        while True:
            try:
                self._conn.command("BEGIN")
                row = self._conn.execute(ASK, self._lane.asked()).fetchone()
                self._conn.command("COMMIT", self._patience_s)
            except DatabaseError as error:
                self._undo()
                if error.final or time.monotonic() >= until:
                    raise outcome_unknown() from error
                time.sleep(_PAUSE_S)
            else:
                if NOT_REPLICATED not in self._conn.notices:
                    if row is None:  # it is another process's, or a standby took over that never had it
                        raise outcome_unknown()
                    return self._counters.note_outcome(stored=row[0] >= self._lane.batch)
                if time.monotonic() >= until:
                    raise outcome_unknown()

    def _undo(self) -> None:
        """Roll back; a session that can't is closed, which does the same."""
        try:
            if self._conn.in_transaction:
                self._conn.command("ROLLBACK")
        except DatabaseError:
            self._conn.close()
