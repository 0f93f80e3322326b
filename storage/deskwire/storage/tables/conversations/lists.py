"""Lists of conversations: each filter and order uses an index, so that a page costs about the same at any size.

A list combines access paths: an index, or a part of one, with all conversations of the list that agree in some field, such as
the open ones of one assignee. A path returns them in the list's order, either because the index is in this order or because
they are few and sorted. Conditions that the index does not cover are checked in the rows. The paths of a list are merged
until the page is full.

Indexes by activity have the hour of the last activity, which changes rarely, and not its time, which each message changes;
SQLite sorts the conversations of an hour when it reaches them. If they are very many, `crowded_hours` reads them in another way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from heapq import merge
from itertools import islice
from typing import Any, Final

from deskwire.engine.conversations.listing import (
    BoundedCount,
    ConversationFilter,
    ConversationPageKey,
    ConversationSort,
    FoundConversations,
    ListedConversation,
)
from deskwire.engine.core.values import replace
from deskwire.storage.dialect import SQLITE, Dialect, either
from deskwire.storage.tables.contacts.contacts import CONTACT_COLUMNS, contact_of
from deskwire.storage.tables.conversations.access_paths import (
    NO_PATH,
    AccessPath,
    ChangePath,
    access_paths,
    by_change,
    hours_of,
    selective_paths,
    up_to_hour,
)
from deskwire.storage.tables.conversations.agent_view import SeenReads
from deskwire.storage.tables.conversations.bounded_counts import BoundedCounter, path_count_query
from deskwire.storage.tables.conversations.bounded_lists import (
    BoundedList,
    BoundedPage,
    is_covered,
    ordered_paths,
)
from deskwire.storage.tables.conversations.columns import SELECTED, WIDTH, conversation_of
from deskwire.storage.tables.conversations.conditions import (
    KEYS,
    TEXTS,
    after_key,
    changed,
    is_descending,
    joined,
    remaining_terms,
    text_term,
)
from deskwire.storage.tables.conversations.crowded_hours import Row, activity_order, change_order

_PAGE: Final = either(
    f"SELECT {SELECTED}, {CONTACT_COLUMNS} FROM {{numbers}} w {{and_then}} conversations c ON c.rowid = w.value "
    "JOIN contacts k ON k.rowid = c.contact"
)
FEW_BOUND: Final = 5_000
"""Up to this number of conversations a selective path is used: they share a tag, an attribute or a late change, and are read
and sorted. With more it is cheaper to filter all conversations in the order of the list."""


class ConversationListReads(SeenReads):
    """Queries on lists; see `conversations.ports.ConversationReader`."""

    def conversations(
        self,
        project: int,
        wanted: ConversationFilter,
        sort: ConversationSort,
        after: ConversationPageKey | None,
        limit: int,
    ) -> Sequence[ListedConversation]:
        assert wanted.text is None, "`search_conversations` looks for texts"
        return self._listed(
            self._page_keys(project, self._with_seen_mark(project, wanted), sort)(after, limit)
        )

    def search_conversations(
        self,
        project: int,
        wanted: ConversationFilter,
        sort: ConversationSort,
        after: ConversationPageKey | None,
        limit: int,
        examined_max: int | None = None,
    ) -> FoundConversations:
        wanted = self._with_seen_mark(project, wanted)
        read = self._bounded_page_keys(project, wanted, sort, examined_max)
        if wanted.text is None:
            page = read(after, limit)
            return FoundConversations(self._listed(page.keys), page.reached)
        found: list[ConversationPageKey] = []
        searched, size = 0, limit
        while True:
            page = read(after, size)
            some, texts = self._within(page.keys, SEARCHED_TEXTS_MAX - searched)
            having = self._with_text(some, wanted, limit - len(found))
            found += [place for place in some if place.rowid in having]
            searched += texts
            all_read = len(some) == len(page.keys)
            if len(found) >= limit or (all_read and page.reached is None and len(some) < size):
                return FoundConversations(self._listed(found[:limit]))
            if all_read and page.reached is not None:
                return FoundConversations(self._listed(found), page.reached)
            after, size = some[-1], min(4 * size, _SEARCHED_MAX)
            if searched >= SEARCHED_TEXTS_MAX:
                return FoundConversations(self._listed(found), after)

    def _bounded_page_keys(
        self,
        project: int,
        wanted: ConversationFilter,
        sort: ConversationSort,
        examined_max: int | None,
    ) -> Callable[[ConversationPageKey | None, int], BoundedPage]:
        """Return the function that reads the next page keys of a list, and examines a bounded number if there is a bound."""
        if examined_max is not None and not is_covered(wanted, sort):
            paths, few = self._paths(project, wanted, sort)
            if not (few or (wanted.contact is not None and self._are_few(paths))):
                bounded = BoundedList(self.conn, self.dialect, project, replace(wanted, text=None), sort)
                return lambda after, limit: bounded.read(after, limit, examined_max)
        read = self._page_keys(project, wanted, sort)
        return lambda after, limit: BoundedPage(read(after, limit))

    def matching_conversations(
        self, project: int, wanted: ConversationFilter, sort: ConversationSort, limit: int, examined_max: int
    ) -> tuple[Sequence[int], bool]:
        wanted = self._with_seen_mark(project, wanted)
        page = self._bounded_page_keys(project, wanted, sort, examined_max)(None, limit)
        return [each.rowid for each in page.keys], page.reached is None

    def count_some_conversations(
        self, project: int, wanted: ConversationFilter, found_max: int, examined_max: int
    ) -> BoundedCount:
        wanted = self._with_seen_mark(project, wanted)
        bounds = (found_max, examined_max, FEW_BOUND)
        return BoundedCounter(self.conn, self.dialect, project, wanted, *bounds).count()

    def _page_keys(
        self, project: int, wanted: ConversationFilter, sort: ConversationSort
    ) -> Callable[[ConversationPageKey | None, int], list[ConversationPageKey]]:
        """Return the function that reads the next page keys of a list; it does not search texts."""
        paths, few = self._paths(project, wanted, sort)
        wanted = replace(wanted, text=None)
        if sort.key == "updated" and not (few or self._are_few(paths)):
            return partial(self._by_last_change, project, wanted, sort)
        in_order = all(path.by_hour for path in paths)
        if (
            sort.key == "activity"
            and wanted.contact is None
            and not (few or in_order or self._are_few(paths))
        ):
            paths, in_order = [*ordered_paths(project, wanted, sort)], True
        if sort.key == "activity" and in_order and not few:
            return partial(self._newest_keys, project, paths, wanted, sort)

        def read(after: ConversationPageKey | None, limit: int) -> list[ConversationPageKey]:
            found = self._merged(paths, wanted, sort, after, limit, None)
            return [ConversationPageKey(*place) for place in islice(_once(found), limit)]

        return read

    def _merged(
        self,
        paths: Sequence[AccessPath],
        wanted: ConversationFilter,
        sort: ConversationSort,
        after: ConversationPageKey | None,
        limit: int,
        hour: int | None,
    ) -> Iterator[tuple[int, int]]:
        """Yield page keys of all paths in order, up to the end of an hour; from each path as many as the page has."""
        queries = [page_query(self.dialect, path, wanted, sort, after, limit, hour) for path in paths]
        pages = (self.conn.execute(self.dialect.text(sql), values) for sql, values in queries)
        return merge(*pages, reverse=is_descending(sort))

    def _newest_keys(
        self,
        project: int,
        paths: Sequence[AccessPath],
        wanted: ConversationFilter,
        sort: ConversationSort,
        after: ConversationPageKey | None,
        limit: int,
    ) -> list[ConversationPageKey]:
        """Return the first page keys of a list by activity."""

        def read_hours(after: ConversationPageKey | None, hour: int | None) -> Iterator[Row]:
            found = _once(self._merged(paths, wanted, sort, after, limit, hour))
            return ((value, rowid, 1) for value, rowid in found)

        order = activity_order(self.conn, self.dialect, project, paths, wanted, sort)
        found = order.rows(after, limit, read_hours)
        return [*islice((ConversationPageKey(value, rowid) for value, rowid, shown in found if shown), limit)]

    def _within(
        self, places: Sequence[ConversationPageKey], texts: int
    ) -> tuple[Sequence[ConversationPageKey], int]:
        """Return the first conversations whose texts add up to this number, at least one, and the number of their texts."""
        keys = self.dialect.listed([place.rowid for place in places])
        counts = dict(self.conn.execute(_MESSAGE_COUNTS[self.dialect], (keys,)).fetchall())
        total = 0
        for number, place in enumerate(places, 1):
            total += len(TEXTS) - 1 + counts[place.rowid]
            if total >= texts:
                return places[:number], total
        return places, total

    def _with_text(
        self, places: Sequence[ConversationPageKey], wanted: ConversationFilter, enough: int
    ) -> frozenset[int]:
        """Return the keys of the conversations with the wanted text, at least the first `enough` of them."""
        text, values = text_term(self.dialect, wanted)
        keys = self.dialect.listed([place.rowid for place in places])
        rows = self.conn.execute(f"{_WITH_CONTACT[self.dialect]} WHERE {text}", (keys, *values))
        # SQLite joins in this order, so it visits the keys in theirs, and continues the search for each row that is read.
        return frozenset(row[0] for row in (islice(rows, enough) if self.dialect is SQLITE else rows))

    def _listed(self, places: Sequence[ConversationPageKey]) -> list[ListedConversation]:
        keys = self.dialect.listed([place.rowid for place in places])
        rows = {row[_ROWID]: row for row in self.conn.execute(_PAGE[self.dialect], (keys,))}
        return [_listed(rows[place.rowid], place) for place in places]

    def count_conversations(
        self, project: int, wanted: ConversationFilter, sort: ConversationSort, bound: int
    ) -> int:
        found, wanted = 0, self._with_seen_mark(project, wanted)
        for path in self._paths(project, wanted, sort)[0]:
            sql, values = count_query(self.dialect, path, wanted, sort, bound - found)
            found += self.conn.execute(self.dialect.text(sql), values).fetchone()[0]
            if found >= bound:
                break
        return found

    def _with_seen_mark(self, project: int, wanted: ConversationFilter) -> ConversationFilter:
        """Return the filter with its user's seen mark, if it filters by unread messages."""
        if wanted.unread is None:
            return wanted
        return replace(wanted, seen_mark=self.seen_mark(wanted.user, project) or 0)

    def _paths(
        self, project: int, wanted: ConversationFilter, sort: ConversationSort
    ) -> tuple[list[AccessPath], bool]:
        """Return the access paths of a list, and whether few conversations are known to be on them."""
        if sort.key == "waiting" and wanted.waiting is False:
            return [], True
        for paths in selective_paths(project, wanted, sort):
            if self._are_few(paths):
                return list(paths), True
        return list(access_paths(project, wanted, sort)), False

    def _are_few(self, paths: Sequence[AccessPath]) -> bool:
        """Return whether these paths have fewer than FEW_BOUND conversations, before further conditions."""
        found = 0
        for path in paths:
            sql, values = path_count_query(path, path.terms, FEW_BOUND - found)
            found += self.conn.execute(self.dialect.text(sql), values).fetchone()[0]
            if found >= FEW_BOUND:
                return False
        return True

    def _by_last_change(
        self,
        project: int,
        wanted: ConversationFilter,
        sort: ConversationSort,
        after: ConversationPageKey | None,
        limit: int,
    ) -> list[ConversationPageKey]:
        """Return the first page keys of a list by change, merged from both of its paths (`by_change`)."""
        by_activity, others = by_change(project)
        order = change_order(self.conn, self.dialect, project, by_activity, wanted, sort)
        rows = (
            order.rows(after, limit, partial(self._changed, by_activity, wanted, sort, limit)),
            self._changed(others, wanted, sort, limit, after, None),
        )
        found = merge(*rows, reverse=is_descending(sort))
        return list(
            islice((ConversationPageKey(value, rowid) for value, rowid, shown in found if shown), limit)
        )

    def newest_active(self, project: int, size: int, among: Callable[[int], bool]) -> Iterator[int]:
        """Yield the keys of the conversations of a project, the last active one first, lazily.

        Args:
            size: the number of them that is usually enough.
            among: whether a conversation is wanted. Others may be yielded, too.
        """
        (path, _), everything, sort = by_change(project), ConversationFilter(), ConversationSort()
        path = replace(path, row_condition="")
        order = replace(change_order(self.conn, self.dialect, project, path, everything, sort), among=among)
        rows = order.rows(None, size, partial(self._changed, path, everything, sort, size))
        return (rowid for _, rowid, shown in rows if shown)

    def _changed(
        self,
        path: ChangePath,
        wanted: ConversationFilter,
        sort: ConversationSort,
        size: int,
        after: ConversationPageKey | None,
        hour: int | None,
    ) -> Iterator[Row]:
        """Yield the rows of `part_query`: lazily from SQLite, in growing parts from PostgreSQL, the first of this size."""
        if self.dialect is SQLITE:
            sql, values = part_query(self.dialect, path, wanted, sort, after, _ALL, hour)
            yield from self.conn.execute(self.dialect.text(sql), values)
            return
        after_key = after
        while True:
            sql, values = part_query(self.dialect, path, wanted, sort, after_key, size, hour)
            part = self.conn.execute(self.dialect.text(sql), values).fetchall()
            yield from part
            if len(part) < size:
                return
            after_key, size = ConversationPageKey(*part[-1][:2]), min(4 * size, _PART_MAX)


