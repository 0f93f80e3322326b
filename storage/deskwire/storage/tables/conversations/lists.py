"""Lists of conversations: each filter and sort by an index, so that a page costs about the same at any size.

A list is put together from ways: a way is an index, or a part of one, that has all conversations of the list which
agree in something, such as the open ones of one assignee. It gives them in the list's order, either because the index
is in it or because they are few and sorted; what the index can't tell is looked up in the rows. The ways of a list are merged
as far as the page goes.

Indexes in the order of activity have its hour, which changes rarely, and not its time, which every message changes;
SQLite sorts the conversations of one hour as it comes to them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from heapq import merge
from itertools import islice
from typing import Any, Final

from deskwire.engine.conversations.listing import (
    ConversationFilter,
    ConversationPageKey,
    ConversationSort,
    FoundConversations,
    ListedConversation,
    SortKey,
)
from deskwire.engine.conversations.tags import tag_key
from deskwire.engine.core.values import replace
from deskwire.storage.dialect import SQLITE, Dialect, either
from deskwire.storage.folded_patterns import contains
from deskwire.storage.tables.contacts.contacts import CONTACT_COLUMNS, contact_of
from deskwire.storage.tables.conversations.access_paths import (
    AccessPath,
    ChangePath,
    Term,
    access_paths,
    by_change,
    hours_of,
    one_of,
    selective_paths,
)
from deskwire.storage.tables.conversations.agent_view import UNREAD, SeenReads, unread_values
from deskwire.storage.tables.conversations.attributes import attribute_condition
from deskwire.storage.tables.conversations.columns import HOUR_MS, SELECTED, WIDTH, conversation_of

_KEYS: Final[Mapping[SortKey, str]] = {
    "activity": "c.activity",
    "waiting": "c.waiting_since",
    "created": "c.created_at",
    "updated": "c.updated_at",
}
_PAGE: Final = either(
    f"SELECT {SELECTED}, {CONTACT_COLUMNS} FROM {{numbers}} w {{and_then}} conversations c ON c.rowid = w.value "
    "JOIN contacts k ON k.rowid = c.contact"
)
FEW_BOUND: Final = 5_000
"""Conversations from which on it is cheaper to look for what they have in common among all than to sort all that have it:
a tag, an attribute, a late change; and whatever few have, in an order that its index is not in."""


class ConversationListReads(SeenReads):
    """Queries on lists; the methods are those of `conversations.ports.ConversationReader`."""

    def conversations(
        self,
        project: int,
        wanted: ConversationFilter,
        sort: ConversationSort,
        after: ConversationPageKey | None,
        limit: int,
    ) -> Sequence[ListedConversation]:
        assert wanted.text is None, "`search_conversations` looks for texts"
        return self._listed(self._places(project, self._marked(project, wanted), sort)(after, limit))

    def search_conversations(
        self,
        project: int,
        wanted: ConversationFilter,
        sort: ConversationSort,
        after: ConversationPageKey | None,
        limit: int,
    ) -> FoundConversations:
        if wanted.text is None:
            return FoundConversations(self.conversations(project, wanted, sort, after, limit))
        places_after = self._places(project, self._marked(project, wanted), sort)
        found: list[ConversationPageKey] = []
        looked_at, size = 0, limit
        while True:
            places = places_after(after, size)
            some, texts = self._within(places, SEARCHED_TEXTS_MAX - looked_at)
            having = self._having_text(some, wanted, limit - len(found))
            found += [place for place in some if place.rowid in having]
            looked_at += texts
            if len(found) >= limit or (len(some) == len(places) < size):
                return FoundConversations(self._listed(found[:limit]))
            after, size = some[-1], min(4 * size, _SEARCHED_MAX)
            if looked_at >= SEARCHED_TEXTS_MAX:
                return FoundConversations(self._listed(found), after)

    def _places(
        self, project: int, wanted: ConversationFilter, sort: ConversationSort
    ) -> Callable[[ConversationPageKey | None, int], list[ConversationPageKey]]:
        """Return the function that reads the next places of a list; the texts of its conversations are not searched."""
        ways, few = self._ways(project, wanted, sort)
        wanted = replace(wanted, text=None)
        if sort.key == "updated" and not (few or self._are_few(ways)):
            return partial(self._in_order_of_change, project, wanted, sort)

        def read(after: ConversationPageKey | None, limit: int) -> list[ConversationPageKey]:
            queries = [page_query(self.dialect, way, wanted, sort, after, limit) for way in ways]
            pages = (self.conn.execute(self.dialect.text(sql), values) for sql, values in queries)
            found = merge(*pages, reverse=is_descending(sort))
            return [ConversationPageKey(*place) for place in islice(_once(found), limit)]

        return read

    def _within(
        self, places: Sequence[ConversationPageKey], texts: int
    ) -> tuple[Sequence[ConversationPageKey], int]:
        """Return the first conversations that reach this number of texts together, at least one, and the number of their texts."""
        keys = self.dialect.listed([place.rowid for place in places])
        counts = dict(self.conn.execute(_MESSAGES[self.dialect], (keys,)).fetchall())
        total = 0
        for number, place in enumerate(places, 1):
            total += len(_TEXTS) - 1 + counts[place.rowid]
            if total >= texts:
                return places[:number], total
        return places, total

    def _having_text(
        self, places: Sequence[ConversationPageKey], wanted: ConversationFilter, enough: int
    ) -> frozenset[int]:
        """Return the keys of the conversations that have the wanted text, at least the first `enough` of them."""
        text, values = _text(self.dialect, wanted)
        keys = self.dialect.listed([place.rowid for place in places])
        rows = self.conn.execute(f"{_HAVING[self.dialect]} WHERE {text}", (keys, *values))
        # SQLite joins in this order, so it goes through the keys in theirs, and searches further for each row that is read.
        return frozenset(row[0] for row in (islice(rows, enough) if self.dialect is SQLITE else rows))

    def _listed(self, places: Sequence[ConversationPageKey]) -> list[ListedConversation]:
        keys = self.dialect.listed([place.rowid for place in places])
        rows = {row[_ROWID]: row for row in self.conn.execute(_PAGE[self.dialect], (keys,))}
        return [_listed(rows[place.rowid], place) for place in places]

    def count_conversations(
        self, project: int, wanted: ConversationFilter, sort: ConversationSort, bound: int
    ) -> int:
        found, wanted = 0, self._marked(project, wanted)
        for way in self._ways(project, wanted, sort)[0]:
            sql, values = count_query(self.dialect, way, wanted, sort, bound - found)
            found += self.conn.execute(self.dialect.text(sql), values).fetchone()[0]
            if found >= bound:
                break
        return found

    def _marked(self, project: int, wanted: ConversationFilter) -> ConversationFilter:
        """Return the filter with the time up to which its user has seen everything, if it asks for what was not seen."""
        if wanted.unread is None:
            return wanted
        return replace(wanted, seen_mark=self.seen_mark(wanted.user, project) or 0)

    def _ways(
        self, project: int, wanted: ConversationFilter, sort: ConversationSort
    ) -> tuple[list[AccessPath], bool]:
        """Return the ways to a list, and whether it is known that few conversations are on them."""
        if sort.key == "waiting" and wanted.waiting is False:
            return [], True
        for ways in selective_paths(project, wanted, sort):
            if self._are_few(ways):
                return list(ways), True
        return list(access_paths(project, wanted, sort)), False

    def _are_few(self, ways: Sequence[AccessPath]) -> bool:
        """Return whether fewer than MANY conversations are on these ways, whatever their ways do not tell."""
        found = 0
        for way in ways:
            sql, values = path_count_query(way, FEW_BOUND - found)
            found += self.conn.execute(self.dialect.text(sql), values).fetchone()[0]
            if found >= FEW_BOUND:
                return False
        return True

    def _in_order_of_change(
        self,
        project: int,
        wanted: ConversationFilter,
        sort: ConversationSort,
        after: ConversationPageKey | None,
        limit: int,
    ) -> list[ConversationPageKey]:
        """Return the first places of a list by change, from both of its ways (`by_change`), read as far as the page goes."""
        rows = [self._changed(way, wanted, sort, after, limit) for way in by_change(project)]
        found = merge(*rows, reverse=is_descending(sort))
        return list(
            islice((ConversationPageKey(value, rowid) for value, rowid, shown in found if shown), limit)
        )

    def _changed(
        self,
        way: ChangePath,
        wanted: ConversationFilter,
        sort: ConversationSort,
        after: ConversationPageKey | None,
        size: int,
    ) -> Iterator[tuple[int, int, int]]:
        """Yield the rows of `part_query`: from SQLite as they are asked for, and from PostgreSQL in parts, the first of this size."""
        if self.dialect is SQLITE:
            sql, values = part_query(self.dialect, way, wanted, sort, after, _ALL)
            yield from self.conn.execute(self.dialect.text(sql), values)
            return
        behind = after
        while True:
            sql, values = part_query(self.dialect, way, wanted, sort, behind, size)
            part = self.conn.execute(self.dialect.text(sql), values).fetchall()
            yield from part
            if len(part) < size:
                return
            behind, size = ConversationPageKey(*part[-1][:2]), min(4 * size, _PART_MAX)


SEARCHED_TEXTS_MAX: Final = 50_000
"""Texts that a search looks at in one call: up to 0.15 s of processor time where they are not in ASCII (ADR 59)."""
_SEARCHED_MAX: Final = (
    5_000  # conversations of a list that are read at a time; their texts are bounded besides
)
_MESSAGES: Final = either(
    "SELECT c.rowid, c.messages FROM {numbers} w {and_then} conversations c ON c.rowid = w.value"
)
_HAVING: Final = either(
    "SELECT c.rowid FROM {numbers} w {and_then} conversations c ON c.rowid = w.value "
    "{and_then} contacts k ON k.rowid = c.contact"
)

_ALL: Final = -1
"""The size of a part with all rows."""
_PART_MAX: Final = 4_000
"""Rows that a list by change reads at a time from PostgreSQL at most; it begins with as many as the page has."""


_ROWID: Final = SELECTED.split(", ").index("c.rowid")


def _listed(row: Sequence[Any], place: ConversationPageKey) -> ListedConversation:
    return ListedConversation(conversation_of(row), contact_of(row[WIDTH:]), place)


def _once(found: Iterator[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Yield each place once: a conversation with two of the tags comes twice, one after the other."""
    last = None
    for place in found:
        if place != last:
            yield place
        last = place


