"""The differences between the two databases: named fragments of statements, and the values for them.

A statement that both databases accept is a string. One with a fragment is made by `either`, for each database:

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

from deskwire.engine.core.ids import DAY_MS, day_of


class Dialect(Struct, frozen=True, eq=False):
    """A database; the key of statements from `either`.

    Attributes:
        arrays: whether parameters may be lists.
        days: whether the tables of deliveries and attempts are partitioned by a column `day` (ADR 104).
    """

    name: str
    arrays: bool
    days: bool

    def text(self, template: str) -> str:
        """Return a statement with the fragments in braces replaced by those of this database."""
        return _text(self, template)

    def listed(self, values: Sequence[int] | Sequence[str]) -> Any:
        """Return the value for `{numbers}` or `{texts}`. It is hashable, so it can be a cache key."""
        return tuple(values) if self.arrays else orjson.dumps(list(values)).decode()

    def day_of(self, delivery_id: str) -> tuple[int, ...]:
        """Return the values for `{of_day}` and `{of_day_or_none}`."""
        return (day_of(delivery_id),) if self.days else ()

    def key(self, position: int, day: int) -> tuple[int, ...]:
        """Return the values for `{keys}` of a row."""
        return (position, day) if self.days else (position,)

    def placed(self, rows: Sequence[Sequence[int]]) -> tuple[Any, ...]:
        """Return the values for `{placed}`: rows of `{keys}`."""
        positions = self.listed([row[0] for row in rows])
        return (positions, tuple(row[1] for row in rows)) if self.days else (positions,)

    def among(self, column: str, rows: Sequence[Sequence[int]]) -> tuple[str, tuple[int, ...]]:
        """Return the condition that selects deliveries by rows of `{keys}`, and its values.

        Args:
            column: the column with the position of the delivery.
        """
        positions, days = [row[0] for row in rows], sorted({row[1] for row in rows}) if self.days else []
        condition = f"{column} IN ({_marks(positions)})"
        return (f"{condition} AND day IN ({_marks(days)})" if days else condition), (*positions, *days)

    def spanned(self, values: Sequence[tuple[int, str]], times: Sequence[int]) -> tuple[Any, ...]:
        """Return the values for `{spans}`: ranges of positions, with their start times (ms) and the end of the last."""
        if not self.days:
            return self.paired(values)
        days = [time // DAY_MS for time in times]
        return (*self.paired(values), tuple(days[:-1]), tuple(days[1:]))

    def paired(self, values: Sequence[tuple[int, str]]) -> tuple[Any, ...]:
        """Return the values for `{pairs}`."""
        if self.arrays:
            return tuple(number for number, _ in values), tuple(text for _, text in values)
        return (orjson.dumps(list(values)).decode(),)


SQLITE: Final = Dialect("sqlite", arrays=False, days=False)
POSTGRES: Final = Dialect("postgres", arrays=True, days=True)

Statement = Mapping[Dialect, str]
"""A statement, or a part of one, in both dialects."""


UNPLANNED: Final = " + 0 * pg_backend_pid()"
"""Hides the value of a day from PostgreSQL's planner, but not from the executor, because the function is stable.

If the planner knew the value, it would plan the statement again for each value, because few partitions remain. Planning
takes longer than running the statement (ADR 104).
"""


UNPLANNED_KEYS: Final = "CAST((SELECT $1) AS bigint[])"
"""Hides the number of keys in a statement's first value from PostgreSQL's planner.

If the planner knew that there is one key, the plan for it would seem cheaper than the one for any number, and would be made
again for each execution.
"""


PLANNED_ONCE: Final = "/* planned once */ "
"""Marks a statement, after its `SELECT`, that PostgreSQL plans once for all values, with indexes that have its order.

