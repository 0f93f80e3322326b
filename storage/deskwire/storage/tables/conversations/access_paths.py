"""The access paths of lists of conversations: the indexes, and parts of them, that a list combines; see `lists`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal
from itertools import product
from typing import Any, Final, get_args

from msgspec import Struct

from deskwire.engine.contacts.contact import filter_values
from deskwire.engine.conversations.conversation import Status
from deskwire.engine.conversations.listing import ConversationFilter, ConversationSort
from deskwire.engine.conversations.tags import tag_key
from deskwire.engine.core.values import replace
from deskwire.engine.definitions.attributes import AttributeIs
from deskwire.engine.tickets.ticket import Status as TicketStatus
from deskwire.storage.tables.conversations.attributes import number_keys, text_key
from deskwire.storage.tables.conversations.columns import HOUR_MS
from deskwire.storage.tables.tickets.tickets import PRIORITIES

Term = tuple[str, tuple[Any, ...]]
"""A condition with its values."""


_STATUSES: Final[tuple[Status, ...]] = get_args(Status)


class AccessPath(Struct, frozen=True):
    """An access path to conversations of a list.

    Args:
        source: the table `c` with its index.
        terms: the conditions by which the index is entered.
        covered: the parts of the filter that these terms cover.
        by_hour: whether the index is ordered by the hour of the last activity.
        count_source: the table that counts the path's entries, if it is not the whole source.
        row_condition: the further condition of rows on this path, if the index has others as well.
        row_values: the values of `row_condition`.
    """

    source: str
    terms: tuple[Term, ...]
    covered: frozenset[str]
    by_hour: bool = False
    count_source: str = ""
    row_condition: str = ""
    row_values: tuple[Any, ...] = ()


NO_PATH: Final = AccessPath("", (), frozenset())
"""Covers no condition of a filter."""


def selective_paths(
    project: int, wanted: ConversationFilter, sort: ConversationSort
) -> Iterator[Sequence[AccessPath]]:
    """Yield paths for the conditions of a filter that few conversations may meet; the first path with few is the best one."""
    if wanted.contact is not None:
        return
    if wanted.mentioned:
        yield [by_mention(project, wanted.user)]
    if wanted.following:
        yield [by_follower(project, wanted.user)]
    if wanted.tags is not None:
        yield list(by_tag(project, wanted.tags))
    for tag in wanted.all_tags:
        yield [replace(path, covered=frozenset()) for path in by_tag(project, (tag,))]
    for attribute in wanted.attributes:
        yield [by_attribute(project, attribute)]
    yield from _further_selective_paths(project, wanted, sort)
    if wanted.rated or (wanted.rated is None and wanted.rating is not None):
        yield [by_rating(project)]
    if wanted.visible is False and sort.key != "activity":
        yield [by_hiding(project)]
    if wanted.changed_since is not None and sort.key != "updated":
        yield list(by_late_change(project, wanted.changed_since))
    if sort.key == "created" and (wanted.since is not None or wanted.until is not None):
        terms = (("c.project = ?", (project,)), *hours_of(wanted.since, wanted.until))
        yield [AccessPath(indexed("conversations_by_hour"), terms, frozenset())]


def _further_selective_paths(
    project: int, wanted: ConversationFilter, sort: ConversationSort
) -> Iterator[Sequence[AccessPath]]:
    """Yield selective paths for the conditions that only lists for agents have."""
    for attribute in wanted.contact_attributes:
        value, values = one_of("g.value", filter_values(attribute))
        terms: tuple[Term, ...] = (
            (f"g.project = ? AND g.name = ? AND {value}", (project, attribute.name, *values)),
        )
        source = "contact_attributes g {and_then} conversations c {indexed[conversations_by_contact]} ON c.contact = g.contact"
        yield [AccessPath(source, terms, frozenset())]
    if wanted.priorities is not None:
        ranks, statuses = priority_ranks(wanted.priorities), get_args(TicketStatus)
        where = f"t.project = ? AND t.status IN ({_marks(statuses)}) AND t.priority IN ({_marks(ranks)})"
        terms = ((where, (project, *statuses, *ranks)),)
        source = "tickets t {and_then} conversations c ON c.id = t.conversation"
        yield [AccessPath(source, terms, frozenset(), count_source="tickets t")]
    if wanted.channels is not None and None not in wanted.channels:
        terms = (("c.project = ?", (project,)), one_of("c.channel", wanted.channels))
        yield [AccessPath(indexed("conversations_by_channel"), terms, frozenset({"channels"}))]
    if wanted.waiting_before is not None and sort.key != "waiting":
        terms = (("c.project = ?", (project,)), ("c.waiting_since < ?", (wanted.waiting_before,)))
        yield [AccessPath(indexed("conversations_waiting"), terms, frozenset({"waiting", "waiting_before"}))]
    if sort.key != "created" and (wanted.created_since is not None or wanted.created_before is not None):
        yield [*_by_creation(project, wanted, sort)]


def _by_creation(project: int, wanted: ConversationFilter, sort: ConversationSort) -> Iterator[AccessPath]:
    """Yield the paths to conversations that were created in the filter's period."""
    statuses, archived = possible(wanted, sort)
    for flag, status in product(archived, statuses):
        terms: list[Term] = [
            ("c.project = ?", (project,)),
            ("c.archived = ? AND c.status = ?", (flag, status)),
        ]
        if wanted.created_since is not None:
            terms.append(("c.created_at >= ?", (wanted.created_since,)))
        if wanted.created_before is not None:
            terms.append(("c.created_at < ?", (wanted.created_before,)))
        covered = frozenset({"archived", "statuses", "created_since", "created_before"})
        yield AccessPath(indexed("conversations_by_creation"), (*terms,), covered)


