"""The conditions of lists of conversations on a row `c`, and the keys of their orders; see `lists`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from deskwire.engine.contacts.contact import filter_values
from deskwire.engine.conversations.listing import (
    ConversationFilter,
    ConversationPageKey,
    ConversationSort,
    SortKey,
)
from deskwire.engine.conversations.tags import tag_key
from deskwire.engine.core.values import replace
from deskwire.storage.dialect import Dialect
from deskwire.storage.folded_patterns import contains
from deskwire.storage.tables.conversations.access_paths import AccessPath, Term, one_of, priority_ranks
from deskwire.storage.tables.conversations.agent_view import UNREAD, unread_values
from deskwire.storage.tables.conversations.attributes import attribute_condition
from deskwire.storage.tables.conversations.columns import HOUR_MS

KEYS: Final[Mapping[SortKey, str]] = {
    "activity": "c.activity",
    "waiting": "c.waiting_since",
    "created": "c.created_at",
    "updated": "c.updated_at",
}


def is_descending(sort: ConversationSort) -> bool:
    """Return whether the largest value of the column comes first. The longest wait has the smallest value."""
    return (sort.order == "desc") != (sort.key == "waiting")


def changed(key: str, wanted: ConversationFilter) -> Iterator[Term]:
    if wanted.changed_since is not None:
        yield f"{key} >= ?", (wanted.changed_since,)
    if wanted.changed_before is not None:
        yield f"{key} < ?", (wanted.changed_before,)


def after_key(key: str, sign: str, after: ConversationPageKey, *, by_hour: bool) -> Iterator[Term]:
    """Yield the conditions of rows after a page key; `by_hour` for an index that is ordered by hours."""
    if by_hour:
        yield f"c.hour {sign}= ?", (after.value // HOUR_MS,)
    yield f"({key}, c.rowid) {sign} (?, ?)", (after.value, after.rowid)


def remaining_terms(
    dialect: Dialect, path: AccessPath, wanted: ConversationFilter, sort: ConversationSort
) -> Iterator[Term]:
    """Yield the conditions of a list that its access path does not cover."""
    if path.row_condition:
        yield path.row_condition, path.row_values
    covered: dict[str, Any] = dict.fromkeys(path.covered & _FIELDS)
    left = replace(wanted, **covered)
    for column, values in (("status", left.statuses), ("assignee_id", left.assignees)):
        if values is not None:
            yield one_of(f"{{unindexed}}c.{column}", values)
    for column, flag in (("archived", left.archived), ("visible", left.visible)):
        if flag is not None:
            yield f"{{unindexed}}c.{column} = ?", (flag,)
    if left.snoozed is not None:
        yield f"c.snoozed_until IS {'NOT ' if left.snoozed else ''}NULL", ()
    if left.merged is not None and not (left.merged is False and _is_never_merged(wanted, sort)):
        yield f"c.merged_into IS {'NOT ' if left.merged else ''}NULL", ()
    if left.contact is not None:
        yield "{unindexed}c.contact = ?", (left.contact,)
    if left.tags is not None:
        yield _tagged(left.tags)
    for tag in left.all_tags:
        yield _tagged((tag,))
    if left.without_tags:
        tagged, values = _tagged(left.without_tags)
        yield f"NOT {tagged}", values
    waiting = True if sort.key == "waiting" and "waiting" not in path.covered else left.waiting
    if waiting is not None:
        yield f"c.waiting_since IS {'NOT ' if waiting else ''}NULL", ()
    yield from _unindexed_terms(dialect, left)


def _is_never_merged(wanted: ConversationFilter, sort: ConversationSort) -> bool:
    """Return whether no merged conversation can be in a list, because these are closed. Indexes then cover the list."""
    waiting = sort.key == "waiting" or wanted.waiting
    return bool(waiting or wanted.snoozed or (wanted.statuses and "CLOSED" not in wanted.statuses))


_FIELDS: Final = frozenset(ConversationFilter.__struct_fields__)


def _unindexed_terms(dialect: Dialect, wanted: ConversationFilter) -> Iterator[Term]:
    """Yield the conditions that no index covers."""
    yield from _active(wanted)
    if wanted.unread is not None:
        yield f"{'' if wanted.unread else 'NOT '}({UNREAD})", unread_values(wanted.user, wanted.seen_mark)
    for table, flag in (("mentions", wanted.mentioned), ("followers", wanted.following)):
        if flag is not None:
            own = f"EXISTS (SELECT 1 FROM {table} w WHERE w.user = ? AND w.project = c.project AND w.conversation = c.rowid)"
            yield f"{'' if flag else 'NOT '}{own}", (wanted.user,)
    yield from changed("c.updated_at", wanted)
    if wanted.imported_since is not None:
        yield "c.imported_at >= ?", (wanted.imported_since,)
    if wanted.unread_by_contact is not None:
        yield "c.unread = ?", (wanted.unread_by_contact,)
    if wanted.rated is not None:
        yield f"c.rating IS {'NOT ' if wanted.rated else ''}NULL", ()
    if wanted.rating is not None:
        yield "c.rating BETWEEN ? AND ?", wanted.rating
    yield from _further(wanted)
    for attribute in wanted.attributes:
        yield attribute_condition(dialect, "c.attributes", attribute)
    if wanted.text is not None:
        yield text_term(dialect, wanted)


def _tagged(tags: Sequence[str]) -> Term:
    """Return the condition that a conversation has one of these tags."""
    tag, values = one_of("g.folded", [*map(tag_key, tags)])
    return f"EXISTS (SELECT 1 FROM conversation_tags g WHERE g.conversation = c.rowid AND {tag})", values


def _further(wanted: ConversationFilter) -> Iterator[Term]:
    """Yield the conditions of agents' lists that only a selective path covers."""
    if wanted.created_since is not None:
        yield "{unindexed}c.created_at >= ?", (wanted.created_since,)
    if wanted.created_before is not None:
        yield "{unindexed}c.created_at < ?", (wanted.created_before,)
    if wanted.waiting_before is not None:
        yield "c.waiting_since < ?", (wanted.waiting_before,)
    if wanted.channels is not None:
        yield one_of("{unindexed}c.channel", wanted.channels)
    for attribute in wanted.contact_attributes:
        value, values = one_of("x.value", filter_values(attribute))
        of_contact = "x.contact = c.contact AND x.project = c.project"
        found = f"SELECT 1 FROM contact_attributes x WHERE {of_contact} AND x.name = ? AND {value}"
        yield f"EXISTS ({found})", (attribute.name, *values)
    if wanted.priorities is not None:
        ranks = ", ".join("?" for _ in wanted.priorities)
        yield (
            f"EXISTS (SELECT 1 FROM tickets t WHERE t.conversation = c.id AND t.priority IN ({ranks}))",
            priority_ranks(wanted.priorities),
        )


def text_term(dialect: Dialect, wanted: ConversationFilter) -> Term:
    assert wanted.text is not None, "it is asked for"
    found = [contains(dialect, column, wanted.text) for column in TEXTS]
    *names, message = [condition for condition, _ in found]
    whose = "m.conversation = c.rowid" if wanted.notes else "m.conversation = c.rowid AND m.internal = 0"
    any_message = f"EXISTS (SELECT 1 FROM messages m WHERE {whose} AND {message})"
    return f"({' OR '.join(names)} OR {any_message})", tuple(value for _, values in found for value in values)


def _active(wanted: ConversationFilter) -> Iterator[Term]:
    if wanted.since is not None:
        yield "c.activity >= ?", (wanted.since,)
    if wanted.until is not None:
        yield "c.activity < ?", (wanted.until,)


def joined(terms: Sequence[Term]) -> Term:
    return " AND ".join(term for term, _ in terms), tuple(value for _, some in terms for value in some)


TEXTS: Final = ("c.title", "k.name", "k.email", "k.user_id", "m.text")
"""The columns that a text search reads: the title, the contact's name, email and user id, and last a message's text (`m`)."""