By default it plans a statement again each time if the plan for these values seems cheaper than one for any. Such a statement has
one index for each table, so the plans are the same, and planning takes longer than running it.
"""


class _Of:
    """A fragment with a name as its argument, written `{fragment[name]}`."""

    def __init__(self, template: str) -> None:
        self._template = template

    def __getitem__(self, name: str) -> str:
        return self._template.format(name)


_FRAGMENTS: Final[Mapping[Dialect, Mapping[str, str | _Of]]] = {
    SQLITE: {
        # List parameters as tables with a column `value`, or `number` and `text`.
        "numbers": "json_each(?)",
        "texts": "json_each(?)",
        "pairs": "(SELECT json_extract(value, '$[0]') AS number, json_extract(value, '$[1]') AS text FROM json_each(?))",
        # Hints to SQLite's planner: use this index, keep this order of tables, use no index on the next column.
        "indexed": _Of("INDEXED BY {}"),
        "and_then": "CROSS JOIN",
        "unindexed": "+",
        "planned_once": "",
        # Locks the rows of a table until the end of the transaction; SQLite has only one writer.
        "locking": _Of(""),
        # Events of a project, by range of positions.
        "of_project": "",
        # Deliveries and attempts by position and by day, which selects the partition on PostgreSQL. Columns: `keys`,
        # `keys_of` and `day`; `and_day` and `and_mark` for an INSERT. Conditions: `of_day` and `of_day_of`;
        # `of_day_or_none` also matches rows older than the partitions; `same_day` joins attempts with their delivery `d`.
        # `placed`: the deliveries `d` of a list of keys.
        "keys": "position",
        "keys_of": _Of("{}.position"),
        "day": _Of("0"),
        "of_day": "",
        "of_day_of": _Of(""),
        "hidden": "?",
        "of_day_or_none": "",
        "same_day": _Of(""),
        "and_day": "",
        "and_mark": "",
        "placed": "json_each(?) n CROSS JOIN deliveries d ON d.position = n.value",
        # Ranges of positions as `{pairs}`, and the condition that the day of a delivery `d` is in the range.
        "spans": "(SELECT json_extract(value, '$[0]') AS number, json_extract(value, '$[1]') AS text FROM json_each(?))",
        "in_span": "",
    },
    POSTGRES: {
        "numbers": "(SELECT unnest(CAST(? AS bigint[])) AS value)",
        "texts": "(SELECT unnest(CAST(? AS text[])) AS value)",
        "pairs": "(SELECT * FROM unnest(CAST(? AS bigint[]), CAST(? AS text[])) AS p (number, text))",
        "indexed": _Of(""),
        "and_then": "JOIN",
        "unindexed": "",
        "planned_once": PLANNED_ONCE,
        "locking": _Of("FOR UPDATE OF {}"),
        "keys": "position, day",
        "keys_of": _Of("{0}.position, {0}.day"),
        "day": _Of("{}.day"),
        "of_day": f"AND day = ?{UNPLANNED}",
        "of_day_of": _Of(f"AND {{}}.day = ?{UNPLANNED}"),
        # A parameter in a subquery is hidden from the planner as well.
        "hidden": "(SELECT CAST(? AS bigint))",
        "of_day_or_none": f"AND d.day IN (0, ?{UNPLANNED})",
        "same_day": _Of("AND {}.day = d.day"),
        "and_day": ", day",
        "and_mark": ", ?",
        # LIMIT forces a lookup of each row in its only possible partition.
        "placed": "(SELECT * FROM unnest(CAST(? AS bigint[]), CAST(? AS int[])) AS u (value, day)) n CROSS JOIN LATERAL "
        "(SELECT * FROM deliveries x WHERE x.position = n.value AND x.day = n.day LIMIT 1) d",
        "spans": "(SELECT * FROM unnest(CAST(? AS bigint[]), CAST(? AS text[]), CAST(? AS int[]), CAST(? AS int[])) "
        "AS p (number, text, first, last))",
        "in_span": "AND (d.day = 0 OR d.day BETWEEN p.first AND p.last)",
        "of_project": "AND e.position >= CAST(:project AS bigint) << 40 AND e.position < (CAST(:project AS bigint) + 1) << 40",
    },
}


def _marks(values: Sequence[int]) -> str:
    return ", ".join("?" for _ in values)


@lru_cache(maxsize=1_024)
def _text(dialect: Dialect, template: str) -> str:
    return template.format(**_FRAGMENTS[dialect])


def either(template: str, **parts: Statement) -> Statement:
    """Return a statement in both dialects.

    Args:
        template: a statement with names of fragments in braces.
        parts: further fragments by name.
    """
    return {
        dialect: template.format(**fragments, **{name: part[dialect] for name, part in parts.items()})
        for dialect, fragments in _FRAGMENTS.items()
    }


def differing(*, sqlite: str, postgres: str) -> Statement:
    """Return a statement that is entirely different in the two dialects."""
    return {SQLITE: sqlite, POSTGRES: postgres}


def literals(*names: str) -> str:
    """Return trusted names, such as kinds and statuses, as a list of literals for `IN`."""
    return ", ".join(f"'{name}'" for name in names)


def postgres_json(column: str) -> str:
    """Return an expression that casts JSON bytes to `json`, with U+0000, which PostgreSQL refuses, replaced by a space."""
    return rf"CAST(replace(convert_from({column}, 'UTF8'), '\u0000', '\u0020') AS json)"
