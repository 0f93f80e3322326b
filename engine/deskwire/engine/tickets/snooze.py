"""The timer that wakes snoozed tickets, and takes tickets from teams that were deleted."""

from __future__ import annotations

from typing import ClassVar, Final

from deskwire.engine.core.tasks.scheduled import ScheduledTask
from deskwire.engine.tickets.change import change_due
from deskwire.engine.tickets.ports import TicketChanges, TicketLooks

BATCH: Final = 500
"""Tickets changed in one commit; some ten milliseconds of the writer's time."""


class SnoozeTimer(ScheduledTask[TicketLooks, TicketChanges]):
    """The task that changes the tickets that are due."""

    delayed: ClassVar = "tickets.upkeep_delayed"

    @staticmethod
    def next_due(reader: TicketLooks) -> int | None:
        """Return when (ms) the next ticket wakes; 0 if a team was deleted, None if nothing is due."""
        return 0 if reader.deleted_teams() else reader.next_wake_up()

    async def run_batch(self) -> bool:
        """Change what is due, in one commit; see `ScheduledTask.run_batch`."""
        now = self._clock()
        return await self._store.write(lambda tx: change_due(tx, now, BATCH)) == BATCH
