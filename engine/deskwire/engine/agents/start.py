"""The start of an agent's stream: behind an event that the page has, or now."""

from __future__ import annotations

from typing import Final

from deskwire.engine.agents.stream import Start
from deskwire.engine.events.ports import EventReader

BEGINNING: Final = f"evt_{'0' * 26}"
"""Stands for the newest event of a project that has none."""


def find_start(reader: EventReader, project: int, after: str | None) -> Start:
    """Return the place behind the event `after`; or the newest place, with a gap if that event is not known.

    It is not known if it was pruned, erased, or made after the moment that a restored backup is of. What came behind it
    can't be told then, so the page fetches all anew. The one that was pruned last is good: what came behind it is there.
    """
    newest = reader.newest_event(project)
    now = Start(*(newest or (0, BEGINNING)))
    if after is None:
        return now
    pruned, _ = reader.event_window(project)
    if after == BEGINNING:
        return now._replace(gap=True) if pruned else Start(0, now.at, after)
    position = reader.event_position(project, after)
    if after == pruned or reader.is_event_at(project, position, after):
        return Start(position, now.at, after)
    return now._replace(gap=True)
