"""The connection of a batch's jobs: it knows what was fetched, and keeps what is written until the batch is sent.

What a job has written is undo off again at no cost. A job that reads what may have been written in its batch can't be
answered from what was fetched, and is run by itself.

The changes by the jobs of a batch, laid over what is stored for the jobs behind them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, Final, NamedTuple, NoReturn, TypeVar

from deskwire.engine.contacts.contact import Contact
from deskwire.engine.conversations.conversation import Conversation
from deskwire.engine.conversations.ports import Claimed
from deskwire.engine.idempotency.ports import KeptAnswer
from deskwire.storage.dialect import POSTGRES
from deskwire.storage.postgres.commit.batch_statements import BufferedWrite, shape_of
from deskwire.storage.postgres.driver.codec import QueryResult, ordered_values, translate_placeholders
from deskwire.storage.postgres.driver.recorded_reads import MissingRead, ReadKey
from deskwire.storage.tables.conversations.columns import update


class NeedsOwnTransaction(BaseException):  # no error: it passes by whoever catches those
    """A job asks for what only a transaction of its own can answer."""


class UnsentResult:
    """The result of a change that waits: nobody knows yet what it will change."""

    def __init__(self, sure: int | None = None) -> None:
        self._unchanged = sure

    @property
    def rowcount(self) -> int:
        """The number of rows that it surely changes. Raises NeedsAlone if that is not known."""
        if self._unchanged is None:
            raise NeedsOwnTransaction
        return self._unchanged

    def fetchone(self) -> NoReturn:
        """Raise NeedsAlone."""
        raise NeedsOwnTransaction

    def fetchall(self) -> NoReturn:
        """Raise NeedsAlone."""
        raise NeedsOwnTransaction

    def __iter__(self) -> Iterator[Any]:
        """Raise NeedsAlone."""
        raise NeedsOwnTransaction


_NEVER_BLOCKING_TABLES: Final = frozenset({"messages", "kept_answers"})
"""Tables whose new rows never wait, because they refer to no row that another transaction may have locked."""


def never_block(writes: Iterable[BufferedWrite]) -> bool:
    """Return whether these changes wait for no other transaction, so that they can be sent while heads are locked.

    The name of a kept answer is already locked by the job that adds it.
    """
    return all(
        write.text.startswith("INSERT") and write.shape.tables <= _NEVER_BLOCKING_TABLES for write in writes
    )


_UNSENT: Final = UnsentResult()
_ONE_ROW: Final = UnsentResult(1)


class WriteBuffer:
    """`connection.Connection` for the jobs of one batch.

    Args:
        known: what was fetched for them.

    `writes` are the changes that wait, `size` about how many bytes they have.
    """

    dialect: Final = POSTGRES

    def __init__(self, known: Mapping[ReadKey, list[tuple[Any, ...]]]) -> None:
        self.writes: list[BufferedWrite] = []
        self.size = 0
        self._known = known
        self._tables: Counter[str] = Counter()
        self._unchanged = False
        self._one = False

    def execute(
        self, sql: str, values: Sequence[Any] | Mapping[str, Any] = (), /
    ) -> QueryResult | UnsentResult:
        """See `Connection.execute`. Raises Wanted for what is not known, NeedsAlone for what can't be."""
        text, names = translate_placeholders(sql)
        given = ordered_values(names, values)
        shape = shape_of(text)
        if not shape.reads:
            self.writes.append(BufferedWrite(text, given, shape))
            self._tables.update(shape.tables)
            return _ONE_ROW if self._one else _UNSENT
        if not self._unchanged and any(self._tables[table] for table in shape.tables):
            raise NeedsOwnTransaction
        key = text, tuple([tuple(each) if isinstance(each, list) else each for each in given])
        rows = self._known.get(key)
        if rows is None:
            raise MissingRead(key)
        return QueryResult(rows, len(rows))

    def executemany(self, sql: str, rows: Iterable[Sequence[Any]], /) -> None:
        """Have a statement wait for each of the rows."""
        for row in rows:
            self.execute(sql, row)

    @contextmanager
    def reading_unchanged_rows(self) -> Iterator[None]:
        """Allow reads of rows that surely nobody in the batch has written, in tables that somebody has."""
        before, self._unchanged = self._unchanged, True
        try:
            yield
        finally:
            self._unchanged = before

    @contextmanager
    def changing_one_row(self) -> Iterator[None]:
        """Say of the changes within that each surely changes one row."""
        self._one = True
        try:
            yield
        finally:
            self._one = False

    def truncate(self, mark: int) -> None:
        """Forget the changes behind the first `mark` of them."""
        for write in self.writes[mark:]:
            self._tables.subtract(write.shape.tables)
        del self.writes[mark:]


K = TypeVar("K")
V = TypeVar("V")


class SavedConversation(NamedTuple):
    """The state that a batch gives a conversation.

    Args:
        before: the state that is stored, None if the batch has made the conversation.
        state: as it will be.
    """

    before: Conversation | None
    state: Conversation
    claimed: Claimed


class Overlay:
    """The changes that jobs have laid over what is stored, each of which can be taken back.

    `saved` are conversations, `made` the projects of new ones, `contacts` new contacts by project and user id, `kept` answers,
    and `ended` deliveries that wait no more.
    """

    __slots__ = ("_before", "contacts", "ended", "kept", "made", "saved")

    def __init__(self) -> None:
        self.saved: dict[int, SavedConversation] = {}
        self.made: dict[int, int] = {}
        self.contacts: dict[tuple[int, str], Contact] = {}
        self.kept: dict[bytes, KeptAnswer] = {}
        self.ended: dict[int, bool] = {}
        self._before: list[tuple[dict[Any, Any], Any, Any]] = []

    def begin(self) -> None:
        """Keep what there is."""
        self._before.clear()

    def put(self, where: dict[K, V], key: K, value: V) -> None:
        """Lay something over."""
        self._before.append((where, key, where.get(key)))
        where[key] = value

    def existed_before(self, where: dict[K, V], key: K) -> bool:
        """Tell whether there was such an entry at `begin`."""
        for other, known, before in self._before:
            if other is where and known == key:
                return before is not None
        return key in where

    def undo(self) -> None:
        """Take back what was laid over since `begin`."""
        while self._before:
            where, key, value = self._before.pop()
            if value is None:
                del where[key]
            else:
                where[key] = value


def conversation_rows(conversations: Sequence[SavedConversation]) -> dict[str, list[Sequence[Any]]]:
    """Return the rows of the changed conversations, by their statement; each expects the revision that was claimed."""
    found: dict[str, list[Sequence[Any]]] = {}
    for before, state, claimed in conversations:
        assert before is not None
        sql, values = update(before, state, claimed.routed)
        text = _expecting(sql)
        found.setdefault(text, []).append((*values, before.revision))
    return found


@lru_cache(maxsize=16)
def _expecting(sql: str) -> str:
    return translate_placeholders(f"{sql} AND revision = ?")[0]