def priority_ranks(priorities: Sequence[str]) -> tuple[int, ...]:
    """Return the stored numbers of priorities of tickets."""
    return tuple(rank for rank, each in enumerate(PRIORITIES) if each in priorities)


def _marks(values: Sequence[object]) -> str:
    return ", ".join("?" for _ in values)


def by_tag(project: int, tags: Sequence[str]) -> Iterator[AccessPath]:
    """Yield the paths to conversations with one of these tags. Each conversation is on one path: that of its first tag among them."""
    keys = [*dict.fromkeys(map(tag_key, tags))]
    for number, key in enumerate(keys):
        terms = (("g.project = ? AND g.folded = ?", (project, key)),)
        path = _joined_path("conversation_tags g", "g.conversation", terms, frozenset({"tags"}))
        if number == 0:
            yield path
            continue
        earlier, values = one_of("h.folded", keys[:number])
        others = (
            f"NOT EXISTS (SELECT 1 FROM conversation_tags h WHERE h.conversation = c.rowid AND {earlier})"
        )
        yield replace(path, row_condition=others, row_values=values)


def by_mention(project: int, user: int) -> AccessPath:
    """Return the path to conversations with a note that mentions a user: by the newest such note, so that each comes once."""
    newest = (
        "NOT EXISTS (SELECT 1 FROM mentions h WHERE h.user = g.user AND h.project = g.project "
        "AND h.conversation = g.conversation AND h.message > g.message)"
    )
    terms: tuple[Term, ...] = (("g.user = ? AND g.project = ?", (user, project)), (newest, ()))
    return _joined_path("mentions g", "g.conversation", terms, frozenset({"mentioned"}))


def by_follower(project: int, user: int) -> AccessPath:
    """Return the path to conversations that a user follows."""
    terms = (("g.user = ? AND g.project = ?", (user, project)),)
    return _joined_path("followers g", "g.conversation", terms, frozenset({"following"}))


def by_attribute(project: int, wanted: AttributeIs) -> AccessPath:
    """Return the path to conversations with an attribute. The index has beginnings of values; the row decides."""
    keys = [text_key(wanted.text)]
    if wanted.number is not None:
        keys += number_keys(Decimal(wanted.number))
    keys = [*dict.fromkeys(keys)]
    named: Term = ("g.project = ? AND g.name = ?", (project, wanted.name))
    return _joined_path(
        "conversation_attributes g", "g.conversation", (named, one_of("g.value", keys)), frozenset()
    )