def is_descending(sort: ConversationSort) -> bool:
    """Return whether the largest value of the sort's column comes first; the longest wait has the smallest."""
    return (sort.order == "desc") != (sort.key == "waiting")


def part_query(
    dialect: Dialect,
    way: ChangePath,
    wanted: ConversationFilter,
    sort: ConversationSort,
    after: ConversationPageKey | None,
    size: int,
) -> tuple[str, tuple[Any, ...]]:
    """Return the statement for the next rows on a way by change, each with whether the list shows it, with its values."""
    direction, sign = ("DESC", "<") if is_descending(sort) else ("ASC", ">")
    terms, order = [*way.terms, *_changed(way.key, wanted)], [way.key, "c.rowid"]
    if way.hours:
        order.insert(0, "c.hour")
        terms += hours_of(wanted.changed_since, wanted.changed_before)
        terms += hours_of(wanted.since, wanted.until)
    if after is not None:
        terms += _behind(way.key, sign, after, hours=way.hours)
    where, values = _joined(terms)
    left = replace(wanted, changed_since=None, changed_before=None)
    all_ways = AccessPath("", (), frozenset())
    fits, some = _joined([*([(way.own, ())] if way.own else []), *_rest(dialect, all_ways, left, sort)])
    shown = f"CASE WHEN {fits} THEN 1 ELSE 0 END" if fits else "1"
    keys = ", ".join(f"{column} {direction}" for column in order)
    if _tells(wanted):
        found = f"SELECT {way.key}, c.rowid, {shown} FROM {way.source} WHERE {where} ORDER BY {keys} LIMIT ?"
        return found, (*some, *values, size)
    part = (
        f"SELECT {way.key} AS value, c.rowid AS row FROM {way.source} WHERE {where} ORDER BY {keys} LIMIT ?"
    )
    source = _source(
        AccessPath(f"({part}) AS p {{and_then}} conversations c ON c.rowid = p.row", (), frozenset()), wanted
    )
    return (
        f"SELECT p.value, p.row, {shown} FROM {source} ORDER BY p.value {direction}, p.row {direction}",
        (*some, *values, size),
    )


