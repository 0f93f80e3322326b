"""The sweep of conversations that have passed their retention, each in one commit of its own actor (contract 3).

The queries give candidates: the actor checks again at the moment it decides, as an agent may have replied
meanwhile. A batch is small and followed by a pause as long as it took, so that other commits find room.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final, Protocol

import structlog
import trio

from deskwire.engine.accounts.people import Project
from deskwire.engine.accounts.ports import AccountReader
from deskwire.engine.audit.deeds import conversation_expired
from deskwire.engine.audit.naming import Recording
from deskwire.engine.audit.trail import Actor, By, Deed
from deskwire.engine.conversations.actors import ActorFailed, ActorRegistry
from deskwire.engine.conversations.commands import Expire, RetentionPeriods
from deskwire.engine.conversations.commit import Receipt
from deskwire.engine.conversations.decide import ExpiryReason
from deskwire.engine.conversations.ports import ExpiredConversation, ExpiryReader
from deskwire.engine.core.clock import Clock
from deskwire.engine.core.errors import DomainError, Unavailable
from deskwire.engine.core.store import Inline, Store

log: Final = structlog.get_logger(__name__)

BATCH: Final = 16
"""Conversations that are deleted together; most of them share a commit."""

ROWS: Final = 500
"""Rows of a batch at most, unless one conversation alone has more; a few milliseconds of the writer's time."""

_LOOK: Final = 200
"""Conversations that are looked for in one go."""


class SweepReader(ExpiryReader, AccountReader, Protocol):
    """Queries on the conversations that are due, and on their projects."""


_Look = Callable[[SweepReader, tuple[int, int]], Sequence[ExpiredConversation]]


class Sweep:
    """One round over all conversations that are due; it counts in `deleted`.

    Args:
        bot_only_ms: time from its creation for which a conversation without an agent is kept.
        day_ms: length of a day of a project's retention.
    """

    def __init__(
        self,
        store: Store[SweepReader, object],
        actors: ActorRegistry,
        clock: Clock,
        *,
        bot_only_ms: int,
        day_ms: int,
    ) -> None:
        self._store = store
        self._actors = actors
        self._clock = clock
        self._bot_only_ms = bot_only_ms
        self._day_ms = day_ms
        self.deleted: dict[ExpiryReason, int] = {"bot_only": 0, "archived": 0}

    async def run(self) -> None:
        """Delete what is due now. Raises Unavailable if a whole batch was refused; the next round takes it up."""
        now = self._clock()
        day_ms, created_before = self._day_ms, now - self._bot_only_ms
        for project in await self._store.read(lambda reader: reader.projects_with_expired(now, day_ms)):
            window = self._windows(project).archived
            assert window is not None, "a project without one has nothing expired"
            await self._delete_all("archived", _archived(project.rowid, now - window))
        await self._delete_all(
            "bot_only", lambda reader, place: reader.bot_only_before(created_before, place, _LOOK)
        )

    async def _delete_all(self, kind: ExpiryReason, look: _Look) -> None:
        """Go once through what `look` finds, and pass over what can't be deleted."""
        place = (-1, -1)
        while conversations := await self._store.read(lambda reader, place=place: look(reader, place)):  # type: ignore[misc]
            place = conversations[-1].place
            for batch in batches(conversations):
                began = trio.current_time()
                self.deleted[kind] += await self._delete(batch)
                await trio.sleep(trio.current_time() - began)

    async def _delete(self, batch: Sequence[ExpiredConversation]) -> int:
        """Have the actors decide; return how many conversations were deleted. Raises Unavailable if all refused."""
        outcomes: list[bool | Unavailable] = []
        async with trio.open_nursery() as nursery:
            for due in batch:
                nursery.start_soon(self._ask, due, outcomes)
        refusals = [outcome for outcome in outcomes if isinstance(outcome, Unavailable)]
        if len(refusals) == len(batch):
            raise refusals[0]
        return sum(outcome is True for outcome in outcomes)

    async def _ask(self, due: ExpiredConversation, outcomes: list[bool | Unavailable]) -> None:
        project = await self._store.read(Inline(lambda reader: reader.project(due.project)))
        if project is None:  # removed meanwhile, and so without conversations
            outcomes.append(False)
            return
        try:
            recording: Recording[Receipt] = Recording(By(Actor("system"), self._clock()), _expired)
            receipt = await self._actors.ask(
                project, due.conversation, Expire(self._windows(project)), recording
            )
        except Unavailable as refusal:
            outcomes.append(refusal)
        except (DomainError, ActorFailed) as error:  # deleted already; or a bug, which the actor has logged
            log.debug("retention.passed_over", conversation=due.conversation, error=str(error))
            outcomes.append(False)
        else:
            outcomes.append(receipt.state is None)

    def _windows(self, project: Project) -> RetentionPeriods:
        days = project.settings.archived_retention_days
        return RetentionPeriods(self._bot_only_ms, None if days is None else days * self._day_ms)


def _expired(receipt: Receipt) -> Sequence[Deed]:
    """Return the deeds of a command to expire, which does nothing if an agent has come by in the meantime."""
    return () if receipt.state is not None else (conversation_expired(receipt.project),)


def _archived(project: int, before: int) -> _Look:
    return lambda reader, place: reader.archived_before(project, before, place, _LOOK)


def batches(conversations: Sequence[ExpiredConversation]) -> Iterator[Sequence[ExpiredConversation]]:
    """Yield what is deleted together: in order, at most BATCH, and at most ROWS rows unless one alone has more."""
    batch: list[ExpiredConversation] = []
    for due in conversations:
        if batch and (len(batch) == BATCH or sum(other.rows for other in batch) + due.rows > ROWS):
            yield batch
            batch = []
        batch.append(due)
    if batch:
        yield batch
