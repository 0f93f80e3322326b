"""The index's writing side: the words of documents, put in, replaced and taken out, in transactions of its own.

`documents` says which words a document is found by, so that it is taken out word by word, and a word that nothing has any
more has no row.
"""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from typing import Final, NamedTuple, TypeAlias

from deskwire.engine.search.ports import Document, Kind, Position
from deskwire.storage.search.blocks import BITS, SIZE, changed

_BEGINNINGS: Final = (2, 3)
"""The lengths of beginnings that have documents of their own: so short a beginning is that of thousands of words."""

_KINDS: Final[dict[Kind, int]] = {"conversation": 0, "contact": 1}
_SHAPES: Final = 1 + len(_BEGINNINGS)


def marked(kind: Kind, length: int | None = None) -> int:
    """Return what the postings of a kind of document are marked with: those of words, or of beginnings of a length."""
    return _KINDS[kind] * _SHAPES + (0 if length is None else 1 + _BEGINNINGS.index(length))


def marked_for(kind: Kind, asked: str) -> int:
    """Return the mark of the postings that have all documents with words that begin so."""
    return marked(kind, max(len(asked), _BEGINNINGS[0]) if len(asked) <= _BEGINNINGS[-1] else None)


_Place: TypeAlias = tuple[int, int, str, int]
"""The key of a row of postings: project, kind, word, block."""


class _Words(NamedTuple):
    """The words of a document; `body` only grows, `head` is replaced."""

    body: frozenset[str]
    head: frozenset[str]

    @property
    def all(self) -> frozenset[str]:
        """The words that it is found by."""
        return self.body | self.head


_NONE: Final = _Words(frozenset(), frozenset())


class IndexWrites:
    """A transaction of the index; the methods are those of `engine.search.ports.IndexTransaction`.

    Changes of postings gather until `flush`, as many documents of a batch share them. `removed` says whether any was taken out.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.removed = False
        self._connection = connection
        self._changes: defaultdict[_Place, dict[int, bool]] = defaultdict(dict)

    def add(self, document: Document, project: int, words: AbstractSet[str]) -> None:
        stored = self._stored(document)
        if not words <= stored.body:
            self._put(document, project, stored, _Words(stored.body | words, stored.head))

    def set_head(self, document: Document, project: int, words: AbstractSet[str]) -> None:
        stored = self._stored(document)
        if words != stored.head:
            self._put(document, project, stored, _Words(stored.body, frozenset(words)))

    def remove(self, document: Document) -> None:
        row = self._connection.execute(
            "SELECT project FROM documents WHERE key = ?", (_key(document),)
        ).fetchone()
        if row is not None:
            self._put(document, row[0], self._stored(document), _NONE)
            self._connection.execute("UPDATE state SET scrub_due = 1")
            self.removed = True

    def move_to(self, position: Position, *, complete: bool) -> None:
        self._connection.execute(
            "UPDATE state SET message = ?, message_id = ?, conversation = ?, contact = ?, change = ?, "
            "complete = max(complete, ?)",
            (*position, complete),
        )

    def flush(self) -> None:
        """Write what has gathered, in the order of the rows."""
        select = "SELECT documents FROM postings WHERE project = ? AND kind = ? AND word = ? AND block = ?"
        for place in sorted(self._changes):
            row = self._connection.execute(select, place).fetchone()
            numbers = self._changes[place]
            before = b"" if row is None else row[0]
            added = [number for number, there in numbers.items() if there]
            after = changed(before, added, numbers.keys() - added)
            if after != before:
                self._write(place, after)
        self._changes.clear()

    def _write(self, place: _Place, documents: bytes) -> None:
        if documents:
            self._connection.execute(
                "INSERT INTO postings VALUES (?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET documents = excluded.documents",
                (*place, documents),
            )
        else:
            self._connection.execute(
                "DELETE FROM postings WHERE project = ? AND kind = ? AND word = ? AND block = ?", place
            )

    def _stored(self, document: Document) -> _Words:
        row = self._connection.execute(
            "SELECT body, head FROM documents WHERE key = ?", (_key(document),)
        ).fetchone()
        return _NONE if row is None else _Words(frozenset(row[0].split()), frozenset(row[1].split()))

    def _put(self, document: Document, project: int, before: _Words, after: _Words) -> None:
        key = _key(document)
        if after == _NONE:
            self._connection.execute("DELETE FROM documents WHERE key = ?", (key,))
        else:
            self._connection.execute(
                "INSERT INTO documents VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET body = excluded.body, head = excluded.head",
                (key, project, " ".join(sorted(after.body)), " ".join(sorted(after.head))),
            )
        old, new = before.all, after.all
        self._note(document, project, marked(document.kind), old, new)
        for length in _BEGINNINGS:
            self._note(
                document, project, marked(document.kind, length), _begun(old, length), _begun(new, length)
            )

    def _note(
        self, document: Document, project: int, kind: int, before: AbstractSet[str], after: AbstractSet[str]
    ) -> None:
        block, number = document.row >> BITS, document.row % SIZE
        for words, there in ((after - before, True), (before - after, False)):
            for word in words:
                self._changes[project, kind, word, block][number] = there


def _begun(words: Iterable[str], length: int) -> frozenset[str]:
    """Return the beginnings of so many characters; of the shortest length those of shorter words, too."""
    least = 1 if length == _BEGINNINGS[0] else length
    return frozenset(word[:length] for word in words if len(word) >= least)


def _key(document: Document) -> int:
    return document.row * len(_KINDS) + _KINDS[document.kind]
