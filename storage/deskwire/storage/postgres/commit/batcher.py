"""Batches: many jobs in one transaction, in two or three round trips on Trio's thread.

1. The conversations' rows are locked, and what the jobs need is read. Then they are run, and their changes buffered.
2. The changes are sent, and behind them the heads of the projects are locked. Then events have their places.
3. Events, deliveries and heads are sent, with the number of the batch in its lane and the COMMIT.

A batch waits for a head while it holds rows, and for rows of others before that; for conversations it never waits.

A few jobs take two: the heads of their conversations are locked with the first one, and all that was written goes with the last.
A job that may wait for another transaction is then left to a later batch, because a batch never waits while it holds a head.

Under load, and if other nodes write to the same projects, the heads come first: the transaction waits for them before its jobs
are chosen, so that jobs which arrive in the meantime share its commit (ADR 105). It holds no other lock while it waits.
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
from deskwire.storage.postgres.commit.batch import BatchTransaction, Fetched, Routes
from deskwire.storage.postgres.commit.buffer import Write
from deskwire.storage.postgres.commit.course import Carried, Course, divided, may_wait
from deskwire.storage.postgres.commit.heads import SAVE, Head
from deskwire.storage.postgres.commit.jobs import Job
from deskwire.storage.postgres.commit.lanes import ASK, COUNT, NOT_REPLICATED, OPEN, Lane
from deskwire.storage.postgres.commit.rounds import (
    BEGIN,
    COMMIT,
    ROLLBACK,
    Planner,
    grouped,
    heads_in,
    lock_heads,
    lock_heads_of,
    locks,
    note_locks,
    note_rows,
    save,
    saved_rows,
)
from deskwire.storage.postgres.commit.sealing import sealed, waits
from deskwire.storage.postgres.driver.codec import rows_of
from deskwire.storage.postgres.driver.marks import translated
from deskwire.storage.postgres.driver.recall import single
from deskwire.storage.postgres.driver.refusals import (
    LANE_TAKEN,
    ConnectionLost,
    DatabaseError,
    outcome_unknown,
)
from deskwire.storage.postgres.driver.session import Database
from deskwire.storage.postgres.driver.wire import Statement, Wire
from deskwire.storage.postgres.transaction import CHANGES, INSERT_EVENT, EndpointsMoved
from deskwire.storage.tables.webhooks.deliveries import INSERT_DELIVERY

log: Final = structlog.get_logger(__name__)

_ROUNDS: Final = 8
"""How often a batch reads what its jobs have asked for since; who asks for more is run by itself."""

_FEW: Final = 4
"""As many jobs are run in a moment, for which others may wait for the heads."""

_LONG_WAY: Final = 16
"""Number of small batches that lock the heads last after a small batch that had to leave a job to a later one."""

_HEADS_FIRST_MAX: Final = 16
"""Most jobs for a batch that locks the heads first. A larger batch runs its jobs while another node holds the heads: enough
messages share its cost already, and all commits of the project wait for jobs that are run under the heads."""

_FILLED_MAX: Final = 32
"""Most jobs of such a batch, with those that arrived while it waited."""

_PAUSE_S: Final = 0.05
_SAVE_TEXT: Final = translated(SAVE)[0]
_EVENT_TEXT: Final = translated(INSERT_EVENT)[0]
_DELIVERY_TEXT: Final = translated(INSERT_DELIVERY[POSTGRES])[0]
_COUNT_TEXT, _OPEN_TEXT, _ASK_TEXT = (translated(each)[0] for each in (COUNT, OPEN, ASK))
_CHANGES: Final = Statement(CHANGES)


More = Callable[[Collection[int], int], None]
"""Adds jobs to a batch, up to a number of them, that write to the logs of these projects only."""


class Batcher:
    """One lane for batches.

    Args:
        patience_s: how long a database that can't be reached is asked what became of a COMMIT.
        counters: what it is counted in.
    """

    def __init__(
        self, database: Database, lane: Lane, patience_s: float, counters: SharedCommitCounters
    ) -> None:
        self._counters = counters
        self._wire: Final = Wire(database, "batch")
        self._lane: Final = lane
        self._patience_s = patience_s
        self._planner: Final = Planner()
        self._routes: dict[int, Routes] = {}
        self._rowids: dict[str, list[int]] = {}
        self._open = False
        self._begun = False
        self._heads: Mapping[int, Head] | None = None
        self._long_way = 0
        self._left: dict[int, int] = {}
        self._moved: set[int] = set()
        self._stale = False
        self._owing = False  # True if a batch that locked the heads first has left the jobs without a log to the next one

    async def carry_out(self, jobs: list[Job[Any]], more: More, *, pressed: bool) -> Carried:
        """Run jobs in one transaction.

        Args:
            jobs: the jobs, to which `more` adds.
            more: adds jobs that arrived in the meantime.
            pressed: True if jobs arrived while the last batch was carried out.

        Raises DatabaseError if nothing of it is stored, and Unavailable (`outcome_unknown`) if nobody says whether it is.
        """
        try:
            await self._begin()
            if not (pressed or len(jobs) > _FEW) or not (projects := self._contended(jobs)):
                return await self._transaction(jobs, early=self._is_short(jobs))
            logged = not (self._owing and any(job.log is None for job in jobs))
            if logged:
                await self._lock_heads(projects)
                more(projects, _FILLED_MAX)
            chosen, left = divided(jobs, logged=logged)
            self._owing = logged and bool(left)
            carried = await self._transaction(chosen, early=False)
            carried.later += left
            return carried
        except DatabaseError as error:
            self._open = self._open and error.sqlstate != LANE_TAKEN
            await self._undo()
            raise
        except BaseException:  # re-raised: in the middle of an exchange the session is of no further use
            self._wire.close()
            raise

    async def open(self) -> None:
        """Open the session before it is used. Raises ConnectionLost."""
        await self._wire.open()

    def close(self) -> None:
        """Close the session."""
        self._wire.close()

    def _contended(self, jobs: Sequence[Job[Any]]) -> frozenset[int]:
        """Return the projects whose heads are locked before the jobs are run; none if that does not pay.

        It pays if other nodes write to the projects as well, or have the conversations.
        """
        if len(jobs) > _HEADS_FIRST_MAX:
            return frozenset()
        projects = frozenset([job.log for job in jobs if job.log is not None])
        passed = any(job.passed for job in jobs)
        return projects if passed or not projects.isdisjoint(self._moved) else frozenset()

    async def _lock_heads(self, projects: Collection[int]) -> None:
        answers = await self._exchange("heads", [lock_heads(sorted(projects))])
        self._note_heads(heads_in(answers[-1]))

    def _note_heads(self, heads: Mapping[int, Head]) -> None:
        """Store locked heads, and note which of them others have moved since this batcher's last commit to them."""
        self._heads = heads
        for project, head in heads.items():
            before = head.events.before
            if self._left.get(project, before) == before:
                self._moved.discard(project)
            else:
                self._moved.add(project)

    async def _begin(self) -> None:
        """Reset the state of the last batch, and open the session and the lane if they are not open."""
        self._begun, self._heads = False, None
        if not self._wire.is_open:
            self._rowids.clear()  # a standby that has taken over may give the keys again
        if not self._open:
            await self._wire.exchange([single(_OPEN_TEXT, self._lane.opened())], self._patience_s)
            self._open = True

    def _is_short(self, jobs: Sequence[Job[Any]]) -> bool:
        """Return whether the heads are locked with the first exchange."""
        if len(jobs) > _FEW or any(job.log is None for job in jobs):
            return False
        if self._long_way:
            self._long_way -= 1
            return False
        return True

    async def _transaction(self, jobs: Sequence[Job[Any]], *, early: bool) -> Carried:
        fetched = Fetched(self._rowids)
        tx = BatchTransaction(fetched, self._routes)
        course = Course(jobs, tx, self._counters)
        course.heads = self._heads
        course.look_ahead(again=self._stale)
        for _ in range(_ROUNDS):
            if course.wants:
                await self._fetch(fetched, course, early=early)
            course.run()
            if not course.wants:
                break
        else:
            course.give_up()
        carried = course.carried
        self._stale = course.stale
        if early and course.put_off:
            self._long_way = _LONG_WAY
        carried.commit = await self._store(tx, carried)
        return carried

    async def _fetch(self, fetched: Fetched, course: Course, *, early: bool) -> None:
        """The first round: lock and read. What was read before rows were locked is read again.

        With `early` the heads are locked, too, unless something else may be waited for, or they are already.
        """
        wants = course.wants
        rowids = sorted(wants.rowids)
        keys = {**wants.keys}
        if rowids and self._begun:
            keys = {**dict.fromkeys(fetched.rows), **keys}
        several = [key[0] for key in keys if key[1]]
        await self._learn([text for text in several if several.count(text) > 1])
        queries = self._planner.queries(keys)
        locking = locks(rowids) if rowids else []
        early = early and self._heads is None and bool(rowids) and not any(map(may_wait, keys))
        # The heads come first: a batch that waits for them holds no conversation, which other nodes would have to pass by.
        heads = [lock_heads_of(rowids)] if early else []
        statements = [*heads, *locking, *(query for query, _ in queries)]
        answers = await self._exchange("heads" if early else "read", statements)
        if early:
            self._note_heads(heads_in(answers.pop(0)))
            course.heads = self._heads
        if rowids:
            note_locks(fetched, answers)
            course.tried.update(rowids)
        for (_, alike), answer in zip(queries, answers[len(locking) :], strict=True):
            note_rows(fetched, alike, answer)

    async def _store(self, tx: BatchTransaction, carried: Carried) -> Commit | None:
        """The rounds behind the first; return what is made known, None if nothing was to be stored."""
        unsealed, writes = tx.unsealed, tx.buffer.writes
        conversations = tx.changed_conversations()
        if not (writes or conversations or unsealed.events or unsealed.deliveries):
            replayed = any(isinstance(job.outcome, AlreadyAnswered) for job in carried.done)
            if replayed:  # what was read is told only behind a write: then it is stored for good
                await self._end([])  # raises if it is not
            elif self._begun:
                await self._exchange("commit", [COMMIT])
            return None
        projects, heads = unsealed.projects, self._heads
        assert heads is None or heads.keys() >= set(projects), "others are left to a later batch"
        late = [write for write in writes if waits(write.values)]
        early = grouped([write for write in writes if not waits(write.values)] if late else writes)
        saved = saved_rows(conversations)
        await self._learn(_several([*early, *saved.items()]))
        sent = [self._planner.many(text, rows) for text, rows in early]
        sent += [save(self._planner, text, rows) for text, rows in saved.items()]
        if projects:
            if heads is None:
                answers = await self._exchange("heads", [*sent, lock_heads(projects)])
                self._note_heads(heads_in(answers[-1]))
                heads, sent = self._heads, []
            assert heads is not None
            sent += await self._sealed(tx, {project: heads[project] for project in projects}, late)
        changes = await self._end([*sent, _CHANGES])
        self._routes.update(tx.routes)
        if heads is not None:
            self._left.update({project: heads[project].events.last for project in projects})
        return tx.commit(changes)

    async def _sealed(
        self, tx: BatchTransaction, heads: Mapping[int, Head], late: Sequence[Write]
    ) -> list[Statement]:
        """Return the statements of the last round, for which the heads are locked. Raises EndpointsMoved."""
        unsealed = tx.unsealed
        moved = [
            project
            for project, head in heads.items()
            if tx.versions.get(project, head.endpoints_version) != head.endpoints_version
        ]
        if moved:
            for project in moved:
                self._routes.pop(project, None)
            raise EndpointsMoved
        real = tx.seal(heads)
        groups: list[tuple[str, list[Sequence[Any]]]] = [(_EVENT_TEXT, unsealed.event_rows())]
        if unsealed.deliveries:
            groups.append((_DELIVERY_TEXT, unsealed.delivery_rows()))
        groups += grouped([Write(write.text, sealed(write.values, real), write.shape) for write in late])
        groups.append((_SAVE_TEXT, [head.saved() for head in heads.values()]))
        await self._learn(_several(groups))
        return [self._planner.many(text, rows) for text, rows in groups if rows]

    async def _learn(self, texts: Sequence[str]) -> None:
        await self._planner.learn(self._wire, texts, 3 * self._patience_s)

    async def _exchange(self, round_: str, statements: Sequence[Statement]) -> list[pq.abc.PGresult]:
        """Exchange within the transaction, which is begun with the first statements."""
        begin, began = [] if self._begun else [BEGIN], trio.current_time()
        answers = await self._wire.exchange([*begin, *statements], 3 * self._patience_s)
        self._begun = True
        self._counters.rounds[round_].observe(trio.current_time() - began)
        return answers[len(begin) :]

    async def _end(self, statements: Sequence[Statement]) -> str | None:
        """Commit behind the last statements; return the answer to the last of them.

        Raises DatabaseError if it is not stored, and Unavailable if that can't be known.
        """
        counted = single(_COUNT_TEXT, self._lane.counted())
        begin = [] if self._begun else [BEGIN]
        all_, began = [*begin, *statements, counted, COMMIT], trio.current_time()
        try:
            answers = await self._wire.exchange(all_, self._patience_s)
            self._counters.rounds["commit"].observe(trio.current_time() - began)
        except ConnectionLost as lost:
            log.warning("storage.commit_unanswered", error=str(lost))
            stored = await self._asked()
            if not stored:
                raise
            return ALL_CHANGES
        if NOT_REPLICATED in self._wire.notices and not await self._asked():
            raise ConnectionLost("the commit was not replicated")
        rows = rows_of(answers[-3]) if statements else []
        return rows[0][0] if rows else None

    async def _asked(self) -> bool:
        """Find out by a write whether the lane's last commit is stored. Raises Unavailable if nobody answers."""
        self._rowids.clear()  # a standby that has taken over may answer, and give the keys again
        until = trio.current_time() + self._patience_s
        asking = [BEGIN, single(_ASK_TEXT, self._lane.asked()), COMMIT]
        while True:
            try:
                answers = await self._wire.exchange(asking, self._patience_s)
            except DatabaseError as error:
                log.warning("storage.outcome_asked", error=str(error))
                if error.final:
                    raise outcome_unknown() from error
                await self._undo()
            else:
                if NOT_REPLICATED not in self._wire.notices:
                    rows = rows_of(answers[1])
                    if not rows:  # another process has taken the name, or a standby that never had it
                        raise outcome_unknown()
                    return self._counters.note_outcome(stored=rows[0][0] >= self._lane.batch)
            if trio.current_time() >= until:
                raise outcome_unknown()
            await trio.sleep(_PAUSE_S)

    async def _undo(self) -> None:
        """Roll back what was begun; a session that can't is closed, which does the same."""
        if self._wire.is_open:
            try:
                await self._wire.exchange([ROLLBACK], self._patience_s)
            except DatabaseError:
                self._wire.close()


ALL_CHANGES: Final = "callers people"
"""Told for a commit whose answer is lost, with what it has changed: whoever remembers anything forgets it."""


def _several(groups: Sequence[tuple[str, list[Sequence[Any]]]]) -> list[str]:
    """Return the statements of which there are several rows."""
    return [text for text, rows in groups if len(rows) > 1]
