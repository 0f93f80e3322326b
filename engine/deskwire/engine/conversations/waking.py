"""The timer of snoozed conversations: those whose time has come wake, each through its actor."""

from __future__ import annotations

from typing import ClassVar, Final

import structlog
import trio

from deskwire.engine.accounts.people import Project
from deskwire.engine.conversations.actor import ActorFailed
from deskwire.engine.conversations.commands import WakeSnoozed
from deskwire.engine.conversations.ports import CommitReader, CommitTransaction
from deskwire.engine.conversations.registry import ActorRegistry
from deskwire.engine.core.actor import SYSTEM
from deskwire.engine.core.clock import Clock
from deskwire.engine.core.errors import NotFound, Unavailable
from deskwire.engine.core.store import Store
from deskwire.engine.core.tasks.scheduled import ScheduledTask

log: Final = structlog.get_logger(__name__)

BATCH: Final = 64
"""Conversations that are woken together; they share commits."""


class Wakings(ScheduledTask[CommitReader, CommitTransaction]):
    """A task that wakes each snoozed conversation when its time has come."""

    delayed: ClassVar = "conversations.wakings_delayed"

    def __init__(
        self, store: Store[CommitReader, CommitTransaction], clock: Clock, actors: ActorRegistry
    ) -> None:
        super().__init__(store, clock)
        self._actors = actors

    @staticmethod
    def next_due(reader: CommitReader) -> int | None:
        """Return the time (ms) at which the next conversation wakes."""
        return reader.next_waking()

    async def run_batch(self) -> bool:
        """See `ScheduledTask.run_batch`: a batch of conversations, all at once."""
        now = self._clock()
        due = await self._store.read(lambda reader: _due(reader, now))
        refused: list[Unavailable] = []
        async with trio.open_nursery() as nursery:
            for project, conversation_id in due:
                nursery.start_soon(self._wake, project, conversation_id, refused)
        if refused:
            raise refused[0]
        return len(due) == BATCH

    async def _wake(self, project: Project, conversation_id: str, refused: list[Unavailable]) -> None:
        try:
            await self._actors.ask(project, conversation_id, WakeSnoozed(), by=SYSTEM)
        except NotFound:
            log.debug("conversations.already_deleted", conversation=conversation_id)
        except Unavailable as refusal:
            refused.append(refusal)
        except ActorFailed:  # a bug, which the actor has logged; it is tried again
            refused.append(Unavailable("A conversation could not be woken.", code="conversation_busy"))


def _due(reader: CommitReader, now: int) -> list[tuple[Project, str]]:
    due = [
        (reader.project(project_id), conversation)
        for project_id, conversation in reader.due_wakings(now, BATCH)
    ]
    return [(project, conversation) for project, conversation in due if project is not None]
