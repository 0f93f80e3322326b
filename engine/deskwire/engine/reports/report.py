"""Reports: figures of a project's conversations in a period, in total and by group.

A report is computed from the stored rows on each request. Every event counts at the time at which it happened, so a
report on the past changes only if conversations are erased, or ratings or tags change.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, Literal

from msgspec import Struct

from deskwire.engine.core.spreadsheet import BYTE_ORDER_MARK, csv_lines, escape_formula
from deskwire.engine.core.values import replace
from deskwire.engine.reports.figures import (
    Figures,
    backlog_figures,
    backlog_of_day,
    columns_of,
    duration_figures,
    rating_figures,
    volume_figures,
)
from deskwire.engine.reports.period import day_name
from deskwire.engine.reports.ports import (
    Counted,
    GroupBy,
    GroupCount,
    GroupKey,
    ReportReader,
    ReportScope,
    Timed,
)

Metric = Literal["first-response", "time-to-close", "csat", "volume", "backlog"]

ROWS_MAX: Final = 1_000
"""Rows of a report; of more groups, the largest are shown."""
_FOREVER: Final = 1 << 60


class Row(Struct, frozen=True):
    """The figures of a group: an agent, a team, a channel, a tag or a day; the key is None for conversations without one."""

    key: str | None
    name: str | None
    figures: Figures


class Report(Struct, frozen=True):
    """The total, and a row for each group; `omitted` is the number of groups without a row."""

    total: Figures
    rows: Sequence[Row] = ()
    omitted: int = 0


_Counts = Mapping[Counted, int]
_Made = tuple[Figures, Mapping[GroupKey, Figures]]


def compute(reader: ReportReader, metric: Metric, scope: ReportScope, by: GroupBy | None, now: int) -> Report:
    """Return a report; one by days has a row for every day of the period.

    Args:
        now: end of the ages of open conversations, in milliseconds.
    """
    total, groups = _MAKERS[metric](reader, scope, by, now)
    if by == "day":
        return Report(total, _days(total, groups, scope))
    if by is None:
        return Report(total)
    ordered = sorted(groups.items(), key=lambda each: (each[0] is None, -_size(each[1]), str(each[0])))
    shown = ordered[:ROWS_MAX]
    names = _names(reader, scope, by, [key for key, _ in shown if isinstance(key, str)])
    shown_keys = names if by == "tag" else {}
    rows = [Row(shown_keys.get(key, _text(key)), names.get(key), figures) for key, figures in shown]
    return Report(total, rows, len(ordered) - len(shown))


def _days(total: Figures, groups: Mapping[GroupKey, Figures], scope: ReportScope) -> list[Row]:
    """Return a row for each day, including empty ones."""
    days = sorted({*scope.period.days(), *(key for key in groups if isinstance(key, int))})
    return [Row(day_name(day), day_name(day), groups.get(day) or _nothing(total)) for day in days]


def _nothing(total: Figures) -> Figures:
    """Return zero figures of the same kind as the total."""
    if "scores" in total:
        return rating_figures({})
    return duration_figures(()) if "median" in total else volume_figures({})


def _size(figures: Figures) -> int:
    """Return the size by which groups are sorted."""
    return sum(int(figures.get(name, 0)) for name in ("count", "open", "conversationsCreated", "messages"))


def _names(
    reader: ReportReader, scope: ReportScope, by: GroupBy, keys: Sequence[str]
) -> Mapping[Any, str | None]:
    if by == "agent":
        return reader.agent_names(keys)
    named = {"team": reader.team_names, "channel": reader.channel_names}.get(by, reader.tag_names)
    return named(scope.project, keys)


def _text(key: GroupKey) -> str | None:
    return None if key is None else str(key)


def _timed(kind: Timed) -> Callable[[ReportReader, ReportScope, GroupBy | None, int], _Made]:
    def make(reader: ReportReader, scope: ReportScope, by: GroupBy | None, _: int) -> _Made:
        total = duration_figures(reader.durations(scope, kind, None).get(None, ()))
        if by is None:
            return total, {}
        return total, {
            key: duration_figures(found) for key, found in reader.durations(scope, kind, by).items()
        }

    return make


def _csat(reader: ReportReader, scope: ReportScope, by: GroupBy | None, _: int) -> _Made:
    total = {each.score: each.count for each in reader.scores(scope, None)}
    groups: dict[GroupKey, dict[int, int]] = defaultdict(dict)
    for each in () if by is None else reader.scores(scope, by):
        groups[each.key][each.score] = each.count
    return rating_figures(total), {key: rating_figures(counts) for key, counts in groups.items()}


def _volume(reader: ReportReader, scope: ReportScope, by: GroupBy | None, _: int) -> _Made:
    written = reader.written_messages(scope, by)
    total = {**written.total, **_sums(_happened(reader, scope, None))[None]}
    if by is None:
        return volume_figures(total), {}
    groups = _sums([*_happened(reader, scope, by), *written.groups])
    return volume_figures(total), {key: volume_figures(counts) for key, counts in groups.items()}


def _happened(reader: ReportReader, scope: ReportScope, by: GroupBy | None) -> list[GroupCount]:
    return [*reader.created_conversations(scope, by), *reader.turns(scope, by)]


def _sums(tallies: Iterable[GroupCount]) -> defaultdict[GroupKey, dict[Counted, int]]:
    groups: defaultdict[GroupKey, dict[Counted, int]] = defaultdict(dict)
    for each in tallies:
        groups[each.key][each.kind] = each.count
    return groups


def _backlog(reader: ReportReader, scope: ReportScope, by: GroupBy | None, now: int) -> _Made:
    waiting = reader.waiting_conversations(scope, None).get(None, 0)
    total = backlog_figures(reader.open_conversations(scope, None).get(None, ()), waiting, now)
    if by is None:
        return total, {}
    if by == "day":
        return total, _at_ends_of_days(reader, scope, int(total["open"]))
    waits = reader.waiting_conversations(scope, by)
    return total, {
        key: backlog_figures(created, waits.get(key, 0), now)
        for key, created in reader.open_conversations(scope, by).items()
    }


def _at_ends_of_days(reader: ReportReader, scope: ReportScope, open_now: int) -> Mapping[GroupKey, Figures]:
    """Return the number of open conversations at the end of each day, counted back from the current number."""
    later = replace(scope, period=replace(scope.period, start=scope.period.end, end=_FOREVER))
    number = open_now - _gained(_sums(_happened(reader, later, None))[None])
    gains = {day: _gained(counts) for day, counts in _sums(_happened(reader, scope, "day")).items()}
    ends: dict[GroupKey, Figures] = {}
    for day in sorted({*scope.period.days(), *(day for day in gains if isinstance(day, int))}, reverse=True):
        ends[day] = backlog_of_day(number)
        number -= gains.get(day, 0)
    return ends


def _gained(counts: _Counts) -> int:
    return counts.get("created", 0) + counts.get("reopened", 0) - counts.get("closed", 0)


_MAKERS: Final[Mapping[Metric, Callable[[ReportReader, ReportScope, GroupBy | None, int], _Made]]] = {
    "first-response": _timed("answered"),
    "time-to-close": _timed("closed"),
    "csat": _csat,
    "volume": _volume,
    "backlog": _backlog,
}


def csv_of(report: Report, by: GroupBy | None) -> str:
    """Return the report as CSV, with a byte order mark and a line of headings."""
    rows = report.rows if by is not None else [Row(None, None, report.total)]
    head = [] if by is None else [by] if by in ("tag", "day") else [f"{by}Id", f"{by}Name"]
    lines = [[*head, *(name for name, _ in columns_of(report.total))]]
    for row in rows:
        group = [row.key, row.name][: len(head)]
        lines.append(
            [
                *(escape_formula(each or "") for each in group),
                *(_cell(value) for _, value in _aligned(report, row)),
            ]
        )
    return BYTE_ORDER_MARK + csv_lines(lines)


def _aligned(report: Report, row: Row) -> list[tuple[str, Any]]:
    """Return a row's figures in the columns of the total; missing figures are empty cells."""
    own = dict(columns_of(row.figures))
    return [(name, own.get(name)) for name, _ in columns_of(report.total)]


def _cell(figure: Any) -> str:
    return "" if figure is None else str(figure)
