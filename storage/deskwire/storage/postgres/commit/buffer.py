"""The connection of a batch's jobs: it knows what was fetched, and keeps what is written until the batch is sent.

What a job has written is cut off again at no cost. A job that reads what may have been written in its batch can't be
answered from what was fetched, and is run by itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, NamedTuple, NoReturn

from deskwire.storage.dialect import POSTGRES
from deskwire.storage.postgres.commit.merging import Shape, shape_of
from deskwire.storage.postgres.driver.codec import Result
from deskwire.storage.postgres.driver.marks import in_order, translated
from deskwire.storage.postgres.driver.recall import Key, Wanted


class NeedsAlone(BaseException):  # no error: it passes by whoever catches those
    """A job asks for what only a transaction of its own can answer."""


class Write(NamedTuple):
    """A change that waits: the statement as PostgreSQL takes it, with its values in order."""

    text: str
    values: Sequence[Any]
    shape: Shape


class Unsent:
    """The result of a change that waits: nobody knows yet what it will change."""

    def __init__(self, sure: int | None = None) -> None:
        self._sure = sure

    @property
    def rowcount(self) -> int:
        """The number of rows that it surely changes. Raises NeedsAlone if that is not known."""
        if self._sure is None:
            raise NeedsAlone
        return self._sure

    def fetchone(self) -> NoReturn:
        """Raise NeedsAlone."""
        raise NeedsAlone

    def fetchall(self) -> NoReturn:
        """Raise NeedsAlone."""
        raise NeedsAlone

    def __iter__(self) -> Iterator[Any]:
        """Raise NeedsAlone."""
        raise NeedsAlone


_NEW_ALONE: Final = frozenset({"messages", "kept_answers"})
"""Tables whose new rows never wait, because they refer to no row that another transaction may have locked."""


def never_wait(writes: Iterable[Write]) -> bool:
    """Return whether these changes wait for no other transaction, so that they can be sent while heads are locked.

    The name of a kept answer is already locked by the job that adds it.
    """
    return all(write.text.startswith("INSERT") and write.shape.tables <= _NEW_ALONE for write in writes)


_UNSENT: Final = Unsent()
_ONE: Final = Unsent(1)


class Buffer:
    """`connection.Connection` for the jobs of one batch.

    Args:
        known: what was fetched for them.

    `writes` are the changes that wait, `size` about how many bytes they have.
    """

    dialect: Final = POSTGRES

    def __init__(self, known: Mapping[Key, list[tuple[Any, ...]]]) -> None:
        self.writes: list[Write] = []
        self.size = 0
        self._known = known
        self._tables: Counter[str] = Counter()
        self._sure = False
        self._one = False

    def execute(self, sql: str, values: Sequence[Any] | Mapping[str, Any] = (), /) -> Result | Unsent:
        """See `Connection.execute`. Raises Wanted for what is not known, NeedsAlone for what can't be."""
        text, names = translated(sql)
        given = in_order(names, values)
        shape = shape_of(text)
        if not shape.reads:
            self.writes.append(Write(text, given, shape))
            self._tables.update(shape.tables)
            return _ONE if self._one else _UNSENT
        if not self._sure and any(self._tables[table] for table in shape.tables):
            raise NeedsAlone
        key = text, tuple([tuple(each) if isinstance(each, list) else each for each in given])
        rows = self._known.get(key)
        if rows is None:
            raise Wanted(key)
        return Result(rows, len(rows))

    def executemany(self, sql: str, rows: Iterable[Sequence[Any]], /) -> None:
        """Have a statement wait for each of the rows."""
        for row in rows:
            self.execute(sql, row)

    @contextmanager
    def untouched(self) -> Iterator[None]:
        """Allow reads of rows that surely nobody in the batch has written, in tables that somebody has."""
        before, self._sure = self._sure, True
        try:
            yield
        finally:
            self._sure = before

    @contextmanager
    def one_row(self) -> Iterator[None]:
        """Say of the changes within that each surely changes one row."""
        self._one = True
        try:
            yield
        finally:
            self._one = False

    def cut(self, mark: int) -> None:
        """Forget the changes behind the first `mark` of them."""
        for write in self.writes[mark:]:
            self._tables.subtract(write.shape.tables)
        del self.writes[mark:]
