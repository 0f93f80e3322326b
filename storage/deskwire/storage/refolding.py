"""Migrates names and search words of older databases to the form of `core.folding`.

Both databases call it in a migration, with one pass over each table. Contacts and tickets in ASCII keep their words, so
the pass writes little more than a row for each contact with an e-mail address: about half a minute for a million.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import orjson
import structlog

from deskwire.engine.contacts.search_terms import address_word, search_words
from deskwire.engine.conversations.tags import tag_key
from deskwire.engine.core.folding import duplicate_key, fold_name

Execute = Callable[..., Sequence[Sequence[Any]]]
"""Runs a statement with values for its `?` parameters, and returns the rows."""

log: Final = structlog.get_logger(__name__)

_BATCH_SIZE: Final = 2_000  # rows that are in memory at a time


def refold(execute: Execute, reindex_ticket: Callable[[Sequence[Any]], None]) -> None:
    """Fold the names and words of a database, and make names unique.

    Args:
        reindex_ticket: called with key, project, title and description of each ticket that is not in ASCII.
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
    """Store the folded names of a table. A name that equals an older one after folding becomes unique, and is logged."""
    sql = f"SELECT rowid, id, {scope}, {column} FROM {table} WHERE deleted_at IS NULL ORDER BY rowid"
    first: dict[tuple[int, str], str] = {}
    for rowid, holder, within, name in execute(sql):
        folded = fold_name(name)
        other = first.setdefault((within, folded), holder)
        if other != holder:
            log.warning("storage.names_read_alike", table=table, id=holder, like=other)
            folded = duplicate_key(folded, holder)
        execute(f"UPDATE {table} SET folded = ? WHERE rowid = ?", (folded, rowid))


TAGGED: Final = (("conversation", "conversations"), ("contact", "contacts"), ("ticket", "tickets"))
"""Objects with tags: the column in their table of tags, such as `conversation_tags`, and their own table."""


def refold_tags(execute: Execute) -> None:
    """Fill the column `folded` of the tables of tags. Of several tags of an object with one key the first stays, logged."""
    for holder, table in TAGGED:
        tags = f"{holder}_tags"
        for project, tag in execute(f"SELECT DISTINCT project, tag FROM {tags}"):
            values = (tag_key(tag), project, tag)
            execute(f"UPDATE {tags} SET folded = ? WHERE project = ? AND tag = ?", values)
        alike = f"SELECT DISTINCT {holder} FROM {tags} GROUP BY {holder}, folded HAVING count(*) > 1"
        for (rowid,) in execute(alike):
            _drop_alike(execute, holder, table, rowid)


def _drop_alike(execute: Execute, holder: str, table: str, rowid: int) -> None:
    ((holder_id, stored),) = execute(f"SELECT id, tags FROM {table} WHERE rowid = ?", (rowid,))
    first: dict[str, str] = {}
    for tag in orjson.loads(stored):
        other = first.setdefault(tag_key(tag), tag)
        if other != tag:
            log.warning("storage.tags_read_alike", table=table, id=holder_id, removed=tag, like=other)
            execute(f"DELETE FROM {holder}_tags WHERE {holder} = ? AND tag = ?", (rowid, tag))
    kept = orjson.dumps([*first.values()]).decode()
    execute(f"UPDATE {table} SET tags = ? WHERE rowid = ?", (kept, rowid))


def _write_words(execute: Execute, contact: Sequence[Any]) -> None:
    rowid, project, *identity = contact
    _, _, email, phone = identity
    insert = "INSERT INTO contact_words VALUES (?, ?, ?) ON CONFLICT DO NOTHING"
    if phone is None and all(text is None or text.isascii() for text in identity):
        if email:
            execute(insert, (project, address_word(email), rowid))
        return
    known = execute("SELECT word FROM contact_words WHERE contact = ?", (rowid,))
    before, now = {word for (word,) in known}, search_words(*identity)
    for word in before - now:
        sql = "DELETE FROM contact_words WHERE project = ? AND word = ? AND contact = ?"
        execute(sql, (project, word, rowid))
    for word in now - before:
        execute(insert, (project, word, rowid))


def _rows(execute: Execute, table: str, columns: str, where: str) -> Iterator[Sequence[Any]]:
    """Yield the rows of a table in the order of their keys, in batches."""
    last = 0
    sql = f"SELECT {columns} FROM {table} WHERE rowid > ? AND {where} ORDER BY rowid LIMIT {_BATCH_SIZE}"
    while rows := execute(sql, (last,)):
        yield from rows
        last = rows[-1][0]
