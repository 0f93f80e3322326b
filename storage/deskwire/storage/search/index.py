"""The index's writing side: the words of conversations, put in, replaced and taken out, in transactions of its own.

`words` says which words a conversation is found by, so that it is taken out word by word; a word that no conversation has any
more has no row.
"""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from typing import Final, NamedTuple, TypeAlias

from deskwire.engine.search.ports import Position
from deskwire.storage.search.blocks import BITS, SIZE, changed

_BEGINNINGS: Final = (2, 3)
"""The lengths of beginnings that have postings of their own: so short a beginning is that of thousands of words."""

WHOLE: Final = 0
"""The length that postings of whole words are marked with."""

_Place: TypeAlias = tuple[int, int, str, int]
"""The key of a row of postings: project, length, word, block."""


def length_for(asked: str) -> int:
    """Return the mark of the postings that have all conversations with words that begin so."""
    return max(len(asked), _BEGINNINGS[0]) if len(asked) <= _BEGINNINGS[-1] else WHOLE


class _Words(NamedTuple):
    """The words of a conversation: those of its messages, which only grow, and those of its title."""

    body: frozenset[str]
    title: frozenset[str]

    @property
    def all(self) -> frozenset[str]:
        """The words that it is found by."""
        return self.body | self.title


_NONE: Final = _Words(frozenset(), frozenset())


class IndexWrites:
    """A transaction of the index; the methods are those of `engine.search.ports.IndexTransaction`.

    Changes of postings gather until `flush`, as many conversations of a batch share them. `removed` says whether any was taken
    out.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.removed = False
        self._connection = connection
        self._changes: defaultdict[_Place, dict[int, bool]] = defaultdict(dict)

    def add(self, conversation: int, project: int, words: AbstractSet[str]) -> None:
        stored = self._stored(conversation)
        if not words <= stored.body:
            self._put(conversation, project, stored, _Words(stored.body | words, stored.title))

    def set_title(self, conversation: int, project: int, words: AbstractSet[str]) -> None:
        stored = self._stored(conversation)
        if words != stored.title:
            self._put(conversation, project, stored, _Words(stored.body, frozenset(words)))

    def remove(self, conversation: int) -> None:
        row = self._connection.execute(
            "SELECT project FROM words WHERE conversation = ?", (conversation,)
        ).fetchone()
        if row is not None:
            self._put(conversation, row[0], self._stored(conversation), _NONE)
            self._connection.execute("UPDATE state SET scrub_due = 1")
            self.removed = True

    def move_to(self, position: Position, *, complete: bool) -> None:
        self._connection.execute(
            "UPDATE state SET message = ?, message_id = ?, conversation = ?, change = ?, complete = max(complete, ?)",
            (*position, complete),
        )

    def flush(self) -> None:
        """Write what has gathered, in the order of the rows."""
        select = (
            "SELECT conversations FROM postings WHERE project = ? AND length = ? AND word = ? AND block = ?"
        )
        for place in sorted(self._changes):
            row = self._connection.execute(select, place).fetchone()
            numbers = self._changes[place]
            before = b"" if row is None else row[0]
            added = [number for number, there in numbers.items() if there]
            after = changed(before, added, numbers.keys() - added)
            if after != before:
                self._write(place, after)
        self._changes.clear()

    def _write(self, place: _Place, conversations: bytes) -> None:
        if conversations:
            self._connection.execute(
                "INSERT INTO postings VALUES (?, ?, ?, ?, ?) "
                "ON CONFLICT DO UPDATE SET conversations = excluded.conversations",
                (*place, conversations),
            )
        else:
            self._connection.execute(
                "DELETE FROM postings WHERE project = ? AND length = ? AND word = ? AND block = ?", place
            )

    def _stored(self, conversation: int) -> _Words:
        row = self._connection.execute(
            "SELECT body, title FROM words WHERE conversation = ?", (conversation,)
        ).fetchone()
        return _NONE if row is None else _Words(frozenset(_split(row[0])), frozenset(_split(row[1])))

    def _put(self, conversation: int, project: int, before: _Words, after: _Words) -> None:
        if after == _NONE:
            self._connection.execute("DELETE FROM words WHERE conversation = ?", (conversation,))
        else:
            self._connection.execute(
                "INSERT INTO words VALUES (?, ?, ?, ?) "
                "ON CONFLICT DO UPDATE SET body = excluded.body, title = excluded.title",
                (conversation, project, _joined(after.body), _joined(after.title)),
            )
        old, new = before.all, after.all
        self._note(conversation, project, WHOLE, old, new)
        for length in _BEGINNINGS:
            self._note(conversation, project, length, _begun(old, length), _begun(new, length))

    def _note(
        self, conversation: int, project: int, length: int, before: AbstractSet[str], after: AbstractSet[str]
    ) -> None:
        block, number = conversation >> BITS, conversation % SIZE
        for words, there in ((after - before, True), (before - after, False)):
            for word in words:
                self._changes[project, length, word, block][number] = there


def _begun(words: Iterable[str], length: int) -> frozenset[str]:
    """Return the beginnings of so many characters; of the shortest length those of shorter words, too."""
    least = 1 if length == _BEGINNINGS[0] else length
    return frozenset(word[:length] for word in words if len(word) >= least)


def _joined(words: Iterable[str]) -> str:
    """Return words as a row has them; a word has no space in it."""
    return " ".join(sorted(words))


def _split(words: str) -> list[str]:
    return words.split(" ") if words else []
