"""The runner of bulk jobs, on one node: a batch of each job in turn, with pauses, so that live traffic comes first."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, ClassVar, Final, Protocol

import structlog
import trio
from msgspec import Struct

from deskwire.engine.accounts.people import Assignee, Project
from deskwire.engine.accounts.roles import assignable_user
from deskwire.engine.agents.presence import ephemeral_event
from deskwire.engine.conversations.actors import ActorFailed, ActorRegistry
from deskwire.engine.conversations.bulk_jobs import (
    DONE,
    PERMISSION,
    REFUSED,
    WAITING,
    BulkCommand,
    BulkItem,
    BulkJob,
    BulkStepReader,
    BulkStepTransaction,
    Trace,
    command_of,
    end_bulk_job,
    restore_of,
    trace_of,
)
from deskwire.engine.conversations.bulk_own_rows import (
    OWN_ACTIONS,
    OwnRow,
    change_own_row,
    own_row,
    require_own_change,
)
from deskwire.engine.conversations.commit_plan import Receipt
from deskwire.engine.conversations.inbox import own_state
from deskwire.engine.core.actor import Actor
from deskwire.engine.core.clock import Clock
from deskwire.engine.core.errors import Conflict, DomainError, NotFound, Unavailable
from deskwire.engine.core.store import InlineJob, Store
from deskwire.engine.core.tasks.scheduled import ScheduledTask
from deskwire.engine.events.event_stream import Ephemeral

log: Final = structlog.get_logger(__name__)

_BATCH_SIZE: Final = 16  # conversations that are changed concurrently; most of them share a commit
_PAUSES: Final = (
    2  # ratio of the pause after a batch to its length, so that jobs take a third of the time at most
)
_GONE: Final = "conversation_deleted"


class StopJob(Conflict):
    """The refusal of an item that ends its whole job."""


class _ItemTaken(Conflict):
    """The refusal of an item that was carried out already, or whose job was cancelled."""

    code = "bulk_item_taken"


class PreparedItem(Struct, frozen=True):
    """An item with its command, or with the reason why it is refused."""

    item: BulkItem
    command: BulkCommand | None
    reason: str | None = None


class UserBroadcast(Protocol):
    """The open streams of agents; see `AgentStreams`."""

    def broadcast(
        self, project: int, event: Ephemeral, *, to_user: int | None = None, viewing: str | None = None
    ) -> None:
        """Send an ephemeral event to the open streams of a project; see `AgentStreams.broadcast`."""


class BulkItemHook:
    """A `CommitHook` that stores the outcome of an item in the commit that changes its conversation.

    Args:
        at: the time (ms) of the change, for the author's own rows.

    Attributes:
        mine: the author's own part of the conversation's view after a change of the read position.
    """

    def __init__(self, project: Project, job: BulkJob, item: BulkItem, at: int) -> None:
        self._project = project
        self._job = job
        self._item = item
        self._at = at
        self._row: OwnRow = None
        self.mine: Mapping[str, Any] | None = None

    def before(self, tx: BulkStepTransaction) -> None:
        """Check that the item is still to be carried out, and that the job's author may do so.

        Raises Conflict also if the author's own row is not to be changed; see `require_own_change`.
        """
        job, conversation = self._job, self._item.conversation
        if tx.claim_bulk_item(self._item.rowid) != (job.status, WAITING[job.status]):
            raise _ItemTaken("The item was carried out, or its job has ended.")
        role, permission = tx.role(self._project.organisation, job.author), PERMISSION[job.action.type]
        if role is None or permission not in role.permissions:
            raise StopJob(f"The user has lost the permission {permission}.", code="permission_lost")
        if job.action.type in OWN_ACTIONS and conversation is not None:
            self._row = own_row(tx, job, conversation)
            require_own_change(job, self._item, self._row)

    def after(self, tx: BulkStepTransaction, receipt: Receipt) -> None:
        """Store the outcome, and change the author's read position if that is the action."""
        rowid, job = self._item.rowid, self._job
        own = job.action.type in OWN_ACTIONS
        trace = self._change_own_row(tx, receipt) if own else self._trace(receipt)
        if job.status == "undoing":
            tx.save_bulk_item(rowid, "undone", None, None)
        elif trace is None:
            tx.save_bulk_item(rowid, "skipped", "unchanged", None)
        else:
            tx.save_bulk_item(rowid, "changed", None, trace)

    def _trace(self, receipt: Receipt) -> Trace | None:
        """Return the trace of a changed conversation; None if nothing was changed."""
        return None if receipt.before is None else trace_of(self._job.action, receipt.before, receipt.after)

    def _change_own_row(self, tx: BulkStepTransaction, receipt: Receipt) -> Trace | None:
        """Change the author's own row, unless the command has; return its trace, or None if it is as before."""
        job, state = self._job, receipt.after
        trace = change_own_row(tx, job, self._item, state, self._row, self._at)
        if job.action.type == "unread":
            self.mine = own_state(tx, self._project, job.author, state)
        return None if trace.own_left == trace.own_before else trace


