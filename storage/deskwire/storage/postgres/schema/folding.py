"""Folded names and tags, and attributes that are large numbers, with the steps in Python."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import psycopg

from deskwire.storage.postgres.driver.codec import decode_text, encode_text
from deskwire.storage.postgres.schema.baseline import typed
from deskwire.storage.postgres.search.tickets import WRITE_TICKET_WORDS, words_of
from deskwire.storage.refolding import TAGGED, refold, refold_tags

_TEXT: Final = "value #>> '{}'"
_NUMBER: Final = f"CAST({_TEXT} AS double precision)"
_WHOLE: Final = rf"CASE WHEN {_TEXT} ~ '^-?[0-9]+$' THEN CAST({_TEXT} AS numeric) BETWEEN {-(1 << 63)} AND {(1 << 63) - 1} ELSE false END"

FOLDED_NAMES: Final = typed(rf"""
ALTER TABLE users ADD COLUMN folded TEXT;
ALTER TABLE teams ADD COLUMN folded TEXT;
DROP INDEX teams_by_name;
CREATE OR REPLACE FUNCTION attribute_keys(attributes text) RETURNS TABLE (name text, value text) LANGUAGE sql IMMUTABLE AS $$
    SELECT key, CASE json_typeof(value) WHEN 'boolean' THEN value #>> '{{}}' WHEN 'string' THEN left(value #>> '{{}}', 64)
    ELSE CASE WHEN {_WHOLE} THEN CAST(CAST({_TEXT} AS bigint) AS text)
    WHEN {_NUMBER} > -1e15 AND {_NUMBER} < 1e15 THEN CAST(CAST(trunc({_NUMBER}) AS bigint) AS text) ELSE 'large' END END
    FROM json_each(CAST(replace(attributes, '\u0000', '\u0020') AS json)) WHERE json_typeof(value) IN ('boolean', 'string', 'number')
$$;
INSERT INTO conversation_attributes SELECT c.project, k.name, k.value, c.rowid
    FROM (SELECT DISTINCT conversation FROM conversation_attributes WHERE value = 'large') l
    JOIN conversations c ON c.rowid = l.conversation CROSS JOIN LATERAL attribute_keys(c.attributes) k ON CONFLICT DO NOTHING;
DELETE FROM conversation_attributes g USING conversations c WHERE g.value = 'large' AND c.rowid = g.conversation
    AND NOT EXISTS (SELECT 1 FROM attribute_keys(c.attributes) k WHERE k.name = g.name AND k.value = 'large');
""")


class Encoded:
    """A psycopg connection for statements with `?` and texts in their stored form."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._connection = connection

    def execute(self, sql: str, values: Sequence[Any] = (), /) -> Sequence[Sequence[Any]]:
        """Run a statement, and return its rows with decoded texts."""
        stored = [encode_text(value).decode() if isinstance(value, str) else value for value in values]
        cursor = self._connection.execute(sql.replace("?", "%s").encode(), stored)
        if cursor.description is None:
            return ()
        return [
            tuple(decode_text(value) if isinstance(value, str) else value for value in row)
            for row in cursor.fetchall()
        ]


def fill_names(connection: psycopg.Connection[Any]) -> None:
    """Fold names and words."""
    encoded = Encoded(connection)

    def reindex(ticket: Sequence[Any]) -> None:
        rowid, project, title, description = ticket
        encoded.execute(WRITE_TICKET_WORDS, words_of(rowid, project, title, description))

    refold(encoded.execute, reindex)


FOLDED_TAGS: Final = typed(
    "".join(f"ALTER TABLE {holder}_tags ADD COLUMN folded TEXT;\n" for holder, _ in TAGGED)
)


def fill_tags(connection: psycopg.Connection[Any]) -> None:
    """Fold tags, and make the folded tag the key."""
    encoded = Encoded(connection)
    refold_tags(encoded.execute)
    for holder, _ in TAGGED:
        encoded.execute(
            f"ALTER TABLE {holder}_tags DROP CONSTRAINT {holder}_tags_pkey, ADD PRIMARY KEY (project, folded, {holder})"
        )
