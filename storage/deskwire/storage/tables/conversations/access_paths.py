"""Ways to the conversations of a list: the indexes, and parts of them, that a list is put together from; see `lists`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal
from itertools import product
from typing import Any, Final, get_args

from msgspec import Struct

from deskwire.engine.conversations.conversation import Status
from deskwire.engine.conversations.listing import ConversationFilter, ConversationSort
from deskwire.engine.conversations.tags import tag_key
from deskwire.engine.core.values import replace
from deskwire.engine.definitions.attributes import AttributeIs
from deskwire.storage.tables.conversations.attributes import number_keys, text_key
from deskwire.storage.tables.conversations.columns import HOUR_MS

Term = tuple[str, tuple[Any, ...]]
"""A condition with its values."""


_STATUSES: Final[tuple[Status, ...]] = get_args(Status)


class AccessPath(Struct, frozen=True):
    """A way to conversations of a list.

    Args:
        source: the table with its index, as `c`.
        terms: what the index is entered with.
        told: the parts of the filter that these terms tell.
        hours: whether the index goes by the hour of the last activity.
        counted: the table by which the way's entries are counted, if it is not the whole source.
        own: the condition of a row that is on this way, if the index does not tell.
    """

    source: str
    terms: tuple[Term, ...]
    told: frozenset[str]
    hours: bool = False
    counted: str = ""
    own: str = ""


def selective_paths(
    project: int, wanted: ConversationFilter, sort: ConversationSort
) -> Iterator[Sequence[AccessPath]]:
    """Yield ways to all conversations that have something which may be rare: if they are few, they are the best ways."""
    if wanted.contact is not None:
        return
    if wanted.tags is not None:
        yield list(by_tag(project, wanted.tags))
    for attribute in wanted.attributes:
        yield [by_attribute(project, attribute)]
    if wanted.rated or (wanted.rated is None and wanted.rating is not None):
        yield [by_rating(project)]
    if wanted.visible is False and sort.key != "activity":
        yield [by_hiding(project)]
    if wanted.changed_since is not None and sort.key != "updated":
        yield list(by_late_change(project, wanted.changed_since))
    if sort.key == "created" and (wanted.since is not None or wanted.until is not None):
        terms = (("c.project = ?", (project,)), *hours_of(wanted.since, wanted.until))
        yield [AccessPath(_indexed("conversations_by_hour"), terms, frozenset())]


def by_tag(project: int, tags: Sequence[str]) -> Iterator[AccessPath]:
    """Yield the ways to conversations with these tags."""
    for key in dict.fromkeys(map(tag_key, tags)):
        terms = (("g.project = ? AND g.folded = ?", (project, key)),)
        yield _beside("conversation_tags g", "g.conversation", terms, frozenset({"tags"}))


def by_attribute(project: int, wanted: AttributeIs) -> AccessPath:
    """Return the way to conversations with an attribute: the index has the beginnings of values, the row tells the rest."""
    keys = [text_key(wanted.text)]
    if wanted.number is not None:
        keys += number_keys(Decimal(wanted.number))
    keys = [*dict.fromkeys(keys)]
    named: Term = ("g.project = ? AND g.name = ?", (project, wanted.name))
    return _beside(
        "conversation_attributes g", "g.conversation", (named, one_of("g.value", keys)), frozenset()
    )


def by_rating(project: int) -> AccessPath:
    """Return the way to conversations with a rating, each of which has one milestone of it."""
    terms = (("g.project = ? AND g.kind = 'rated'", (project,)),)
    return _beside("milestones g", "g.conversation", terms, frozenset({"rated"}))


def by_hiding(project: int) -> AccessPath:
    """Return the way to hidden conversations."""
    terms: tuple[Term, ...] = (("c.project = ?", (project,)), ("c.visible = 0", ()))
    return AccessPath(_indexed("conversations_hidden"), terms, frozenset({"visible"}), hours=True)


def by_late_change(project: int, since: int) -> Iterator[AccessPath]:
    """Yield the ways to conversations that were changed since a time, those of `by_change`."""
    for way in by_change(project):
        late = hours_of(since, None) if way.hours else [(f"{way.key} >= ?", (since,))]
        yield AccessPath(way.source, (*way.terms, *late), frozenset(), own=way.own)


def _beside(table: str, key: str, terms: tuple[Term, ...], told: frozenset[str]) -> AccessPath:
    return AccessPath(f"{table} {{and_then}} conversations c ON c.rowid = {key}", terms, told, counted=table)


_OUT_OF_ORDER: Final = "(c.activity < c.created_at OR c.updated_at < c.activity)"


def access_paths(project: int, wanted: ConversationFilter, sort: ConversationSort) -> Iterator[AccessPath]:
    """Yield the ways to the conversations of a list, whatever tags they have.

    Nearly all conversations were created before they were last active, and changed not before that: a list that has those
    changed before some time, by their activity, begins at that time. Those that are out of order, because they were imported so or
    a clock was put back, have a way of their own.
    """
    before = _in_front_of(wanted, sort)
    if before is None:
        yield from _in_any_order(project, wanted, sort)
        return
    bounds: Sequence[Term] = [("c.created_at < ?", (before,))]
    if sort.key == "activity":
        bounds = [*hours_of(None, before)]
    for way in _in_any_order(project, wanted, sort):
        yield replace(way, terms=(*way.terms, *bounds), own=f"NOT {_OUT_OF_ORDER}")
    terms: tuple[Term, ...] = (("c.project = ?", (project,)), (_OUT_OF_ORDER, ()))
    source = _indexed("conversations_out_of_order")
    yield AccessPath(source, terms, frozenset(), hours=sort.key == "activity")


def _in_front_of(wanted: ConversationFilter, sort: ConversationSort) -> int | None:
    """Return the time in front of which a list's conversations are in its order, unless their times are out of order."""
    bounds = {
        "activity": (wanted.changed_before,),
        "created": (wanted.until, wanted.changed_before),
    }.get(sort.key, ())
    return min((each for each in bounds if each is not None), default=None)


