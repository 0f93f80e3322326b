"""Lists of tickets. Every filter and sort uses an index, so the cost of a page hardly depends on the number of tickets.

There are three access paths. A search starts with the word index, and a selective filter (assignee, tag, contact,
conversation, snoozed) with its own index; both sort the matches. All others scan, for each status, the index in the
order of the sort, and stop after a page. `unindexed` keeps the planner from choosing another index.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, get_args

from deskwire.engine.conversations.tags import tag_key
from deskwire.engine.tickets.ports import UNASSIGNED, SortKey, TicketFilter, TicketPageKey, TicketSort
from deskwire.engine.tickets.ticket import Status, Ticket
from deskwire.storage.tables.base import Queries
from deskwire.storage.tables.tickets.tickets import PRIORITIES, TICKET, ticket_of

_STATUSES: Final = get_args(Status)
_COLUMNS: Final[Mapping[SortKey, str]] = {
    "updatedAt": "updated_at",
    "priority": "priority",
    "lastActivity": "activity",
}
"""The column that each key sorts by; `createdAt` by the row, in the order of creation, whatever the clock did."""

_SNOOZED: Final = "tickets t {indexed[tickets_snoozed]}"
Terms = Iterator[tuple[str, tuple[Any, ...]]]


class WordAccessPath(NamedTuple):
    """The access path to tickets with certain words.

    Attributes:
        source: the tables, with tickets as `t`.
        row: the key in whose order the word index returns them.
        term: the condition, with its values.
    """

    source: str
    row: str
    term: tuple[str, tuple[Any, ...]]


class TicketListReads(Queries):
    """The query of `tickets.ports.TicketReader` for lists."""

    @abstractmethod
    def ticket_words(self, project: int, text: str) -> WordAccessPath | None:
        """Return the access path to tickets that have all prefixes in `text`; None if it has no word."""

    def tickets(
        self, project: int, wanted: TicketFilter, sort: TicketSort, after: TicketPageKey | None, limit: int
    ) -> Sequence[tuple[Ticket, TicketPageKey]]:
        words = None
        if wanted.text is not None and (words := self.ticket_words(project, wanted.text)) is None:
            return []
        sql, values = list_query(project, wanted, sort, after, limit, words)
        found = [ticket_of(row) for row in self.conn.execute(self.dialect.text(sql), values)]
        return [(ticket, _place(ticket, sort)) for ticket in found]


def list_query(
    project: int,
    wanted: TicketFilter,
    sort: TicketSort,
    after: TicketPageKey | None,
    limit: int,
    words: WordAccessPath | None,
) -> tuple[str, tuple[Any, ...]]:
    """Return the statement for a page, with its values.

    Args:
        words: the access path to the tickets with the wanted text.
    """
    if wanted.priority is not None and sort.key == "priority":
        sort = TicketSort("createdAt", sort.order)  # all equal, so only the order of creation matters
    row = "t.rowid" if words is None else words.row
    order = _order(sort, row)
    rest = [*_conditions(wanted, sort), *_behind(sort, after, row)]
    access_path = _by_key(project, wanted) if words is None else (words.source, iter([words.term]))
    if access_path is None:
        chosen, values = _by_status(project, wanted, rest, order, limit)
    else:
        source, key = access_path
        where, values = _joined([*key, ("{unindexed}t.project = ?", (project,)), *_status(wanted), *rest])
        chosen = f"SELECT t.rowid FROM {source} WHERE {where} ORDER BY {order} LIMIT ?"
        values += (limit,)
    page = f"{TICKET} WHERE t.rowid IN ({chosen}) ORDER BY {_order(sort, 't.rowid')} LIMIT ?"
    return page, (*values, limit)


def _by_key(project: int, wanted: TicketFilter) -> tuple[str, Terms] | None:
    if wanted.tag is not None:
        source = "ticket_tags g {and_then} tickets t ON t.rowid = g.ticket"
        return source, iter([("g.project = ? AND g.folded = ?", (project, tag_key(wanted.tag)))])
    for column, value in (
        ("conversation", wanted.conversation),
        ("contact", wanted.contact),
        (_assignee_column(wanted.assignee), None if wanted.assignee == UNASSIGNED else wanted.assignee),
    ):
        if value is not None:
            return "tickets t", iter([(f"t.{column} = ?", (value,))])
    return (_SNOOZED, iter([("t.snoozed_until IS NOT NULL", ())])) if wanted.snoozed else None


def _by_status(
    project: int, wanted: TicketFilter, rest: list[tuple[str, tuple[Any, ...]]], order: str, limit: int
) -> tuple[str, tuple[Any, ...]]:
    """Return the first `limit` tickets of each status, each from its own index range."""
    parts: list[str] = []
    values: tuple[Any, ...] = ()
    for status in [wanted.status] if wanted.status else _STATUSES:
        where, some = _joined([("t.project = ? AND t.status = ?", (project, status)), *rest])
        part = f"SELECT t.rowid FROM tickets t WHERE {where} ORDER BY {order} LIMIT ?"
        parts.append(f"SELECT * FROM ({part}) AS p{len(parts)}")
        values += (*some, limit)
    return " UNION ALL ".join(parts), values


def _status(wanted: TicketFilter) -> Terms:
    if wanted.status is not None:
        yield "{unindexed}t.status = ?", (wanted.status,)


def _conditions(wanted: TicketFilter, sort: TicketSort) -> Terms:
    if wanted.priority is not None:
        hint = "" if sort.key == "createdAt" else "{unindexed}"
        yield f"{hint}t.priority = ?", (PRIORITIES.index(wanted.priority),)
    if wanted.type is not None:
        yield "t.type = ?", (wanted.type,)
    if wanted.assignee == UNASSIGNED:
        yield "{unindexed}t.processing_user IS NULL AND {unindexed}t.processing_team IS NULL", ()
    elif wanted.assignee is not None:
        yield f"{{unindexed}}t.{_assignee_column(wanted.assignee)} = ?", (wanted.assignee,)
    if wanted.snoozed is not None:
        yield f"{{unindexed}}t.snoozed_until IS {'NOT ' if wanted.snoozed else ''}NULL", ()
    if wanted.contact is not None:
        yield "{unindexed}t.contact = ?", (wanted.contact,)
    if wanted.conversation is not None:
        yield "{unindexed}t.conversation = ?", (wanted.conversation,)
    if wanted.tag is not None:
        tagged = (
            "SELECT 1 FROM ticket_tags g WHERE g.project = t.project AND g.folded = ? AND g.ticket = t.rowid"
        )
        yield f"EXISTS ({tagged})", (tag_key(wanted.tag),)


def _assignee_column(assignee: str | None) -> str:
    return "processing_team" if assignee and assignee.startswith("team_") else "processing_user"


def _behind(sort: TicketSort, after: TicketPageKey | None, row: str) -> Terms:
    if after is not None:
        sign = "<" if sort.order == "desc" else ">"
        if sort.key == "createdAt":
            yield f"{row} {sign} ?", (after.rowid,)
        else:
            yield f"(t.{_COLUMNS[sort.key]}, {row}) {sign} (?, ?)", (after.value, after.rowid)


def _order(sort: TicketSort, row: str) -> str:
    if sort.key == "createdAt":
        return f"{row} {sort.order}"
    return f"t.{_COLUMNS[sort.key]} {sort.order}, {row} {sort.order}"


def _place(ticket: Ticket, sort: TicketSort) -> TicketPageKey:
    value = {
        "createdAt": ticket.rowid,
        "updatedAt": ticket.updated_at,
        "priority": PRIORITIES.index(ticket.priority),
        "lastActivity": ticket.activity_at,
    }
    return TicketPageKey(value[sort.key], ticket.rowid)


def _joined(terms: Sequence[tuple[str, tuple[Any, ...]]]) -> tuple[str, tuple[Any, ...]]:
    return " AND ".join(term for term, _ in terms), tuple(value for _, some in terms for value in some)
