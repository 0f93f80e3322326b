"""The statements of a batch: what is fetched for its jobs, and what they have written, many rows in one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from math import inf
from typing import Any, Final

from psycopg import pq

from deskwire.storage.dialect import UNPLANNED
from deskwire.storage.postgres.commit.batch import CLAIMED, LOCKED, Fetched
from deskwire.storage.postgres.commit.buffer import Write
from deskwire.storage.postgres.commit.heads import LOCK, LOCK_OF, Head, head_of
from deskwire.storage.postgres.commit.laid import Saved
from deskwire.storage.postgres.commit.merging import each_of, shape_of, with_columns
from deskwire.storage.postgres.driver.arrays import ARRAY_OF, INT8, array_of
from deskwire.storage.postgres.driver.codec import rows_of
from deskwire.storage.postgres.driver.marks import translated
from deskwire.storage.postgres.driver.recall import Key, single
from deskwire.storage.postgres.driver.wire import Statement, Wire
from deskwire.storage.tables.conversations.columns import update

BEGIN: Final = Statement("BEGIN")
COMMIT: Final = Statement("COMMIT")
ROLLBACK: Final = Statement("ROLLBACK")
_KEYED: Final = re.compile(
    r"UPDATE .* WHERE \w+ = \$(\d+) ?(?: AND day = \$\d+"
    + re.escape(UNPLANNED)
    + r")?(?: AND status = 'pending')?",
    re.DOTALL,
)
"""An UPDATE of one row by its key, which may be merged with others if none has the same key."""

PARENTS: Final = (
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
)
"""Tables to whose rows those of others refer; of two of them the second may refer to the first."""
_GENERATIONS: Final = {table: number for number, table in enumerate(PARENTS)}

Types = dict[str, tuple[int, ...]]
"""PostgreSQL's numbers of the types of a statement's values, by its text."""


class Planner:
    """Makes statements for many rows; it remembers what it was told of the types of each."""

    def __init__(self) -> None:
        self._types: Types = {}

    async def learn(self, wire: Wire, texts: Iterable[str], patience_s: float = inf) -> None:
        """Ask for the types of the statements that are not known yet. Raises DatabaseError."""
        unknown = [text for text in dict.fromkeys(texts) if text not in self._types]
        if unknown:
            self._types.update(zip(unknown, await wire.describe(unknown, patience_s), strict=True))

    def many(self, text: str, rows: Sequence[Sequence[Any]]) -> Statement:
        """Return the statement for these rows; one that has been learned if there are several."""
        shape = shape_of(text)
        if len(rows) == 1 or shape.many is None:
            assert len(rows) == 1, "what can't be merged comes by itself"
            return single(text, rows[0])
        return with_columns(shape.many, self._types[text], rows, shape.day)

    def queries(self, keys: Iterable[Key]) -> list[tuple[Statement, list[Key]]]:
        """Return the statements that fetch the answers, each with the keys of its answers."""
        by_text: dict[str, list[Key]] = {}
        for key in keys:
            by_text.setdefault(key[0], []).append(key)
        found: list[tuple[Statement, list[Key]]] = []
        for text, alike in by_text.items():
            width = len(alike[0][1])
            if len(alike) == 1 or not width or any(isinstance(each, tuple) for each in alike[0][1]):
                found += [(single(*key), [key]) for key in alike]
                continue
            alike.sort(key=lambda key: key[1] if "FOR UPDATE" in key[0] else ())
            rows = [key[1] for key in alike]
            day = shape_of(text).day
            found.append((with_columns(each_of(text, width), self._types[text], rows, day), alike))
        return found


def locks(rowids: Sequence[int]) -> list[Statement]:
    """Return the statements that lock conversations, and then read what they are claimed with."""
    values, forms, types = [array_of(INT8, rowids)], [pq.Format.BINARY], [ARRAY_OF[INT8]]
    return [Statement(LOCKED, values, forms, types), Statement(CLAIMED, values, forms, types)]


def note_locks(fetched: Fetched, answers: Sequence[pq.abc.PGresult]) -> None:
    """Take the answers to `locks`."""
    locked = {rowid for (rowid,) in rows_of(answers[0])}
    fetched.locked |= locked
    fetched.claims.update({row[0]: row for row in rows_of(answers[1]) if row[0] in locked})


def note_rows(fetched: Fetched, keys: Sequence[Key], answer: pq.abc.PGresult) -> None:
    """Take the answer to one of `Planner.queries`."""
    rows = rows_of(answer)
    if len(keys) == 1:
        fetched.rows[keys[0]] = rows
        return
    for key in keys:
        fetched.rows[key] = []
    for number, *row in rows:
        fetched.rows[keys[number - 1]].append(tuple(row))


def grouped(writes: Sequence[Write]) -> list[tuple[str, list[Sequence[Any]]]]:
    """Put rows of one statement together where no other change of the same tables is between them, nor one they may refer to."""
    groups: list[tuple[str, list[Sequence[Any]]]] = []
    open_: dict[str, list[Sequence[Any]]] = {}
    keys: dict[str, set[Any]] = {}
    for text, values, shape in writes:
        place = _key_at(text)
        rows = open_.get(text)
        if rows is not None and (place is None or values[place] not in keys[text]):
            rows.append(values)
        else:
            if shape.many is None or (place is None and not text.startswith("INSERT")):
                open_.clear()  # whatever it is, nothing moves past it
            for other in [each for each in open_ if _stays_behind(each, text)]:
                del open_[other]
            rows = [values]
            groups.append((text, rows))
            if shape.many is not None and (place is not None or text.startswith("INSERT")):
                open_[text], keys[text] = rows, set()
        if place is not None and text in keys:
            keys[text].add(values[place])
    return groups


def _stays_behind(later: str, earlier: str) -> bool:
    """Tell whether rows of one statement may not be sent before another: it is of the same tables, or adds what they may refer to."""
    ours, theirs = shape_of(later).tables, shape_of(earlier).tables
    if not ours.isdisjoint(theirs):
        return True
    return earlier.startswith("INSERT") and _generation(ours) > _generation(theirs)


def _generation(tables: Iterable[str]) -> int:
    return max(_GENERATIONS.get(table, len(PARENTS)) for table in tables)


@lru_cache(maxsize=2_048)
def _key_at(text: str) -> int | None:
    """Return the place of the key among the values of an UPDATE of one row."""
    found = _KEYED.fullmatch(text)
    return None if found is None else int(found[1]) - 1


_RETURNED: Final = "WITH saved AS ({} RETURNING 1) SELECT 1 / CAST(count(*) = ${} AS int) FROM saved"
"""Fails if another number of rows was found: then one of the states is not the one that is stored."""


def saved_rows(conversations: Sequence[Saved]) -> dict[str, list[Sequence[Any]]]:
    """Return the rows of the changed conversations, by their statement; each expects the revision that was claimed."""
    found: dict[str, list[Sequence[Any]]] = {}
    for before, state, claimed in conversations:
        assert before is not None
        sql, values = update(before, state, claimed.routed)
        text = _expecting(sql)
        found.setdefault(text, []).append((*values, before.revision))
    return found


@lru_cache(maxsize=16)
def _expecting(sql: str) -> str:
    return translated(f"{sql} AND revision = ?")[0]


def save(planner: Planner, text: str, rows: Sequence[Sequence[Any]]) -> Statement:
    """Return the statement that saves conversations, and fails if one of them is another by now."""
    sql, values, forms, types = planner.many(text, rows)
    return Statement(
        _counted(sql, len(values) + 1),
        [*values, b"%d" % len(rows)],
        [*forms, pq.Format.TEXT],
        [*types, INT8] if types else (),
    )


@lru_cache(maxsize=64)
def _counted(text: str, place: int) -> str:
    return _RETURNED.format(text, place)


def lock_heads(projects: Sequence[int]) -> Statement:
    """Return the statement that locks the heads of these projects."""
    return single(translated(LOCK)[0], (tuple(projects),))


def lock_heads_of(rowids: Sequence[int]) -> Statement:
    """Return the statement that locks the heads of these conversations' projects."""
    return Statement(LOCK_OF, [array_of(INT8, rowids)], [pq.Format.BINARY], [ARRAY_OF[INT8]])


def heads_in(answer: pq.abc.PGresult) -> Mapping[int, Head]:
    """Return the heads that `lock_heads` has locked, by their projects."""
    return {head.project: head for head in map(head_of, rows_of(answer))}
