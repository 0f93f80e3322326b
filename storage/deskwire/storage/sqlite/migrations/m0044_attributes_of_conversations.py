"""The attributes of conversations as rows, by which the few that have one are found among all; triggers keep them."""

from typing import Final

_KEY: Final = (
    "CASE a.type WHEN 'true' THEN 'true' WHEN 'false' THEN 'false' WHEN 'text' THEN substr(a.value, 1, 64) "
    "ELSE CASE WHEN a.value > -1e15 AND a.value < 1e15 THEN CAST(CAST(a.value AS INTEGER) AS TEXT) ELSE 'large' END END"
)
_SCALARS: Final = "a.type IN ('true', 'false', 'text', 'integer', 'real')"


def _rows(row: str) -> str:
    """Return the rows of the attributes of the conversation that is called so."""
    return f"SELECT {row}.project, a.key, {_KEY}, {row}.rowid FROM json_each({row}.attributes) a WHERE {_SCALARS}"


_PUT: Final = f"INSERT INTO conversation_attributes {_rows('new')};"
_OLD: Final = f"json_each(old.attributes) a WHERE {_SCALARS}"
_REMOVE: Final = (
    "DELETE FROM conversation_attributes WHERE project = old.project AND conversation = old.rowid "
    f"AND name IN (SELECT a.key FROM {_OLD}) AND value IN (SELECT {_KEY} FROM {_OLD});"
)
"""With each part of the key by itself, SQLite enters the index with all of it; with a row of four it reads a project's."""

SQL: Final = f"""
-- The value is the beginning of a text, or the integer part of a number. A conversation's own row says which rows it has here.
CREATE TABLE conversation_attributes (
    project INTEGER NOT NULL, name TEXT NOT NULL, value TEXT NOT NULL, conversation INTEGER NOT NULL,
    PRIMARY KEY (project, name, value, conversation)
) STRICT, WITHOUT ROWID;
INSERT INTO conversation_attributes SELECT c.project, a.key, {_KEY}, c.rowid
    FROM conversations c, json_each(c.attributes) a WHERE {_SCALARS} ORDER BY 1, 2, 3, 4;
CREATE TRIGGER attributes_put AFTER INSERT ON conversations WHEN new.attributes <> '{{}}' BEGIN {_PUT} END;
CREATE TRIGGER attributes_change AFTER UPDATE OF attributes ON conversations WHEN new.attributes <> old.attributes BEGIN
    {_REMOVE} {_PUT} END;
CREATE TRIGGER attributes_go AFTER DELETE ON conversations WHEN old.attributes <> '{{}}' BEGIN {_REMOVE} END;
"""
