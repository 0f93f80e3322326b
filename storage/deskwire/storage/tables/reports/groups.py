"""The grouping of a report: the key of each row, and the tables joined for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from deskwire.engine.reports.period import DAY_MS
from deskwire.engine.reports.ports import GroupBy, GroupKey, ReportScope

_SHIFT: Final = 1_000_000
"""Days added to times before the division, because integer division rounds negative numbers towards zero."""
_TAGS: Final = "LEFT JOIN conversation_tags g ON g.conversation = {}"


class Source(NamedTuple):
    """Expressions on a table of rows to count: conversation, time, agent and team."""

    conversation: str
    at: str
    agent: str
    team: str


class Grouping(NamedTuple):
    """The expression of the key, the joined table, and the values of both."""

    key: str
    joined: str
    values: Mapping[str, Any]


def grouping(source: Source, scope: ReportScope, by: GroupBy | None) -> Grouping:
    """Return the grouping of the rows of a source."""
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
    """Return the key of a group from the selected key."""
    return stored - _SHIFT if by == "day" else stored  # type: ignore[no-any-return]  # typed by the key's expression


def _by_day(at: str, scope: ReportScope) -> Grouping:
    """Return the grouping by local date, which depends on the UTC offset at each time."""
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
