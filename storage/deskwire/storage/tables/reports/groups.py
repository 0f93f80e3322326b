"""The groups of a report: what a row is counted by, and what else has to be joined for that."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from deskwire.engine.reports.period import DAY_MS
from deskwire.engine.reports.ports import GroupBy, GroupKey, ReportScope

_SHIFT: Final = 1_000_000
"""Days by which moments are moved on before they are divided, as no database rounds down what is negative."""
_TAGS: Final = "LEFT JOIN conversation_tags g ON g.conversation = {}"


class Source(NamedTuple):
    """A table with rows to count, by expressions on it: the conversation, the time, the agent, the team."""

    conversation: str
    at: str
    agent: str
    team: str


class Grouping(NamedTuple):
    """The key's expression, the table joined for it, and the values that both need."""

    key: str
    joined: str
    values: Mapping[str, Any]


def grouping(source: Source, scope: ReportScope, by: GroupBy | None) -> Grouping:
    """Return how rows of a source are put into groups."""
    if by == "agent":
        return Grouping(source.agent, "", {})
    if by == "team":
        return Grouping(source.team, "", {})
    if by == "tag":
        return Grouping("g.folded", _TAGS.format(source.conversation), {})
    if by == "day":
        return _by_day(source.at, scope)
    return Grouping("CAST(NULL AS text)", "", {})


def key_of(stored: Any, by: GroupBy | None) -> GroupKey:
    """Return a group's key from that of its rows."""
    return stored - _SHIFT if by == "day" else stored  # type: ignore[no-any-return]  # what the key's expression gives


def _by_day(at: str, scope: ReportScope) -> Grouping:
    """Return the groups of days: the local date of a moment hangs on the stretch that it is in."""
    *earlier, last = scope.period.stretches
    values: dict[str, int] = {"ahead": last.ahead + _SHIFT * DAY_MS}
    shift = "CAST(:ahead AS bigint)"
    if earlier:
        cases: list[str] = []
        for number, stretch in enumerate(earlier):
            values |= {f"until_{number}": stretch.until, f"ahead_{number}": stretch.ahead + _SHIFT * DAY_MS}
            cases.append(f"WHEN {at} < :until_{number} THEN CAST(:ahead_{number} AS bigint)")
        shift = f"CASE {' '.join(cases)} ELSE CAST(:ahead AS bigint) END"
    return Grouping(f"({at} + {shift}) / {DAY_MS}", "", values)
