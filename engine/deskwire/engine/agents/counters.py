"""The counts of agents' streams, for the metrics."""

from __future__ import annotations

from msgspec import Struct, field


class StreamCounters(Struct):
    """Counts since the start: what the readers of agents' streams have taken, and how streams have ended.

    Args:
        events: stored events.
        passing: passing ones, presence among them.
        gaps: streams that began with a gap.
        ended: streams that were ended here, by the reason.
        refused: streams for which there was no place.
    """

    events: int = 0
    passing: int = 0
    gaps: int = 0
    refused: int = 0
    ended: dict[str, int] = field(
        default_factory=lambda: {
            "shutdown": 0,
            "session_ended": 0,
            "permission_lost": 0,
            "too_many_streams": 0,
            "out_of_touch": 0,
        }
    )
