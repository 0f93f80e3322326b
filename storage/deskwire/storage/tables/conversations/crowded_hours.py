"""Lists by activity in an hour in which very many conversations were active last.

Indexes have the hour of the last activity, and the conversations of one hour are sorted when they are read. That is cheap for some
hundreds. In a crowded hour a list reads messages instead, which are indexed by their time: the last activity of a conversation is
its last message, or its creation if it has none. Each message that is the last one of its conversation is an entry of the list, if
the conversation passes the filter. If a page is not full after `MESSAGES_MAX` messages, the list sorts the rest of the hour.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

from msgspec import Struct

from deskwire.engine.conversations.listing import ConversationFilter, ConversationPageKey, ConversationSort
from deskwire.engine.core.values import replace
from deskwire.storage.connection import Connection
from deskwire.storage.dialect import POSTGRES, SQLITE, Dialect
from deskwire.storage.tables.conversations.access_paths import (
    NO_PATH,
    AccessPath,
    ChangePath,
    Term,
    hours_of,
    indexed,
)
from deskwire.storage.tables.conversations.columns import HOUR_MS
from deskwire.storage.tables.conversations.conditions import is_descending, joined, remaining_terms

CROWD_MIN: Final = 4_000
"""Index entries of a list that make an hour crowded; fewer are sorted in at most six milliseconds."""
CROWD_MIN_OF_ALL: Final = 512
"""The same for a list of nearly all conversations: a page of it reads few messages, in less time than a sort of these takes."""
MESSAGES_MAX: Final = 2_048
"""Messages that a page reads in a crowded hour, in about seven milliseconds, before it sorts the rest of the hour."""
FIRST_PART: Final = 128
_GROWTH: Final = 4
_COUNTED_MAX: Final = 65_536
_NO_ROW: Final = (1 << 63) - 1

Row: TypeAlias = tuple[int, int, int]
"""A time of activity, the key of a conversation, and whether it is an entry of the list."""
ReadHours: TypeAlias = Callable[[ConversationPageKey | None, int | None], Iterator[Row]]
"""Reads the rows of a list from indexes by the hour: after a key, up to the end of an hour, or all."""


class ActivityOrder(Struct, frozen=True):
    """The rows of a list in the order of their activity.

    Args:
        paths: the access paths of the list, by the hour.
        test: the condition of a conversation `c` of the list.
        since, until: bounds (ms) of the activity: at `since` or later, and before `until`.
        among: whether a conversation of this key can be an entry of the list; the others are left out before they are read.
        of_all: whether nearly all conversations are entries of the list.
    """

    conn: Connection
    dialect: Dialect
    project: int
    paths: Sequence[AccessPath]
    test: Term
    descending: bool
    since: int | None = None
    until: int | None = None
    among: Callable[[int], bool] | None = None
    of_all: bool = False

    def rows(self, after: ConversationPageKey | None, size: int, read_hours: ReadHours) -> Iterator[Row]:
        """Yield the rows after a key, lazily.

        Args:
            size: rows of a page.
        """
        counted = CROWD_MIN_OF_ALL if self.of_all else CROWD_MIN
        while (crowded := self._crowded_hour(after, counted)) is not None:
            hour = self._hour_before(crowded, after)
            if hour is not None:
                yield from read_hours(after, hour)
            else:
                hour, walk = crowded, _MessageWalk(self, size)
                yield from walk.rows(after, hour)
                if walk.reached is not None:
                    yield from read_hours(walk.reached, hour)
            after = self._end_of(hour)
            # Few of these entries passed the filter, so the next ones are sorted in larger portions.
            counted = min(_GROWTH * counted, _COUNTED_MAX)
        yield from read_hours(after, None)

    def _crowded_hour(self, after: ConversationPageKey | None, counted: int) -> int | None:
        """Return the hour in which the index entries after a key reach a number; None if there are fewer.

        The entries of all paths before it are fewer than that.
        """
        if not self.paths:
            return None
        sql, values = nth_hour_query(self, after, max(1, counted // len(self.paths)))
        hours = [hour for (hour,) in self.conn.execute(self.dialect.text(sql), values).fetchall()]
        return None if not hours else max(hours) if self.descending else min(hours)

    def _hour_before(self, hour: int, after: ConversationPageKey | None) -> int | None:
        """Return the last hour with entries between a key and an hour, in order."""
        sql, values = hour_before_query(self, after, hour)
        hours = [hour for (hour,) in self.conn.execute(self.dialect.text(sql), values).fetchall()]
        return None if not hours else min(hours) if self.descending else max(hours)

    def _end_of(self, hour: int) -> ConversationPageKey:
        """Return the key between an hour and the next one in order."""
        if self.descending:
            return ConversationPageKey(hour * HOUR_MS - 1, _NO_ROW)
        return ConversationPageKey((hour + 1) * HOUR_MS, 0)


def activity_order(
    conn: Connection,
    dialect: Dialect,
    project: int,
    paths: Sequence[AccessPath],
    wanted: ConversationFilter,
    sort: ConversationSort,
) -> ActivityOrder:
    """Return the order of a list by activity with these paths."""
    return ActivityOrder(
        conn,
        dialect,
        project,
        paths,
        joined([*remaining_terms(dialect, NO_PATH, wanted, sort)]),
        is_descending(sort),
        wanted.since,
        wanted.until,
        of_all=[path.source for path in paths] == [indexed("conversations_by_hour")] and not wanted.merged,
    )


def change_order(
    conn: Connection,
    dialect: Dialect,
    project: int,
    path: ChangePath,
    wanted: ConversationFilter,
    sort: ConversationSort,
) -> ActivityOrder:
    """Return the order of the conversations whose last change was their last activity."""
    paths = [AccessPath(path.source, path.terms, frozenset())]
    among = replace(NO_PATH, row_condition=path.row_condition)
    test = joined([*remaining_terms(dialect, among, wanted, sort)])
    since = max((at for at in (wanted.since, wanted.changed_since) if at is not None), default=None)
    until = min((at for at in (wanted.until, wanted.changed_before) if at is not None), default=None)
    return ActivityOrder(conn, dialect, project, paths, test, is_descending(sort), since, until)


class _MessageWalk:
    """A walk over the messages of an hour.

    Attributes:
        reached: the key after which the walk ended before the end of the hour.
    """

    def __init__(self, order: ActivityOrder, size: int) -> None:
        self._order = order
        self._size = FIRST_PART if 2 * size <= FIRST_PART else _GROWTH * FIRST_PART
        self.reached: ConversationPageKey | None = None

    def rows(self, after: ConversationPageKey | None, hour: int) -> Iterator[Row]:
        """Yield each conversation's time and key, for each time at which it has messages."""
        order, first, last = self._order, hour * HOUR_MS, (hour + 1) * HOUR_MS - 1
        if order.since is not None:
            first = max(first, order.since)
        if order.until is not None:
            last = min(last, order.until - 1)
        if after is not None:
            first, last = (
                (first, min(last, after.value)) if order.descending else (max(first, after.value), last)
            )
        size, read = self._size, 0
        while first <= last:
            part = self._part(first, last, size)
            read += size
            full = len(part) >= size
            edge = part[-1][0] if part else 0
            if full:  # the part may lack messages of its last moment
                part = [row for row in part if row[0] != edge]
            for row in self._shown(dict.fromkeys(part)):
                if after is None or self._follows(row, after):
                    yield row
            if not full:
                return
            if read >= MESSAGES_MAX:
                self.reached = self._before_all_at(edge, after)
                return
            first, last = (first, edge) if order.descending else (edge, last)
            size = min(2 * size, max(1, MESSAGES_MAX - read))

    def _follows(self, row: Row, after: ConversationPageKey) -> bool:
        place, end = row[:2], (after.value, after.rowid)
        return place < end if self._order.descending else place > end

    def _before_all_at(self, at: int, after: ConversationPageKey | None) -> ConversationPageKey:
        """Return the key before all rows of a moment, but not before the one after which the page starts."""
        if after is not None and after.value == at:
            return after
        return ConversationPageKey(at, _NO_ROW if self._order.descending else 0)

    def _part(self, first: int, last: int, size: int) -> list[Row]:
        order = self._order
        sql, values = messages_query(order, first, last, size)
        rows = order.conn.execute(order.dialect.text(sql), values).fetchall()
        return sorted(map(tuple, rows), reverse=order.descending)

    def _shown(self, part: Iterable[Row]) -> Iterable[Row]:
        """Return the rows of a part, those of `among` with whether they are entries of the list."""
        among = self._order.among
        if among is None:
            return part
        rows = [row for row in part if among(row[1])]
        entries = self._entries({row[1] for row in rows})
        return [(at, rowid, entries.get(rowid) == at) for at, rowid, _ in rows]

    def _entries(self, conversations: Collection[int]) -> Mapping[int, int]:
        """Return the last activity of the conversations that pass the filter."""
        order = self._order
        condition, values = order.test
        sql = f"{_ACTIVITY[order.dialect]}{f' AND {condition}' if condition else ''}"
        keys = order.dialect.listed([*conversations])
        return dict(map(tuple, order.conn.execute(order.dialect.text(sql), (keys, *values))))


