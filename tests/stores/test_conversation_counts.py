"""Counts of conversations with a filter: exact below their bounds, and never reading more rows than they may."""

from __future__ import annotations

from itertools import chain
from typing import Any

import pytest

from deskwire.engine.contacts.contact import Profile
from deskwire.engine.conversations.listing import BoundedCount, ConversationFilter, ConversationSort
from deskwire.engine.core.values import replace
from deskwire.engine.definitions.attributes import AttributeIs
from deskwire.storage.dialect import SQLITE
from deskwire.storage.tables.conversations.access_paths import selective_paths
from deskwire.storage.tables.conversations.bounded_counts import (
    INDEX_COLUMNS,
    bounded_count_query,
    path_count_query,
)
from deskwire.storage.tables.conversations.bounded_lists import ordered_paths
from deskwire.storage.tables.conversations.conditions import remaining_terms
from tests.stores.test_conversation_lists import ASSIGNEES, GOLD, HOUR, stored
from tests.support.builders import CONTACT, NOON, PROJECT

BARE = ConversationFilter(archived=False, merged=False)
OPEN = replace(BARE, statuses=("OPEN", "PENDING"), snoozed=False)
PLAIN = {"project": PROJECT.rowid, "status": "OPEN", "created_at": NOON, "updated_at": NOON}


@pytest.fixture(autouse=True)
def _contact(tx: Any) -> None:
    assert tx.insert_contact(PROJECT.rowid, CONTACT) == CONTACT
    tx.save_profile(CONTACT, Profile({"tier": 1}, ()))


def fill(tx: Any, count: int, first: int = 0, **fields: Any) -> None:
    """Store open conversations with these fields."""
    for number in range(first, first + count):
        stored(tx, number, {**PLAIN, **fields})


def counted(tx: Any, wanted: ConversationFilter, found_max: int, examined_max: int) -> BoundedCount:
    found: BoundedCount = tx.count_some_conversations(PROJECT.rowid, wanted, found_max, examined_max)
    return found


@pytest.mark.parametrize(
    "wanted",
    [OPEN, replace(BARE, tags=("a", "b")), replace(BARE, rated=False), replace(BARE, waiting=True)],
    ids=["by status", "by tag", "unrated", "waiting"],
)
def test_count_is_exact_below_its_bound_and_stops_at_it(tx: Any, wanted: ConversationFilter) -> None:
    fill(tx, 30, tags=("a", "b"), waiting_since=NOON)
    fill(tx, 5, 30, status="CLOSED", rating=9)
    for found_max, expected in ((31, (30, True)), (30, (30, False)), (7, (7, False))):
        found = counted(tx, wanted, found_max, 1_000)
        assert (found.value, found.complete) == expected


@pytest.mark.parametrize(
    "wanted",
    [
        replace(BARE, unread_by_contact=True),
        replace(BARE, tags=("a",), unread_by_contact=True),
        replace(BARE, attributes=GOLD, unread_by_contact=True),
        replace(OPEN, without_tags=("z",), unread_by_contact=True),
    ],
    ids=["any", "by tag", "by attribute", "by status"],
)
def test_count_reads_no_more_rows_than_it_may(tx: Any, wanted: ConversationFilter) -> None:
    fill(tx, 20, tags=("a",), attributes={"plan": "gold"})
    fill(tx, 10, 20, tags=("a",), attributes={"plan": "gold"}, unread=True)
    assert counted(tx, wanted, 100, 31) == BoundedCount(10, complete=True, examined=30)
    for examined_max in (1, 10, 30):
        found = counted(tx, wanted, 100, examined_max)
        assert (found.complete, found.examined) == (False, examined_max)
        assert found.value <= min(10, examined_max)


def test_conversation_with_several_of_the_tags_is_counted_once(tx: Any) -> None:
    for number, tags in enumerate((("a",), ("b",), ("a", "b"), ("a", "b", "c"), ("c",), ())):
        fill(tx, 1, number, tags=tags)
    assert counted(tx, replace(BARE, tags=("a", "b")), 100, 100).value == 4
    assert counted(tx, replace(BARE, tags=("c", "b", "a")), 100, 100).value == 5


