"""Checks that a reader on any node gets each event once and in commit order, wherever it was committed."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterator

from deskwire.engine.events.log import Chunk
from deskwire.engine.ports import Commit


class Order:
    """Receives commits and reads; `wrong` is called with each broken rule."""

    def __init__(self, wrong: Callable[[str], None]) -> None:
        self.reads = 0
        """The number of events read, on all nodes."""
        self._wrong = wrong
        self._positions: list[int] = []
        self._erased: set[int] = set()
        self._of: dict[int, set[int]] = defaultdict(set)

    def committed(self, commit: Commit) -> None:
        """Add a commit's events and drop those it erased; events for agents only do not count here."""
        for event in commit.events:
            if event.internal:
                continue
            self._positions.append(event.position)
            if event.conversation is not None:
                self._of[event.conversation].add(event.position)
        for conversation in commit.erased:
            self._erased |= self._of[conversation]

    def read(self, node: str, after: int, chunk: Chunk) -> None:
        """Judge a chunk, which must have all events after `after` up to its end."""
        got = [event.position for event in chunk.events]
        self.reads += len(got)
        if got != sorted(set(got)) or (got and got[0] <= after):
            self._wrong(f"{node} reads {got} behind {after}")
        if early := [each for each in got if each not in self._known()]:
            self._wrong(f"{node} reads {early}, which nobody has committed")
        if skipped := [each for each in self._between(after, chunk.upto) if each not in got]:
            self._wrong(f"{node} reads from {after} to {chunk.upto} without {skipped}")

    def settled(self, node: str, cursor: int) -> None:
        """Check that a reader that had enough time has read everything."""
        if left := list(self._between(cursor, 1 << 62)):
            self._wrong(f"{node} has never read {left}")

    def _known(self) -> set[int]:
        return set(self._positions)

    def _between(self, after: int, upto: int) -> Iterator[int]:
        for position in self._positions[bisect_right(self._positions, after) :]:
            if position > upto:
                return
            if position not in self._erased:
                yield position
