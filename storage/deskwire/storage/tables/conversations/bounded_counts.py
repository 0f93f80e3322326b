"""Counts of conversations with any filter, which read a bounded number of rows.

A count enters the index of the condition that the fewest conversations meet (`selective_paths`), or else an index of the list
(`ordered_paths`), and tests the filter for its first entries. The bound of rows is for filters that no index has whole: another list
finds the largest count within its first entries.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from deskwire.engine.conversations.listing import (
    NEWEST_FIRST,
    BoundedCount,
    ConversationFilter,
    ConversationSort,
)
from deskwire.storage.connection import Connection
from deskwire.storage.dialect import Dialect
from deskwire.storage.tables.conversations.access_paths import (
    AccessPath,
    Term,
    access_paths,
    hours_of,
    indexed,
    selective_paths,
)
from deskwire.storage.tables.conversations.bounded_lists import is_covered, ordered_paths
from deskwire.storage.tables.conversations.conditions import joined, remaining_terms

INDEX_COLUMNS: Final[Mapping[str, frozenset[str]]] = {
    "conversations_by_status": frozenset({"project", "archived", "status", "hour", "snoozed_until"}),
    "conversations_by_creation": frozenset({"project", "archived", "status", "created_at", "snoozed_until"}),
    "conversations_by_assignee": frozenset(
        {"project", "assignee_id", "archived", "status", "hour", "created_at", "snoozed_until"}
    ),
    "conversations_asleep": frozenset({"project", "archived", "hour", "snoozed_until"}),
    "conversations_waiting": frozenset({"project", "waiting_since", "archived", "snoozed_until"}),
    "conversations_hidden": frozenset({"project", "hour"}),
    "conversations_by_hour": frozenset({"project", "hour"}),
}
"""The columns of the indexes of lists."""
_COLUMNS: Final = {indexed(index): columns for index, columns in INDEX_COLUMNS.items()}
_COLUMN: Final = re.compile(r"\bc\.(\w+)")
_ENTRIES_FOR_FOUND: Final = 2
"""Entries of an index whose conversations are nearly all on the list, or that has all columns of the filter, for each one of the largest count."""


class BoundedCounter(Struct, frozen=True):
    """Counts the conversations with a filter without a text.

    Args:
        found_max: the largest count.
        examined_max: the rows that are read.
        measured_max: the entries up to which the indexes of selective conditions are compared.
    """

    conn: Connection
    dialect: Dialect
    project: int
    wanted: ConversationFilter
    found_max: int
    examined_max: int
    measured_max: int

    def count(self) -> BoundedCount:
        """Return the count."""
        found = examined = 0
        covered = is_covered(self.wanted, NEWEST_FIRST)
        for path in self._shortest():
            free = covered or not self._reads_rows([path])
            most = _ENTRIES_FOR_FOUND * self.found_max if free else self.examined_max - examined
            found += self._found(path, most, self.found_max - found)
            entries = most if found >= self.found_max else self._entries([path], most)
            examined += 0 if free else entries
            if entries >= most:
                return BoundedCount(found, complete=False, examined=examined)
        return BoundedCount(found, complete=True, examined=examined)

    def _found(self, path: AccessPath, entries_max: int, found_max: int) -> int:
        """Return the number of conversations of the list among the first entries of a path, counted up to a bound."""
        terms, remaining = self._terms(path), self._remaining(path)
        sql, values = bounded_count_query(path, terms, remaining, entries_max, found_max)
        return int(self._row(sql, values)[0])

    def _shortest(self) -> Sequence[AccessPath]:
        """Return paths to all conversations of the list: the first that can be counted whole, or else those with the fewest entries."""
        shortest, fewest = None, max(self.measured_max, self.examined_max)
        for paths in self._selective():
            entries = self._entries(paths, fewest)
            if entries < self.examined_max or not self._reads_rows(paths):
                return paths
            if entries < fewest:
                shortest, fewest = paths, entries
        ordered = ordered_paths(self.project, self.wanted, NEWEST_FIRST)
        if shortest is None or not self._reads_rows(ordered):
            return ordered
        return ordered if self._entries(ordered, self.examined_max) < self.examined_max else shortest

    def _selective(self) -> Iterator[Sequence[AccessPath]]:
        """Yield paths for the conditions that few conversations may meet."""
        if self.wanted.contact is not None:
            yield [*access_paths(self.project, self.wanted, NEWEST_FIRST)]
        if self.wanted.waiting:
            yield ordered_paths(self.project, self.wanted, ConversationSort("waiting"))
        yield from selective_paths(self.project, self.wanted, NEWEST_FIRST)

    def _entries(self, paths: Sequence[AccessPath], most: int) -> int:
        """Return the number of index entries on paths, counted up to a bound."""
        entries = 0
        for path in paths:
            sql, values = path_count_query(path, self._terms(path), most - entries)
            entries += self._row(sql, values)[0]
            if entries >= most:
                break
        return entries

    def _reads_rows(self, paths: Sequence[AccessPath]) -> bool:
        return any(reads_rows(path, self._remaining(path)) for path in paths)

    def _remaining(self, path: AccessPath) -> Sequence[Term]:
        """Return the conditions that the path does not cover."""
        return [*remaining_terms(self.dialect, path, self.wanted, NEWEST_FIRST)]

    def _terms(self, path: AccessPath) -> Sequence[Term]:
        """Return the conditions by which the index is entered, with the hours of the filter's period if the index has them."""
        if path.by_hour and "hour" in _COLUMNS.get(path.source, ()):
            return [*path.terms, *hours_of(self.wanted.since, self.wanted.until)]
        return path.terms

    def _row(self, sql: str, values: Sequence[Any]) -> Any:
        return self.conn.execute(self.dialect.text(sql), values).fetchone()


def reads_rows(path: AccessPath, remaining: Sequence[Term]) -> bool:
    """Return whether a count on a path needs columns that its index does not have."""
    columns = _COLUMNS.get(path.source)
    return columns is None or any(not columns.issuperset(_COLUMN.findall(term)) for term, _ in remaining)


def bounded_count_query(
    path: AccessPath, terms: Sequence[Term], remaining: Sequence[Term], entries_max: int, found_max: int
) -> tuple[str, tuple[Any, ...]]:
    """Return the statement that counts conversations of a list among the first entries of a path, with its values."""
    where, values = joined(terms)
    fits, some = joined(remaining)
    tested = f"CASE WHEN {fits} THEN 1 ELSE 0 END" if fits else "1"
    entries = f"SELECT {tested} AS fits FROM {path.source} WHERE {where} LIMIT ?"
    found = f"SELECT 1 FROM ({entries}) AS entry WHERE fits = 1 LIMIT ?"
    return f"SELECT count(*) FROM ({found}) AS found", (*some, *values, entries_max, found_max)


def path_count_query(path: AccessPath, terms: Sequence[Term], bound: int) -> tuple[str, tuple[Any, ...]]:
    """Return the statement that counts a path's index entries up to a bound, with its values."""
    where, values = joined(terms)
    source = path.count_source or path.source
    return f"SELECT count(*) FROM (SELECT 1 FROM {source} WHERE {where} LIMIT ?) AS found", (*values, bound)
