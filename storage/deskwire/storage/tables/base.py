"""Base classes of groups of queries and changes: a connection and its dialect."""

from __future__ import annotations

from abc import ABC
from collections.abc import Mapping, Sequence
from typing import Any, Final

from deskwire.storage.connection import Connection
from deskwire.storage.dialect import Dialect

IN_ORGANISATION: Final = " AND project IN (SELECT p.rowid FROM projects p WHERE p.organisation = ?)"
"""The condition of rows of an organisation's projects."""


class Queries(ABC):
    """A group of queries on one connection."""

    conn: Connection
    dialect: Dialect


class Changes(Queries):
    """A group of changes on one connection, within a transaction of the caller."""

    scrub_wanted: bool = False

    def want_scrub(self) -> None:
        """Schedule the bytes of deleted rows to be overwritten after the commit."""
        self.conn.execute("UPDATE event_window SET scrub_due = 1")
        self.scrub_wanted = True

    def inserted(self, sql: str, values: Sequence[Any] | Mapping[str, Any]) -> int:
        """Insert a row and return its key."""
        rowid: int = self.conn.execute(f"{sql} RETURNING rowid", values).fetchone()[0]
        return rowid
