"""Figures of reports, computed from durations (shown in seconds), ratings and counts.

Each figure is also a column of the report's CSV (`columns_of`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, assert_never

from deskwire.engine.conversations.conversation import AUTHOR_TYPES
from deskwire.engine.core.values import nearest_rank
from deskwire.engine.reports.ports import Counted

Figures = Mapping[str, Any]
"""Figures by their names in the API, in the order of the API."""

SCORES: Final = range(11)
_SATISFIED: Final = 7
"""Lowest rating of a satisfied contact, as for CSAT in surveys."""
_COUNTED: Final[Sequence[Counted]] = ("created", "closed", "reopened", *AUTHOR_TYPES)


def duration_figures(durations: Sequence[int]) -> Figures:
    """Return the figures of durations (ms), sorted in ascending order. Without durations all but `count` are None."""
    return {"count": len(durations), **_spread(durations)}


def rating_figures(counts: Mapping[int, int]) -> Figures:
    """Return the figures of ratings from the number of ratings with each score."""
    count = sum(counts.values())
    good = sum(number for score, number in counts.items() if score >= _SATISFIED)
    total = sum(score * number for score, number in counts.items())
    return {
        "count": count,
        "average": round(total / count, 2) if count else None,
        "csat": round(100 * good / count, 1) if count else None,
        "scores": [counts.get(score, 0) for score in SCORES],
    }


def volume_figures(counts: Mapping[Counted, int]) -> Figures:
    """Return the number of each kind, and the sum of all messages as `messages`."""
    figures = {_field(kind): counts.get(kind, 0) for kind in _COUNTED}
    written = sum(counts.get(kind, 0) for kind in AUTHOR_TYPES)
    return {**figures, "messages": written}


def _field(kind: Counted) -> str:
    """Return the name of a count in the API."""
    match kind:
        case "created":
            return "conversationsCreated"
        case "closed":
            return "conversationsClosed"
        case "reopened":
            return "conversationsReopened"
        case "contact":
            return "contactMessages"
        case "agent":
            return "agentMessages"
        case "bot":
            return "botMessages"
        case "system":
            return "systemMessages"
        case _:
            assert_never(kind)


def backlog_figures(created: Sequence[int], waiting: int, now: int) -> Figures:
    """Return the figures of open conversations from their times of creation (ms), the oldest first."""
    ages = [max(now - at, 0) for at in reversed(created)]
    return {"open": len(ages), "waiting": waiting, "age": _spread(ages)}


def backlog_of_day(number: int) -> Figures:
    """Return the figures at the end of a past day, for which waiting contacts and ages are unknown."""
    return {"open": number, "waiting": None, "age": None}


def _spread(durations: Sequence[int]) -> Figures:
    if not durations:
        return dict.fromkeys(("mean", "median", "p90", "min", "max"))
    count = len(durations)
    return {
        "mean": _seconds(round(sum(durations) / count)),
        "median": _seconds(durations[nearest_rank(count, 50)]),
        "p90": _seconds(durations[nearest_rank(count, 90)]),
        "min": _seconds(durations[0]),
        "max": _seconds(durations[-1]),
    }


def _seconds(ms: int) -> float:
    return ms / 1000


def columns_of(figures: Figures) -> Iterable[tuple[str, Any]]:
    """Yield figures under their column names: nested ones as `ageMedian`, scores as `scores7`."""
    for name, figure in figures.items():
        if isinstance(figure, Mapping):
            yield from ((f"{name}{inner[0].upper()}{inner[1:]}", value) for inner, value in figure.items())
        elif isinstance(figure, list):
            yield from ((f"{name}{number}", value) for number, value in enumerate(figure))
        else:
            yield name, figure