class BulkRunner(ScheduledTask[BulkStepReader, BulkStepTransaction]):
    """A task that carries out bulk jobs, and undoes them.

    Args:
        streams: receive changed read positions, for the author alone.
    """

    delayed: ClassVar = "conversations.bulk_jobs_delayed"

    def __init__(
        self,
        store: Store[BulkStepReader, BulkStepTransaction],
        clock: Clock,
        actors: ActorRegistry,
        streams: UserBroadcast,
    ) -> None:
        super().__init__(store, clock)
        self._actors = actors
        self._streams = streams

    @staticmethod
    def next_due(reader: BulkStepReader) -> int | None:
        """Return the time (ms) of the oldest job in progress."""
        return reader.next_bulk_job()

    async def run_batch(self) -> bool:
        """Carry out a batch of each job in progress; see `ScheduledTask.run_batch`.

        A job that can't go on delays no other one. Raises Unavailable if none can.
        """
        jobs = await self._store.read(lambda reader: reader.active_bulk_jobs())
        delayed = list[Unavailable]()
        for job in jobs:
            began = trio.current_time()
            try:
                await self._advance(job)
            except Unavailable as error:
                delayed.append(error)
            await trio.sleep(_PAUSES * (trio.current_time() - began))
        if delayed and len(delayed) == len(jobs):
            raise delayed[0]
        return bool(jobs)

    async def _advance(self, job: BulkJob) -> None:
        """Carry out the next batch of a job. Raises Unavailable if an item is to be tried again."""
        prepare = partial(_prepare, job=job, now=self._clock())
        project, items, stop = await self._store.read(prepare)
        if stop is not None:
            await self._end(project, job, stop)
        elif not items:
            await self._end(project, job, None)
        else:
            await self._carry_out(project, job, items)

    async def _carry_out(self, project: Project, job: BulkJob, items: list[PreparedItem]) -> None:
        delayed: list[Unavailable] = []
        stops: list[str] = []
        async with trio.open_nursery() as nursery:
            for each in items:
                nursery.start_soon(self._change, project, job, each, delayed, stops)
        if stops:
            await self._end(project, job, stops[0])
        elif delayed:
            raise delayed[0]

    async def _change(
        self,
        project: Project,
        job: BulkJob,
        prepared: PreparedItem,
        delayed: list[Unavailable],
        stops: list[str],
    ) -> None:
        item, command = prepared.item, prepared.command
        try:
            if command is None or item.conversation_id is None:
                await self._refuse(job, item, prepared.reason or _GONE)
                return
            hook = BulkItemHook(project, job, item, self._clock())
            by = Actor("user", job.author_id, job.author_name)
            await self._actors.ask(project, item.conversation_id, command, hook, by)
            self._announce(project, job, item.conversation_id, hook.mine)
        except Unavailable as error:
            delayed.append(error)
        except StopJob as error:
            stops.append(error.reason)
        except _ItemTaken:
            log.debug("bulk_jobs.item_taken", job=job.id, conversation=item.conversation_id)
        except NotFound:
            await self._refused(job, item, _GONE, delayed)
        except DomainError as error:
            await self._refused(job, item, error.reason, delayed)
        except ActorFailed:  # a bug that the actor has logged
            await self._refused(job, item, "internal_error", delayed)

    def _announce(
        self, project: Project, job: BulkJob, conversation_id: str, mine: Mapping[str, Any] | None
    ) -> None:
        """Send a changed read position to the author's pages, as after a call for one conversation."""
        if mine is not None:
            index = -1 if mine["seenIndex"] is None else mine["seenIndex"]
            data = {"conversationId": conversation_id, "index": index, "mine": mine}
            self._streams.broadcast(project.rowid, ephemeral_event("me.seen", data), to_user=job.author)

    async def _refused(self, job: BulkJob, item: BulkItem, reason: str, delayed: list[Unavailable]) -> None:
        try:
            await self._refuse(job, item, reason)
        except Unavailable as error:
            delayed.append(error)

    async def _refuse(self, job: BulkJob, item: BulkItem, reason: str) -> None:
        def refuse(tx: BulkStepTransaction) -> None:
            if tx.claim_bulk_item(item.rowid) == (job.status, WAITING[job.status]):
                tx.save_bulk_item(item.rowid, REFUSED[job.status], reason, None)

        await self._store.write(InlineJob(refuse))

    async def _end(self, project: Project, job: BulkJob, stop: str | None) -> None:
        def end(tx: BulkStepTransaction) -> bool:
            if tx.claim_bulk_job(job.rowid) != job.status:
                return False
            status = DONE[job.status] if stop is None else "stopped"
            end_bulk_job(tx, project, job, status, stop, self._clock())
            return True

        if await self._store.write(InlineJob(end)):
            log.info("bulk_jobs.ended", job=job.id, action=job.action.type, stopped=stop)


