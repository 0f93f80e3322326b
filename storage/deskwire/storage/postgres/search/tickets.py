"""The words of tickets as SQLite's FTS5 splits them.

So both databases find the same tickets. FTS5's own tokenizer is used, in a database in memory. `ticket_words`
has a ticket's words in their order, for phrases such as addresses; the index has each word separately.
"""

from __future__ import annotations

import atexit
import sqlite3
import threading
from collections.abc import Sequence
from typing import Final

from deskwire.engine.core.folding import fold
from deskwire.engine.tickets.ticket import Ticket
from deskwire.storage.search.tickets import words_of_search
from deskwire.storage.tables.tickets.lists import TicketListReads, WordAccessPath
from deskwire.storage.tables.tickets.tickets import TicketWrites

# Indexed characters of a word, because PostgreSQL accepts at most 2,046 bytes.
INDEXED_CHARS_MAX: Final = 200

WRITE_TICKET_WORDS: Final = (
    "INSERT INTO ticket_words (rowid, words, lexemes) VALUES (?, ?, CAST(? AS tsvector)) "
    "ON CONFLICT (rowid) DO UPDATE SET words = excluded.words, lexemes = excluded.lexemes"
)
_SOURCE: Final = "ticket_words s JOIN tickets t ON t.rowid = s.rowid"


class _Tokenizer:
    """FTS5's tokenizer for one thread at a time; its database is created at the first use."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None

    def __call__(self, text: str) -> list[str]:
        """Return the words of a text in their order."""
        with self._lock:
            if self._connection is None:
                self._connection = _opened()
            self._connection.execute("INSERT INTO cut VALUES (?)", (text.encode(errors="replace").decode(),))
            tokens = self._connection.execute("SELECT term FROM tokens ORDER BY offset").fetchall()
            self._connection.execute("DELETE FROM cut")
            return [token for (token,) in tokens]


def _opened() -> sqlite3.Connection:
    connection = sqlite3.Connection(":memory:", isolation_level=None, check_same_thread=False)
    atexit.register(connection.close)
    connection.execute(
        "CREATE VIRTUAL TABLE cut USING fts5 (text, tokenize = 'unicode61 remove_diacritics 2')"
    )
    connection.execute("CREATE VIRTUAL TABLE tokens USING fts5vocab (cut, instance)")
    return connection


_tokens: Final = _Tokenizer()


class PostgresTicketReads(TicketListReads):
    """`TicketListReads` that searches in `ticket_words`."""

    def ticket_words(self, project: int, text: str) -> WordAccessPath | None:
        phrases = [tokens for tokens in map(_tokens, words_of_search(text)) if tokens]
        if not phrases:
            return None
        lexemes = [
            _lexeme(_project_token(project)),
            *(_lexeme(token) for tokens in phrases for token in tokens[:-1]),
        ]
        lexemes += [f"{_lexeme(tokens[-1])}:*" for tokens in phrases]
        # A single short word is already matched by the index.
        phrases_in_order = [
            f" {' '.join(tokens)}"
            for tokens in phrases
            if len(tokens) > 1 or len(tokens[0]) > INDEXED_CHARS_MAX
        ]
        term = " AND ".join(
            ["s.lexemes @@ CAST(? AS tsquery)", *["strpos(s.words, ?) > 0"] * len(phrases_in_order)]
        )
        return WordAccessPath(_SOURCE, "s.rowid", (term, (" & ".join(lexemes), *phrases_in_order)))


class PostgresTicketWrites(TicketWrites):
    """`TicketWrites` that also indexes the words of tickets."""

    def insert_ticket(self, ticket: Ticket) -> Ticket:
        stored = super().insert_ticket(ticket)
        self.conn.execute(WRITE_TICKET_WORDS, words_row(stored))
        return stored

    def save_ticket(self, before: Ticket, after: Ticket) -> None:
        super().save_ticket(before, after)
        if (before.title, before.description) != (after.title, after.description):
            self.conn.execute(WRITE_TICKET_WORDS, words_row(after))


def words_row(ticket: Ticket) -> tuple[int, str, str]:
    """Return the row of `ticket_words` for a stored ticket."""
    return words_of(ticket.rowid, ticket.project, ticket.title, ticket.description)


def words_of(rowid: int, project: int, title: str, description: str | None) -> tuple[int, str, str]:
    """Return the row of `ticket_words` for a ticket with this key and these texts."""
    columns = [_tokens(fold(title)), _tokens(fold(description or ""))]
    lexemes = {token[:INDEXED_CHARS_MAX] for tokens in columns for token in tokens} | {
        _project_token(project)
    }
    return rowid, _word_lines(columns), " ".join(map(_lexeme, sorted(lexemes)))


def _word_lines(columns: Sequence[Sequence[str]]) -> str:
    """Return one line for each column, in which a space is before each word."""
    return "\n".join("".join(f" {token}" for token in tokens) for tokens in columns)


def _project_token(project: int) -> str:
    """Return the index term of a project; no word contains its sign."""
    return f"@{project}"


def _lexeme(word: str) -> str:
    """Return a word as `tsvector` and `tsquery` read it."""
    return "'" + word[:INDEXED_CHARS_MAX].replace("\\", "\\\\").replace("'", "''") + "'"
