"""A saved run as the figures of `benchmarks/figures.md`: its tables and plots, between marks of the page."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from benchmarks.deriving import derive
from benchmarks.drawing import bars, lines
from benchmarks.report import Cell, Section, machine_line, markdown

BEGIN: Final = "<!-- figures: written by python -m benchmarks --render -->"
NODES_BEGIN: Final = "<!-- figures of several nodes: written by python -m benchmarks --render -->"
PEERS_BEGIN: Final = "<!-- figures of peers: written by python -m benchmarks --render -->"
END: Final = "<!-- end of figures -->"
PICTURES: Final = "performance"
"""The folder of the plots, as seen from the page."""

_NODES: Final = frozenset(
    ("stores", "nodes", "alternating", "added", "spread", "hot", "endpoint", "following", "primary", "pauses")
)

_IN_WORDS: Final = frozenset(("day-end", "day-costs", "delivery-day-end", "delivery-day-costs"))
"""Sections that docs/performance.md reports in its own words, each with the conditions of its run."""

_Rows = list[dict[str, Cell]]


_PEERS: Final = ("peers", "peers-state", "peers-about")
"""Sections that are written into docs/performance.md, before its other tables."""


def render(saved: Path, page: Path, pictures: str = PICTURES) -> list[Path]:
    """Write the figures of the run into the page and its plots into the folder; return the written files.

    The figures of several nodes have a place of their own, so that a run of them alone leaves the others. Those of days and of peers are left out. Of
    a run of large installations only plots are written, because docs/performance.md reports its figures.

    Args:
        pictures: the folder of the plots, as a relative path from the page.

    Raises ValueError if the page lacks one of its marks.
    """
    document = json.loads(saved.read_text())
    found = {
        each["name"]: _section(each)
        for each in document["sections"]
        if each["name"] not in _IN_WORDS and each["name"] not in _PEERS
    }
    if not found:
        return []
    of_nodes = {name: each for name, each in found.items() if name in _NODES}
    sections = {name: each for name, each in found.items() if name not in _NODES}
    large = "large" in sections
    text, plots = page.read_text(), list[Path]()
    if of_nodes:
        text = _replaced(text, NODES_BEGIN, _figures(document, of_nodes, {}, pictures))
    if sections:
        sections |= {each.name: each for each in derive(sections)}
        drawn = dict(_pictures(sections))
        if not large:
            text = _replaced(text, BEGIN, _figures(document, sections, drawn, pictures))
        plots = _draw(page.parent / pictures, drawn, large=large)
    page.write_text(text)
    return plots if large else [page, *plots]


def render_peers(saved: Path, page: Path) -> list[Path]:
    """Write the tables of peers into the page if the run has them; return the written files.

    Raises ValueError if the page lacks one of the marks.
    """
    document = json.loads(saved.read_text())
    sections = {each["name"]: _section(each) for each in document["sections"] if each["name"] in _PEERS}
    if not sections:
        return []
    machine = document["machine"]
    before = f"the machine's load average before was {machine['load before']:.1f}"
    parts = [f"\nTaken on {document['at'][:10]}: {machine_line(machine)}; {before}.\n"]
    parts += [markdown(sections[name]) for name in _PEERS if name in sections]
    page.write_text(_replaced(page.read_text(), PEERS_BEGIN, "\n".join(parts)))
    return [page]


def _replaced(text: str, begin: str, figures: str) -> str:
    """Return the page with these figures between the mark and the next end. Raises as `render`."""
    before, mark, rest = text.partition(begin)
    _, end, behind = rest.partition(END)
    if not mark or not end:
        raise ValueError(f"The page has no figures to replace: it lacks {begin} or {END}")
    return f"{before}{begin}\n{figures}\n{END}{behind}"


def _draw(folder: Path, pictures: Mapping[str, str], *, large: bool) -> list[Path]:
    """Write the plots of a run in place of those of an older one; return them."""
    folder.mkdir(exist_ok=True)
    for old in folder.glob("*.svg"):
        if old.name.startswith("large") is large:
            old.unlink()
    for name, picture in pictures.items():
        (folder / f"{name}.svg").write_text(picture)
    return sorted(folder / f"{name}.svg" for name in pictures)


def newest(folder: Path) -> Path | None:
    """Return the last run that was saved in a folder."""
    return max(folder.glob("*.json"), default=None)


def _section(given: Mapping[str, Any]) -> Section:
    rows = [tuple(row) for row in given["rows"]]
    return Section(given["name"], given["title"], tuple(given["columns"]), rows, given["note"])


def _figures(
    document: Mapping[str, Any], sections: Mapping[str, Section], drawn: Mapping[str, str], pictures: str
) -> str:
    when = document["at"][:10]
    taken_by = document["machine"]
    generator = (
        f"Load by {taken_by['load']}; the machine's load average before was {taken_by['load before']:.1f}."
    )
    parts = [f"\nTaken on {when}: {machine_line(document['machine'])}. {generator}\n"]
    for name, section in sections.items():
        table, plots = markdown(section), [each for each in drawn if each.partition("-of-")[0] == name]
        heading, _, rest = table.partition("\n\n")
        shown = "\n".join(f"![{section.title}]({pictures}/{each}.svg)\n" for each in plots)
        parts.append(f"{heading}\n\n{shown}\n{rest}" if shown else table)
    parts += (
        [f"**Not measured** in this run: {'; '.join(document['failed'])}.\n"] if document["failed"] else []
    )
    return "\n".join(parts)


def _pictures(sections: Mapping[str, Section]) -> Iterator[tuple[str, str]]:
    """Yield each plot with its name: that of its section, and for one of several a suffix after `-of-`."""
    for name, draw in _PLOTS.items():
        section = sections.get(name.partition("-of-")[0])
        if section is not None and section.rows:
            yield name, draw([dict(zip(section.columns, row, strict=True)) for row in section.rows])


def _by_connections(rows: _Rows, label: str, column: str) -> list[tuple[str, list[tuple[str, float]]]]:
    groups: dict[str, list[tuple[str, float]]] = {}
    for row in rows:
        count = row["connections"]
        heading = f"{count} connection{'' if count == 1 else 's'}"
        groups.setdefault(heading, []).append((str(row[label]), _number(row[column])))
    return list(groups.items())


def _number(cell: Cell) -> float:
    return float(cell) if isinstance(cell, int | float) and math.isfinite(cell) else 0.0


def _bars(title: str, unit: str, label: str, column: str) -> Callable[[_Rows], str]:
    def draw(rows: _Rows) -> str:
        known = [(str(row[label]), _number(row[column])) for row in rows if row[column] is not None]
        return bars(title, unit, [("", known)])

    return draw


def _grouped(title: str, unit: str, label: str, column: str) -> Callable[[_Rows], str]:
    return lambda rows: bars(title, unit, _by_connections(rows, label, column))


def _cost(rows: _Rows) -> str:
    most = max(_number(row["connections"]) for row in rows)
    at_most = [row for row in rows if row["connections"] == most]
    groups = _by_connections(at_most, "server", "server's µs")
    return bars("POST a message: the server's processor time", "µs a request", groups)


def _late(rows: _Rows) -> str:
    groups = [
        (
            heading,
            [(_who(row), _number(row[heading])) for row in rows if str(row["until"]).startswith("its frame")],
        )
        for heading in ("p50 ms", "p99 ms")
    ]
    return bars("From POST to the frame at a consumer", "milliseconds, at the rates of the table", groups)


def _who(row: Mapping[str, Cell]) -> str:
    return str(row["until"]).partition("; ")[2].replace("one consumer and one webhook", "and a webhook")


def _growth(rows: _Rows) -> str:
    kinds = [column for column in rows[0] if column.endswith(" µs")]
    series = [
        (kind.removesuffix(" µs"), [(_number(row["messages stored"]), _number(row[kind])) for row in rows])
        for kind in kinds
    ]
    return lines(
        "What a call costs as messages are stored",
        "µs of the server's processor time",
        series,
        "messages stored",
    )


_SHOWN: Final = ("inbox: all", "inbox: unread", "backend: updated lately", "counters")


def _large_lists(rows: _Rows) -> str:
    series = [(str(row["what"]).rpartition(": ")[2], _by_size(row)) for row in rows if row["what"] in _SHOWN]
    return lines("Lists as conversations are stored", "p99 in ms, 50 a page", series, "conversations stored")


_JOBS: Final = {
    "a report of 30 days, processor ms": "report of a month",
    "a report of a year, processor ms": "report of a year",
    "a backup": "backup",
    "its file, GB": "its file",
}


def _large_jobs(rows: _Rows) -> str:
    series = []
    for row in rows:
        if (name := _JOBS.get(str(row["what"]))) is not None:
            each = [(count, figure / count) for count, figure in _by_size(row)]
            series.append((name, [(count, figure / each[0][1]) for count, figure in each]))
    title = "What grows with what it touches, for each conversation stored"
    return lines(title, "of what it is in the smallest installation", series, "conversations stored")


def _by_size(row: Mapping[str, Cell]) -> list[tuple[float, float]]:
    """Return the figures of a row by the numbers of conversations that its columns name."""
    sizes = {name: name.removesuffix(" conversations").replace(",", "") for name in row}
    return [(float(size), _number(row[name])) for name, size in sizes.items() if size.isdecimal()]


_PLOTS: Final[Mapping[str, Callable[[_Rows], str]]] = {
    "route": _grouped("An empty route", "requests a second", "server", "requests/s"),
    "post": _grouped("POST a message", "requests a second", "server", "requests/s"),
    "post-of-cost": _cost,
    "maximum": _bars(
        "POST with and without readers", "requests a second, 64 connections", "read by", "POST/s"
    ),
    "latency": _late,
    "read": _grouped("Read", "answers a second", "what", "answers/s"),
    "growth": _growth,
    "large-lists": _large_lists,
    "large-jobs": _large_jobs,
    "memory": _bars("Memory", "KB each", "what", "KB each"),
}
