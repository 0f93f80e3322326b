"""Brings what older databases have in other forms into that of `core.folding`: unique names, and the words of contacts and tickets.

Both databases do it in a migration, in one pass over each table. A contact or ticket in ASCII keeps its words, so that the pass
writes little more than a row for each contact with an e-mail address: a million of them take about half a minute.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import structlog

from deskwire.engine.contacts.words import address_word, words_of
from deskwire.engine.core.folding import double_of, fold_name

Execute = Callable[..., Sequence[Sequence[Any]]]
"""Runs a statement with values for its `?`, and returns its rows."""

log: Final = structlog.get_logger(__name__)

_BATCH_SIZE: Final = 2_000  # rows that are in memory at a time


def refold(execute: Execute, reindex_ticket: Callable[[Sequence[Any]], None]) -> None:
    """Fold the names and words of a database, and make names unique.

    Args:
        reindex_ticket: is given the key, project, title and description of each ticket that is not in ASCII.
    """
    _fold_names(execute, "users", "email", "0")
    _fold_names(execute, "teams", "name", "project")
    execute("CREATE UNIQUE INDEX users_by_folded ON users (folded)")
    execute("CREATE UNIQUE INDEX teams_by_folded ON teams (project, folded) WHERE deleted_at IS NULL")
    for contact in _rows(execute, "contacts", "rowid, project, user_id, name, email, phone", "erasing < 2"):
        _write_words(execute, contact)
    for ticket in _rows(execute, "tickets", "rowid, project, title, description", "1 = 1"):
        if not f"{ticket[2]}{ticket[3]}".isascii():
            reindex_ticket(ticket)


def _fold_names(execute: Execute, table: str, column: str, scope: str) -> None:
    """Store the folded names of a table's rows; one that reads like an older one's gets a form of its own, and is logged."""
    sql = f"SELECT rowid, id, {scope}, {column} FROM {table} WHERE deleted_at IS NULL ORDER BY rowid"
    first: dict[tuple[int, str], str] = {}
    for rowid, holder, within, name in execute(sql):
        folded = fold_name(name)
        other = first.setdefault((within, folded), holder)
        if other != holder:
            log.warning("storage.names_read_alike", table=table, id=holder, like=other)
            folded = double_of(folded, holder)
        execute(f"UPDATE {table} SET folded = ? WHERE rowid = ?", (folded, rowid))


def _write_words(execute: Execute, contact: Sequence[Any]) -> None:
    rowid, project, *identity = contact
    _, _, email, phone = identity
    insert = "INSERT INTO contact_words VALUES (?, ?, ?) ON CONFLICT DO NOTHING"
    if phone is None and all(text is None or text.isascii() for text in identity):
        if email:
            execute(insert, (project, address_word(email), rowid))
        return
    known = execute("SELECT word FROM contact_words WHERE contact = ?", (rowid,))
    before, now = {word for (word,) in known}, words_of(*identity)
    for word in before - now:
        sql = "DELETE FROM contact_words WHERE project = ? AND word = ? AND contact = ?"
        execute(sql, (project, word, rowid))
    for word in now - before:
        execute(insert, (project, word, rowid))


def _rows(execute: Execute, table: str, columns: str, where: str) -> Iterator[Sequence[Any]]:
    """Yield the rows of a table in the order of their keys, some at a time."""
    last = 0
    sql = f"SELECT {columns} FROM {table} WHERE rowid > ? AND {where} ORDER BY rowid LIMIT {_BATCH_SIZE}"
    while rows := execute(sql, (last,)):
        yield from rows
        last = rows[-1][0]