SEARCHED_TEXTS_MAX: Final = 50_000
"""Texts that a search reads in one call: up to 0.15 s of processor time if they are not in ASCII (ADR 59)."""
_SEARCHED_MAX: Final = (
    5_000  # conversations of a list that a search reads at a time; their texts have a bound of their own
)
_MESSAGE_COUNTS: Final = either(
    "SELECT c.rowid, c.messages FROM {numbers} w {and_then} conversations c ON c.rowid = w.value"
)
_WITH_CONTACT: Final = either(
    "SELECT c.rowid FROM {numbers} w {and_then} conversations c ON c.rowid = w.value "
    "{and_then} contacts k ON k.rowid = c.contact"
)

_ALL: Final = -1
"""The size of a part that has all rows."""
_PART_MAX: Final = 4_000
"""Maximum rows that a list by change reads at a time from PostgreSQL; the first read has the size of the page."""


_ROWID: Final = SELECTED.split(", ").index("c.rowid")


def _listed(row: Sequence[Any], place: ConversationPageKey) -> ListedConversation:
    return ListedConversation(conversation_of(row), contact_of(row[WIDTH:]), place)


def _once(found: Iterator[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Yield each page key once. A conversation with two of the tags comes twice, in a row."""
    last = None
    for place in found:
        if place != last:
            yield place
        last = place


def part_query(
    dialect: Dialect,
    path: ChangePath,
    wanted: ConversationFilter,
    sort: ConversationSort,
    after: ConversationPageKey | None,
    size: int,
    hour: int | None = None,
) -> tuple[str, tuple[Any, ...]]:
    """Return the statement for the next rows on a path by change up to the end of an hour, with its values; each row says whether the list has it."""
    direction, sign = ("DESC", "<") if is_descending(sort) else ("ASC", ">")
    terms, order = [*path.terms, *changed(path.key, wanted)], [path.key, "c.rowid"]
    if path.by_hour:
        order.insert(0, "c.hour")
        terms += hours_of(wanted.changed_since, wanted.changed_before)
        terms += hours_of(wanted.since, wanted.until)
        terms += up_to_hour(hour, descending=direction == "DESC")
    if after is not None:
        terms += after_key(path.key, sign, after, by_hour=path.by_hour)
    where, values = joined(terms)
    left = replace(wanted, changed_since=None, changed_before=None)
    fits, some = joined(
        [
            *([(path.row_condition, ())] if path.row_condition else []),
            *remaining_terms(dialect, NO_PATH, left, sort),
        ]
    )
    shown = f"CASE WHEN {fits} THEN 1 ELSE 0 END" if fits else "1"
    keys = ", ".join(f"{column} {direction}" for column in order)
    if _is_cheap_to_test(wanted):
        found = (
            f"SELECT {path.key}, c.rowid, {shown} FROM {path.source} WHERE {where} ORDER BY {keys} LIMIT ?"
        )
        return found, (*some, *values, size)
    part = (
        f"SELECT {path.key} AS value, c.rowid AS row FROM {path.source} WHERE {where} ORDER BY {keys} LIMIT ?"
    )
    source = _source(
        AccessPath(f"({part}) AS p {{and_then}} conversations c ON c.rowid = p.row", (), frozenset()), wanted
    )
    return (
        f"SELECT p.value, p.row, {shown} FROM {source} ORDER BY p.value {direction}, p.row {direction}",
        (*some, *values, size),
    )


def _is_cheap_to_test(wanted: ConversationFilter) -> bool:
    """Return whether the filter is cheap for a row. An expensive filter is applied in the order of the list only."""
    beside = (wanted.attributes or None, wanted.unread, wanted.mentioned, wanted.following)
    return all(each is None for each in beside)


def page_query(
    dialect: Dialect,
    path: AccessPath,
    wanted: ConversationFilter,
    sort: ConversationSort,
    after: ConversationPageKey | None,
    limit: int,
    hour: int | None = None,
) -> tuple[str, tuple[Any, ...]]:
    """Return the statement for the page keys of the first conversations on a path up to the end of an hour, with its values."""
    key = KEYS[sort.key]
    direction, sign = ("DESC", "<") if is_descending(sort) else ("ASC", ">")
    order = [key, "c.rowid"]
    terms = [*path.terms, *remaining_terms(dialect, path, wanted, sort)]
    hours = path.by_hour and sort.key == "activity"
    if hours:
        order.insert(0, "c.hour")
        terms += hours_of(wanted.since, wanted.until)
        terms += up_to_hour(hour, descending=direction == "DESC")
    if after is not None:
        terms += after_key(key, sign, after, by_hour=hours)
    where, values = joined(terms)
    keys = ", ".join(f"{column} {direction}" for column in order)
    source = _source(path, wanted)
    return f"SELECT {key}, c.rowid FROM {source} WHERE {where} ORDER BY {keys} LIMIT ?", (*values, limit)


def count_query(
    dialect: Dialect, path: AccessPath, wanted: ConversationFilter, sort: ConversationSort, bound: int
) -> tuple[str, tuple[Any, ...]]:
    """Return the statement that counts the conversations on a path up to a bound, with its values."""
    where, values = joined([*path.terms, *remaining_terms(dialect, path, wanted, sort)])
    source = _source(path, wanted)
    return f"SELECT count(*) FROM (SELECT 1 FROM {source} WHERE {where} LIMIT ?) AS found", (*values, bound)


def _source(path: AccessPath, wanted: ConversationFilter) -> str:
    return path.source if wanted.text is None else f"{path.source} JOIN contacts k ON k.rowid = c.contact"
