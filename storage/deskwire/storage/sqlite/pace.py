"""The choice where a COMMIT is made: in a thread, or on Trio's thread where that costs less and holds up nobody (ADR 4)."""

from __future__ import annotations

import sqlite3
from typing import Final

QUICK_S: Final = 0.000_5
"""The most that a COMMIT may take on average, and hold up Trio's thread; the way into a thread and back costs a third of that."""

_SHARE: Final = 1 / 8
"""The share that the newest commit has in the average."""

HERE_IN_A_ROW: Final = 64
"""Commits on Trio's thread, after which one is made in a thread: a COMMIT there also folds the log into the file."""

_LOG_PAGES: Final = 1_000
"""Pages in the log from which on a COMMIT in a thread folds it into the file (SQLite's default)."""


class Pace:
    """Says of each commit where to make it, from how long those before it took."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._average_s = 2 * QUICK_S
        self._here = 0
        self._folds = True

    def may_block(self, *, alone: bool) -> bool:
        """Tell whether the next commit may be made on Trio's thread, and see to it that it folds no log there.

        Args:
            alone: whether nobody else waits for a commit.
        """
        here = alone and self._average_s <= QUICK_S and self._here < HERE_IN_A_ROW
        self._here = self._here + 1 if here else 0
        if here is self._folds:
            self._connection.execute(f"PRAGMA wal_autocheckpoint = {0 if here else _LOG_PAGES}").fetchall()
            self._folds = not here
        return here

    def took(self, seconds: float) -> None:
        """Note how long a commit has taken."""
        self._average_s += (seconds - self._average_s) * _SHARE
