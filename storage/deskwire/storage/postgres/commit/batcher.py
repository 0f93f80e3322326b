"""Commits of many jobs in one transaction, with two or three round trips on Trio's thread.

1. Lock the rows of conversations, and read what the jobs need. Then run the jobs and buffer their changes.
2. Send the changes, then lock the log heads of the projects. Under these locks events get their positions.
3. Send events, deliveries and heads, the number of the commit for its lane, and the COMMIT.

A batch waits for other rows first and for heads last. It never waits for a conversation: a job whose row is
locked is left to a later batch. A job that needs a row which the first read did not fetch costs another round
trip.

A batch of few jobs takes two round trips: the first one also locks the heads, and the last one sends all
changes. A job that may wait for another transaction is then left to a later batch, because a batch never
waits while it holds a head.

If other nodes write to the same projects under load, the heads come first. The transaction waits for the
heads before it chooses its jobs, so that jobs which arrive during the wait share its commit (ADR 105). It
holds no other lock in that time.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final

import structlog
import trio
from psycopg import pq

from deskwire.engine.core.counters import SharedCommitCounters
from deskwire.engine.core.errors import AlreadyAnswered
from deskwire.engine.ports import Commit
from deskwire.storage.dialect import POSTGRES
from deskwire.storage.postgres.commit.batch_run import BatchOutcome, BatchRun, Job, may_block, split_by_log
from deskwire.storage.postgres.commit.batch_statements import (
    BEGIN,
    COMMIT,
    ROLLBACK,
    BufferedWrite,
    FetchedRows,
    Planner,
    group_writes,
    heads_from,
    lock_conversations,
    lock_heads,
    lock_heads_of,
    note_locks,
    note_rows,
    save_conversations,
)
from deskwire.storage.postgres.commit.batch_transaction import BufferedTransaction, Routes
from deskwire.storage.postgres.commit.commit_log import (
    CHECK_COMMIT,
    COUNT_COMMIT,
    NOT_REPLICATED,
    OPEN_LANE,
    Lane,
)
from deskwire.storage.postgres.commit.overlay import conversation_rows
from deskwire.storage.postgres.commit.positions import SAVE_HEAD, LogHead, has_provisional, with_positions
from deskwire.storage.postgres.driver.codec import rows_of, translate_placeholders
from deskwire.storage.postgres.driver.errors import LANE_TAKEN, ConnectionLost, DatabaseError, outcome_unknown
from deskwire.storage.postgres.driver.pipeline import PipelineConnection, Statement, bound_statement
from deskwire.storage.postgres.driver.session import Database
from deskwire.storage.postgres.transaction import CHANGES, INSERT_EVENT, EndpointsMoved
from deskwire.storage.tables.webhooks.deliveries import INSERT_DELIVERY

log: Final = structlog.get_logger(__name__)

# Rounds of reads for one batch. Jobs that miss reads after that get a transaction of their own.
_READ_ROUNDS_MAX: Final = 8

_SMALL_BATCH_MAX: Final = 4  # So few jobs run fast enough that other nodes can wait for the heads.

# Number of small batches that lock the heads last after one that had to postpone a job.
_HEADS_LAST_BATCHES: Final = 16

# Largest batch that locks the heads first. A larger one runs its jobs before it locks the heads: it already
# shares the cost of a commit among enough messages, and all commits of the project would wait for jobs that
# run under the heads.
_HEADS_FIRST_MAX: Final = 16

_FILLED_MAX: Final = 32  # Largest such batch after jobs that arrived during the wait were added.

_RETRY_DELAY_S: Final = 0.05
_SAVE_TEXT: Final = translate_placeholders(SAVE_HEAD)[0]
_EVENT_TEXT: Final = translate_placeholders(INSERT_EVENT)[0]
_DELIVERY_TEXT: Final = translate_placeholders(INSERT_DELIVERY[POSTGRES])[0]
_COUNT_TEXT, _OPEN_TEXT, _CHECK_TEXT = (
    translate_placeholders(each)[0] for each in (COUNT_COMMIT, OPEN_LANE, CHECK_COMMIT)
)
_CHANGES: Final = Statement(CHANGES)

# Adds jobs that write only to the logs of these projects, up to a number of jobs.
AddJobs = Callable[[Collection[int], int], None]


class Batcher:
    """The connection and lane of a node's batches.

    Args:
        timeout_s: time to find out the result of a COMMIT on a server that does not respond.
        counters: receives the counts and times of commits.
    """

    def __init__(
        self, database: Database, lane: Lane, timeout_s: float, counters: SharedCommitCounters
    ) -> None:
        self._counters = counters
        self._connection: Final = PipelineConnection(database, "batch")
        self._lane: Final = lane
        self._timeout_s = timeout_s
        self._planner: Final = Planner()
        self._routes: dict[int, Routes] = {}
        self._rowids: dict[str, list[int]] = {}
        self._open = False
        self._in_transaction = False
        self._heads: Mapping[int, LogHead] | None = None
        self._heads_last_left = 0
        self._own_positions: dict[int, int] = {}
        self._moved_by_others: set[int] = set()
        self._stale = False
        # True if a batch that locked the heads first left jobs without a log to the next batch.
        self._unlogged_left = False

    async def carry_out(self, jobs: list[Job[Any]], more: AddJobs, *, under_load: bool) -> BatchOutcome:
        """Run jobs in one transaction.

        Args:
            jobs: the jobs, to which `more` adds.
            more: adds jobs that arrived in the meantime.
            under_load: True if jobs arrived during the last batch.

        Raises DatabaseError if nothing was stored, and Unavailable (`outcome_unknown`) if the result is
        unknown.
        """
        try:
            await self._prepare()
            if not (under_load or len(jobs) > _SMALL_BATCH_MAX) or not (projects := self._contended(jobs)):
                return await self._transaction(jobs, early=self._locks_heads_early(jobs))
            logged = not (self._unlogged_left and any(job.log is None for job in jobs))
            if logged:
                await self._lock_heads(projects)
                more(projects, _FILLED_MAX)
            chosen, left = split_by_log(jobs, logged=logged)
            self._unlogged_left = logged and bool(left)
            outcome = await self._transaction(chosen, early=False)
            outcome.postponed += left
            return outcome
        except DatabaseError as error:
            self._open = self._open and error.sqlstate != LANE_TAKEN
            await self._roll_back()
            raise
        except BaseException:  # re-raised: after half an exchange the session can't be used again
            self._connection.close()
            raise

    async def open(self) -> None:
        """Open the session before it is used. Raises ConnectionLost."""
        await self._connection.open()

    def close(self) -> None:
        """Close the session."""
        self._connection.close()

    def _contended(self, jobs: Sequence[Job[Any]]) -> frozenset[int]:
        """Return the projects whose heads to lock before the jobs run; empty if that does not pay.

        It pays if other nodes write to the projects, or hold the conversations.
        """
        if len(jobs) > _HEADS_FIRST_MAX:
            return frozenset()
        projects = frozenset([job.log for job in jobs if job.log is not None])
        skipped = any(job.skips for job in jobs)
        return projects if skipped or not projects.isdisjoint(self._moved_by_others) else frozenset()

    async def _lock_heads(self, projects: Collection[int]) -> None:
        answers = await self._exchange("heads", [lock_heads(sorted(projects))])
        self._note_heads(heads_from(answers[-1]))

    def _note_heads(self, heads: Mapping[int, LogHead]) -> None:
        """Store locked heads, and note the projects to which another node has committed."""
        self._heads = heads
        for project, head in heads.items():
            before = head.events.before
            if self._own_positions.get(project, before) == before:
                self._moved_by_others.discard(project)
            else:
                self._moved_by_others.add(project)

    async def _prepare(self) -> None:
        """Reset the state of the last batch, and open the session and the lane if necessary."""
        self._in_transaction, self._heads = False, None
        if not self._connection.is_open:
            self._rowids.clear()  # a promoted standby may give the same keys again
        if not self._open:
            await self._connection.exchange(
                [bound_statement(_OPEN_TEXT, self._lane.open_values())], self._timeout_s
            )
            self._open = True

    def _locks_heads_early(self, jobs: Sequence[Job[Any]]) -> bool:
        """Return whether to lock the heads in the first exchange."""
        if len(jobs) > _SMALL_BATCH_MAX or any(job.log is None for job in jobs):
            return False
        if self._heads_last_left:
            self._heads_last_left -= 1
            return False
        return True

    async def _transaction(self, jobs: Sequence[Job[Any]], *, early: bool) -> BatchOutcome:
        fetched = FetchedRows(self._rowids)
        tx = BufferedTransaction(fetched, self._routes)
        run = BatchRun(jobs, tx, self._counters)
        run.heads = self._heads
        run.prefetch(again=self._stale)
        for _ in range(_READ_ROUNDS_MAX):
            if run.missing:
                await self._fetch(fetched, run, early=early)
            run.run()
            if not run.missing:
                break
        else:
            run.leave_rest_single()
        outcome = run.result
        self._stale = run.stale
        if early and run.postponed_any:
            self._heads_last_left = _HEADS_LAST_BATCHES
        outcome.commit = await self._store(tx, outcome)
        return outcome

    async def _fetch(self, fetched: FetchedRows, run: BatchRun, *, early: bool) -> None:
        """Lock and read: the first round. Rows that were read before their locks are read again.

        With `early` the heads are locked as well, unless they already are or another read may wait.
        """
        missing = run.missing
        rowids = sorted(missing.rowids)
        keys = {**missing.keys}
        if rowids and self._in_transaction:
            keys = {**dict.fromkeys(fetched.rows), **keys}
        several = [key[0] for key in keys if key[1]]
        await self._learn([text for text in several if several.count(text) > 1])
        queries = self._planner.queries(keys)
        locking = lock_conversations(rowids) if rowids else []
        early = early and self._heads is None and bool(rowids) and not any(map(may_block, keys))
        # Heads first: a batch that waits for them holds no conversation that other nodes would have to skip.
        heads = [lock_heads_of(rowids)] if early else []
        statements = [*heads, *locking, *(query for query, _ in queries)]
        answers = await self._exchange("heads" if early else "read", statements)
        if early:
            self._note_heads(heads_from(answers.pop(0)))
            run.heads = self._heads
        if rowids:
            note_locks(fetched, answers)
            run.tried_locks.update(rowids)
        for (_, alike), answer in zip(queries, answers[len(locking) :], strict=True):
            note_rows(fetched, alike, answer)

    async def _store(self, tx: BufferedTransaction, outcome: BatchOutcome) -> Commit | None:
        """Send the remaining rounds; return the commit, or None if nothing was to be stored."""
        appends, writes = tx.appends, tx.buffer.writes
        conversations = tx.changed_conversations()
        if not (writes or conversations or appends.events or appends.deliveries):
            replayed = any(isinstance(job.outcome, AlreadyAnswered) for job in outcome.done)
            if replayed:
                # A replayed response must be durable before it is sent, and only a write proves that.
                await self._commit([])  # raises if not
            elif self._in_transaction:
                await self._exchange("commit", [COMMIT])
            return None
        projects, heads = appends.projects, self._heads
        assert heads is None or heads.keys() >= set(projects), (
            "jobs of other projects are left to a later batch"
        )
        late = [write for write in writes if has_provisional(write.values)]
        early = group_writes(
            [write for write in writes if not has_provisional(write.values)] if late else writes
        )
        saved = conversation_rows(conversations)
        await self._learn(_several([*early, *saved.items()]))
        sent = [self._planner.merged(text, rows) for text, rows in early]
        sent += [save_conversations(self._planner, text, rows) for text, rows in saved.items()]
        if projects:
            if heads is None:
                answers = await self._exchange("heads", [*sent, lock_heads(projects)])
                self._note_heads(heads_from(answers[-1]))
                heads, sent = self._heads, []
            assert heads is not None
            sent += await self._positioned_statements(
                tx, {project: heads[project] for project in projects}, late
            )
        changes = await self._commit([*sent, _CHANGES])
        self._routes.update(tx.routes)
        if heads is not None:
            self._own_positions.update({project: heads[project].events.last for project in projects})
        return tx.commit(changes)

    async def _positioned_statements(
        self, tx: BufferedTransaction, heads: Mapping[int, LogHead], late: Sequence[BufferedWrite]
    ) -> list[Statement]:
        """Return the statements of the last round, with positions under the locked heads.

        Raises EndpointsMoved.
        """
        appends = tx.appends
        moved = [
            project
            for project, head in heads.items()
            if tx.versions.get(project, head.endpoints_version) != head.endpoints_version
        ]
        if moved:
            for project in moved:
                self._routes.pop(project, None)
            raise EndpointsMoved
        real = tx.assign_positions(heads)
        groups: list[tuple[str, list[Sequence[Any]]]] = [(_EVENT_TEXT, appends.event_rows())]
        if appends.deliveries:
            groups.append((_DELIVERY_TEXT, appends.delivery_rows()))
        groups += group_writes(
            [BufferedWrite(write.text, with_positions(write.values, real), write.shape) for write in late]
        )
        groups.append((_SAVE_TEXT, [head.values() for head in heads.values()]))
        await self._learn(_several(groups))
        return [self._planner.merged(text, rows) for text, rows in groups if rows]

    async def _learn(self, texts: Sequence[str]) -> None:
        await self._planner.learn(self._connection, texts, 3 * self._timeout_s)

    async def _exchange(self, round_: str, statements: Sequence[Statement]) -> list[pq.abc.PGresult]:
        """Send statements in the transaction, which begins with the first of them."""
        begin, began = [] if self._in_transaction else [BEGIN], trio.current_time()
        answers = await self._connection.exchange([*begin, *statements], 3 * self._timeout_s)
        self._in_transaction = True
        self._counters.rounds[round_].observe(trio.current_time() - began)
        return answers[len(begin) :]

    async def _commit(self, statements: Sequence[Statement]) -> str | None:
        """Commit after the last statements; return the value of CHANGES, the last statement.

        Raises DatabaseError if the commit is not stored, and Unavailable if that can't be known.
        """
        counted = bound_statement(_COUNT_TEXT, self._lane.count_values())
        begin = [] if self._in_transaction else [BEGIN]
        all_, began = [*begin, *statements, counted, COMMIT], trio.current_time()
        try:
            answers = await self._connection.exchange(all_, self._timeout_s)
            self._counters.rounds["commit"].observe(trio.current_time() - began)
        except ConnectionLost as lost:
            log.warning("storage.commit_unanswered", error=str(lost))
            stored = await self._is_committed()
            if not stored:
                raise
            return ALL_CHANGES
        if NOT_REPLICATED in self._connection.notices and not await self._is_committed():
            raise ConnectionLost("the commit was not replicated")
        rows = rows_of(answers[-3]) if statements else []
        return rows[0][0] if rows else None

    async def _is_committed(self) -> bool:
        """Find out by a write whether the lane's last commit is stored.

        Raises Unavailable if no server can tell.
        """
        self._rowids.clear()  # a promoted standby may answer, and give the same keys again
        until = trio.current_time() + self._timeout_s
        query = [BEGIN, bound_statement(_CHECK_TEXT, self._lane.check_values()), COMMIT]
        while True:
            try:
                answers = await self._connection.exchange(query, self._timeout_s)
            except DatabaseError as error:
                log.warning("storage.outcome_asked", error=str(error))
                if error.final:
                    raise outcome_unknown() from error
                await self._roll_back()
            else:
                if NOT_REPLICATED not in self._connection.notices:
                    rows = rows_of(answers[1])
                    if not rows:
                        # Another process uses this node's name, or a promoted standby never had the row.
                        raise outcome_unknown()
                    return self._counters.note_outcome(stored=rows[0][0] >= self._lane.batch)
            if trio.current_time() >= until:
                raise outcome_unknown()
            await trio.sleep(_RETRY_DELAY_S)

    async def _roll_back(self) -> None:
        """Roll back; close the session if that fails, which has the same effect."""
        if self._connection.is_open:
            try:
                await self._connection.exchange([ROLLBACK], self._timeout_s)
            except DatabaseError:
                self._connection.close()


# Reported for a commit whose response was lost, so that all caches are invalidated.
ALL_CHANGES: Final = "callers people"


def _several(groups: Sequence[tuple[str, list[Sequence[Any]]]]) -> list[str]:
    """Return the statements that have several rows."""
    return [text for text, rows in groups if len(rows) > 1]
