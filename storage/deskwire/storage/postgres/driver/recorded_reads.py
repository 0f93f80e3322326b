"""A connection that knows some answers, and says which one it lacks: for queries on Trio's thread, where nobody may wait.

A query is plain and may be run again. So it is run with what is known, what it asks besides is fetched, and it is run
once more.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from deskwire.storage.dialect import POSTGRES
from deskwire.storage.postgres.driver.codec import (
    QueryResult,
    ordered_values,
    translate_placeholders,
)

ReadKey = tuple[str, tuple[Any, ...]]
"""A statement as PostgreSQL takes it, and its values in order."""


class MissingRead(BaseException):  # no error: it passes by whoever catches those
    """A query has asked for answers that are not known; `keys` says which, in the order in which they are to be fetched."""

    def __init__(self, *keys: ReadKey) -> None:
        super().__init__(keys[0][0])
        self.keys = keys


def read_key(sql: str, values: Sequence[Any] | Mapping[str, Any]) -> ReadKey:
    """Return what an answer is known by."""
    text, names = translate_placeholders(sql)
    return text, tuple(ordered_values(names, values))


class RecordedReads:
    """`connection.Connection` for queries alone. Raises Wanted for what it does not know."""

    dialect: Final = POSTGRES

    def __init__(self) -> None:
        self.known: dict[ReadKey, list[tuple[Any, ...]]] = {}

    def execute(self, sql: str, values: Sequence[Any] | Mapping[str, Any] = (), /) -> QueryResult:
        """See `Connection.execute`."""
        key = read_key(sql, values)
        rows = self.known.get(key)
        if rows is None:
            raise MissingRead(key)
        return QueryResult(rows, len(rows))

    def executemany(self, sql: str, rows: Iterable[Sequence[Any]], /) -> None:
        """Refuse: what is only read from changes nothing."""
        raise TypeError("a query changes nothing")