def by_rating(project: int) -> AccessPath:
    """Return the path to conversations with a rating; each has one such milestone."""
    terms = (("g.project = ? AND g.kind = 'rated'", (project,)),)
    return _joined_path("milestones g", "g.conversation", terms, frozenset({"rated"}))


def by_hiding(project: int) -> AccessPath:
    """Return the path to hidden conversations."""
    terms: tuple[Term, ...] = (("c.project = ?", (project,)), ("c.visible = 0", ()))
    return AccessPath(indexed("conversations_hidden"), terms, frozenset({"visible"}), by_hour=True)


def by_late_change(project: int, since: int) -> Iterator[AccessPath]:
    """Yield the paths of `by_change`, limited to changes since a time."""
    for path in by_change(project):
        late = hours_of(since, None) if path.by_hour else [(f"{path.key} >= ?", (since,))]
        yield AccessPath(path.source, (*path.terms, *late), frozenset(), row_condition=path.row_condition)


def _joined_path(table: str, key: str, terms: tuple[Term, ...], covered: frozenset[str]) -> AccessPath:
    return AccessPath(
        f"{table} {{and_then}} conversations c ON c.rowid = {key}", terms, covered, count_source=table
    )


OUT_OF_ORDER: Final = "(c.activity < c.created_at OR c.updated_at < c.activity)"


def access_paths(project: int, wanted: ConversationFilter, sort: ConversationSort) -> Iterator[AccessPath]:
    """Yield the paths to the conversations of a list.

    Nearly all conversations were created before their last activity, and changed not before it. So a list of conversations
    changed before some time, ordered by activity, starts at that time. Conversations whose times are out of order, because of
    an import or a clock that was set back, have a path of their own.
    """
    before = _upper_bound(wanted, sort)
    if before is None:
        yield from _unbounded_paths(project, wanted, sort)
        return
    bounds: Sequence[Term] = [("c.created_at < ?", (before,))]
    if sort.key == "activity":
        bounds = [*hours_of(None, before)]
    for path in _unbounded_paths(project, wanted, sort):
        yield replace(path, terms=(*path.terms, *bounds), row_condition=f"NOT {OUT_OF_ORDER}")
    terms: tuple[Term, ...] = (("c.project = ?", (project,)), (OUT_OF_ORDER, ()))
    source = indexed("conversations_out_of_order")
    yield AccessPath(source, terms, frozenset(), by_hour=sort.key == "activity")


def _upper_bound(wanted: ConversationFilter, sort: ConversationSort) -> int | None:
    """Return the bound before which a list's conversations are in its order, unless their times are out of order."""
    bounds = {
        "activity": (wanted.changed_before,),
        "created": (wanted.until, wanted.changed_before),
    }.get(sort.key, ())
    return min((each for each in bounds if each is not None), default=None)


def _unbounded_paths(
    project: int, wanted: ConversationFilter, sort: ConversationSort
) -> Iterator[AccessPath]:
    home: Term = ("c.project = ?", (project,))
    statuses, archived = possible(wanted, sort)
    terms: tuple[Term, ...]
    if wanted.contact is not None:
        terms = (("c.contact = ?", (wanted.contact,)), ("{unindexed}c.project = ?", (project,)))
        yield AccessPath(indexed("conversations_by_contact"), terms, frozenset({"contact"}))
    elif wanted.snoozed:
        for flag in archived:
            terms = (home, ("c.archived = ? AND c.snoozed_until IS NOT NULL", (flag,)))
            yield AccessPath(
                indexed("conversations_asleep"), terms, frozenset({"archived", "snoozed"}), by_hour=True
            )
    elif wanted.assignees is not None:
        for assignee, flag, status in product(wanted.assignees, archived, statuses):
            terms = (
                home,
                one_of("c.assignee_id", [assignee]),
                ("c.archived = ? AND c.status = ?", (flag, status)),
            )
            covered = frozenset({"assignees", "archived", "statuses"})
            yield AccessPath(indexed("conversations_by_assignee"), terms, covered, by_hour=True)
    elif sort.key == "waiting" or wanted.waiting:
        terms = (home, ("c.waiting_since IS NOT NULL", ()))
        yield AccessPath(indexed("conversations_waiting"), terms, frozenset({"waiting"}))
    elif wanted.visible is False and sort.key == "activity":
        yield by_hiding(project)
    elif sort.key == "activity" and (wanted.text is not None or wanted == _plain(wanted)):
        yield AccessPath(indexed("conversations_by_hour"), (home,), frozenset(), by_hour=True)
    else:
        index = "conversations_by_status" if sort.key == "activity" else "conversations_by_creation"
        for flag, status in product(archived, statuses):
            terms = (home, ("c.archived = ? AND c.status = ?", (flag, status)))
            covered = frozenset({"archived", "statuses"})
            yield AccessPath(indexed(index), terms, covered, by_hour=sort.key == "activity")


