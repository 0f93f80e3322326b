"""How long the program takes from its call until it is ready, on an empty directory and on full ones."""

from __future__ import annotations

import shutil
import time
from pathlib import Path
from typing import Final

from benchmarks import processes
from benchmarks.filling import fill_directory
from benchmarks.report import Cell, Section, median
from benchmarks.scale import Scale
from benchmarks.service import start_deskwire

_FILE: Final = "deskwire.sqlite3"
_MESSAGES_EACH: Final = 50


def measure(scale: Scale, directory: Path) -> list[Section]:
    """Start on each directory in turn; the empty one is emptied again each time."""
    rows: list[tuple[Cell, ...]] = []
    folders: dict[int, tuple[Path, float]] = {}
    for messages in scale.stored:
        folder = directory / f"start-{messages}"
        began = time.perf_counter()
        if messages:
            fill_directory(folder, max(1, messages // _MESSAGES_EACH), messages)
        folders[messages] = folder, time.perf_counter() - began
    taken: dict[int, list[float]] = {messages: [] for messages in scale.stored}
    for _ in range(scale.rounds):
        for messages, (folder, _) in folders.items():
            taken[messages].append(_timed_start(folder, empty=not messages))
    for messages, (folder, filling_s) in folders.items():
        size_mb = (folder / _FILE).stat().st_size / 1e6
        rows.append((messages, median(taken[messages]), size_mb, messages / filling_s if messages else None))
    columns = ("messages stored", "ready after s", "database MB", "bulk messages/s")
    note = "The first start makes the demo project, with a password to hash. Filling is in bulk, through the engine."
    return [Section("start", "Start of the program", columns, rows, note)]


def _timed_start(folder: Path, *, empty: bool) -> float:
    if empty:
        shutil.rmtree(folder, ignore_errors=True)
    began = time.perf_counter()
    process = start_deskwire(folder)
    try:
        processes.line(process, "running at http")
        return time.perf_counter() - began
    finally:
        processes.stop(process)
