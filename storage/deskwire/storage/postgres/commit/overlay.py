"""The uncommitted state of a batch: buffered writes, and an overlay of changed rows.

The changes of a single job can be undone without a statement to the server. A job that reads rows which its
batch may have changed can't be answered from the fetched rows, and needs a transaction of its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, Final, NamedTuple, NoReturn, TypeVar

from deskwire.engine.contacts.contact import Contact
from deskwire.engine.conversations.conversation import Conversation, Message
from deskwire.engine.conversations.ports import Claimed
from deskwire.engine.idempotency.idempotent_requests import StoredResponse
from deskwire.storage.dialect import POSTGRES
from deskwire.storage.postgres.commit.batch_statements import BufferedWrite, shape_of
from deskwire.storage.postgres.driver.codec import QueryResult, ordered_values, translate_placeholders
from deskwire.storage.postgres.driver.recorded_reads import MissingRead, ReadKey
from deskwire.storage.tables.conversations.columns import update


class NeedsOwnTransaction(BaseException):  # not an Exception: a job's `except Exception` must not catch it
    """Raised when a job needs the result of a real transaction."""


class UnsentResult:
    """The result of a change that was not sent yet."""

    def __init__(self, rowcount: int | None = None) -> None:
        self._rowcount = rowcount

    @property
    def rowcount(self) -> int:
        """The number of rows that will change. Raises NeedsOwnTransaction if it is unknown."""
        if self._rowcount is None:
            raise NeedsOwnTransaction
        return self._rowcount

    def fetchone(self) -> NoReturn:
        """Raise NeedsOwnTransaction."""
        raise NeedsOwnTransaction

    def fetchall(self) -> NoReturn:
        """Raise NeedsOwnTransaction."""
        raise NeedsOwnTransaction

    def __iter__(self) -> Iterator[Any]:
        """Raise NeedsOwnTransaction."""
        raise NeedsOwnTransaction


# Inserts into these tables never block, because their rows refer to no row that another transaction can lock.
_NEVER_BLOCKING_TABLES: Final = frozenset({"messages", "kept_answers"})


def never_block(writes: Iterable[BufferedWrite]) -> bool:
    """Return whether these changes never wait for another transaction.

    Such changes can be sent while heads are locked. The job that adds a kept answer already holds the lock of
    its name.
    """
    return all(
        write.text.startswith("INSERT") and write.shape.tables <= _NEVER_BLOCKING_TABLES for write in writes
    )


_UNSENT: Final = UnsentResult()
_ONE_ROW: Final = UnsentResult(1)


class WriteBuffer:
    """`connection.Connection` that buffers the writes of a batch.

    Reads are answered from fetched rows.

    Args:
        known: the fetched rows.

    `writes` are the buffered changes, and `size` is their approximate size in bytes.
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
        """See `Connection.execute`.

        Raises MissingRead for rows that were not fetched, and NeedsOwnTransaction for rows that the batch may
        have changed.
        """
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
        """Buffer a statement once for each of the rows."""
        for row in rows:
            self.execute(sql, row)

    @contextmanager
    def reading_unchanged_rows(self) -> Iterator[None]:
        """Allow reads of unchanged rows in tables that the batch has changed."""
        before, self._unchanged = self._unchanged, True
        try:
            yield
        finally:
            self._unchanged = before

    @contextmanager
    def changing_one_row(self) -> Iterator[None]:
        """Declare that each change within the context changes exactly one row."""
        self._one = True
        try:
            yield
        finally:
            self._one = False

    def truncate(self, mark: int) -> None:
        """Discard all changes after the first `mark` ones."""
        for write in self.writes[mark:]:
            self._tables.subtract(write.shape.tables)
        del self.writes[mark:]


K = TypeVar("K")
V = TypeVar("V")


class SavedConversation(NamedTuple):
    """A conversation with the state that the batch gives it.

    Args:
        before: the stored state; None if the batch created the conversation.
        state: the new state.
    """

    before: Conversation | None
    state: Conversation
    claimed: Claimed


class Overlay:
    """The changes of a batch's jobs on top of the stored state.

    The changes of the current job can be undone. `saved` has conversations, `made` the projects of new ones,
    `contacts` new contacts by project and user id, `kept` the kept answers by name, `ended` the positions of
    deliveries that are no longer pending, `client_messages` new messages by conversation and client id, and
    `client_conversations` the ids of new conversations by contact and client id.
    """

    __slots__ = (
        "_before",
        "client_conversations",
        "client_messages",
        "contacts",
        "ended",
        "kept",
        "made",
        "saved",
    )

    def __init__(self) -> None:
        self.saved: dict[int, SavedConversation] = {}
        self.made: dict[int, int] = {}
        self.contacts: dict[tuple[int, str], Contact] = {}
        self.kept: dict[bytes, StoredResponse] = {}
        self.ended: dict[int, bool] = {}
        self.client_messages: dict[tuple[int, str], Message] = {}
        self.client_conversations: dict[tuple[int, str], str] = {}
        self._before: list[tuple[dict[Any, Any], Any, Any]] = []

    def begin(self) -> None:
        """Start a new job; the changes so far stay."""
        self._before.clear()

    def put(self, where: dict[K, V], key: K, value: V) -> None:
        """Set an entry."""
        self._before.append((where, key, where.get(key)))
        where[key] = value

    def existed_before(self, where: dict[K, V], key: K) -> bool:
        """Return whether there was such an entry at the last `begin`."""
        for other, known, before in self._before:
            if other is where and known == key:
                return before is not None
        return key in where

    def undo(self) -> None:
        """Undo all changes since the last `begin`."""
        while self._before:
            where, key, value = self._before.pop()
            if value is None:
                del where[key]
            else:
                where[key] = value


def conversation_rows(conversations: Sequence[SavedConversation]) -> dict[str, list[Sequence[Any]]]:
    """Return the rows of changed conversations, by statement.

    Each row expects the revision that was claimed.
    """
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