def test_count_starts_from_the_condition_that_the_fewest_meet(tx: Any) -> None:
    fill(tx, 20, tags=("common",), attributes={"plan": "gold"})
    fill(tx, 3, 20, tags=("common", "rare"), attributes={"plan": "gold"})
    wanted = replace(BARE, tags=("common",), all_tags=("rare",), attributes=GOLD)
    assert counted(tx, wanted, 100, 10) == BoundedCount(3, complete=True, examined=3)
    fill(tx, 20, 23, status="CLOSED", tags=("common",), attributes={"plan": "gold"})
    fill(tx, 1, 43, status="PENDING", tags=("common",), attributes={"plan": "gold"})
    pending = replace(BARE, statuses=("PENDING",), tags=("common",), attributes=GOLD)
    assert counted(tx, pending, 100, 10) == BoundedCount(1, complete=True, examined=1)


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (OPEN, 20),
        (replace(OPEN, assignees=("usr_1",)), 20),
        (replace(BARE, snoozed=True), 5),
        (replace(BARE, waiting=True, snoozed=False), 20),
        (replace(BARE, statuses=("OPEN",), created_since=NOON - 1), 25),
    ],
    ids=["open", "mine", "snoozed", "waiting", "created lately"],
)
def test_filter_that_an_index_has_whole_is_counted_without_a_row(
    tx: Any, wanted: ConversationFilter, expected: int
) -> None:
    fields: dict[str, Any] = {"assignee": ASSIGNEES[1], "waiting_since": NOON}
    fill(tx, 20, **fields)
    fill(tx, 5, 20, **fields, snoozed_until=NOON + HOUR)
    assert counted(tx, wanted, 100, 3) == BoundedCount(expected, complete=True, examined=0)


@pytest.mark.parametrize("snoozed", [None, False, True])
def test_count_by_the_time_of_activity_starts_at_that_time(tx: Any, snoozed: bool | None) -> None:
    fields: dict[str, Any] = {"snoozed_until": NOON + 99 * HOUR if snoozed else None}
    fill(tx, 50, **fields, last_message_at=NOON)
    fill(tx, 4, 50, **fields, last_message_at=NOON + 7 * HOUR, updated_at=NOON + 7 * HOUR)
    lately = replace(BARE, since=NOON + 6 * HOUR, snoozed=snoozed)
    found = counted(tx, lately, 10, 10)
    assert (found.value, found.complete) == (4, True)
    assert counted(tx, replace(lately, rated=False), 10, 10) == BoundedCount(4, complete=True, examined=4)
    found = counted(tx, replace(BARE, until=NOON + HOUR, snoozed=snoozed), 10, 20)
    assert (found.value, found.complete) == (10, False)


def test_list_with_an_index_of_its_own_is_counted_beyond_the_bound_of_rows(tx: Any) -> None:
    fill(tx, 20)
    fill(tx, 20, 20, status="CLOSED")
    everything = replace(BARE, visible=True)
    assert counted(tx, everything, 100, 3) == BoundedCount(40, complete=True, examined=0)
    assert counted(tx, everything, 30, 3) == BoundedCount(30, complete=False, examined=0)
    fill(tx, 70, 40, visible=False)
    assert not counted(tx, replace(everything, statuses=("OPEN",)), 40, 3).complete, "most are hidden"


@pytest.mark.sqlite
def test_columns_of_indexes_are_those_of_the_database(tx: Any) -> None:
    for index, columns in INDEX_COLUMNS.items():
        assert {row[2] for row in tx.conn.execute(f"PRAGMA index_info({index})")} == columns


@pytest.mark.sqlite
@pytest.mark.parametrize(
    "wanted",
    [
        OPEN,
        replace(OPEN, assignees=("usr_1", None)),
        replace(BARE, snoozed=True),
        replace(BARE, waiting=True, waiting_before=NOON),
        replace(BARE, visible=False),
        replace(OPEN, unread=True, user=1),
        replace(BARE, tags=("a", "b")),
        replace(BARE, all_tags=("a", "b"), without_tags=("c",)),
        replace(BARE, contact=1),
        replace(BARE, since=NOON, until=NOON + HOUR),
        replace(BARE, attributes=GOLD),
        replace(BARE, rating=(0, 6)),
        replace(BARE, created_since=NOON, created_before=NOON + HOUR),
        replace(BARE, channels=("chn_1",)),
        replace(BARE, contact_attributes=(AttributeIs("tier", "1", "1"),)),
        replace(BARE, priorities=("HIGH",)),
    ],
)
def test_count_scans_no_table(tx: Any, wanted: ConversationFilter) -> None:
    sort = ConversationSort()
    selective = chain.from_iterable(selective_paths(PROJECT.rowid, wanted, sort))
    for path in (*ordered_paths(PROJECT.rowid, wanted, sort), *selective):
        remaining = [*remaining_terms(SQLITE, path, wanted, sort)]
        for sql, values in (
            bounded_count_query(path, path.terms, remaining, 50, 50),
            path_count_query(path, path.terms, 50),
        ):
            plan = [row[3] for row in tx.conn.execute(f"EXPLAIN QUERY PLAN {SQLITE.text(sql)}", values)]
            own = ("SCAN json_each", "SCAN found", "SCAN entry")
            assert not [step for step in plan if step.startswith("SCAN") and not step.startswith(own)], plan
