"""Checks the search index: its file, and that it has no words of deleted conversations.

Missing entries are no fault, because the server adds them while it runs, and rebuilds a missing index.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from deskwire.storage.check.rules import SHOWN, Problem
from deskwire.storage.sqlite.backup.snapshot import damage, opened
from deskwire.storage.sqlite.search.file import FILE_NAME, VERSION


def index_problems(directory: Path, database: sqlite3.Connection) -> Iterator[Problem]:
    """Yield the faults of the index of a data directory; none if it is missing, or will be rebuilt by the next start."""
    path = directory / FILE_NAME
    if not path.exists():
        return
    try:
        with closing(opened(path, writing=False)) as index:
            if found := damage(index):
                yield from (_damaged(each) for each in found)
                return
            state = index.execute("SELECT version FROM state").fetchone()
            if state is not None and state[0] == VERSION:
                yield from _strays(index, database)
    except sqlite3.DatabaseError as error:
        yield _damaged(str(error))


def _damaged(what: str) -> Problem:
    advice = f"Stop the server and remove {FILE_NAME}: the next start rebuilds it."
    return Problem("search_index_damaged", f"The search index is damaged: {what}. {advice}")


def _strays(index: sqlite3.Connection, database: sqlite3.Connection) -> Iterator[Problem]:
    """Yield deleted conversations that are still in the index although no pending change will remove them."""
    indexed = [row for (row,) in index.execute("SELECT conversation FROM words").fetchall()]
    known = {row for (row,) in database.execute("SELECT rowid FROM conversations")}
    pending = {row for (row,) in database.execute("SELECT conversation FROM search_changes")}
    strays = (
        row for row in indexed if row not in known and row not in pending and _is_still_there(index, row)
    )
    for row, _ in zip(strays, range(SHOWN), strict=False):
        yield Problem(
            "search_index_stray",
            f"The search index has words of a deleted conversation (row {row}). "
            f"Stop the server and remove {FILE_NAME}: the next start rebuilds it.",
        )


def _is_still_there(index: sqlite3.Connection, row: int) -> bool:
    """Check again, because a running server may have removed the row in the meantime."""
    return index.execute("SELECT 1 FROM words WHERE conversation = ?", (row,)).fetchone() is not None
