"""Folded names, the words of contacts and tickets as folding has them, and numbers of attributes with all of their digits.

What takes Python is done by `refold`. The index of attributes is read once, for the numbers from 10^15 on.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from deskwire.engine.core.folding import fold

if TYPE_CHECKING:
    from sqlite_utils import Database

_KEY: Final = (
    "CASE a.type WHEN 'true' THEN 'true' WHEN 'false' THEN 'false' WHEN 'text' THEN substr(a.value, 1, 64) "
    "ELSE CASE WHEN typeof(a.value) = 'integer' THEN CAST(a.value AS TEXT) "
    "WHEN a.value > -1e15 AND a.value < 1e15 THEN CAST(CAST(a.value AS INTEGER) AS TEXT) ELSE 'large' END END"
)
_SCALARS: Final = "a.type IN ('true', 'false', 'text', 'integer', 'real')"


def _rows(row: str) -> str:
    return f"SELECT {row}.project, a.key, {_KEY}, {row}.rowid FROM json_each({row}.attributes) a WHERE {_SCALARS}"


_PUT: Final = f"INSERT INTO conversation_attributes {_rows('new')};"
_OLD: Final = f"json_each(old.attributes) a WHERE {_SCALARS}"
_REMOVE: Final = (
    "DELETE FROM conversation_attributes WHERE project = old.project AND conversation = old.rowid "
    f"AND name IN (SELECT a.key FROM {_OLD}) AND value IN (SELECT {_KEY} FROM {_OLD});"
)

SQL: Final = f"""
ALTER TABLE users ADD COLUMN folded TEXT;
ALTER TABLE teams ADD COLUMN folded TEXT;
DROP INDEX teams_by_name;
DROP TRIGGER attributes_put;
DROP TRIGGER attributes_change;
DROP TRIGGER attributes_go;
CREATE TEMP TABLE large_numbers AS SELECT DISTINCT conversation FROM conversation_attributes WHERE value = 'large';
DELETE FROM conversation_attributes WHERE value = 'large';
INSERT OR IGNORE INTO conversation_attributes SELECT c.project, a.key, {_KEY}, c.rowid
    FROM large_numbers l CROSS JOIN conversations c ON c.rowid = l.conversation, json_each(c.attributes) a WHERE {_SCALARS};
DROP TABLE large_numbers;
CREATE TRIGGER attributes_put AFTER INSERT ON conversations WHEN new.attributes <> '{{}}' BEGIN {_PUT} END;
CREATE TRIGGER attributes_change AFTER UPDATE OF attributes ON conversations WHEN new.attributes <> old.attributes BEGIN
    {_REMOVE} {_PUT} END;
CREATE TRIGGER attributes_go AFTER DELETE ON conversations WHEN old.attributes <> '{{}}' BEGIN {_REMOVE} END;
DROP TRIGGER ticket_search_insert;
DROP TRIGGER ticket_search_delete;
DROP TRIGGER ticket_search_update;
"""

_TRIGGERS: Final = """
CREATE TRIGGER ticket_search_insert AFTER INSERT ON tickets BEGIN
    INSERT INTO ticket_search (rowid, project, title, description)
    VALUES (new.rowid, new.project, fold_text(new.title), fold_text(new.description)); END;
CREATE TRIGGER ticket_search_delete AFTER DELETE ON tickets BEGIN
    INSERT INTO ticket_search (ticket_search, rowid, project, title, description)
    VALUES ('delete', old.rowid, old.project, fold_text(old.title), fold_text(old.description)); END;
CREATE TRIGGER ticket_search_update AFTER UPDATE OF title, description ON tickets
WHEN new.title IS NOT old.title OR new.description IS NOT old.description BEGIN
    INSERT INTO ticket_search (ticket_search, rowid, project, title, description)
    VALUES ('delete', old.rowid, old.project, fold_text(old.title), fold_text(old.description));
    INSERT INTO ticket_search (rowid, project, title, description)
    VALUES (new.rowid, new.project, fold_text(new.title), fold_text(new.description)); END;
"""
"""The index has the words of folded texts; `fold_text` is a function that each connection of the program has."""


def fill(db: Database) -> None:
    """Fold names and words."""
    from deskwire.storage.refolding import refold  # it logs: commands that only read go without

    connection = db.conn

    def reindex(ticket: Sequence[Any]) -> None:
        rowid, project, title, description = ticket
        columns = "rowid, project, title, description"
        connection.execute(
            f"INSERT INTO ticket_search (ticket_search, {columns}) VALUES ('delete', ?, ?, ?, ?)", ticket
        )
        folded = (rowid, project, fold(title), None if description is None else fold(description))
        connection.execute(f"INSERT INTO ticket_search ({columns}) VALUES (?, ?, ?, ?)", folded)

    refold(lambda sql, values=(): connection.execute(sql, values).fetchall(), reindex)
    for statement in re.split(r";\n(?! )", _TRIGGERS):
        if statement.strip():
            connection.execute(statement)