def _tells(wanted: ConversationFilter) -> bool:
    """Return whether it is quickly told of a row whether a list shows it; what takes longer is looked at in the list's order alone."""
    beside = (wanted.attributes or None, wanted.unread)
    return all(each is None for each in beside)


def _changed(key: str, wanted: ConversationFilter) -> Iterator[Term]:
    if wanted.changed_since is not None:
        yield f"{key} >= ?", (wanted.changed_since,)
    if wanted.changed_before is not None:
        yield f"{key} < ?", (wanted.changed_before,)


def page_query(
    dialect: Dialect,
    way: AccessPath,
    wanted: ConversationFilter,
    sort: ConversationSort,
    after: ConversationPageKey | None,
    limit: int,
) -> tuple[str, tuple[Any, ...]]:
    """Return the statement for the places of the first conversations on a way, with its values."""
    key = _KEYS[sort.key]
    direction, sign = ("DESC", "<") if is_descending(sort) else ("ASC", ">")
    order = [key, "c.rowid"]
    terms = [*way.terms, *_rest(dialect, way, wanted, sort)]
    hours = way.hours and sort.key == "activity"
    if hours:
        order.insert(0, "c.hour")
        terms += hours_of(wanted.since, wanted.until)
    if after is not None:
        terms += _behind(key, sign, after, hours=hours)
    where, values = _joined(terms)
    keys = ", ".join(f"{column} {direction}" for column in order)
    source = _source(way, wanted)
    return f"SELECT {key}, c.rowid FROM {source} WHERE {where} ORDER BY {keys} LIMIT ?", (*values, limit)