def nth_hour_query(
    order: ActivityOrder, after: ConversationPageKey | None, number: int
) -> tuple[str, tuple[Any, ...]]:
    """Return the statement for the hour of each path's index entry of this number after a key, with its values."""
    return _entry_query(order, after, (), backwards=False, skipped=number - 1)


def hour_before_query(
    order: ActivityOrder, after: ConversationPageKey | None, hour: int
) -> tuple[str, tuple[Any, ...]]:
    """Return the statement for each path's last hour between a key and an hour, in order, with its values."""
    before = (f"c.hour {'>' if order.descending else '<'} ?", (hour,))
    return _entry_query(order, after, (before,), backwards=True, skipped=0)


def _entry_query(
    order: ActivityOrder,
    after: ConversationPageKey | None,
    bounds: Sequence[Term],
    *,
    backwards: bool,
    skipped: int,
) -> tuple[str, tuple[Any, ...]]:
    """Return the statement for the hour of one index entry of each path.

    Args:
        bounds: further conditions of an entry.
        backwards: against the order of the list.
        skipped: the number of entries before it.
    """
    direction = "DESC" if order.descending is not backwards else "ASC"
    parts, values = list[str](), list[Any]()
    for number, path in enumerate(order.paths):
        terms = [*path.terms, *hours_of(order.since, order.until), *bounds]
        if after is not None:
            terms.append((f"c.hour {'<=' if order.descending else '>='} ?", (after.value // HOUR_MS,)))
        where, some = joined(terms)
        # PostgreSQL plans well for an offset that it knows, so it is no parameter. There are few offsets.
        parts.append(
            f"SELECT * FROM (SELECT c.hour AS hour FROM {path.source} WHERE {where} "
            f"ORDER BY c.hour {direction} LIMIT 1 OFFSET {skipped}) AS h{number}"
        )
        values += some
    return " UNION ALL ".join(parts), tuple(values)


def messages_query(order: ActivityOrder, first: int, last: int, size: int) -> tuple[str, tuple[Any, ...]]:
    """Return the statement for the next messages between two moments, both included, with its values.

    A conversation without messages is read like one with a message at its creation.
    """
    # PostgreSQL plans well for a number of rows that it knows, so the size is no parameter. There are few sizes.
    ordered = f"ORDER BY at {'DESC' if order.descending else 'ASC'} LIMIT {size}"
    where = "project = ? AND created_at BETWEEN ? AND ?"
    sources = [_WITHOUT_MESSAGES, *_MESSAGES[order.dialect]]
    parts = " UNION ALL ".join(
        f"SELECT * FROM ({source} AND {where} {ordered}) AS s{number}"
        for number, source in enumerate(sources)
    )
    messages, bounds = (
        f"(SELECT * FROM ({parts}) AS a {ordered}) AS p",
        (order.project, first, last) * len(sources),
    )
    if order.among is not None:
        return f"SELECT {{planned_once}}p.at, p.conversation, 0 FROM {messages}", bounds
    condition, values = order.test
    entry = f"c.activity = p.at AND {condition}" if condition else "c.activity = p.at"
    sql = _WITH_ENTRIES[order.dialect].format(entry=entry, messages=messages)
    return sql, (*values, *bounds)


# With a join, PostgreSQL would read all of some thousands of conversations; SQLite is faster with one.
_WITH_ENTRIES: Final[Mapping[Dialect, str]] = {
    SQLITE: "SELECT {{planned_once}}p.at, p.conversation, CASE WHEN {entry} THEN 1 ELSE 0 END FROM {messages} "
    "LEFT JOIN conversations c ON c.rowid = p.conversation",
    POSTGRES: "SELECT {{planned_once}}p.at, p.conversation, (SELECT count(*) FROM conversations c WHERE c.rowid = p.conversation AND {entry}) "
    "FROM {messages}",
}
_ACTIVITY: Final[Mapping[Dialect, str]] = {
    SQLITE: "SELECT c.rowid, c.activity FROM json_each(?) w CROSS JOIN conversations c ON c.rowid = w.value WHERE 1 = 1",
    POSTGRES: "SELECT c.rowid, c.activity FROM conversations c WHERE c.rowid = ANY(CAST(? AS bigint[]))",
}
_WITHOUT_MESSAGES: Final = (
    "SELECT created_at AS at, rowid AS conversation FROM conversations {indexed[conversations_without_messages]} "
    "WHERE last_message_at IS NULL"
)
_SHOWN: Final = "SELECT created_at AS at, conversation FROM messages WHERE internal = 0"
_MESSAGES: Final[Mapping[Dialect, Sequence[str]]] = {
    SQLITE: (
        "SELECT created_at AS at, conversation FROM message_times WHERE 1 = 1",
        f"{_SHOWN} AND rowid > (SELECT message FROM message_times_end)",
    ),
    POSTGRES: (_SHOWN,),
}
"""Messages by their time. SQLite adds 512 at a time to its table, and the newest ones are read one by one (ADR 74)."""
