"""The statements of a batch: reads for many jobs, and writes of many rows in one.

`INSERT INTO t (…) VALUES (?, 0, ?)` becomes `INSERT INTO t (…) SELECT m.p1, 0, m.p2 FROM unnest($1, $2) AS m
(p1, p2)`, and `UPDATE t SET a = ? WHERE k = ?` becomes `UPDATE t SET a = m.p1 FROM unnest($1, $2) AS m (p1,
p2) WHERE k = m.p2`. A query becomes a lateral join with the rows of its values. The types of the values are
those that PostgreSQL inferred for the statement of one row.

A statement for one row that names a day besides a key, with `AND day = ?`, names the range of days when it is
merged. Only such constants, and no column of the values, let PostgreSQL skip the partitions of other days at
the start.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from math import inf
from typing import Any, Final, NamedTuple

from psycopg import pq

from deskwire.storage.dialect import UNPLANNED, UNPLANNED_KEYS
from deskwire.storage.postgres.commit.positions import (
    LOCK_HEADS,
    LOCK_HEADS_OF_CONVERSATIONS,
    LogHead,
    head_from_row,
)
from deskwire.storage.postgres.driver.codec import ARRAY_OF, INT8, array_of, rows_of, translate_placeholders
from deskwire.storage.postgres.driver.pipeline import PipelineConnection, Statement, bound_statement
from deskwire.storage.postgres.driver.recorded_reads import ReadKey
from deskwire.storage.tables.contacts.contacts import CONTACT_COLUMNS


class BufferedWrite(NamedTuple):
    """A change that was not sent yet, with its values in order."""

    text: str
    values: Sequence[Any]
    shape: StatementShape


READ_CLAIMED: Final = (
    f"SELECT c.rowid, c.id, c.revision, c.sequence, c.updated_at, c.routed, {CONTACT_COLUMNS} FROM conversations c "
    f"JOIN contacts k ON k.rowid = c.contact WHERE c.rowid = ANY({UNPLANNED_KEYS})"
)

# Skips rows that another transaction has locked, so that a batch never waits for a conversation.
LOCK_CONVERSATIONS: Final = f"SELECT rowid FROM conversations WHERE rowid = ANY({UNPLANNED_KEYS}) ORDER BY rowid FOR UPDATE SKIP LOCKED"


class FetchedRows:
    """The rows that were fetched for a batch under its locks.

    `rows` has the results by statement and values, `locked` the locked conversations, `claims` the rows of
    READ_CLAIMED by conversation, and `rowids` the reserved keys for new rows by table.
    """

    def __init__(self, rowids: dict[str, list[int]]) -> None:
        self.rows: dict[ReadKey, list[tuple[Any, ...]]] = {}
        self.locked: set[int] = set()
        self.claims: dict[int, Sequence[Any]] = {}
        self.rowids = rowids


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


class StatementShape(NamedTuple):
    """The properties of a statement that decide whether and how it is merged.

    Args:
        reads: True if the statement only reads.
        tables: the tables that it names.
        merged: the statement for many rows; None if it can't be merged.
        width: the number of its values.
        day: the index of the day among the values; None if the statement names no day.
    """

    reads: bool
    tables: frozenset[str]
    merged: str | None
    width: int
    day: int | None


@lru_cache(maxsize=2_048)
def shape_of(text: str) -> StatementShape:
    """Return the shape of a statement in PostgreSQL's form."""
    tables = frozenset(name.lower() for name in _TABLES.findall(text))
    width = max((int(number) for number in _MARK.findall(text)), default=0)
    reads = text.lstrip().startswith(("SELECT", "WITH")) and not re.search(
        r"\b(INSERT INTO|UPDATE \w+ SET|DELETE FROM)\b", text
    )
    day = _DAY.search(text)
    merged = _merged(text, width) if width else None
    return StatementShape(reads, tables, merged, width, None if day is None else int(day[1]) - 1)


def _merged(text: str, width: int) -> str | None:
    rows = f"unnest({', '.join(f'${at + 1}' for at in range(width))}) AS m ({', '.join(f'p{at + 1}' for at in range(width))})"
    if insert := _INSERT.fullmatch(text.strip()):
        into, values, conflict = insert.groups()
        return f"{into} SELECT {_named(values)} FROM {rows}{conflict or ''}"
    if update := _UPDATE.fullmatch(text.strip()):
        changes, where = update.groups()
        return f"{_named(changes)} FROM {rows}{_within_days(_named(where), width)}"
    return None


