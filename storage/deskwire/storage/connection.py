"""The connection protocol shared by both databases, for which queries and changes are written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol


class Rows(Protocol):
    """The result of a statement."""

    @property
    def rowcount(self) -> int:
        """The number of rows changed by the statement."""

    def fetchone(self) -> Any:  # a row is a tuple of the statement's columns
        """Return the next row, None after the last one."""

    def fetchall(self) -> list[Any]:
        """Return the remaining rows."""

    def __iter__(self) -> Iterator[Any]:
        """Yield the remaining rows."""


class Connection(Protocol):
    """Runs SQL that both databases accept; fragments of `dialect` cover the differences."""

    def execute(self, sql: str, values: Sequence[Any] | Mapping[str, Any] = (), /) -> Rows:
        """Run a statement with values for its `?` or `:name` parameters."""

    def executemany(self, sql: str, rows: Iterable[Sequence[Any]], /) -> object:
        """Run a statement once for each row, as values for its `?` parameters."""
