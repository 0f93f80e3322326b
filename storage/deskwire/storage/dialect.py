"""The differences between the two databases: fragments of statements by name, and the values that go with them.

A statement that both take is a text. One that has such a fragment is made with `either`, once for each:

    _PAGE = either("SELECT … FROM {numbers} w {and_then} conversations c ON c.rowid = w.value")
    self.conn.execute(_PAGE[self.dialect], (self.dialect.listed(keys),))

or, where it is put together for a question, with `Dialect.text`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

import orjson
from msgspec import Struct


class Dialect(Struct, frozen=True, eq=False):
    """One of the two; a key of what `either` makes.

    Attributes:
        arrays: whether a value may be a list.
    """

    name: str
    arrays: bool

    def text(self, template: str) -> str:
        """Return a statement with the names of fragments in braces as this database takes it."""
        return _text(self, template)

    def listed(self, values: Sequence[int] | Sequence[str]) -> Any:
        """Return the value for `{numbers}` or `{texts}`; what has been asked with it may be remembered by it."""
        return tuple(values) if self.arrays else orjson.dumps(list(values)).decode()

    def paired(self, values: Sequence[tuple[int, str]]) -> tuple[Any, ...]:
        """Return the values for `{pairs}`."""
        if self.arrays:
            return tuple(number for number, _ in values), tuple(text for _, text in values)
        return (orjson.dumps(list(values)).decode(),)


SQLITE: Final = Dialect("sqlite", arrays=False)
POSTGRES: Final = Dialect("postgres", arrays=True)

Statement = Mapping[Dialect, str]
"""A statement, or a part of one, in each dialect."""


class _Of:
    """A fragment about a name, written `{fragment[name]}`."""

    def __init__(self, template: str) -> None:
        self._template = template

    def __getitem__(self, name: str) -> str:
        return self._template.format(name)


_FRAGMENTS: Final[Mapping[Dialect, Mapping[str, str | _Of]]] = {
    SQLITE: {
        # The lists that a statement is given, as tables with a column `value`, or `number` and `text`.
        "numbers": "json_each(?)",
        "texts": "json_each(?)",
        "pairs": "(SELECT json_extract(value, '$[0]') AS number, json_extract(value, '$[1]') AS text FROM json_each(?))",
        # Hints to SQLite's planner: this index, this order of tables, no index on what follows.
        "indexed": _Of("INDEXED BY {}"),
        "and_then": "CROSS JOIN",
        "unindexed": "+",
        # Keeps the rows of a table from other transactions until the end of this one; SQLite has one writer.
        "locking": _Of(""),
        # The events of a project, by the range of its positions.
        "of_project": "",
    },
    POSTGRES: {
        "numbers": "(SELECT unnest(CAST(? AS bigint[])) AS value)",
        "texts": "(SELECT unnest(CAST(? AS text[])) AS value)",
        "pairs": "(SELECT * FROM unnest(CAST(? AS bigint[]), CAST(? AS text[])) AS p (number, text))",
        "indexed": _Of(""),
        "and_then": "JOIN",
        "unindexed": "",
        "locking": _Of("FOR UPDATE OF {}"),
        "of_project": "AND e.position >= CAST(:project AS bigint) << 40 AND e.position < (CAST(:project AS bigint) + 1) << 40",
    },
}


@lru_cache(maxsize=1_024)
def _text(dialect: Dialect, template: str) -> str:
    return template.format(**_FRAGMENTS[dialect])


def either(template: str, **parts: Statement) -> Statement:
    """Return a statement in both dialects.

    Args:
        template: with the names of fragments in braces.
        parts: others, by the names under which the template has them.
    """
    return {
        dialect: template.format(**fragments, **{name: part[dialect] for name, part in parts.items()})
        for dialect, fragments in _FRAGMENTS.items()
    }


def differing(*, sqlite: str, postgres: str) -> Statement:
    """Return a statement that the two have nothing in common for."""
    return {SQLITE: sqlite, POSTGRES: postgres}


def literals(*names: str) -> str:
    """Return names of the code, such as kinds and statuses, as a list of literals for `IN`."""
    return ", ".join(f"'{name}'" for name in names)


def postgres_json(column: str) -> str:
    """Return bytes of JSON as PostgreSQL reads them: it refuses an escaped U+0000, for which there is a blank then."""
    return rf"CAST(replace(convert_from({column}, 'UTF8'), '\u0000', '\u0020') AS json)"
