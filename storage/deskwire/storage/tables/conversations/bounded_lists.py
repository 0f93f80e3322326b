"""Lists of conversations that examine a bounded number of rows for a page, whatever their filter is.

A filter that few conversations may meet starts from its index (`selective_paths`). If no condition is selective, the list
examines conversations in its order until the page is full or the bound is reached. The next page continues there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from heapq import merge
from itertools import product
from typing import Any, Final

from msgspec import Struct

from deskwire.engine.conversations.conversation import Status
from deskwire.engine.conversations.listing import ConversationFilter, ConversationPageKey, ConversationSort
from deskwire.engine.core.values import replace
from deskwire.storage.connection import Connection
from deskwire.storage.dialect import Dialect
from deskwire.storage.tables.conversations.access_paths import (
    OUT_OF_ORDER,
    AccessPath,
    Term,
    by_hiding,
    hours_of,
    indexed,
    one_of,
    possible,
    up_to_hour,
)
from deskwire.storage.tables.conversations.conditions import (
    KEYS,
    after_key,
    is_descending,
    joined,
    remaining_terms,
)
from deskwire.storage.tables.conversations.crowded_hours import Row, activity_order

_PART_MAX: Final = 4_000  # rows of one statement; the first has four times the size of the page


class BoundedPage(Struct, frozen=True):
    """The keys of a page. `reached` is the key at which the bound ended it before it was full."""

    keys: Sequence[ConversationPageKey]
    reached: ConversationPageKey | None = None


def is_covered(wanted: ConversationFilter, sort: ConversationSort) -> bool:
    """Return whether an index in the order of the list has nearly only conversations of this filter."""
    plain = replace(wanted, statuses=None, archived=None, user=0, seen_mark=0, text=None, merged=None)
    if plain.snoozed is False:
        plain = replace(plain, snoozed=None)
    if plain.visible is True:
        plain = replace(plain, visible=None)
    if sort.key == "waiting" and plain.waiting:
        plain = replace(plain, waiting=None)
    if sort.key == "activity":
        plain = replace(plain, assignees=None, since=None, until=None)
    return plain == ConversationFilter(notes=wanted.notes)


def ordered_paths(project: int, wanted: ConversationFilter, sort: ConversationSort) -> Sequence[AccessPath]:
    """Return paths to all conversations of a list, each in the list's order."""
    bounds, paths = _bounds(wanted, sort), [*_paths(project, wanted, sort)]
    if bounds:
        in_order = f"NOT {OUT_OF_ORDER}"
        paths = [replace(path, terms=(*path.terms, *bounds), row_condition=in_order) for path in paths]
        terms: tuple[Term, ...] = (("c.project = ?", (project,)), (OUT_OF_ORDER, ()))
        paths.append(AccessPath(indexed("conversations_out_of_order"), terms, frozenset()))
    return [replace(path, by_hour=sort.key == "activity") for path in paths]


def _bounds(wanted: ConversationFilter, sort: ConversationSort) -> list[Term]:
    """Return bounds of the list's key that follow from its other times, unless the times are out of order."""
    if sort.key == "activity" and wanted.created_since is not None:
        return [*hours_of(wanted.created_since, None)]
    if sort.key == "created" and wanted.until is not None:
        return [("c.created_at < ?", (wanted.until,))]
    return []


def _paths(project: int, wanted: ConversationFilter, sort: ConversationSort) -> Iterator[AccessPath]:
    home: Term = ("c.project = ?", (project,))
    part: Term
    terms: list[Term]
    statuses, archived = possible(wanted, sort)
    parts: Sequence[tuple[bool, Status]] = [*product(archived, statuses)]
    if sort.key == "waiting":
        terms = [home, ("c.waiting_since IS NOT NULL", ())]
        if wanted.waiting_before is not None:
            terms.append(("c.waiting_since < ?", (wanted.waiting_before,)))
        yield AccessPath(indexed("conversations_waiting"), (*terms,), frozenset({"waiting"}))
    elif sort.key == "created":
        terms = [*_created(wanted)]
        for flag, status in parts:
            part = ("c.archived = ? AND c.status = ?", (flag, status))
            covered = frozenset({"archived", "statuses", "created_since", "created_before"})
            yield AccessPath(indexed("conversations_by_creation"), (home, part, *terms), covered)
    elif wanted.snoozed:
        for flag in archived:
            part = ("c.archived = ? AND c.snoozed_until IS NOT NULL", (flag,))
            yield AccessPath(
                indexed("conversations_asleep"), (home, part), frozenset({"archived", "snoozed"})
            )
    elif wanted.assignees is not None:
        for assignee, (flag, status) in product(wanted.assignees, parts):
            part = ("c.archived = ? AND c.status = ?", (flag, status))
            terms = [home, one_of("c.assignee_id", [assignee]), part]
            covered = frozenset({"assignees", "archived", "statuses"})
            yield AccessPath(indexed("conversations_by_assignee"), (*terms,), covered)
    elif wanted.visible is False:
        yield by_hiding(project)
    else:
        for flag, status in parts:
            part = ("c.archived = ? AND c.status = ?", (flag, status))
            yield AccessPath(
                indexed("conversations_by_status"), (home, part), frozenset({"archived", "statuses"})
            )