def _in_any_order(project: int, wanted: ConversationFilter, sort: ConversationSort) -> Iterator[AccessPath]:
    home: Term = ("c.project = ?", (project,))
    statuses, archived = _possible(wanted, sort)
    terms: tuple[Term, ...]
    if wanted.contact is not None:
        terms = (("c.contact = ?", (wanted.contact,)), ("{unindexed}c.project = ?", (project,)))
        yield AccessPath(_indexed("conversations_by_contact"), terms, frozenset({"contact"}))
    elif wanted.snoozed:
        for flag in archived:
            terms = (home, ("c.archived = ? AND c.snoozed_until IS NOT NULL", (flag,)))
            yield AccessPath(
                _indexed("conversations_asleep"), terms, frozenset({"archived", "snoozed"}), hours=True
            )
    elif wanted.assignees is not None:
        for assignee, flag, status in product(wanted.assignees, archived, statuses):
            terms = (
                home,
                one_of("c.assignee_id", [assignee]),
                ("c.archived = ? AND c.status = ?", (flag, status)),
            )
            told = frozenset({"assignees", "archived", "statuses"})
            yield AccessPath(_indexed("conversations_by_assignee"), terms, told, hours=True)
    elif sort.key == "waiting" or wanted.waiting:
        terms = (home, ("c.waiting_since IS NOT NULL", ()))
        yield AccessPath(_indexed("conversations_waiting"), terms, frozenset({"waiting"}))
    elif wanted.visible is False and sort.key == "activity":
        yield by_hiding(project)
    elif sort.key == "activity" and (wanted.text is not None or wanted == _plain(wanted)):
        yield AccessPath(_indexed("conversations_by_hour"), (home,), frozenset(), hours=True)
    else:
        index = "conversations_by_status" if sort.key == "activity" else "conversations_by_creation"
        for flag, status in product(archived, statuses):
            terms = (home, ("c.archived = ? AND c.status = ?", (flag, status)))
            told = frozenset({"archived", "statuses"})
            yield AccessPath(_indexed(index), terms, told, hours=sort.key == "activity")


class ChangePath(Struct, frozen=True):
    """One of the two ways to conversations by their last change.

    Args:
        source: the table with its index, as `c`.
        key: the column with the time, in whose order the index is.
        terms: what the index is entered with.
        own: the condition of a row that is on this way, if the index has others, too.
        hours: whether the index goes by the hour of the key.
    """

    source: str
    key: str
    terms: tuple[Term, ...]
    own: str = ""
    hours: bool = False


def by_change(project: int) -> Iterator[ChangePath]:
    """Yield the ways to all conversations in the order of their last change.

    The last change of most was a message, which is their last activity as well, and found by that. The index by change
    has the others alone, so that a message behind a message rewrites nothing of it.
    """
    home: Term = ("c.project = ?", (project,))
    source = _indexed("conversations_by_hour")
    yield ChangePath(source, "c.activity", (home,), "c.updated_at = c.activity", hours=True)
    source = _indexed("conversations_by_change")
    yield ChangePath(source, "c.updated_at", (home, ("c.updated_at <> c.activity", ())))


def _plain(wanted: ConversationFilter) -> ConversationFilter:
    """Return the filter without what the index of all conversations by their activity serves."""
    others = {name: getattr(wanted, name) for name in ("visible", "since", "until", "snoozed", "user")}
    return ConversationFilter(**others)


def _possible(wanted: ConversationFilter, sort: ConversationSort) -> tuple[Sequence[Status], Sequence[bool]]:
    """Return the statuses that conversations of the list may have, and whether they may be archived."""
    statuses = _STATUSES if wanted.statuses is None else wanted.statuses
    if sort.key == "waiting" or wanted.waiting:  # nobody waits in a closed one
        statuses = tuple(status for status in statuses if status != "CLOSED")
    return statuses, (False, True) if wanted.archived is None else (wanted.archived,)


def _indexed(index: str) -> str:
    return f"conversations c {{indexed[{index}]}}"


def hours_of(since: int | None, until: int | None) -> Iterator[Term]:
    """Yield the bounds of the activity as an index by the hour has them."""
    if since is not None:
        yield "c.hour >= ?", (since // HOUR_MS,)
    if until is not None:
        yield "c.hour <= ?", (until // HOUR_MS,)


def one_of(column: str, values: Sequence[str | None]) -> Term:
    named = tuple(value for value in values if value is not None)
    if not named:
        return (f"{column} IS NULL" if values else "1 = 0"), ()
    among = f"{column} = ?" if len(named) == 1 else f"{column} IN ({', '.join('?' * len(named))})"
    return (f"({among} OR {column} IS NULL)" if None in values else among), named
