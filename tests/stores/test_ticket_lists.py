"""Lists of tickets: the same as sorting and filtering by hand, and by an index at any size."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from deskwire.engine.accounts.teams import Team
from deskwire.engine.core.folding import fold
from deskwire.engine.tickets.ports import TicketFilter, TicketPageKey, TicketSort
from deskwire.engine.tickets.ticket import Ticket
from deskwire.storage.dialect import SQLITE
from deskwire.storage.sqlite.ticket_search import match_of
from deskwire.storage.tables.tickets.lists import list_query
from deskwire.storage.tables.tickets.tickets import PRIORITIES
from tests.support.builders import NOON, OTHER_PROJECT, PROJECT

USERS = (None, "usr_1", "usr_2")
TEAMS = (None, "team_1")
WORDS = ("parcel", "Parcels", "lost", "refund", "a-1001", "größe")
SORTS = [TicketSort(key, order) for key in ("createdAt", "updatedAt", "priority", "lastActivity") for order in ("asc", "desc")]  # fmt: skip


tickets: st.SearchStrategy[dict[str, Any]] = st.builds(
    dict,
    project=st.sampled_from((PROJECT.rowid, PROJECT.rowid, OTHER_PROJECT.rowid)),
    title=st.lists(st.sampled_from(WORDS), min_size=1, max_size=3).map(" ".join),
    description=st.none() | st.lists(st.sampled_from(WORDS), max_size=3).map(" ".join),
    status=st.sampled_from(("OPEN", "IN_PROGRESS", "DONE")),
    priority=st.sampled_from(PRIORITIES),
    processing_user=st.sampled_from(USERS),
    processing_team=st.sampled_from(TEAMS),
    snoozed_until=st.sampled_from((None, NOON + 5)),
    type=st.sampled_from((None, "bug")),
    tags=st.sets(st.sampled_from(("a", "b"))).map(lambda tags: tuple(sorted(tags))),
    updated_at=st.integers(NOON, NOON + 3),
    activity_at=st.integers(NOON, NOON + 3),
)
filters = st.builds(
    TicketFilter,
    status=st.sampled_from((None, "OPEN", "DONE")),
    priority=st.sampled_from((None, "HIGH")),
    assignee=st.sampled_from((None, "usr_1", "team_1", "none")),
    tag=st.sampled_from((None, "a")),
    type=st.sampled_from((None, "bug")),
    snoozed=st.sampled_from((None, True, False)),
    text=st.sampled_from((None, "parcel", "lost par", "A-1001", "grosse", "grö")),
)


def key_of(ticket: Ticket, sort: TicketSort) -> tuple[int, int]:
    key = {
        "createdAt": ticket.rowid,
        "updatedAt": ticket.updated_at,
        "priority": PRIORITIES.index(ticket.priority),
        "lastActivity": ticket.activity_at,
    }[sort.key]
    return key, ticket.rowid


def fits(ticket: Ticket, wanted: TicketFilter) -> bool:
    assignees = (ticket.processing_user, ticket.processing_team)
    words = fold(f"{ticket.title} {ticket.description or ''}").split()
    sought = fold(wanted.text or "").split()
    return (
        ticket.project == PROJECT.rowid
        and wanted.status in (None, ticket.status)
        and wanted.priority in (None, ticket.priority)
        and (
            assignees == (None, None) if wanted.assignee == "none" else wanted.assignee in (None, *assignees)
        )
        and (wanted.tag is None or wanted.tag in ticket.tags)
        and wanted.type in (None, ticket.type)
        and wanted.snoozed in (None, ticket.snoozed_until is not None)
        and all(any(word.startswith(each) for word in words) for each in sought)
    )


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    made=st.lists(tickets, max_size=14), wanted=filters, sort=st.sampled_from(SORTS), limit=st.integers(1, 4)
)
def test_pages_of_a_list_equal_sorting_and_filtering_by_hand(
    tx: Any, made: list[dict[str, Any]], wanted: TicketFilter, sort: TicketSort, limit: int
) -> None:
    tx.conn.execute("SAVEPOINT empty")
    stored = [
        tx.insert_ticket(Ticket(id=f"tkt_{number}", created_at=NOON, **values))
        for number, values in enumerate(made)
    ]
    expected = sorted(
        (ticket for ticket in stored if fits(ticket, wanted)),
        key=lambda ticket: key_of(ticket, sort),
        reverse=sort.order == "desc",
    )
    seen: list[Ticket] = []
    after: TicketPageKey | None = None
    while page := tx.tickets(PROJECT.rowid, wanted, sort, after, limit):
        seen += [ticket for ticket, _ in page]
        after = page[-1][1]
    tx.conn.execute("ROLLBACK TO empty")
    assert seen == expected


def plan(tx: Any, wanted: TicketFilter, sort: TicketSort) -> tuple[str, str]:
    """Return SQLite's plan for a page in the middle of a list: how it selects the rows, and the steps that follow."""
    words = None if wanted.text is None else tx.ticket_words(PROJECT.rowid, wanted.text)
    sql, values = list_query(PROJECT.rowid, wanted, sort, TicketPageKey(NOON, 500), 50, words)
    steps = tx.conn.execute(f"EXPLAIN QUERY PLAN {SQLITE.text(sql)}", values).fetchall()
    return "\n".join(row[3] for row in steps if row[1]), "\n".join(row[3] for row in steps if not row[1])


INDEX = {
    "createdAt": "tickets_by_creation (project=? AND status=? AND rowid",
    "updatedAt": "tickets_by_update (project=? AND status=? AND updated_at",
    "priority": "tickets_by_priority (project=? AND status=? AND priority",
    "lastActivity": "tickets_by_activity (project=? AND status=? AND activity",
}


