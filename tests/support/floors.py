"""The minimum that a tool must have judged before its verdict counts: a tool that saw nothing proves nothing."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Floor:
    """A count of the things that a tool judged, and the minimum that its verdict needs.

    Args:
        things: a plural noun with a participle, such as "answers seen by the recorder".
    """

    things: str
    judged: int
    least: int

    def __str__(self) -> str:
        """Return the count and the minimum, for the tool's report."""
        return f"{self.judged:,} {self.things} (at least {self.least:,})"


def shortfalls(floors: Iterable[Floor]) -> list[str]:
    """Return a problem for each floor that was not reached; any problem is a failure."""
    return [f"judged too little: {floor}" for floor in floors if floor.judged < floor.least]


def judged(floors: Iterable[Floor]) -> str:
    """Return the line of a tool's report that lists how much it judged."""
    return f"judged: {', '.join(map(str, floors))}"