def _prepare(
    reader: BulkStepReader, job: BulkJob, now: int
) -> tuple[Project, list[PreparedItem], str | None]:
    """Return the project of a job, its next items with their commands, and the reason if the job is to be stopped."""
    project = reader.project_with(job.project)
    assert project is not None, "a project with a job keeps its row"
    items = reader.bulk_items(job.rowid, WAITING[job.status], _BATCH_SIZE)
    if job.status == "undoing":
        return project, [_undo(reader, project, job, each, now) for each in items], None
    action = job.action
    if action.until is not None and action.until <= now:
        return project, [], "snooze_ended"
    assignee = None
    if action.assignee is not None:
        assignee = _assignee(reader, project, *action.assignee)
        if assignee is None:
            return project, [], "assignee_gone"
    return project, [PreparedItem(each, command_of(job, each, assignee)) for each in items], None


def _undo(reader: BulkStepReader, project: Project, job: BulkJob, item: BulkItem, now: int) -> PreparedItem:
    if item.conversation_id is None or item.trace is None:
        return PreparedItem(item, None, _GONE)
    former, assignee = item.trace.before.get("assignee"), None
    if job.action.type == "assign" and former is not None:
        assignee = _assignee(reader, project, former[0], former[1])
        if assignee is None:
            return PreparedItem(item, None, "assignee_gone")
    return PreparedItem(item, restore_of(job, item, assignee, now))


def _assignee(reader: BulkStepReader, project: Project, kind: str, identifier: str) -> Assignee | None:
    if kind == "user":
        name, _ = assignable_user(reader, project.organisation, identifier, "/assignee/id")
        return None if name is None else Assignee("user", identifier, name)
    name = reader.team_name(project.rowid, identifier)
    return None if name is None else Assignee("team", identifier, name)
