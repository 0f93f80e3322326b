"""Ticket search by SQLite's FTS5, and the removal of erased words from its index.

FTS5 retains the words of a deleted row until its segments are merged (https://www.sqlite.org/fts5.html, section 6.7).
Its option `secure-delete` needs SQLite 3.42 and makes a file that older versions can't read. Therefore all segments are
merged after an erasure, a few pages between commits, and the freed pages are scrubbed with the rest of the file.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import suppress
from typing import Final

from deskwire.engine.tickets.ticket import Ticket
from deskwire.storage.search.tickets import words_of_search
from deskwire.storage.tables.tickets.lists import TicketListReads, WordAccessPath
from deskwire.storage.tables.tickets.tickets import TicketWrites

_PAGES: Final = 50
"""Pages of the index written by one step, about ten milliseconds of the writer's time."""

_IDLE_CHANGES: Final = 2
"""A merge without work changes fewer rows than this (fts5.html, section 6.8)."""

_STRUCTURE: Final = 10
"""The row of an index that lists its segments (fts5_index.c, structure record)."""

_COOKIE_BYTES: Final = 4


def match_of(project: int, text: str) -> str | None:
    """Return the FTS5 expression for tickets that have all prefixes in `text`; None without a word.

    Every word is quoted, so it can't contain syntax. A word of several tokens, such as an e-mail address, is searched as
    a phrase.
    """
    words = words_of_search(text)
    if not words:
        return None
    quoted = " AND ".join('"' + word.replace('"', '""') + '"*' for word in words)
    return f'project : "{project}" AND {{title description}} : ({quoted})'


class TicketWords(TicketListReads):
    """The access path to tickets by the FTS5 index."""

    def ticket_words(self, project: int, text: str) -> WordAccessPath | None:
        match = match_of(project, text)
        if match is None:
            return None
        source = "ticket_search s CROSS JOIN tickets t ON t.rowid = s.rowid"
        return WordAccessPath(source, "s.rowid", ("s.ticket_search MATCH ?", (match,)))


class TicketErasure(TicketWrites):
    """Erasure of tickets, including their words in the FTS5 index."""

    def erase_ticket_rows(self, ticket: Ticket) -> None:
        self.conn.execute("UPDATE search_upkeep SET merge_due = 1")
        super().erase_ticket_rows(ticket)


class SearchMerge:
    """Merges the index after erasures, in steps. Used by the writer, between transactions."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._begun = False
        self._inputs: frozenset[int] = frozenset()

    def restart(self) -> None:
        """Start a new pass after an erasure."""
        self._begun = False

    def step(self, *, last: bool = True) -> bool:
        """Do one step in a transaction of its own; return whether the pass is complete.

        The first step of a pass moves all existing segments to one level, and the pass is complete when they are merged.
        Newer segments may be merged as well, but the pass does not wait for them: they contain no erased words, and it
        would never end while tickets change.

        Args:
            last: whether nothing was erased since the pass started; otherwise another pass remains due.
        """
        if not self._connection.execute("SELECT merge_due FROM search_upkeep").fetchone()[0]:
            return True
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            done = self._merge(last=last)
            self._connection.execute("COMMIT")
        except sqlite3.Error:
            with suppress(sqlite3.Error):
                self._connection.execute("ROLLBACK")
            self._begun = False
            raise
        self._begun = not done
        return done

    def _merge(self, *, last: bool) -> bool:
        before = self._connection.total_changes
        pages = _PAGES if self._begun else -_PAGES
        self._connection.execute(
            "INSERT INTO ticket_search (ticket_search, rank) VALUES ('merge', ?)", (pages,)
        )
        inputs = under_merge(self._structure())
        self._inputs = self._inputs & inputs if self._begun else inputs
        if self._connection.total_changes - before >= _IDLE_CHANGES and self._inputs:
            return False
        if last:
            self._connection.execute("UPDATE search_upkeep SET merge_due = 0")
        return True

    def _structure(self) -> bytes:
        sql = "SELECT block FROM ticket_search_data WHERE id = ?"
        block: bytes = self._connection.execute(sql, (_STRUCTURE,)).fetchone()[0]
        return block


def under_merge(structure: bytes) -> frozenset[int]:
    """Return the ids of the segments that are being merged; FTS5 retains all of them until the merge ends.

    Args:
        structure: the structure record: a cookie, then varints: levels, segments, writes; for each level the number of
            segments being merged, the number of segments, and for each segment its id, first and last page.
    """
    numbers = _varints(structure[_COOKIE_BYTES:])
    levels, _segments, _writes = next(numbers), next(numbers), next(numbers)
    found: list[int] = []
    for _ in range(levels):
        merging, count = next(numbers), next(numbers)
        ids = [(next(numbers), next(numbers), next(numbers))[0] for _ in range(count)]
        found += ids[:merging]
    return frozenset(found)


def _varints(data: bytes) -> Iterator[int]:
    """Yield SQLite's varints (fileformat2.html, section 1.6), of which none in the record takes nine bytes."""
    value = 0
    for byte in data:
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            yield value
            value = 0
