"""The one task that writes to all connections (ADR 8)."""

from __future__ import annotations

from dataclasses import dataclass

import trio
from trio.testing import wait_all_tasks_blocked

from deskwire.http.stream.event_writer import Flusher


@dataclass(eq=False)
class Connection:
    """Counts how often it is flushed; one with a bug fails each time."""

    bug: bool = False
    flushed: int = 0
    ended: bool = False

    def flush(self) -> None:
        self.flushed += 1
        if self.bug:
            raise ZeroDivisionError

    def break_off(self) -> None:
        self.ended = True


async def test_a_connections_bug_ends_that_connection_and_delays_no_other() -> None:
    flusher, broken, well = Flusher(), Connection(bug=True), Connection()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(flusher.run)
        for _ in range(2):
            for connection in (broken, well, well):
                flusher.schedule(connection)
            await wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    assert (broken.ended, well.ended) == (True, False)
    assert (broken.flushed, well.flushed) == (2, 2)
