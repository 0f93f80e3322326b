"""Databases that are filled once in a run and used by several benchmarks."""

from __future__ import annotations

import json
import shutil
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from benchmarks.filling import fill_directory

_EACH: Final = 50
"""Messages of a conversation."""
_SMALL: Final = 100_000
"""Up to this size each benchmark gets a copy; a larger database is shared, because a benchmark's additions are negligible."""
_FILE: Final = "deskwire.sqlite3"
_NOTE: Final = "filled.json"


@dataclass(frozen=True, slots=True)
class Stored:
    """A directory with `messages` messages; `took_s` is how long filling took."""

    directory: Path
    messages: int
    ids: list[str]
    took_s: float

    @property
    def size_mb(self) -> float:
        """The size of the database, in MB (10^6 bytes)."""
        return (self.directory / _FILE).stat().st_size / 1e6


def stored(directory: Path, messages: int, user: str) -> Stored:
    """Return such a database for one benchmark, `user`; it is filled in this run's `directory` unless it is there already."""
    pristine = directory / f"stored-{messages}"
    note = directory / f"stored-{messages}-{_NOTE}"
    if not note.exists():
        shutil.rmtree(pristine, ignore_errors=True)  # left over from an interrupted filling
        began = time.perf_counter()
        ids = fill_directory(pristine, max(1, messages // _EACH), messages)
        made = Stored(pristine, messages, ids, time.perf_counter() - began)
        note.write_text(json.dumps({**asdict(made), "directory": str(pristine)}))
    found = json.loads(note.read_text())
    if messages <= _SMALL:
        own = directory / f"stored-{messages}-{user}"
        shutil.copytree(pristine, own)
        return Stored(own, messages, found["ids"], found["took_s"])
    return Stored(pristine, messages, found["ids"], found["took_s"])
