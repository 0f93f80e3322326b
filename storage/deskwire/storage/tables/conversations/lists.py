"""Lists of conversations: each filter and sort by an index, so that a page costs about the same at any size.

A list is put together from ways: a way is an index, or a part of one, that has all conversations of the list which
agree in something, such as the open ones of one assignee. It gives them in the list's order, either because the index
is in it or because they are few and sorted; what the index can't tell is looked up in the rows. The ways of a list are merged
as far as the page goes.

Indexes in the order of activity have its hour, which changes rarely, and not its time, which every message changes;
SQLite sorts the conversations of one hour as it comes to them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from heapq import merge
from itertools import islice, product
from typing import Any, Final, get_args

from deskwire.engine.conversations.conversation import Status
from deskwire.engine.conversations.listing import ConversationFilter, Listed, Place, Sort
from deskwire.storage.dialect import either
from deskwire.storage.tables.base import Queries
from deskwire.storage.tables.contacts.contacts import CONTACT_COLUMNS, contact_of
from deskwire.storage.tables.conversations.columns import HOUR_MS, SELECTED, WIDTH, conversation_of

Term = tuple[str, tuple[Any, ...]]
"""A condition with its values."""

_STATUSES: Final[tuple[Status, ...]] = get_args(Status)
_KEYS: Final = {"activity": "c.activity", "waiting": "c.waiting_since", "created": "c.created_at"}
_PAGE: Final = either(
    f"SELECT {SELECTED}, {CONTACT_COLUMNS} FROM {{numbers}} w {{and_then}} conversations c ON c.rowid = w.value "
    "JOIN contacts k ON k.rowid = c.contact"
)
MANY: Final = 5_000
"""Conversations with a tag from which on it is cheaper to look for it among all than to sort all that have it."""


@dataclass(frozen=True, slots=True)
class Way:
    """A way to conversations of a list.

    Args:
        source: the table with its index, as `c`.
        terms: what the index is entered with.
        told: the parts of the filter that these terms tell.
        hours: whether the index goes by the hour of the last activity.
    """

    source: str
    terms: tuple[Term, ...]
    told: frozenset[str]
    hours: bool = False


class ConversationListReads(Queries):
    """Queries on lists; the methods are those of `conversations.ports.ConversationReader`."""

    def conversations(
        self, project: int, wanted: ConversationFilter, sort: Sort, after: Place | None, limit: int
    ) -> Sequence[Listed]:
        ways = [page_query(way, wanted, sort, after, limit) for way in self._ways(project, wanted, sort)]
        pages = (self.conn.execute(self.dialect.text(sql), values) for sql, values in ways)
        found = merge(*pages, reverse=is_descending(sort))
        places = [Place(*place) for place in islice(_once(found), limit)]
        keys = self.dialect.listed([place.rowid for place in places])
        rows = {row[_ROWID]: row for row in self.conn.execute(_PAGE[self.dialect], (keys,))}
        return [_listed(rows[place.rowid], place) for place in places]

    def count_conversations(self, project: int, wanted: ConversationFilter, sort: Sort, bound: int) -> int:
        found = 0
        for way in self._ways(project, wanted, sort):
            sql, values = count_query(way, wanted, sort, bound - found)
            found += self.conn.execute(self.dialect.text(sql), values).fetchone()[0]
            if found >= bound:
                break
        return found

    def _ways(self, project: int, wanted: ConversationFilter, sort: Sort) -> list[Way]:
        if sort.key == "waiting" and wanted.waiting is False:
            return []
        if wanted.tags is not None and self._with_tags(project, wanted.tags) < MANY:
            return list(by_tag(project, wanted.tags))
        return list(ways_of(project, wanted, sort))

    def _with_tags(self, project: int, tags: tuple[str, ...]) -> int:
        """Return how many conversations have one of the tags, counted up to MANY of each."""
        return sum(
            self.conn.execute(
                "SELECT count(*) FROM (SELECT 1 FROM conversation_tags WHERE project = ? AND tag = ? LIMIT ?) AS tagged",
                (project, tag, MANY),
            ).fetchone()[0]
            for tag in tags
        )


_ROWID: Final = SELECTED.split(", ").index("c.rowid")


def _listed(row: Sequence[Any], place: Place) -> Listed:
    return Listed(conversation_of(row), contact_of(row[WIDTH:]), place)


def _once(found: Iterator[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Yield each place once: a conversation with two of the tags comes twice, one after the other."""
    last = None
    for place in found:
        if place != last:
            yield place
        last = place


