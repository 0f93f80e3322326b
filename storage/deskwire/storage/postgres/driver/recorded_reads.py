"""A connection that replays recorded results, for queries on Trio's thread.

A query has no side effects and can be run again. So it runs on the recorded results; the first missing result
is fetched and recorded, and the query runs again.
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

ReadKey = tuple[str, tuple[Any, ...]]  # A statement in PostgreSQL's form, and its values in order.


class MissingRead(BaseException):  # not an Exception, so that `except Exception` in a query does not catch it
    """Raised for results that were not recorded; `keys` are the reads in the order to fetch."""

    def __init__(self, *keys: ReadKey) -> None:
        super().__init__(keys[0][0])
        self.keys = keys


def read_key(sql: str, values: Sequence[Any] | Mapping[str, Any]) -> ReadKey:
    """Return the key under which a result is recorded."""
    text, names = translate_placeholders(sql)
    return text, tuple(ordered_values(names, values))


class RecordedReads:
    """`connection.Connection` that replays recorded results; others raise MissingRead."""

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
        """Raise TypeError, because a query changes nothing."""
        raise TypeError("a query changes nothing")
