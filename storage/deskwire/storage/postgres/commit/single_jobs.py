"""Jobs with a transaction of their own, run statement by statement in a worker thread.

Jobs that are not brief wait for each other across all nodes, by an advisory lock.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final, NamedTuple, TypeVar

import structlog

from deskwire.engine.core.counters import SharedCommitCounters
from deskwire.engine.core.errors import AlreadyAnswered, StaleState, Unavailable
from deskwire.engine.ports import Commit, Transaction
from deskwire.storage.postgres.commit.batch_run import Job
from deskwire.storage.postgres.commit.commit_log import (
    CHECK_COMMIT,
    COUNT_COMMIT,
    NOT_REPLICATED,
    OPEN_LANE,
    Lane,
)
from deskwire.storage.postgres.driver.blocking import BlockingConnection
from deskwire.storage.postgres.driver.errors import (
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

DATABASE_TIMEOUT_S: Final = 10.0  # Time for the database to become reachable before a job is refused.

_RETRY_DELAY_S: Final = 0.05
_ATTEMPTS_MAX: Final = 10
# The lock of each job that is not brief: only one such job runs at a time, as with SQLite.
_EXCLUSIVE: Final = "SELECT pg_advisory_xact_lock(7310868735422231918)"


class FinishedJob(NamedTuple):
    """The result of a job.

    Args:
        outcome: the return value or exception of the job, or Unavailable.
        commit: the commit; None if nothing was stored.
        refused: True if the database failed.
    """

    outcome: Any
    commit: Commit | None
    refused: bool = False


class SingleJobRunner:
    """Runs jobs on one connection and lane; one thread uses it at a time.

    Args:
        timeout_s: time for the database to become reachable before a job is refused.
        counters: counts the outcomes of unanswered commits.
    """

    def __init__(
        self,
        database: Database,
        lane: Lane,
        timeout_s: float = DATABASE_TIMEOUT_S,
        counters: SharedCommitCounters | None = None,
    ) -> None:
        self._counters = counters or SharedCommitCounters()
        self._conn: Final = BlockingConnection(database, "lone")
        self._lane: Final = lane
        self._timeout_s = timeout_s
        self._open = False

    def carry_out(self, job: Job[Any]) -> FinishedJob:
        """Run and commit a job; called in a thread.

        A job that failed because of a concurrent transaction is run again, and one whose state is out of date
        is decided again. The outcome is the return value or exception of the job, or Unavailable.
        """
        again, brief = job.again, job.brief
        until = time.monotonic() + self._timeout_s
        run, tries = job.run, 0
        while True:
            try:
                return self._attempt(run, brief=brief)
            except StaleState as stale:
                self._roll_back()
                if again is None or run is again:
                    tries += 1
                    if again is None or tries >= _ATTEMPTS_MAX:
                        return FinishedJob(stale, None)
                run = again
            except ConnectionLost as lost:
                log.warning("storage.connection_lost", error=str(lost))
                if lost.final or time.monotonic() >= until:
                    return FinishedJob(unavailable(lost), None, True)
                time.sleep(_RETRY_DELAY_S)
            except DatabaseError as error:
                self._roll_back()
                self._open = self._open and error.sqlstate != LANE_TAKEN
                tries += 1
                if tries >= _ATTEMPTS_MAX or not (error.retryable or error.sqlstate == UNIQUE_VIOLATION):
                    log.error("storage.commit_failed", error=str(error), jobs=1)
                    return FinishedJob(unavailable(error), None, True)
            except Unavailable as unknown:
                return FinishedJob(unknown, None, True)

    def close(self) -> None:
        """Close the session."""
        self._conn.close()

    def _attempt(self, run: Callable[[Transaction], T], *, brief: bool) -> FinishedJob:
        """Run a job and commit its changes.

        Raises DatabaseError, StaleState, and Unavailable for an unknown result.
        """
        conn = self._conn
        if not self._open:
            conn.execute(OPEN_LANE, self._lane.open_values())
            self._open = True
        conn.command("BEGIN")
        if not brief:
            conn.execute(_EXCLUSIVE)
        tx: Any = PostgresTransaction(conn)
        conn.changed = False
        outcome: T | Exception
        try:
            outcome = run(tx)
        except (DatabaseError, StaleState):
            raise
        except Exception as error:  # noqa: BLE001  # a refusal or a bug of the job: it becomes the job's outcome
            self._roll_back()
            if isinstance(error, AlreadyAnswered):
                self._confirm()
            return FinishedJob(error, None)
        if not conn.changed:
            conn.command("COMMIT")
            return FinishedJob(outcome, tx.commit())
        tx.save_heads()
        (changes,) = conn.execute(CHANGES).fetchone()
        conn.execute(COUNT_COMMIT, self._lane.count_values())
        if not self._commit():
            return self._attempt(run, brief=brief)
        return FinishedJob(outcome, tx.commit(changes))

    def _confirm(self) -> None:
        """Return once everything that was read is durable, which only a later write proves."""
        stored = False
        while not stored:
            self._conn.command("BEGIN")
            self._conn.execute(COUNT_COMMIT, self._lane.count_values())
            stored = self._commit()

    def _commit(self) -> bool:
        """Commit, and return whether the commit is stored.

        Raises Unavailable if that can't be known.
        """
        conn = self._conn
        try:
            conn.command("COMMIT", self._timeout_s)
        except ConnectionLost as lost:
            log.warning("storage.commit_unanswered", error=str(lost))
        else:
            if NOT_REPLICATED not in conn.notices:
                return True
            log.warning("storage.commit_not_replicated")
        return self._is_committed()

    def _is_committed(self) -> bool:
        """Find out by a write whether the lane's last commit is stored.

        Raises Unavailable if no server can tell.
        """
        until = time.monotonic() + self._timeout_s
        while True:
            try:
                self._conn.command("BEGIN")
                row = self._conn.execute(CHECK_COMMIT, self._lane.check_values()).fetchone()
                self._conn.command("COMMIT", self._timeout_s)
            except DatabaseError as error:
                self._roll_back()
                if error.final or time.monotonic() >= until:
                    raise outcome_unknown() from error
                time.sleep(_RETRY_DELAY_S)
            else:
                if NOT_REPLICATED not in self._conn.notices:
                    if row is None:  # another process uses this lane, or a promoted standby never had the row
                        raise outcome_unknown()
                    return self._counters.note_outcome(stored=row[0] >= self._lane.batch)
                if time.monotonic() >= until:
                    raise outcome_unknown()

    def _roll_back(self) -> None:
        """Roll back; close the session if that fails, which has the same effect."""
        try:
            if self._conn.in_transaction:
                self._conn.command("ROLLBACK")
        except DatabaseError:
            self._conn.close()