def is_descending(sort: Sort) -> bool:
    """Return whether the largest value of the sort's column comes first; the longest wait has the smallest."""
    return (sort.order == "desc") != (sort.key == "waiting")


def by_tag(project: int, tags: Sequence[str]) -> Iterator[Way]:
    """Yield the ways to conversations with these tags, which are to be few."""
    source = "conversation_tags g {and_then} conversations c ON c.rowid = g.conversation"
    for tag in tags:
        yield Way(source, (("g.project = ? AND g.tag = ?", (project, tag)),), frozenset({"tags"}))


def ways_of(project: int, wanted: ConversationFilter, sort: Sort) -> Iterator[Way]:
    """Yield the ways to the conversations of a list, whatever tags they have."""
    home: Term = ("c.project = ?", (project,))
    statuses, archived = _possible(wanted, sort)
    terms: tuple[Term, ...]
    if wanted.contact is not None:
        terms = (("c.contact = ?", (wanted.contact,)), ("{unindexed}c.project = ?", (project,)))
        yield Way(_indexed("conversations_by_contact"), terms, frozenset({"contact"}))
    elif wanted.snoozed:
        for flag in archived:
            terms = (home, ("c.archived = ? AND c.snoozed_until IS NOT NULL", (flag,)))
            yield Way(_indexed("conversations_asleep"), terms, frozenset({"archived", "snoozed"}), hours=True)
    elif wanted.assignees is not None:
        for assignee, flag, status in product(wanted.assignees, archived, statuses):
            terms = (
                home,
                _one_of("c.assignee_id", [assignee]),
                ("c.archived = ? AND c.status = ?", (flag, status)),
            )
            told = frozenset({"assignees", "archived", "statuses"})
            yield Way(_indexed("conversations_by_assignee"), terms, told, hours=True)
    elif sort.key == "waiting" or wanted.waiting:
        terms = (home, ("c.waiting_since IS NOT NULL", ()))
        yield Way(_indexed("conversations_waiting"), terms, frozenset({"waiting"}))
    elif wanted.visible is False:
        terms = (home, ("c.visible = 0", ()))
        yield Way(_indexed("conversations_hidden"), terms, frozenset({"visible"}), hours=True)
    elif sort.key == "activity" and (wanted.text is not None or wanted == _plain(wanted)):
        yield Way(_indexed("conversations_by_activity"), (home,), frozenset())
    else:
        index = "conversations_by_status" if sort.key == "activity" else "conversations_by_creation"
        for flag, status in product(archived, statuses):
            terms = (home, ("c.archived = ? AND c.status = ?", (flag, status)))
            told = frozenset({"archived", "statuses"})
            yield Way(_indexed(index), terms, told, hours=sort.key == "activity")


def _plain(wanted: ConversationFilter) -> ConversationFilter:
    """Return the filter without what the index of all conversations by their activity serves."""
    others = {name: getattr(wanted, name) for name in ("visible", "since", "until", "snoozed", "user")}
    return ConversationFilter(**others)


def _possible(wanted: ConversationFilter, sort: Sort) -> tuple[Sequence[Status], Sequence[bool]]:
    """Return the statuses that conversations of the list may have, and whether they may be archived."""
    statuses = _STATUSES if wanted.statuses is None else wanted.statuses
    if sort.key == "waiting" or wanted.waiting:  # nobody waits in a closed one
        statuses = tuple(status for status in statuses if status != "CLOSED")
    return statuses, (False, True) if wanted.archived is None else (wanted.archived,)


def _indexed(index: str) -> str:
    return f"conversations c {{indexed[{index}]}}"


def page_query(
    way: Way, wanted: ConversationFilter, sort: Sort, after: Place | None, limit: int
) -> tuple[str, tuple[Any, ...]]:
    """Return the statement for the places of the first conversations on a way, with its values."""
    key, direction = _KEYS[sort.key], "DESC" if is_descending(sort) else "ASC"
    order = [key, "c.rowid"]
    terms = [*way.terms, *_rest(way, wanted, sort)]
    if way.hours and sort.key == "activity":
        order.insert(0, "c.hour")
        terms += _hours(wanted)
    if after is not None:
        terms += _behind(way, sort, after)
    where, values = _joined(terms)
    keys = ", ".join(f"{column} {direction}" for column in order)
    source = _source(way, wanted)
    return f"SELECT {key}, c.rowid FROM {source} WHERE {where} ORDER BY {keys} LIMIT ?", (*values, limit)