def _within_days(part: str, width: int) -> str:
    """Replace each row's day by a range of days, whose parameters follow those of the columns.

    The join must not choose partitions by day: PostgreSQL then loses rows for which FOR UPDATE has waited.
    """
    first, last = (f"${width + at}{UNPLANNED}" for at in (1, 2))
    return _NAMED_DAY.sub(f"AND day >= {first} AND day <= {last}", part)


def _named(part: str) -> str:
    return _MARK.sub(r"m.p\1", part)


@lru_cache(maxsize=512)
def query_per_row(text: str, width: int) -> str:
    """Return a query that runs once for each row of values.

    Its first column is the number of that row, from 1.
    """
    marks = ", ".join(f"${at + 1}" for at in range(width))
    names = ", ".join(f"p{at + 1}" for at in range(width))
    return (
        f"SELECT m.number, r.* FROM unnest({marks}) WITH ORDINALITY AS m ({names}, number) "
        f"CROSS JOIN LATERAL ({_within_days(_named(text), width)}) r"
    )


def with_columns(
    text: str, types: Sequence[int], rows: Sequence[Sequence[Any]], day: int | None = None
) -> Statement:
    """Return a merged statement with its values as arrays.

    Raises KeyError if a type is unknown.

    Args:
        day: the index of the day in a row, if the statement takes a range of days.
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


BEGIN: Final = Statement("BEGIN")
COMMIT: Final = Statement("COMMIT")
ROLLBACK: Final = Statement("ROLLBACK")
# Matches an UPDATE of one row by its key. Such updates are merged as long as no two have the same key.
_KEYED: Final = re.compile(
    r"UPDATE .* WHERE \w+ = \$(\d+) ?(?: AND day = \$\d+"
    + re.escape(UNPLANNED)
    + r")?(?: AND status = 'pending')?",
    re.DOTALL,
)

# Tables that others refer to. A table may refer to those before it in this order.
PARENT_TABLES: Final = (
    "organisations",
    "projects",
    "users",
    "teams",
    "contacts",
    "conversations",
    "workflow_versions",
    "entries",
    "surveys",
    "uploads",
    "tickets",
    "contents",
    "audit_pushes",
    "channels",
    "invitations",
    "sessions",
    "push_subscriptions",
    "bulk_jobs",
)
_TABLE_LEVELS: Final = {table: number for number, table in enumerate(PARENT_TABLES)}

Types = dict[str, tuple[int, ...]]  # The type OIDs of a statement's values, by its text.


class Planner:
    """Makes merged statements, and caches the value types of each."""

    def __init__(self) -> None:
        self._types: Types = {}

    async def learn(
        self, connection: PipelineConnection, texts: Iterable[str], timeout_s: float = inf
    ) -> None:
        """Ask the server for the value types of unknown statements. Raises DatabaseError."""
        unknown = [text for text in dict.fromkeys(texts) if text not in self._types]
        if unknown:
            self._types.update(zip(unknown, await connection.describe(unknown, timeout_s), strict=True))

    def merged(self, text: str, rows: Sequence[Sequence[Any]]) -> Statement:
        """Return the statement for these rows.

        For several rows, `learn` must have seen the statement.
        """
        shape = shape_of(text)
        if len(rows) == 1 or shape.merged is None:
            assert len(rows) == 1, "a statement that can't be merged has one row"
            return bound_statement(text, rows[0])
        return with_columns(shape.merged, self._types[text], rows, shape.day)

    def queries(self, keys: Iterable[ReadKey]) -> list[tuple[Statement, list[ReadKey]]]:
        """Return the statements that fetch these reads, each with the reads that it answers."""
        by_text: dict[str, list[ReadKey]] = {}
        for key in keys:
            by_text.setdefault(key[0], []).append(key)
        found: list[tuple[Statement, list[ReadKey]]] = []
        for text, alike in by_text.items():
            width = len(alike[0][1])
            if len(alike) == 1 or not width or any(isinstance(each, tuple) for each in alike[0][1]):
                found += [(bound_statement(*key), [key]) for key in alike]
                continue
            alike.sort(key=lambda key: key[1] if "FOR UPDATE" in key[0] else ())
            rows = [key[1] for key in alike]
            day = shape_of(text).day
            found.append((with_columns(query_per_row(text, width), self._types[text], rows, day), alike))
        return found


def lock_conversations(rowids: Sequence[int]) -> list[Statement]:
    """Return the statements that lock conversations and then read the columns for `claim`."""
    values, forms, types = [array_of(INT8, rowids)], [pq.Format.BINARY], [ARRAY_OF[INT8]]
    return [
        Statement(LOCK_CONVERSATIONS, values, forms, types),
        Statement(READ_CLAIMED, values, forms, types),
    ]


def note_locks(fetched: FetchedRows, answers: Sequence[pq.abc.PGresult]) -> None:
    """Store the results of `lock_conversations`."""
    locked = {rowid for (rowid,) in rows_of(answers[0])}
    fetched.locked |= locked
    fetched.claims.update({row[0]: row for row in rows_of(answers[1]) if row[0] in locked})


def note_rows(fetched: FetchedRows, keys: Sequence[ReadKey], answer: pq.abc.PGresult) -> None:
    """Store the result of one of the statements of `Planner.queries`."""
    rows = rows_of(answer)
    if len(keys) == 1:
        fetched.rows[keys[0]] = rows
        return
    for key in keys:
        fetched.rows[key] = []
    for number, *row in rows:
        fetched.rows[keys[number - 1]].append(tuple(row))


def group_writes(writes: Sequence[BufferedWrite]) -> list[tuple[str, list[Sequence[Any]]]]:
    """Group rows by statement, where no change between them prevents it.

    Rows are not moved before another change of the same tables, nor before an insert of rows that they may
    refer to.
    """
    groups: list[tuple[str, list[Sequence[Any]]]] = []
    open_: dict[str, list[Sequence[Any]]] = {}
    keys: dict[str, set[Any]] = {}
    for text, values, shape in writes:
        index = _key_index(text)
        rows = open_.get(text)
        if rows is not None and (index is None or values[index] not in keys[text]):
            rows.append(values)
        else:
            if shape.merged is None or (index is None and not text.startswith("INSERT")):
                open_.clear()  # rows are never moved past a statement that can't be merged
            for other in [each for each in open_ if _must_follow(each, text)]:
                del open_[other]
            rows = [values]
            groups.append((text, rows))
            if shape.merged is not None and (index is not None or text.startswith("INSERT")):
                open_[text], keys[text] = rows, set()
        if index is not None and text in keys:
            keys[text].add(values[index])
    return groups


def _must_follow(later: str, earlier: str) -> bool:
    """Return whether the rows of `later` must not be sent before those of `earlier`."""
    ours, theirs = shape_of(later).tables, shape_of(earlier).tables
    if not ours.isdisjoint(theirs):
        return True
    return earlier.startswith("INSERT") and _table_level(ours) > _table_level(theirs)


def _table_level(tables: Iterable[str]) -> int:
    return max(_TABLE_LEVELS.get(table, len(PARENT_TABLES)) for table in tables)


@lru_cache(maxsize=2_048)
def _key_index(text: str) -> int | None:
    """Return the index of the key in an UPDATE of one row; None for other statements."""
    found = _KEYED.fullmatch(text)
    return None if found is None else int(found[1]) - 1


# Divides by zero if not all rows were found, because then one of the states is out of date.
_COUNTED_SAVE: Final = "WITH saved AS ({} RETURNING 1) SELECT 1 / CAST(count(*) = ${} AS int) FROM saved"


def save_conversations(planner: Planner, text: str, rows: Sequence[Sequence[Any]]) -> Statement:
    """Return the statement that saves conversations.

    It fails if another transaction has changed one of them.
    """
    sql, values, forms, types = planner.merged(text, rows)
    return Statement(
        _counted(sql, len(values) + 1),
        [*values, b"%d" % len(rows)],
        [*forms, pq.Format.TEXT],
        [*types, INT8] if types else (),
    )


@lru_cache(maxsize=64)
def _counted(text: str, index: int) -> str:
    return _COUNTED_SAVE.format(text, index)


def lock_heads(projects: Sequence[int]) -> Statement:
    """Return the statement that locks the log heads of these projects."""
    return bound_statement(translate_placeholders(LOCK_HEADS)[0], (tuple(projects),))


def lock_heads_of(rowids: Sequence[int]) -> Statement:
    """Return the statement that locks the log heads of these conversations' projects."""
    return Statement(
        LOCK_HEADS_OF_CONVERSATIONS, [array_of(INT8, rowids)], [pq.Format.BINARY], [ARRAY_OF[INT8]]
    )


def heads_from(answer: pq.abc.PGresult) -> Mapping[int, LogHead]:
    """Return the heads in the result of `lock_heads`, by project."""
    return {head.project: head for head in map(head_from_row, rows_of(answer))}
