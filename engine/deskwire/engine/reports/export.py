"""A report as CSV: one line for each group, or a single one without groups, with the figures of the API."""

from __future__ import annotations

from typing import Any

from deskwire.engine.core.spreadsheet import MARK, lines_of, safe
from deskwire.engine.reports.figures import columns_of
from deskwire.engine.reports.ports import GroupBy
from deskwire.engine.reports.report import Report, Row


def csv_of(report: Report, by: GroupBy | None) -> str:
    """Return the report as CSV, with a byte order mark and a line of headings."""
    rows = report.rows if by is not None else [Row(None, None, report.total)]
    head = [] if by is None else [by] if by in ("tag", "day") else [f"{by}Id", f"{by}Name"]
    lines = [[*head, *(name for name, _ in columns_of(report.total))]]
    for row in rows:
        group = [row.key, row.name][: len(head)]
        lines.append(
            [*(safe(each or "") for each in group), *(_cell(value) for _, value in _aligned(report, row))]
        )
    return MARK + lines_of(lines)


def _aligned(report: Report, row: Row) -> list[tuple[str, Any]]:
    """Return a row's figures in the columns of the total; missing figures are empty cells."""
    own = dict(columns_of(row.figures))
    return [(name, own.get(name)) for name, _ in columns_of(report.total)]


def _cell(figure: Any) -> str:
    return "" if figure is None else str(figure)
