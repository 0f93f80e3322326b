"""Lists of contacts. Each filter and sort order uses an index, so that a page costs about the same at any size.

The most selective condition drives the query if few contacts match it. The others are checked for each contact. If every
condition matches many contacts, the query scans in sort order because a page is filled soon.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from deskwire.engine.contacts.contact import Contact, filter_values
from deskwire.engine.contacts.ports import (
    ContactFilter,
    ContactPageKey,
    ContactSort,
    ContactSortKey,
    ListedContact,
)
from deskwire.engine.contacts.search_terms import PHONE_MARK, address_word
from deskwire.engine.conversations.tags import tag_key
from deskwire.storage.dialect import Dialect
from deskwire.storage.tables.base import Queries
from deskwire.storage.tables.contacts.contacts import CONTACT_COLUMNS, PROFILE_COLUMNS, contact_of, profile_of
from deskwire.storage.tables.conversations.attributes import attribute_condition

_LAST: Final = chr(0x10FFFF)
"""The largest character. Appended to a term, it is the upper bound of the words with this prefix."""

UNSELECTIVE_ROWS: Final = 20_000
"""Number of matching rows from which on a condition counts as unselective."""

_KEYS: Final[Mapping[ContactSortKey, str]] = {
    "made": "k.rowid",
    "created": "k.created_at",
    "updated": "k.updated_at",
}
_INDEXES: Final[Mapping[ContactSortKey, str]] = {
    "made": "contacts_by_project",
    "created": "contacts_by_creation",
    "updated": "contacts_by_update",
}
_WIDTH: Final = len(CONTACT_COLUMNS.split(", "))


class _Condition(Struct, frozen=True):
    """A condition on a table with the columns `project` and `contact`, whose matching rows satisfy `where`."""

    table: str
    where: str
    values: tuple[Any, ...]


class ContactListReads(Queries):
    """The queries of `contacts.ports.ContactReader` for lists."""

    def contacts(self, project: int, terms: Sequence[str], limit: int) -> Sequence[Contact]:
        listed = self.listed_contacts(project, ContactFilter(terms=tuple(terms)), ContactSort(), None, limit)
        return [each.contact for each in listed]

    def listed_contacts(
        self, project: int, wanted: ContactFilter, sort: ContactSort, after: ContactPageKey | None, limit: int
    ) -> Sequence[ListedContact]:
        counted = sorted(
            (
                (self._rows_of(project, each), number, each)
                for number, each in enumerate(_conditions(project, wanted))
            ),
            key=lambda each: each[:2],
        )
        conditions = [condition for *_, condition in counted]
        leads = bool(counted) and counted[0][0] < UNSELECTIVE_ROWS
        sql, values = _statement(self.dialect, project, conditions, wanted, sort, after, leads=leads)
        rows = self.conn.execute(self.dialect.text(sql), (*values, limit))
        return [_listed(row) for row in rows]

    def _rows_of(self, project: int, condition: _Condition) -> int:
        """Count the rows that match a condition, up to UNSELECTIVE_ROWS."""
        row = self.conn.execute(
            f"SELECT count(*) FROM (SELECT 1 FROM {condition.table} x WHERE x.project = ? AND {condition.where} LIMIT ?) AS met",
            (project, *condition.values, UNSELECTIVE_ROWS),
        ).fetchone()
        return int(row[0])


def _listed(row: Sequence[Any]) -> ListedContact:
    contact = contact_of(row[:_WIDTH])
    return ListedContact(
        contact, profile_of(*row[_WIDTH : _WIDTH + 2]), ContactPageKey(row[_WIDTH + 2], contact.rowid)
    )


def _conditions(project: int, wanted: ContactFilter) -> Iterator[_Condition]:
    numbers = [term.removeprefix(PHONE_MARK) for term in wanted.terms if term.startswith(PHONE_MARK)]
    for term in (term for term in wanted.terms if not term.startswith(PHONE_MARK)):
        yield _prefix_condition(project, term, *numbers)
    if wanted.email is not None:
        yield _Condition("contact_words", "x.word = ?", (address_word(wanted.email),))
    if wanted.tags is not None:
        marks = ", ".join("?" for _ in wanted.tags)
        yield _Condition("contact_tags", f"x.folded IN ({marks})", tuple(map(tag_key, wanted.tags)))
    if wanted.attribute is not None:
        found = filter_values(wanted.attribute)
        values = ", ".join("?" for _ in found)
        sql = f"x.name = ? AND x.value IN ({values})"
        yield _Condition("contact_attributes", sql, (wanted.attribute.name, *found))


def _prefix_condition(project: int, *terms: str) -> _Condition:
    """Return the condition for a word with one of these prefixes.

    Each prefix is a separate range of the index.
    """
    one, values = "x.word >= ? AND x.word < ?", [(term, f"{term}{_LAST}") for term in terms]
    if len(terms) == 1:
        return _Condition("contact_words", one, values[0])
    several = " OR ".join(f"(x.project = ? AND {one})" for _ in terms)
    return _Condition(
        "contact_words", f"({several})", tuple(each for pair in values for each in (project, *pair))
    )


def _statement(
    dialect: Dialect,
    project: int,
    conditions: Sequence[_Condition],
    wanted: ContactFilter,
    sort: ContactSort,
    after: ContactPageKey | None,
    *,
    leads: bool,
) -> tuple[str, list[Any]]:
    """Return the statement for a page and its values, except for the value of the final LIMIT.

    Args:
        leads: whether the first condition drives the query.
    """
    key, index = _KEYS[sort.key], _INDEXES[sort.key]
    sign, direction = ("<", "DESC") if sort.order == "desc" else (">", "ASC")
    source = "contacts k" if leads else f"contacts k {{indexed[{index}]}}"
    home = "{unindexed}k.project = ?" if leads else "k.project = ?"
    terms: list[tuple[str, tuple[Any, ...]]] = [(home, (project,)), ("k.erasing = 0", ())]
    for number, each in enumerate(conditions):
        if leads and not number:
            found = f"SELECT x.contact FROM {each.table} x WHERE x.project = ? AND {each.where}"
            terms.append((f"k.rowid IN ({found})", (project, *each.values)))
        else:
            found = f"SELECT 1 FROM {each.table} x WHERE x.contact = k.rowid AND x.project = k.project AND {each.where}"
            terms.append((f"EXISTS ({found})", each.values))
    terms += _row_conditions(dialect, wanted)
    if after is not None:
        terms.append(_after(sort, key, sign, after))
    where = " AND ".join(term for term, _ in terms)
    order = key if sort.key == "made" else f"{key} {direction}, k.rowid"
    columns = f"{CONTACT_COLUMNS}, {PROFILE_COLUMNS}, {key}"
    sql = f"SELECT {columns} FROM {source} WHERE {where} ORDER BY {order} {direction} LIMIT ?"
    return sql, [value for _, values in terms for value in values]


def _after(sort: ContactSort, key: str, sign: str, after: ContactPageKey) -> tuple[str, tuple[int, ...]]:
    """Return the condition for contacts after a page key."""
    if sort.key == "made":
        return f"k.rowid {sign} ?", (after.rowid,)
    return f"({key}, k.rowid) {sign} (?, ?)", (after.value, after.rowid)


def _row_conditions(dialect: Dialect, wanted: ContactFilter) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """Yield the conditions on columns of the contact's own row."""
    if wanted.attribute is not None:
        yield attribute_condition(dialect, "k.attributes", wanted.attribute)
    if wanted.changed_since is not None:
        yield "k.updated_at >= ?", (wanted.changed_since,)
    if wanted.changed_before is not None:
        yield "k.updated_at < ?", (wanted.changed_before,)
