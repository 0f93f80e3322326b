"""The timers of conversations: the end of a snooze, and the end of a workflow's wait (ADR 20).

Each due conversation gets its command through its actor. The conversations of one batch share commits.
"""

from __future__ import annotations

from typing import ClassVar, Final

import structlog
import trio

from deskwire.engine.accounts.people import Project
from deskwire.engine.conversations.actors import ActorFailed, ActorRegistry
from deskwire.engine.conversations.commands import WakeSnoozed, WakeWorkflow
from deskwire.engine.conversations.ports import CommitReader, CommitTransaction
from deskwire.engine.core.actor import SYSTEM
from deskwire.engine.core.clock import Clock
from deskwire.engine.core.errors import DomainError, NotFound, Unavailable
from deskwire.engine.core.store import Store
from deskwire.engine.core.tasks.scheduled import ScheduledTask
from deskwire.engine.workflows.ports import PublishedReader, WorkflowReader, WorkflowTransaction

log: Final = structlog.get_logger(__name__)

BATCH_SIZE: Final = 64
"""Conversations that are woken together."""

_RETRY_DELAY_MS: Final = 600_000  # after a failed actor, so that its bug delays no other workflow


class SnoozeTimer(ScheduledTask[CommitReader, CommitTransaction]):
    """A task that ends the snooze of each conversation at its time."""

    delayed: ClassVar = "conversations.wakings_delayed"

    def __init__(
        self, store: Store[CommitReader, CommitTransaction], clock: Clock, actors: ActorRegistry
    ) -> None:
        super().__init__(store, clock)
        self._actors = actors

    @staticmethod
    def next_due(reader: CommitReader) -> int | None:
        """Return the time (ms) at which the next snooze ends."""
        return reader.next_snooze_end()

    async def run_batch(self) -> bool:
        """End a batch of snoozes concurrently; see `ScheduledTask.run_batch`."""
        now = self._clock()
        due = await self._store.read(lambda reader: _due_snoozes(reader, now))
        refused: list[Unavailable] = []
        async with trio.open_nursery() as nursery:
            for project, conversation_id in due:
                nursery.start_soon(self._wake, project, conversation_id, refused)
        if refused:
            raise refused[0]
        return len(due) == BATCH_SIZE

    async def _wake(self, project: Project, conversation_id: str, refused: list[Unavailable]) -> None:
        try:
            await self._actors.ask(project, conversation_id, WakeSnoozed(), by=SYSTEM)
        except NotFound:
            log.debug("conversations.already_deleted", conversation=conversation_id)
        except Unavailable as refusal:
            refused.append(refusal)
        except ActorFailed:  # a bug that the actor has logged; the timer tries again
            refused.append(Unavailable("A conversation could not be woken.", code="conversation_busy"))


class WorkflowTimer(ScheduledTask[PublishedReader, WorkflowTransaction]):
    """A task that resumes each workflow when its wait is over."""

    delayed: ClassVar = "workflows.waits_delayed"

    def __init__(
        self, store: Store[PublishedReader, WorkflowTransaction], clock: Clock, actors: ActorRegistry
    ) -> None:
        super().__init__(store, clock)
        self._actors = actors

    @staticmethod
    def next_due(reader: WorkflowReader) -> int | None:
        """Return the time (ms) at which the next workflow resumes."""
        return reader.next_run()

    async def run_batch(self) -> bool:
        """Resume a batch of workflows concurrently; see `ScheduledTask.run_batch`."""
        now = self._clock()
        due = await self._store.read(lambda reader: _due_workflows(reader, now))
        refused: list[Unavailable] = []
        failed: list[str] = []
        async with trio.open_nursery() as nursery:
            for project, conversation_id in due:
                nursery.start_soon(self._wake, project, conversation_id, refused, failed)
        if failed:
            await self._store.write(lambda tx: tx.postpone_runs(failed, now + _RETRY_DELAY_MS))
        if refused:
            raise refused[0]
        return len(due) == BATCH_SIZE

    async def _wake(
        self, project: Project, conversation_id: str, refused: list[Unavailable], failed: list[str]
    ) -> None:
        try:
            await self._actors.ask(project, conversation_id, WakeWorkflow())
        except NotFound:
            log.debug("workflows.already_deleted", conversation=conversation_id)
        except Unavailable as refusal:
            refused.append(refusal)
        except (DomainError, ActorFailed) as error:  # the latter is a bug that the actor has logged
            log.warning("workflows.wait_postponed", conversation=conversation_id, reason=str(error))
            failed.append(conversation_id)


def _due_snoozes(reader: CommitReader, now: int) -> list[tuple[Project, str]]:
    due = [(reader.project(key), conversation) for key, conversation in reader.due_snoozes(now, BATCH_SIZE)]
    return [(project, conversation) for project, conversation in due if project is not None]


def _due_workflows(reader: PublishedReader, now: int) -> list[tuple[Project, str]]:
    due = [(reader.project(key), conversation) for key, conversation in reader.due_runs(now, BATCH_SIZE)]
    return [(project, conversation) for project, conversation in due if project is not None]
