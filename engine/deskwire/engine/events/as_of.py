"""The moment of a read, as an event id: behind it the feed has all that the read does not show."""

from __future__ import annotations

from typing import Final

from deskwire.engine.core.ids import id_before, id_time_ms
from deskwire.engine.events.ports import EventReader

NO_EVENT: Final = f"evt_{'0' * 26}"
"""An id that is smaller than that of any event."""
_LAST: Final = (1 << 63) - 1


def as_of(reader: EventReader, project: int) -> str:
    """Return the id of the project's newest public event, for what is found in the same read.

    If the project has none stored, it is an id that no event has: one behind what the log no longer stores.
    """
    return _stored(reader, project, reader.event_id_at(project, _LAST) or NO_EVENT)


def logged_as_of(reader: EventReader, project: int) -> str:
    """Return the id of the project's newest event of any kind, or likewise one that no event has."""
    return _stored(reader, project, reader.newest_logged_id(project) or NO_EVENT)


def _stored(reader: EventReader, project: int, newest: str) -> str:
    """Return the id, or one behind what the log no longer stores."""
    pruned, last = reader.event_window(project)
    if pruned is None or newest > pruned:
        return newest
    behind = id_before("evt", id_time_ms(pruned) + 1)  # `pruned` itself may be another project's
    return behind if last is not None and behind <= last else pruned
