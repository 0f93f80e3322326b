"""Wakes snoozed tickets when their time comes, and takes tickets from teams that were deleted."""

from __future__ import annotations

from typing import ClassVar, Final

from deskwire.engine.core.scheduled import ScheduledTask
from deskwire.engine.tickets.change import tend
from deskwire.engine.tickets.ports import TicketChanges, TicketLooks

BATCH: Final = 500
"""Tickets changed in one commit; some ten milliseconds of the writer's time."""


class SnoozeTimer(ScheduledTask[TicketLooks, TicketChanges]):
    """The task and what wakes it."""

    delayed: ClassVar = "tickets.upkeep_delayed"

    @staticmethod
    def next_due(reader: TicketLooks) -> int | None:
        """When (ms) a ticket wakes, or 0 if a team was deleted."""
        return 0 if reader.deleted_teams() else reader.next_wake_up()

    async def do_some(self) -> bool:
        """See `ScheduledTask.do_some`: one commit."""
        now = self._clock()
        return await self._store.write(lambda tx: tend(tx, now, BATCH)) == BATCH
