"""A report as CSV: a line for each group with the figures that the API shows, or one for all of it without groups."""

from __future__ import annotations

from typing import Any

from deskwire.engine.core.spreadsheet import BYTE_ORDER_MARK, csv_lines, escape_formula
from deskwire.engine.reports.figures import flat
from deskwire.engine.reports.ports import By
from deskwire.engine.reports.report import Report, Row


def csv_of(report: Report, by: By | None) -> str:
    """Return the report's lines, behind a byte order mark and a line of headings."""
    rows = report.rows if by is not None else [Row(None, None, report.total)]
    head = [] if by is None else [by] if by in ("tag", "day") else [f"{by}Id", f"{by}Name"]
    lines = [[*head, *(name for name, _ in flat(report.total))]]
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
    """Return a row's figures in the columns of the total; what the row has nothing of is empty."""
    own = dict(flat(row.figures))
    return [(name, own.get(name)) for name, _ in flat(report.total)]


def _cell(figure: Any) -> str:
    return "" if figure is None else str(figure)
