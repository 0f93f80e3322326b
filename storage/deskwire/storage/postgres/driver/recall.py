"""A connection that knows some answers, and says which one it lacks: for queries on Trio's thread, where nobody may wait.

A query is plain and may be run again. So it is run with what is known, what it asks besides is fetched, and it is run
once more.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from deskwire.storage.dialect import POSTGRES
from deskwire.storage.postgres.driver.codec import Result, encoded, formats
from deskwire.storage.postgres.driver.marks import in_order, translated
from deskwire.storage.postgres.driver.wire import Statement

Key = tuple[str, tuple[Any, ...]]
"""A statement as PostgreSQL takes it, and its values in order."""


class Wanted(BaseException):  # no error: it passes by whoever catches those
    """A query has asked for answers that are not known; `keys` says which, in the order in which they are to be fetched."""

    def __init__(self, *keys: Key) -> None:
        super().__init__(keys[0][0])
        self.keys = keys


def key_of(sql: str, values: Sequence[Any] | Mapping[str, Any]) -> Key:
    """Return what an answer is known by."""
    text, names = translated(sql)
    return text, tuple(in_order(names, values))


def single(text: str, values: Sequence[Any]) -> Statement:
    """Return a statement with its values."""
    return Statement(text, [encoded(each) for each in values], formats(values))


class Recall:
    """`connection.Connection` for queries alone. Raises Wanted for what it does not know."""

    dialect: Final = POSTGRES

    def __init__(self) -> None:
        self.known: dict[Key, list[tuple[Any, ...]]] = {}

    def execute(self, sql: str, values: Sequence[Any] | Mapping[str, Any] = (), /) -> Result:
        """See `Connection.execute`."""
        key = key_of(sql, values)
        rows = self.known.get(key)
        if rows is None:
            raise Wanted(key)
        return Result(rows, len(rows))

    def executemany(self, sql: str, rows: Iterable[Sequence[Any]], /) -> None:
        """Refuse: what is only read from changes nothing."""
        raise TypeError("a query changes nothing")
