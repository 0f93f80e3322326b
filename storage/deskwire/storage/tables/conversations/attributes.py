"""The index of the attributes of conversations, which triggers keep: what a value is found by.

The index has the beginning of a text and the integer part of a number, on which all databases agree; whether a
conversation has the very value, its row tells.
"""

from __future__ import annotations

from typing import Final

from deskwire.storage.dialect import differing

TEXT_MAX: Final = 64
"""Characters of a text that the index has."""

_LARGE: Final = 1e15
"""From here on the numbers of the databases and of Python are written in different ways."""


def text_key(text: str) -> str:
    """Return what a text, or a boolean as a text, is found by."""
    return text[:TEXT_MAX]


def number_key(number: float) -> str:
    """Return what a number is found by."""
    return str(int(number)) if -_LARGE < number < _LARGE else "large"


_KEY: Final = (
    "CASE a.type WHEN 'true' THEN 'true' WHEN 'false' THEN 'false' WHEN 'text' THEN substr(a.value, 1, 64) "
    "ELSE CASE WHEN a.value > -1e15 AND a.value < 1e15 THEN CAST(CAST(a.value AS INTEGER) AS TEXT) ELSE 'large' END END"
)
_SCALAR: Final = "a.type IN ('true', 'false', 'text', 'integer', 'real')"
_MISSING: Final = (
    "NOT EXISTS (SELECT 1 FROM conversation_attributes g WHERE g.project = c.project AND g.name = {} AND g.value = {} "
    "AND g.conversation = c.rowid) UNION ALL SELECT g.conversation, g.name FROM conversation_attributes g "
    "LEFT JOIN conversations c ON c.rowid = g.conversation AND c.project = g.project WHERE c.rowid IS NULL OR NOT EXISTS"
)

ATTRIBUTES_DIFFER: Final = differing(
    sqlite=f"SELECT c.rowid, a.key FROM conversations c CROSS JOIN json_each(c.attributes) a WHERE {_SCALAR} AND "
    f"{_MISSING.format('a.key', _KEY)} (SELECT 1 FROM json_each(c.attributes) a WHERE a.key = g.name AND {_KEY} = g.value "
    f"AND {_SCALAR})",
    postgres="SELECT c.rowid, k.name FROM conversations c CROSS JOIN LATERAL attribute_keys(c.attributes) k WHERE "
    f"{_MISSING.format('k.name', 'k.value')} (SELECT 1 FROM attribute_keys(c.attributes) k WHERE k.name = g.name "
    "AND k.value = g.value)",
)
"""Conversations, and the names of attributes that they have and the index has not, or the other way round."""
