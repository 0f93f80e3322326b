"""The words of tickets: a search made of what people type, and an index that forgets what was erased.

FTS5 keeps the words of a deleted row until its segments are merged (https://www.sqlite.org/fts5.html, section
6.7). Its own option against that (`secure-delete`) needs SQLite 3.42 and makes a file that older ones
can't read. So after an erasure all segments are merged, some pages between two commits, and what they
have left behind is scrubbed with the rest of the file.
"""

from __future__ import annotations

import sqlite3
import unicodedata
from contextlib import suppress
from typing import Final

_PAGES: Final = 50
"""Of the index, written in one go; some ten milliseconds of the writer's time."""

_IDLE_CHANGES: Final = 2
"""A merge that had nothing to do changes fewer rows than this (fts5.html, section 6.8)."""


def match_of(project: int, text: str) -> str | None:
    """The FTS5 expression for tickets with words that begin like those of `text`, all of them; None for no word.

    Every word is quoted, so nothing in it is syntax. A word of several parts, such as an e-mail address,
    is looked for as they stand together.
    """
    words = [word for word in text.replace("\0", " ").split() if any(map(_counts, word))]
    if not words:
        return None
    quoted = " AND ".join('"' + word.replace('"', '""') + '"*' for word in words)
    return f'project : "{project}" AND {{title description}} : ({quoted})'


def _counts(character: str) -> bool:
    """Whether the tokenizer takes the character for a part of a word (fts5.html, section 4.3.1)."""
    category = unicodedata.category(character)
    return category[0] in "LN" or category == "Co"


class SearchMerge:
    """Merges the index after erasures, a part at a time. To be used by the writer, between transactions."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._begun = False

    def restart(self) -> None:
        """Begin anew: something was erased."""
        self._begun = False

    def step(self) -> bool:
        """Do a part, in a transaction of its own; whether there is nothing left to do.

        The first part of a pass puts all segments there are on one level. Those that come later may be merged
        on the way; they know nothing of what was erased.
        """
        if not self._connection.execute("SELECT merge_due FROM search_upkeep").fetchone()[0]:
            return True
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            done = self._merge()
            self._connection.execute("COMMIT")
        except sqlite3.Error:
            with suppress(sqlite3.Error):
                self._connection.execute("ROLLBACK")
            self._begun = False
            raise
        self._begun = not done
        return done

    def _merge(self) -> bool:
        before = self._connection.total_changes
        pages = _PAGES if self._begun else -_PAGES
        self._connection.execute(
            "INSERT INTO ticket_search (ticket_search, rank) VALUES ('merge', ?)", (pages,)
        )
        if self._connection.total_changes - before >= _IDLE_CHANGES:
            return False
        self._connection.execute("UPDATE search_upkeep SET merge_due = 0")
        return True