class ChangePath(Struct, frozen=True):
    """One of the two access paths to conversations by their last change.

    Args:
        source: the table `c` with its index.
        key: the column with the time, by which the index is ordered.
        terms: the conditions by which the index is entered.
        row_condition: the further condition of rows on this path, if the index has others as well.
        by_hour: whether the index is ordered by the hour of the key.
    """

    source: str
    key: str
    terms: tuple[Term, ...]
    row_condition: str = ""
    by_hour: bool = False


def by_change(project: int) -> Iterator[ChangePath]:
    """Yield the paths to all conversations in the order of their last change.

    The last change of most conversations is a message, which is also their last activity, so the index by activity finds
    them. The index by change has only the others, so that a message does not rewrite it.
    """
    home: Term = ("c.project = ?", (project,))
    source = indexed("conversations_by_hour")
    yield ChangePath(source, "c.activity", (home,), "c.updated_at = c.activity", by_hour=True)
    source = indexed("conversations_by_change")
    yield ChangePath(source, "c.updated_at", (home, ("c.updated_at <> c.activity", ())))


def _plain(wanted: ConversationFilter) -> ConversationFilter:
    """Return a filter with only the conditions that the index of all conversations by activity is used for."""
    names = ("visible", "since", "until", "snoozed", "user", "merged", "notes")
    others = {name: getattr(wanted, name) for name in names}
    return ConversationFilter(**others)


def possible(wanted: ConversationFilter, sort: ConversationSort) -> tuple[Sequence[Status], Sequence[bool]]:
    """Return the possible statuses of the list's conversations, and the possible values of `archived`."""
    statuses = _STATUSES if wanted.statuses is None else wanted.statuses
    if sort.key == "waiting" or wanted.waiting:  # no contact waits in a closed conversation
        statuses = tuple(status for status in statuses if status != "CLOSED")
    return statuses, (False, True) if wanted.archived is None else (wanted.archived,)


def indexed(index: str) -> str:
    return f"conversations c {{indexed[{index}]}}"


def hours_of(since: int | None, until: int | None) -> Iterator[Term]:
    """Yield conditions that bound the hour of the last activity, for indexes that store only the hour."""
    if since is not None:
        yield "c.hour >= ?", (since // HOUR_MS,)
    if until is not None:
        yield "c.hour <= ?", (until // HOUR_MS,)


def up_to_hour(hour: int | None, *, descending: bool) -> Iterator[Term]:
    """Yield the condition that ends a list at the end of an hour; None is no end."""
    if hour is not None:
        yield f"c.hour {'>=' if descending else '<='} ?", (hour,)


def one_of(column: str, values: Sequence[str | None]) -> Term:
    named = tuple(value for value in values if value is not None)
    if not named:
        return (f"{column} IS NULL" if values else "1 = 0"), ()
    among = f"{column} = ?" if len(named) == 1 else f"{column} IN ({', '.join('?' * len(named))})"
    return (f"({among} OR {column} IS NULL)" if None in values else among), named
