"""Many rows in one statement, made of the statement for one.

`INSERT INTO t (…) VALUES (?, 0, ?)` becomes `INSERT INTO t (…) SELECT m.p1, 0, m.p2 FROM unnest($1, $2) AS m (p1, p2)`, and
`UPDATE t SET a = ? WHERE k = ?` becomes `UPDATE t SET a = m.p1 FROM unnest($1, $2) AS m (p1, p2) WHERE k = m.p2`. A query becomes
one for each of the rows of its values. The types of the values are those that PostgreSQL has found in the statement for
one.

A statement for one that names a day besides a key, with `AND day = ?`, names the first and the last of their days when it is for
many. Unlike a column of the rows, these let PostgreSQL leave out the partitions of all other days before it begins.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple

from psycopg import pq

from deskwire.storage.dialect import UNPLANNED
from deskwire.storage.postgres.driver.arrays import ARRAY_OF, array_of
from deskwire.storage.postgres.driver.wire import Statement

_MARK: Final = re.compile(r"\$(\d+)")
_INSERT: Final = re.compile(
    r"(INSERT INTO \w+(?: \([^)]*\))?) VALUES \(([^()]*)\)( ON CONFLICT .*)?", re.DOTALL
)
_DAY: Final = re.compile(r"\bAND day = \$(\d+)" + re.escape(UNPLANNED))
_NAMED_DAY: Final = re.compile(r"\bAND day = (m\.p\d+)" + re.escape(UNPLANNED))
_UPDATE: Final = re.compile(
    r"(UPDATE \w+ SET (?:(?!\bFROM\b|\bWHERE\b).)*)( WHERE (?:(?!RETURNING).)*)", re.DOTALL
)
_TABLES: Final = re.compile(r"\b(?:FROM|JOIN|INTO|UPDATE)\s+(\w+)", re.IGNORECASE)


class Shape(NamedTuple):
    """The properties of a statement by which others are merged with it.

    Args:
        reads: whether it only reads.
        tables: those that it names.
        many: the same statement for many rows, before their number is known; None if there is none.
        width: how many values it takes.
        day: the place of the day among them.
    """

    reads: bool
    tables: frozenset[str]
    many: str | None
    width: int
    day: int | None


@lru_cache(maxsize=2_048)
def shape_of(text: str) -> Shape:
    """Return what there is to know of a statement with `$1` for its values."""
    tables = frozenset(name.lower() for name in _TABLES.findall(text))
    width = max((int(number) for number in _MARK.findall(text)), default=0)
    reads = text.lstrip().startswith(("SELECT", "WITH")) and not re.search(
        r"\b(INSERT INTO|UPDATE \w+ SET|DELETE FROM)\b", text
    )
    day = _DAY.search(text)
    many = _many(text, width) if width else None
    return Shape(reads, tables, many, width, None if day is None else int(day[1]) - 1)


def _many(text: str, width: int) -> str | None:
    rows = f"unnest({', '.join(f'${at + 1}' for at in range(width))}) AS m ({', '.join(f'p{at + 1}' for at in range(width))})"
    if insert := _INSERT.fullmatch(text.strip()):
        into, values, conflict = insert.groups()
        return f"{into} SELECT {_named(values)} FROM {rows}{conflict or ''}"
    if update := _UPDATE.fullmatch(text.strip()):
        changes, where = update.groups()
        return f"{_named(changes)} FROM {rows}{_within_days(_named(where), width)}"
    return None


def _within_days(part: str, width: int) -> str:
    """Put the bounds of the days, whose places are after those of the columns, in place of each row's day.

    The join must not choose partitions by day, because PostgreSQL then finds no row after one for which FOR UPDATE has waited.
    """
    first, last = (f"${width + at}{UNPLANNED}" for at in (1, 2))
    return _NAMED_DAY.sub(f"AND day >= {first} AND day <= {last}", part)


def _named(part: str) -> str:
    return _MARK.sub(r"m.p\1", part)


@lru_cache(maxsize=512)
def each_of(text: str, width: int) -> str:
    """Return a query for many rows of values; its rows begin with the number of those values, from 1."""
    marks = ", ".join(f"${at + 1}" for at in range(width))
    names = ", ".join(f"p{at + 1}" for at in range(width))
    return (
        f"SELECT m.number, r.* FROM unnest({marks}) WITH ORDINALITY AS m ({names}, number) "
        f"CROSS JOIN LATERAL ({_within_days(_named(text), width)}) r"
    )


def with_columns(
    text: str, types: Sequence[int], rows: Sequence[Sequence[Any]], day: int | None = None
) -> Statement:
    """Return the statement for many rows, with the columns of their values. Raises KeyError if a type is unknown.

    Args:
        day: the place of the day among the values of a row, if the statement takes the bounds of the days.
    """
    columns = [array_of(kind, column) for kind, column in zip(types, zip(*rows, strict=True), strict=True)]
    forms, kinds = [pq.Format.BINARY] * len(columns), [ARRAY_OF[kind] for kind in types]
    if day is None:
        return Statement(text, columns, forms, kinds)
    days = [row[day] for row in rows]
    bounds = [b"%d" % min(days), b"%d" % max(days)]
    return Statement(
        text, [*columns, *bounds], [*forms, *[pq.Format.TEXT] * 2], [*kinds, types[day], types[day]]
    )
