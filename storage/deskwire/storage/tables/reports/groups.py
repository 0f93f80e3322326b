"""The grouping of a report: the key of each row, the tables joined for it, and the conversations that count."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from deskwire.engine.reports.period import DAY_MS
from deskwire.engine.reports.ports import GroupBy, GroupKey, ReportScope

_SHIFT: Final = 1_000_000
"""Days added to times before the division, because integer division rounds negative numbers towards zero."""
_TAGS: Final = "LEFT JOIN conversation_tags g ON g.conversation = {}"
_CHANNELS: Final = "LEFT JOIN conversations h ON h.rowid = {}"
_OF_PROJECT: Final = "SELECT f.rowid FROM conversations f WHERE f.project = :project"


class Source(NamedTuple):
    """Expressions on a table of rows to count: conversation, time, agent and team, and the channel unless another table has it."""

    conversation: str
    at: str
    agent: str
    team: str
    channel: str | None = None


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
    if by == "channel":
        if source.channel is not None:
            return Grouping(source.channel, "", {})
        return Grouping("h.channel", _CHANNELS.format(source.conversation), {})
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


def limits(conversation: str, scope: ReportScope) -> str:
    """Return the conditions that a row's conversation counts, each with ` AND ` before it. Their values are those of `limit_values`."""
    conditions = list[str]()
    if scope.channels is not None:
        named = ", ".join(
            f":channel_{number}" for number, each in enumerate(scope.channels) if each is not None
        )
        if None in scope.channels:
            # the index of channels has no conversations without one, so those with another are excluded
            other = f" AND f.channel NOT IN ({named})" if named else ""
            conditions.append(f"NOT IN ({_OF_PROJECT} AND f.channel IS NOT NULL{other})")
        else:
            conditions.append(f"IN ({_OF_PROJECT} AND f.channel IN ({named}))")
    if scope.tags is not None:
        tagged = "SELECT w.conversation FROM conversation_tags w WHERE w.project = :project AND w.folded IN"
        conditions.append(
            f"IN ({tagged} ({', '.join(f':tag_{number}' for number in range(len(scope.tags)))}))"
        )
    return "".join(f" AND {conversation} {condition}" for condition in conditions)


def limit_values(scope: ReportScope) -> Mapping[str, str]:
    """Return the values of `limits`."""
    channels = {
        f"channel_{number}": each for number, each in enumerate(scope.channels or ()) if each is not None
    }
    return channels | {f"tag_{number}": tag for number, tag in enumerate(scope.tags or ())}
