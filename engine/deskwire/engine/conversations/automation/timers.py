"""The timers of workflows: those whose wait is over go on, each through its conversation's actor (ADR 20)."""

from __future__ import annotations

from typing import ClassVar, Final

import structlog
import trio

from deskwire.engine.accounts.people import Project
from deskwire.engine.conversations.actor import ActorFailed
from deskwire.engine.conversations.commands import WakeWorkflow
from deskwire.engine.conversations.registry import ActorRegistry
from deskwire.engine.core.clock import Clock
from deskwire.engine.core.errors import DomainError, NotFound, Unavailable
from deskwire.engine.core.store import Store
from deskwire.engine.core.tasks.scheduled import ScheduledTask
from deskwire.engine.workflows.ports import PublishedReader, WorkflowReader, WorkflowTransaction

log: Final = structlog.get_logger(__name__)

BATCH: Final = 64
"""Conversations that are woken together; they share commits."""

_POSTPONED_MS: Final = 600_000
"""The time for which a workflow is left alone after its actor has failed, so that its bug holds up no other."""


class WorkflowTimers(ScheduledTask[PublishedReader, WorkflowTransaction]):
    """A task that wakes each workflow when the time that it waits for has come."""

    delayed: ClassVar = "workflows.waits_delayed"

    def __init__(
        self, store: Store[PublishedReader, WorkflowTransaction], clock: Clock, actors: ActorRegistry
    ) -> None:
        super().__init__(store, clock)
        self._actors = actors

    @staticmethod
    def next_due(reader: WorkflowReader) -> int | None:
        """Return the time (ms) at which the next workflow goes on by itself."""
        return reader.next_run()

    async def run_batch(self) -> bool:
        """See `ScheduledTask.run_batch`: a batch of conversations, all at once."""
        now = self._clock()
        due = await self._store.read(lambda reader: _due(reader, now))
        refused: list[Unavailable] = []
        failed: list[str] = []
        async with trio.open_nursery() as nursery:
            for project, conversation_id in due:
                nursery.start_soon(self._wake, project, conversation_id, refused, failed)
        if failed:
            await self._store.write(lambda tx: tx.postpone_runs(failed, now + _POSTPONED_MS))
        if refused:
            raise refused[0]
        return len(due) == BATCH

    async def _wake(
        self, project: Project, conversation_id: str, refused: list[Unavailable], failed: list[str]
    ) -> None:
        try:
            await self._actors.ask(project, conversation_id, WakeWorkflow())
        except NotFound:
            log.debug("workflows.already_deleted", conversation=conversation_id)
        except Unavailable as refusal:
            refused.append(refusal)
        except (DomainError, ActorFailed) as error:  # the latter is a bug, which the actor has logged
            log.warning("workflows.wait_postponed", conversation=conversation_id, reason=str(error))
            failed.append(conversation_id)


def _due(reader: PublishedReader, now: int) -> list[tuple[Project, str]]:
    due = [
        (reader.project(project_id), conversation) for project_id, conversation in reader.due_runs(now, BATCH)
    ]
    return [(project, conversation) for project, conversation in due if project is not None]