def _created(wanted: ConversationFilter) -> Iterator[Term]:
    if wanted.created_since is not None:
        yield "c.created_at >= ?", (wanted.created_since,)
    if wanted.created_before is not None:
        yield "c.created_at < ?", (wanted.created_before,)


class BoundedList:
    """A list that is read in its order, and examines a bounded number of conversations for each page."""

    def __init__(
        self,
        conn: Connection,
        dialect: Dialect,
        project: int,
        wanted: ConversationFilter,
        sort: ConversationSort,
    ) -> None:
        self._conn, self._dialect, self._wanted, self._sort = conn, dialect, wanted, sort
        self._project = project
        self._paths = ordered_paths(project, wanted, sort)

    def read(self, after: ConversationPageKey | None, limit: int, examined_max: int) -> BoundedPage:
        """Return the next page after a key."""
        size = min(4 * limit, examined_max)
        keys, last, examined = list[ConversationPageKey](), None, 0
        for value, rowid, shown in self._in_order(after, limit, size):
            key = ConversationPageKey(value, rowid)
            if key != last:  # two paths may have the same conversation, and only one of them shows it
                if examined >= examined_max:
                    return BoundedPage(keys, last)
                last, examined = key, examined + 1
            if shown and key not in keys[-1:]:
                keys.append(key)
                if len(keys) == limit:
                    return BoundedPage(keys)
        return BoundedPage(keys)

    def _in_order(self, after: ConversationPageKey | None, limit: int, size: int) -> Iterator[Row]:
        """Yield the rows of all paths in order."""

        def merged(after: ConversationPageKey | None, hour: int | None) -> Iterator[Row]:
            rows = [self._rows(path, after, size, hour) for path in self._paths]
            return merge(*rows, reverse=is_descending(self._sort))

        if self._sort.key != "activity":
            return merged(after, None)
        order = activity_order(
            self._conn, self._dialect, self._project, self._paths, self._wanted, self._sort
        )
        return order.rows(after, limit, merged)

    def _rows(
        self, path: AccessPath, after: ConversationPageKey | None, size: int, hour: int | None
    ) -> Iterator[Row]:
        """Yield rows on a path in order, in growing parts: the value of the key, the row, whether the list has it."""
        while True:
            sql, values = scan_query(self._dialect, path, self._wanted, self._sort, after, size, hour)
            part = self._conn.execute(self._dialect.text(sql), values).fetchall()
            yield from part
            if len(part) < size:
                return
            after, size = ConversationPageKey(*part[-1][:2]), min(4 * size, _PART_MAX)


def scan_query(
    dialect: Dialect,
    path: AccessPath,
    wanted: ConversationFilter,
    sort: ConversationSort,
    after: ConversationPageKey | None,
    size: int,
    hour: int | None = None,
) -> tuple[str, tuple[Any, ...]]:
    """Return the statement for the next rows on a path up to the end of an hour, whether the list has them or not, with its values."""
    key = KEYS[sort.key]
    direction, sign = ("DESC", "<") if is_descending(sort) else ("ASC", ">")
    order, terms = [key, "c.rowid"], [*path.terms]
    if path.by_hour:
        order.insert(0, "c.hour")
        terms += hours_of(wanted.since, wanted.until)
        terms += up_to_hour(hour, descending=direction == "DESC")
    if after is not None:
        terms += after_key(key, sign, after, by_hour=path.by_hour)
    where, values = joined(terms)
    keys = ", ".join(f"{column} {direction}" for column in order)
    fits, some = joined([*remaining_terms(dialect, path, wanted, sort)])
    shown = f"CASE WHEN {fits} THEN 1 ELSE 0 END" if fits else "1"
    part = f"SELECT {key} AS value, c.rowid AS row FROM {path.source} WHERE {where} ORDER BY {keys} LIMIT ?"
    # The conditions are tested for the rows of the part only, in a second step: they may be expensive.
    source = f"({part}) AS p {{and_then}} conversations c ON c.rowid = p.row"
    statement = (
        f"SELECT p.value, p.row, {shown} FROM {source} ORDER BY p.value {direction}, p.row {direction}"
    )
    return statement, (*some, *values, size)
