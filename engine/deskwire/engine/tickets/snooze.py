"""The timer that wakes snoozed tickets and unassigns those of deleted teams."""

from __future__ import annotations

from typing import ClassVar, Final

from deskwire.engine.core.tasks.scheduled import ScheduledTask
from deskwire.engine.tickets.change import change_due
from deskwire.engine.tickets.ports import TicketUpkeepReader, TicketUpkeepTransaction

BATCH: Final = 500
"""Tickets changed in one commit, about ten milliseconds of the writer's time."""


class TicketSnoozeTimer(ScheduledTask[TicketUpkeepReader, TicketUpkeepTransaction]):
    """The task that changes due tickets."""

    delayed: ClassVar = "tickets.upkeep_delayed"

    @staticmethod
    def next_due(reader: TicketUpkeepReader) -> int | None:
        """Return the time (ms) of the next wake-up; 0 if a team was deleted, None if nothing is due."""
        return 0 if reader.deleted_teams() else reader.next_wake_up()

    async def run_batch(self) -> bool:
        """Change due tickets in one commit; see `ScheduledTask.run_batch`."""
        now = self._clock()
        return await self._store.write(lambda tx: change_due(tx, now, BATCH)) == BATCH
