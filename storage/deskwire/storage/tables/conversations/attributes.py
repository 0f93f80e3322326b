"""The index of the attributes of conversations, which triggers maintain: the keys by which values are found.

The key of a text is its beginning, of a 64-bit integer all of its digits, and of another number its integer part, on which all
databases agree. The conversation's row decides whether it has exactly the value.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any, Final

import orjson

from deskwire.engine.definitions.attributes import AttributeIs
from deskwire.storage.dialect import SQLITE, Dialect, differing

TEXT_MAX: Final = 64
"""Characters of a text in the index."""

_LARGE: Final = 10**15
"""The databases and Python format doubles from this number on differently."""
_INTEGERS: Final = range(-(1 << 63), 1 << 63)
"""The integers that both databases store exactly."""


def text_key(text: str) -> str:
    """Return the index key of a text, or of a boolean as a text."""
    return text[:TEXT_MAX]


def number_keys(number: Decimal) -> Sequence[str]:
    """Return the index keys of a number: from 10^15 on one as an integer and one as a double."""
    if -_LARGE < number < _LARGE:
        return (str(int(number)),)
    whole = number == number.to_integral_value() and int(number) in _INTEGERS
    return (str(int(number)), "large") if whole else ("large",)


def attribute_condition(dialect: Dialect, column: str, wanted: AttributeIs) -> tuple[str, tuple[Any, ...]]:
    """Return the condition that the attributes in a JSON column have a value, with its parameters."""
    number = wanted.number
    if dialect is SQLITE:
        boolean = None if wanted.boolean is None else int(wanted.boolean)
        return f"has_attribute({column}, ?, ?, ?, ?)", (wanted.name, wanted.text, number, boolean)
    kinds, values = ["json_typeof(a.value) = 'string' AND a.value #>> '{{}}' = ?"], [wanted.name, wanted.text]
    if wanted.boolean is not None:
        kinds.append("json_typeof(a.value) = 'boolean' AND a.value #>> '{{}}' = ?")
        values.append("true" if wanted.boolean else "false")
    if number is not None:
        kinds.append(
            "CASE WHEN json_typeof(a.value) = 'number' THEN CAST(a.value #>> '{{}}' AS numeric) = CAST(? AS numeric) ELSE false END"
        )
        values.append(number)
    attributes = rf"json_each(CAST(replace({column}, '\u0000', '\u0020') AS json)) a"
    return f"EXISTS (SELECT 1 FROM {attributes} WHERE a.key = ? AND ({' OR '.join(kinds)}))", (*values,)


def has_attribute(attributes: str, name: str, text: str, number: str | None, boolean: int | None) -> bool:
    """Return whether attributes in JSON have the value of an `AttributeIs`; SQLite calls this function."""
    wanted = AttributeIs(name, text, number, None if boolean is None else bool(boolean))
    return wanted.fits(orjson.loads(attributes).get(name))


_KEY: Final = (
    "CASE a.type WHEN 'true' THEN 'true' WHEN 'false' THEN 'false' WHEN 'text' THEN substr(a.value, 1, 64) "
    "ELSE CASE WHEN typeof(a.value) = 'integer' THEN CAST(a.value AS TEXT) WHEN a.value > -1e15 AND a.value < 1e15 THEN CAST(CAST(a.value AS INTEGER) AS TEXT) ELSE 'large' END END"
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
"""Finds attributes that are in a conversation's row but not in the index, and the reverse."""