def count_query(way: Way, wanted: ConversationFilter, sort: Sort, bound: int) -> tuple[str, tuple[Any, ...]]:
    """Return the statement that counts the conversations on a way up to a bound, with its values."""
    where, values = _joined([*way.terms, *_rest(way, wanted, sort)])
    source = _source(way, wanted)
    return f"SELECT count(*) FROM (SELECT 1 FROM {source} WHERE {where} LIMIT ?) AS found", (*values, bound)


def _source(way: Way, wanted: ConversationFilter) -> str:
    return way.source if wanted.text is None else f"{way.source} JOIN contacts k ON k.rowid = c.contact"


def _behind(way: Way, sort: Sort, after: Place) -> Iterator[Term]:
    """Yield the conditions of what comes behind a place."""
    sign = "<" if is_descending(sort) else ">"
    if way.hours and sort.key == "activity":
        yield f"c.hour {sign}= ?", (after.value // HOUR_MS,)
    yield f"({_KEYS[sort.key]}, c.rowid) {sign} (?, ?)", (after.value, after.rowid)


def _hours(wanted: ConversationFilter) -> Iterator[Term]:
    """Yield the bounds of the activity as an index by the hour has them."""
    if wanted.since is not None:
        yield "c.hour >= ?", (wanted.since // HOUR_MS,)
    if wanted.until is not None:
        yield "c.hour <= ?", (wanted.until // HOUR_MS,)


def _rest(way: Way, wanted: ConversationFilter, sort: Sort) -> Iterator[Term]:
    """Yield the conditions of a list that its way does not tell."""
    told: dict[str, Any] = dict.fromkeys(way.told & _FIELDS)
    left = replace(wanted, **told)
    for column, values in (("status", left.statuses), ("assignee_id", left.assignees)):
        if values is not None:
            yield _one_of(f"{{unindexed}}c.{column}", values)
    for column, flag in (("archived", left.archived), ("visible", left.visible)):
        if flag is not None:
            yield f"{{unindexed}}c.{column} = ?", (flag,)
    if left.snoozed is not None:
        yield f"c.snoozed_until IS {'NOT ' if left.snoozed else ''}NULL", ()
    if left.tags is not None:
        tag, values = _one_of("g.tag", left.tags)
        yield (
            f"EXISTS (SELECT 1 FROM conversation_tags g WHERE g.conversation = c.rowid AND {tag})",
            values,
        )
    waiting = True if sort.key == "waiting" and "waiting" not in way.told else left.waiting
    if waiting is not None:
        yield f"c.waiting_since IS {'NOT ' if waiting else ''}NULL", ()
    yield from _behind_rows(left)


_FIELDS: Final = frozenset(ConversationFilter.__slots__)


def _behind_rows(wanted: ConversationFilter) -> Iterator[Term]:
    """Yield the conditions that no index serves."""
    if wanted.since is not None:
        yield "c.activity >= ?", (wanted.since,)
    if wanted.until is not None:
        yield "c.activity < ?", (wanted.until,)
    if wanted.unread is not None:
        yield f"c.contact_messages {'>' if wanted.unread else '<='} {_SEEN}", (wanted.user,)
    if wanted.text is not None:
        yield _TEXT_SEARCH, (_contains(wanted.text),) * _TEXT_SEARCH.count("?")


def _one_of(column: str, values: Sequence[str | None]) -> Term:
    named = tuple(value for value in values if value is not None)
    if not named:
        return (f"{column} IS NULL" if values else "1 = 0"), ()
    among = f"{column} = ?" if len(named) == 1 else f"{column} IN ({', '.join('?' * len(named))})"
    return (f"({among} OR {column} IS NULL)" if None in values else among), named


def _joined(terms: Sequence[Term]) -> Term:
    return " AND ".join(term for term, _ in terms), tuple(value for _, some in terms for value in some)


_SEEN: Final = (
    "coalesce((SELECT s.contact_messages FROM agent_seen s WHERE s.user = ? AND s.conversation = c.rowid), 0)"
)
_TEXT_SEARCH: Final = (
    "(c.title {like} ? ESCAPE '!' OR k.name {like} ? ESCAPE '!' OR k.email {like} ? ESCAPE '!' OR k.user_id {like} ? ESCAPE '!' "
    "OR EXISTS (SELECT 1 FROM messages m WHERE m.conversation = c.rowid AND m.text {like} ? ESCAPE '!'))"
)


def _contains(text: str) -> str:
    """Return a LIKE pattern for `text` anywhere, its own wildcards taken literally."""
    escaped = text.replace("!", "!!").replace("%", "!%").replace("_", "!_")
    return f"%{escaped}%"
