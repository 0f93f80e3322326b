"""The database connection that the tables' queries and changes are written for, whichever database it is of."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol


class Rows(Protocol):
    """The result of a statement."""

    @property
    def rowcount(self) -> int:
        """The number of rows that the statement has changed."""

    def fetchone(self) -> Any:  # a row is a tuple of what the statement names
        """Return the next row, None behind the last one."""

    def fetchall(self) -> list[Any]:
        """Return the rest of the rows."""

    def __iter__(self) -> Iterator[Any]:
        """Yield the rest of the rows."""


class Connection(Protocol):
    """Runs statements of the SQL that both databases take; what differs is a fragment of `dialect`."""

    def execute(self, sql: str, values: Sequence[Any] | Mapping[str, Any] = (), /) -> Rows:
        """Run a statement with values for its `?`, or for its `:names`."""

    def executemany(self, sql: str, rows: Iterable[Sequence[Any]], /) -> object:
        """Run a statement once for each of the rows, with that for its `?`."""