@pytest.mark.sqlite
@pytest.mark.parametrize("sort", SORTS, ids=lambda sort: f"{sort.key}-{sort.order}")
@pytest.mark.parametrize(
    "wanted",
    [
        TicketFilter(),
        TicketFilter(status="OPEN"),
        TicketFilter(assignee="none", snoozed=False, type="bug"),
        TicketFilter(status="DONE", priority="HIGH"),
    ],
    ids=("all", "status", "loose", "priority"),
)
def test_list_reads_the_index_of_its_sort_and_sorts_only_its_pages(
    tx: Any, wanted: TicketFilter, sort: TicketSort
) -> None:
    said, outer = plan(tx, wanted, sort)
    if wanted.priority and sort.key in ("createdAt", "priority"):
        assert "tickets_by_priority (project=? AND status=? AND priority=? AND rowid" in said
    else:
        assert INDEX[sort.key] in said
    assert "SCAN t" not in said
    assert "TEMP B-TREE" not in said
    assert "SEARCH t USING INTEGER PRIMARY KEY" in outer


@pytest.mark.sqlite
@pytest.mark.parametrize("sort", SORTS, ids=lambda sort: f"{sort.key}-{sort.order}")
@pytest.mark.parametrize(
    ("wanted", "way"),
    [
        (TicketFilter(assignee="usr_1", status="OPEN"), "tickets_by_user (processing_user=?"),
        (TicketFilter(assignee="team_1", priority="LOW"), "tickets_by_team (processing_team=?"),
        (TicketFilter(contact=3, snoozed=False), "tickets_by_contact (contact=?"),
        (TicketFilter(conversation="cnv_1", snoozed=True), "tickets_by_conversation (conversation=?"),
        (TicketFilter(snoozed=True, status="OPEN"), "tickets_snoozed"),
        (TicketFilter(tag="vip", assignee="usr_1"), "SEARCH g USING PRIMARY KEY (project=? AND folded=?"),
        (TicketFilter(text="parcel", tag="vip", assignee="usr_1"), "SCAN s VIRTUAL TABLE INDEX"),
    ],
    ids=("user", "team", "contact", "conversation", "snoozed", "tag", "text"),
)  # fmt: skip
def test_a_filter_that_few_tickets_pass_leads_the_way(
    tx: Any, wanted: TicketFilter, way: str, sort: TicketSort
) -> None:
    said, outer = plan(tx, wanted, sort)
    assert way in said, said
    assert "SEARCH t USING INTEGER PRIMARY KEY" in outer


@pytest.mark.sqlite
@pytest.mark.parametrize("order", ["asc", "desc"])
def test_a_search_in_the_order_of_creation_stops_after_its_page(tx: Any, order: Any) -> None:
    said, outer = plan(tx, TicketFilter(text="parcel", status="OPEN"), TicketSort("createdAt", order))
    assert "TEMP B-TREE" not in said + outer


@pytest.mark.sqlite
def test_the_next_wake_up_and_a_tickets_log_are_found_by_index(tx: Any) -> None:
    statements: list[str] = []
    tx.conn.set_trace_callback(statements.append)
    tx.next_wake_up()
    tx.snoozed_tickets(NOON, 10)
    tx.tickets_of_team("team_1", 10)
    tx.ticket_activity(1, None, 10)
    tx.tickets_of(1, 10)
    tx.touch_ticket("tkt_1", NOON)
    tx.conn.set_trace_callback(None)
    assert len(statements) >= 6
    for statement in statements:
        steps = [row[3] for row in tx.conn.execute(f"EXPLAIN QUERY PLAN {statement}")]
        assert not any("TEMP B-TREE" in step for step in steps), (statement, steps)
        assert all("INDEX" in step or "PRIMARY KEY" in step for step in steps), (statement, steps)


words = st.text(max_size=60)


@pytest.mark.sqlite
@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=words)
def test_any_text_at_all_can_be_searched_for(tx: Any, text: str) -> None:
    match = match_of(PROJECT.rowid, text.encode(errors="replace").decode())
    if match is not None:
        tx.conn.execute("SELECT rowid FROM ticket_search WHERE ticket_search MATCH ?", (match,)).fetchall()


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.text(st.characters(codec="ascii"), min_size=1, max_size=30))
def test_a_ticket_is_found_by_its_own_title(tx: Any, text: str) -> None:
    tx.conn.execute("SAVEPOINT empty")
    made = tx.insert_ticket(Ticket("tkt_1", PROJECT.rowid, text, NOON, NOON, NOON))
    found = tx.tickets(PROJECT.rowid, TicketFilter(text=text), TicketSort(), None, 10)
    foreign = tx.tickets(OTHER_PROJECT.rowid, TicketFilter(text=text), TicketSort(), None, 10)
    tx.conn.execute("ROLLBACK TO empty")
    assert [ticket for ticket, _ in found] == ([made] if any(map(str.isalnum, text)) else [])
    assert foreign == []


def test_deleted_team_is_not_found_and_its_name_is_free(tx: Any) -> None:
    team = tx.insert_team(Team("team_1", PROJECT.rowid, "Returns", NOON, NOON))
    tx.delete_team(team.rowid, NOON)
    assert tx.team(PROJECT.rowid, team.id) is None
    assert tx.team_name(PROJECT.rowid, team.id) is None
    assert tx.team_named(PROJECT.rowid, "returns") is None
    assert tx.teams(PROJECT.rowid, None, 10) == []
    assert tx.deleted_teams() == [(team.rowid, team.id)]
    tx.insert_team(Team("team_2", PROJECT.rowid, "Returns", NOON, NOON))
    tx.forget_team(team.rowid)
    assert tx.deleted_teams() == []