def count_query(
    dialect: Dialect, way: AccessPath, wanted: ConversationFilter, sort: ConversationSort, bound: int
) -> tuple[str, tuple[Any, ...]]:
    """Return the statement that counts the conversations on a way up to a bound, with its values."""
    where, values = _joined([*way.terms, *_rest(dialect, way, wanted, sort)])
    source = _source(way, wanted)
    return f"SELECT count(*) FROM (SELECT 1 FROM {source} WHERE {where} LIMIT ?) AS found", (*values, bound)


def path_count_query(way: AccessPath, bound: int) -> tuple[str, tuple[Any, ...]]:
    """Return the statement that counts up to a bound what a way's index is entered with, with its values."""
    where, values = _joined(way.terms)
    source = way.counted or way.source
    return f"SELECT count(*) FROM (SELECT 1 FROM {source} WHERE {where} LIMIT ?) AS found", (*values, bound)


def _source(way: AccessPath, wanted: ConversationFilter) -> str:
    return way.source if wanted.text is None else f"{way.source} JOIN contacts k ON k.rowid = c.contact"


def _behind(key: str, sign: str, after: ConversationPageKey, *, hours: bool) -> Iterator[Term]:
    """Yield the conditions of what comes behind a place in the order of a column, by whose hour an index may go."""
    if hours:
        yield f"c.hour {sign}= ?", (after.value // HOUR_MS,)
    yield f"({key}, c.rowid) {sign} (?, ?)", (after.value, after.rowid)


def _rest(
    dialect: Dialect, way: AccessPath, wanted: ConversationFilter, sort: ConversationSort
) -> Iterator[Term]:
    """Yield the conditions of a list that its way does not tell."""
    if way.own:
        yield way.own, ()
    told: dict[str, Any] = dict.fromkeys(way.told & _FIELDS)
    left = replace(wanted, **told)
    for column, values in (("status", left.statuses), ("assignee_id", left.assignees)):
        if values is not None:
            yield one_of(f"{{unindexed}}c.{column}", values)
    for column, flag in (("archived", left.archived), ("visible", left.visible)):
        if flag is not None:
            yield f"{{unindexed}}c.{column} = ?", (flag,)
    if left.snoozed is not None:
        yield f"c.snoozed_until IS {'NOT ' if left.snoozed else ''}NULL", ()
    if left.tags is not None:
        tag, values = one_of("g.folded", [*map(tag_key, left.tags)])
        yield (
            f"EXISTS (SELECT 1 FROM conversation_tags g WHERE g.conversation = c.rowid AND {tag})",
            values,
        )
    waiting = True if sort.key == "waiting" and "waiting" not in way.told else left.waiting
    if waiting is not None:
        yield f"c.waiting_since IS {'NOT ' if waiting else ''}NULL", ()
    yield from _behind_rows(dialect, left)


_FIELDS: Final = frozenset(ConversationFilter.__struct_fields__)


def _behind_rows(dialect: Dialect, wanted: ConversationFilter) -> Iterator[Term]:
    """Yield the conditions that no index serves."""
    yield from _active(wanted)
    if wanted.unread is not None:
        yield f"{'' if wanted.unread else 'NOT '}({UNREAD})", unread_values(wanted.user, wanted.seen_mark)
    yield from _changed("c.updated_at", wanted)
    if wanted.imported_since is not None:
        yield "c.imported_at >= ?", (wanted.imported_since,)
    if wanted.unread_by_contact is not None:
        yield "c.unread = ?", (wanted.unread_by_contact,)
    if wanted.rated is not None:
        yield f"c.rating IS {'NOT ' if wanted.rated else ''}NULL", ()
    if wanted.rating is not None:
        yield "c.rating BETWEEN ? AND ?", wanted.rating
    for attribute in wanted.attributes:
        yield attribute_condition(dialect, "c.attributes", attribute)
    if wanted.text is not None:
        yield _text(dialect, wanted)


def _text(dialect: Dialect, wanted: ConversationFilter) -> Term:
    assert wanted.text is not None, "it is asked for"
    found = [contains(dialect, column, wanted.text) for column in _TEXTS]
    *names, message = [condition for condition, _ in found]
    whose = "m.conversation = c.rowid" if wanted.notes else "m.conversation = c.rowid AND m.internal = 0"
    said = f"EXISTS (SELECT 1 FROM messages m WHERE {whose} AND {message})"
    return f"({' OR '.join(names)} OR {said})", tuple(value for _, values in found for value in values)


def _active(wanted: ConversationFilter) -> Iterator[Term]:
    if wanted.since is not None:
        yield "c.activity >= ?", (wanted.since,)
    if wanted.until is not None:
        yield "c.activity < ?", (wanted.until,)


def _joined(terms: Sequence[Term]) -> Term:
    return " AND ".join(term for term, _ in terms), tuple(value for _, some in terms for value in some)


_TEXTS: Final = ("c.title", "k.name", "k.email", "k.user_id", "m.text")
"""What a part of a text is looked for in: the title, what the contact is known by, and last the text of a message `m`."""
