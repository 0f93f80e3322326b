"""Lists of conversations: the same as sorting and filtering by hand, and by an index at any size."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from deskwire.engine.accounts.people import Assignee
from deskwire.engine.contacts.contact import Profile
from deskwire.engine.conversations.activity import rated_milestone
from deskwire.engine.conversations.conversation import Author, Conversation, Message
from deskwire.engine.conversations.listing import (
    ConversationFilter,
    ConversationPageKey,
    ConversationSort,
    ListedConversation,
)
from deskwire.engine.core.folding import fold
from deskwire.engine.core.values import replace
from deskwire.engine.definitions.attributes import AttributeIs
from deskwire.engine.tickets.ticket import Ticket
from deskwire.storage.dialect import SQLITE
from deskwire.storage.tables.conversations import crowded_hours, lists
from deskwire.storage.tables.conversations.access_paths import access_paths, by_change, selective_paths
from deskwire.storage.tables.conversations.bounded_lists import ordered_paths, scan_query
from deskwire.storage.tables.conversations.conditions import is_descending
from deskwire.storage.tables.conversations.lists import (
    count_query,
    page_query,
    part_query,
)
from tests.support.builders import CONTACT, NOON, OTHER_PROJECT, PROJECT

HOUR = 3_600_000
ASSIGNEES = (
    None,
    Assignee("user", "usr_1", "Ada"),
    Assignee("user", "usr_2", "Bob"),
    Assignee("team", "team_1", "Two"),
)
SORTS = [
    ConversationSort(key, order)
    for key in ("activity", "waiting", "created", "updated")
    for order in ("asc", "desc")
]
TIMES = (NOON, NOON + 1, NOON + HOUR - 1, NOON + HOUR, NOON + 3 * HOUR)
USER = 1


@pytest.fixture(autouse=True)
def _people(tx: Any) -> None:
    assert tx.insert_contact(PROJECT.rowid, CONTACT) == CONTACT
    tx.save_profile(CONTACT, Profile({"tier": 1}, ()))
    for key in (USER, 2):
        tx.conn.execute(
            "INSERT INTO users (rowid, id, email, name, created_at) VALUES (?, ?, ?, 'N', 0)",
            (key, f"usr_{key}", f"{key}@b.example"),
        )


SCALARS = st.sampled_from(
    ("gold", "true", "1", "1.5", "a\x00b", True, False, 1, 1.5, 0, 1e300, ["gold"], {"plan": "gold"})
)
"""Values of an attribute; only scalars can be found."""

states: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {
        "project": st.sampled_from((PROJECT.rowid, PROJECT.rowid, PROJECT.rowid, OTHER_PROJECT.rowid)),
        "status": st.sampled_from(("OPEN", "OPEN", "PENDING", "CLOSED")),
        "archived": st.sampled_from((False, False, True)),
        "visible": st.sampled_from((True, True, False)),
        "assignee": st.sampled_from(ASSIGNEES),
        "tags": st.sets(st.sampled_from(("a", "b", "c"))).map(lambda tags: tuple(sorted(tags))),
        "snoozed_until": st.sampled_from((None, None, NOON + 9 * HOUR)),
        "waiting_since": st.sampled_from((None, *TIMES)),
        "created_at": st.sampled_from(TIMES),
        "last_message_at": st.sampled_from((None, *TIMES)),
        "contact_messages": st.integers(0, 3),
        "title": st.sampled_from((None, "Parcel 100%", "refund")),
        "updated_at": st.sampled_from((*TIMES, NOON + 2)),
        "unread": st.booleans(),
        "rating": st.sampled_from((None, 0, 6, 10)),
        "attributes": st.fixed_dictionaries({}, optional={"plan": SCALARS, "of": st.just({"plan": "gold"})}),
        "channel": st.sampled_from((None, None, "chn_1", "chn_2")),
        "priority": st.sampled_from((None, None, "LOW", "URGENT")),
    }
)
GOLD = (AttributeIs("plan", "gold"),)
OF_PROFILE = (AttributeIs("tier", "1", "1"),)
"""An attribute that the contact of all conversations has."""

filters: st.SearchStrategy[ConversationFilter] = st.builds(
    ConversationFilter,
    contact=st.sampled_from((None, None, None, CONTACT.rowid)),
    statuses=st.sampled_from(
        (None, ("OPEN",), ("OPEN", "PENDING"), ("CLOSED",), ("CLOSED", "OPEN", "PENDING"))
    ),
    archived=st.sampled_from((None, False, True)),
    assignees=st.sampled_from((None, (None,), ("usr_1",), ("team_1",), ("usr_1", None), ("nobody",))),
    tags=st.sampled_from((None, None, ("a",), ("a", "b"), ("z",))),
    snoozed=st.sampled_from((None, False, True)),
    waiting=st.sampled_from((None, None, False, True)),
    visible=st.sampled_from((None, False, True)),
    unread=st.sampled_from((None, None, True, False)),
    user=st.just(USER),
    since=st.sampled_from((None, None, NOON + 1, NOON + HOUR)),
    until=st.sampled_from((None, None, NOON + HOUR, NOON + HOUR + 1)),
    text=st.sampled_from((None, None, "0%", "REFUND", CONTACT.user_id)),
    changed_since=st.sampled_from((None, None, NOON + 1, NOON + HOUR)),
    changed_before=st.sampled_from((None, None, NOON + HOUR)),
    unread_by_contact=st.sampled_from((None, None, True, False)),
    rated=st.sampled_from((None, None, True, False)),
    rating=st.sampled_from((None, None, (0, 6), (10, 10))),
    attributes=st.sampled_from(
        ((), (), GOLD, (AttributeIs("plan", "1", "1"),), (AttributeIs("plan", "true", boolean=True),))
    ),
    all_tags=st.sampled_from(((), (), (), ("a", "b"), ("c",))),
    without_tags=st.sampled_from(((), (), (), ("a",), ("a", "b"))),
    created_since=st.sampled_from((None, None, None, NOON + 1, NOON + HOUR)),
    created_before=st.sampled_from((None, None, None, NOON + HOUR)),
    waiting_before=st.sampled_from((None, None, None, NOON + 1)),
    channels=st.sampled_from((None, None, None, ("chn_1",), (None, "chn_2"))),
    contact_attributes=st.sampled_from(((), (), (), OF_PROFILE, GOLD)),
    priorities=st.sampled_from((None, None, None, ("LOW", "URGENT"), ("HIGH",))),
)


def activity(state: Conversation) -> int:
    return state.last_message_at or state.created_at


def key_of(state: Conversation, sort: ConversationSort) -> tuple[int, int]:
    key = {
        "activity": activity(state),
        "waiting": state.waiting_since or 0,
        "created": state.created_at,
        "updated": state.updated_at,
    }
    return key[sort.key], state.rowid


def has(state: Conversation, wanted: AttributeIs) -> bool:
    """Return whether a conversation has an attribute with this value."""
    value = state.attributes.get(wanted.name)
    match value:
        case bool():
            return value is wanted.boolean
        case str():
            return value == wanted.text
        case int() | float():
            return wanted.number is not None and value == float(wanted.number)
    return False


def fits(state: Conversation, wanted: ConversationFilter, seen: int) -> bool:
    """Return whether a conversation belongs to a list, if `seen` of its contact's messages were seen."""
    text = fold(wanted.text or "")
    known = (fold(state.title or ""), fold(CONTACT.name or ""), fold(CONTACT.user_id))
    return (
        state.project == PROJECT.rowid
        and (wanted.statuses is None or state.status in wanted.statuses)
        and wanted.archived in (None, state.archived)
        and (wanted.assignees is None or (state.assignee and state.assignee.id) in wanted.assignees)
        and (wanted.tags is None or bool({*wanted.tags} & {*state.tags}))
        and wanted.snoozed in (None, state.snoozed_until is not None)
        and wanted.waiting in (None, state.waiting_since is not None)
        and wanted.visible in (None, state.visible)
        and wanted.unread in (None, state.contact_messages > seen)
        and (wanted.since is None or activity(state) >= wanted.since)
        and (wanted.until is None or activity(state) < wanted.until)
        and (wanted.text is None or any(text in each for each in known))
        and (wanted.changed_since is None or state.updated_at >= wanted.changed_since)
        and (wanted.changed_before is None or state.updated_at < wanted.changed_before)
        and wanted.unread_by_contact in (None, state.unread)
        and wanted.rated in (None, state.rating is not None)
        and (
            wanted.rating is None
            or (state.rating is not None and wanted.rating[0] <= state.rating <= wanted.rating[1])
        )
        and all(has(state, each) for each in wanted.attributes)
        and {*wanted.all_tags} <= {*state.tags}
        and not {*wanted.without_tags} & {*state.tags}
        and (wanted.created_since is None or state.created_at >= wanted.created_since)
        and (wanted.created_before is None or state.created_at < wanted.created_before)
        and (
            wanted.waiting_before is None
            or (state.waiting_since is not None and state.waiting_since < wanted.waiting_before)
        )
        and (wanted.channels is None or state.channel in wanted.channels)
        and wanted.contact_attributes in ((), OF_PROFILE)
        and (wanted.priorities is None or (state.ticket_id or "").removeprefix("tkt_") in wanted.priorities)
    )


def stored(tx: Any, number: int, fields: dict[str, Any]) -> Conversation:
    """Store a conversation with these fields and its contact's messages; in a closed one no contact is waiting."""
    if fields["status"] == "CLOSED":
        fields = {**fields, "waiting_since": None, "snoozed_until": None}
    fields = {**fields}
    priority = fields.pop("priority", None)
    state = Conversation(id=f"cnv_{number}", ticket_id=priority and f"tkt_{priority}", **fields)
    state = replace(state, rowid=tx.insert_conversation(state, CONTACT.rowid, {}).rowid)
    for index in range(state.contact_messages):
        message = Message(f"msg_{number}_{index}", Author("contact"), "Hm", state.created_at, index=index)
        tx.insert_message(state.rowid, message, index + 1)
    if state.last_message_at is not None:
        message = Message(
            f"msg_{number}_last", Author("bot"), "Hm", state.last_message_at, index=state.contact_messages
        )
        tx.insert_message(state.rowid, message, state.contact_messages + 1)
    tx.put_conversation_tags(state)
    if priority is not None:
        ticket = Ticket(f"tkt_{number}", state.project, "T", NOON, NOON, NOON, priority=priority)
        tx.insert_ticket(replace(ticket, conversation_id=state.id))
    if state.rating is not None:
        tx.put_milestone(state, rated_milestone(state, state.updated_at))
    return state


def pages(
    tx: Any, wanted: ConversationFilter, sort: ConversationSort, size: int
) -> Iterator[Sequence[ListedConversation]]:
    """Yield the pages of a list, each from the last item of the previous page on."""
    after: ConversationPageKey | None = None
    while page := tx.search_conversations(PROJECT.rowid, wanted, sort, after, size).listed:
        yield page
        after = page[-1].at


def bounded_pages(
    tx: Any, wanted: ConversationFilter, sort: ConversationSort, size: int, examined_max: int
) -> Iterator[Sequence[ListedConversation]]:
    """Yield the pages of a list that examines this many conversations for each, up to the last one."""
    after: ConversationPageKey | None = None
    while True:
        page = tx.search_conversations(PROJECT.rowid, wanted, sort, after, size, examined_max)
        yield page.listed
        after = page.listed[-1].at if len(page.listed) >= size else page.reached
        if after is None:
            return


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    fields=st.lists(states, max_size=14),
    wanted=filters,
    sort=st.sampled_from(SORTS),
    size=st.integers(1, 5),
    seen=st.integers(-1, 3),
    many=st.sampled_from((0, 2, 1_000)),
    examined_max=st.sampled_from((1, 2, 7, 1_000)),
    crowd=st.sampled_from((1, 2, 5, 1_000)),
    part=st.sampled_from((1, 2, 100)),
    messages_max=st.sampled_from((1, 5, 1_000)),
)
def test_list_pages_equal_sorting_and_filtering_by_hand(
    tx: Any,
    monkeypatch: pytest.MonkeyPatch,
    fields: list[dict[str, Any]],
    wanted: ConversationFilter,
    sort: ConversationSort,
    size: int,
    seen: int,
    many: int,
    examined_max: int,
    crowd: int,
    part: int,
    messages_max: int,
) -> None:
    """The first half of the conversations was seen, as far as `seen` says; other users have seen other things."""
    monkeypatch.setattr(lists, "FEW_BOUND", many)
    monkeypatch.setattr(crowded_hours, "CROWD_MIN", crowd)
    monkeypatch.setattr(crowded_hours, "CROWD_MIN_OF_ALL", crowd)
    monkeypatch.setattr(crowded_hours, "FIRST_PART", part)
    monkeypatch.setattr(crowded_hours, "MESSAGES_MAX", messages_max)
    tx.conn.execute("SAVEPOINT one")
    try:
        all_of_them = [stored(tx, number, each) for number, each in enumerate(fields)]
        begun = {state.rowid: max(seen, 0) for state in all_of_them[: len(all_of_them) // 2]}
        rows = [(USER, key, seen, max(seen, 0), 0) for key in begun] + [(2, key, 9, 9, 0) for key in begun]
        tx.conn.executemany("INSERT INTO agent_seen VALUES (?, ?, ?, ?, ?)", rows)
        matching = [
            state
            for state in all_of_them
            if fits(state, wanted, begun.get(state.rowid, 0))
            and (sort.key != "waiting" or state.waiting_since is not None)
        ]
        expected = sorted(matching, key=lambda state: key_of(state, sort), reverse=is_descending(sort))
        found = list(pages(tx, wanted, sort, size))
        assert [each.conversation.rowid for page in found for each in page] == [s.rowid for s in expected]
        assert all(len(page) == size for page in found[:-1])
        if sort.key != "updated":
            bounded = [*bounded_pages(tx, wanted, sort, size, examined_max)]
            assert [each.conversation.rowid for page in bounded for each in page] == [
                state.rowid for state in expected
            ]
            assert all(len(page) <= size for page in bounded)
        if wanted.text is None and sort.key == "activity":
            some = tx.count_some_conversations(PROJECT.rowid, wanted, size, examined_max)
            assert some.value <= min(size, len(expected))
            assert some.value == len(expected) or not some.complete
            assert some.examined <= examined_max
            everything = tx.count_some_conversations(PROJECT.rowid, wanted, 100, 1_000)
            assert (everything.value, everything.complete) == (len(expected), True)
        assert tx.count_conversations(PROJECT.rowid, wanted, sort, size) == min(size, len(expected))
    finally:
        tx.conn.execute("ROLLBACK TO one")


@pytest.mark.parametrize("sort", SORTS, ids=lambda sort: f"{sort.key}-{sort.order}")
def test_no_conversation_is_both_rated_and_unrated(tx: Any, sort: ConversationSort) -> None:
    asked = {"project": 1, "status": "OPEN", "created_at": NOON, "updated_at": NOON, "waiting_since": NOON}
    for number, rating in enumerate((None, 0, 9)):
        stored(tx, number, {**asked, "rating": rating})
    unrated = ConversationFilter(rated=False)

    assert [each.conversation.rating for page in pages(tx, unrated, sort, 5) for each in page] == [None]
    for among in ((0, 6), (9, 9)):
        both = replace(unrated, rating=among)
        assert [*pages(tx, both, sort, 5)] == []
        assert tx.count_conversations(PROJECT.rowid, both, sort, 5) == 0


@pytest.mark.sqlite
@pytest.mark.parametrize("sort", SORTS, ids=lambda sort: f"{sort.key}-{sort.order}")
def test_list_reads_only_conversations_of_its_index(tx: Any, sort: ConversationSort) -> None:
    bare = ConversationFilter()
    wanted = [
        bare,
        replace(bare, statuses=("OPEN", "PENDING"), archived=False, snoozed=False),
        replace(bare, assignees=("usr_1", None), archived=False),
        replace(bare, snoozed=True),
        replace(bare, waiting=True),
        replace(bare, visible=False),
        replace(bare, unread=True, user=USER, statuses=("OPEN",)),
        replace(bare, tags=("a", "b")),
        replace(bare, contact=1),
        replace(bare, since=NOON, until=NOON + HOUR),
        replace(bare, text="parcel"),
        replace(bare, attributes=GOLD),
        replace(bare, rating=(0, 6)),
        replace(bare, changed_since=NOON),
        replace(bare, all_tags=("a", "b"), without_tags=("c",)),
        replace(bare, created_since=NOON, created_before=NOON + HOUR),
        replace(bare, waiting_before=NOON),
        replace(bare, channels=("chn_1",)),
        replace(bare, contact_attributes=GOLD),
        replace(bare, priorities=("HIGH",)),
    ]
    for each in wanted:
        if sort.key != "updated":
            for way in ordered_paths(1, each, sort):
                each = replace(each, text=None)
                sql, values = scan_query(SQLITE, way, each, sort, ConversationPageKey(NOON, 7), 50)
                plan = [row[3] for row in tx.conn.execute(f"EXPLAIN QUERY PLAN {SQLITE.text(sql)}", values)]
                own = ("SCAN json_each", "SCAN p")
                assert not [step for step in plan if step.startswith("SCAN") and step not in own], plan
        ways = [*access_paths(1, each, sort), *chain.from_iterable(selective_paths(1, each, sort))]
        assert ways
        for way in ways:
            for after in (None, ConversationPageKey(NOON, 7)):
                sql, values = page_query(SQLITE, way, each, sort, after, 50)
                plan = [row[3] for row in tx.conn.execute(f"EXPLAIN QUERY PLAN {SQLITE.text(sql)}", values)]
                steps = [
                    step for step in plan if not step.startswith("SCAN json_each")
                ]  # a row's own attributes
                assert not [step for step in steps if step.startswith("SCAN")], (each, plan)
            sql, values = count_query(SQLITE, way, each, sort, 50)
            plan = [row[3] for row in tx.conn.execute(f"EXPLAIN QUERY PLAN {SQLITE.text(sql)}", values)]
            assert not [step for step in plan if step.startswith("SCAN c")], (each, plan)


@pytest.mark.sqlite
@pytest.mark.parametrize(
    ("wanted", "index"),
    [
        (ConversationFilter(), "conversations_by_hour (project=?)"),
        (
            ConversationFilter(statuses=("OPEN",), archived=False),
            "conversations_by_status (project=? AND archived=? AND status=?)",
        ),
        (
            ConversationFilter(assignees=(None,), statuses=("OPEN",), archived=False),
            "conversations_by_assignee (project=? AND assignee_id=? AND archived=? AND status=?)",
        ),
        (ConversationFilter(snoozed=True, archived=False), "conversations_asleep (project=? AND archived=?)"),
        (ConversationFilter(visible=False), "conversations_hidden (project=?)"),
    ],
)
def test_a_list_by_activity_is_in_the_order_of_its_index(
    tx: Any, wanted: ConversationFilter, index: str
) -> None:
    """At most the conversations of one hour are sorted."""
    (way,) = access_paths(1, wanted, ConversationSort())
    sql, values = page_query(SQLITE, way, wanted, ConversationSort(), None, 50)
    plan = [row[3] for row in tx.conn.execute(f"EXPLAIN QUERY PLAN {SQLITE.text(sql)}", values)]
    assert plan[0].replace(" COVERING", "") == f"SEARCH c USING INDEX {index}"
    assert plan[1:] in ([], ["USE TEMP B-TREE FOR RIGHT PART OF ORDER BY"])


@pytest.mark.sqlite
@pytest.mark.parametrize(
    ("wanted", "sort", "bound"),
    [
        (ConversationFilter(changed_before=NOON), ConversationSort(), "by_status (project=? AND archived=? AND status=? AND hour<?)"),
        (ConversationFilter(until=NOON), ConversationSort("created"), "by_creation (project=? AND archived=? AND status=? AND created_at<?)"),
        (ConversationFilter(changed_before=NOON), ConversationSort("created"), "by_creation (project=? AND archived=? AND status=? AND created_at<?)"),
    ],
)  # fmt: skip
def test_list_by_one_time_bounded_by_another_starts_at_the_bound(
    tx: Any, wanted: ConversationFilter, sort: ConversationSort, bound: str
) -> None:
    *ways, out_of_order = access_paths(1, wanted, sort)
    for way, index in [*((way, bound) for way in ways), (out_of_order, "out_of_order (project=?)")]:
        sql, values = page_query(SQLITE, way, wanted, sort, None, 50)
        plan = [row[3] for row in tx.conn.execute(f"EXPLAIN QUERY PLAN {SQLITE.text(sql)}", values)]
        assert plan[0] == f"SEARCH c USING INDEX conversations_{index}"


@pytest.mark.parametrize("sort", SORTS, ids=lambda sort: f"{sort.key}-{sort.order}")
def test_conversations_whose_times_are_out_of_order_are_listed_and_counted_once(
    tx: Any, sort: ConversationSort
) -> None:
    day = 24 * HOUR
    times = [  # of the creation, the last message and the last change
        (NOON, NOON + HOUR, NOON + HOUR),
        (NOON + 3 * day, NOON, NOON),
        (NOON, NOON + 3 * day, NOON),
        (NOON + 3 * day, NOON + 2 * day, NOON + day),
        (NOON, NOON, NOON + 3 * day),
    ]
    for number, (created, active, changed) in enumerate(times):
        fields = {"created_at": created, "last_message_at": active, "updated_at": changed}
        stored(tx, number, {"project": PROJECT.rowid, "status": "OPEN", "waiting_since": NOON, **fields})
    before = NOON + day + 1
    for wanted, expected in (
        (ConversationFilter(changed_before=before), {0, 1, 2, 3}),
        (ConversationFilter(until=before), {0, 1, 4}),
        (ConversationFilter(until=before, changed_before=before), {0, 1}),
    ):
        found = [each.conversation.id for page in pages(tx, wanted, sort, 2) for each in page]
        assert sorted(found) == sorted(f"cnv_{number}" for number in expected)
        assert tx.count_conversations(PROJECT.rowid, wanted, sort, 50) == len(expected)


@pytest.mark.parametrize("sort", SORTS, ids=lambda sort: f"{sort.key}-{sort.order}")
@pytest.mark.parametrize("bound", [1, 6, 13, 1_000])
def test_a_search_for_a_text_stops_at_its_bound_and_goes_on(
    tx: Any, monkeypatch: pytest.MonkeyPatch, sort: ConversationSort, bound: int
) -> None:
    monkeypatch.setattr(lists, "SEARCHED_TEXTS_MAX", bound)
    for number in range(20):
        times = {"created_at": NOON + number // 3, "updated_at": NOON + number // 3, "waiting_since": NOON}
        title = "Doku" if number % 7 == 3 else None
        stored(tx, number, {"project": PROJECT.rowid, "status": "OPEN", "title": title, **times})
    wanted, found, calls = ConversationFilter(text="DÖKU"), list[str](), 0
    after: ConversationPageKey | None = None
    while True:
        calls += 1
        some = tx.search_conversations(PROJECT.rowid, wanted, sort, after, 2)
        found += [each.conversation.id for each in some.listed]
        after = some.listed[-1].at if len(some.listed) == 2 else some.reached
        if after is None:
            break
    assert sorted(found) == ["cnv_10", "cnv_17", "cnv_3"]
    assert found in (["cnv_3", "cnv_10", "cnv_17"], ["cnv_17", "cnv_10", "cnv_3"])
    per_call = max(1, -(-bound // 4))  # each has a title and three names of its contact
    assert calls >= -(-20 // per_call) or bound == 1_000
    assert bound < 1_000 or calls == 2


@pytest.mark.sqlite
@pytest.mark.parametrize("status", ["OPEN", "PENDING"])
def test_counting_reads_the_index_alone(tx: Any, status: Any) -> None:
    wanted = [
        (ConversationFilter(statuses=(status,), archived=False, snoozed=False), ConversationSort()),
        (
            ConversationFilter(assignees=("u",), statuses=(status,), archived=False, snoozed=False),
            ConversationSort(),
        ),
        (ConversationFilter(archived=False, snoozed=False), ConversationSort("waiting")),
        (ConversationFilter(archived=False, snoozed=True), ConversationSort()),
    ]
    for each, sort in wanted:
        (way,) = access_paths(1, each, sort)
        sql, values = count_query(SQLITE, way, each, sort, 50)
        plan = [row[3] for row in tx.conn.execute(f"EXPLAIN QUERY PLAN {SQLITE.text(sql)}", values)]
        assert any("USING COVERING INDEX" in step for step in plan), (each, plan)


@pytest.mark.sqlite
@pytest.mark.parametrize("order", ["asc", "desc"])
def test_a_list_by_change_reads_both_of_its_indexes_in_their_order(tx: Any, order: Any) -> None:
    for wanted in (ConversationFilter(), ConversationFilter(changed_since=NOON, attributes=GOLD)):
        for way, index in zip(by_change(1), ("by_hour", "by_change"), strict=True):
            sql, values = part_query(
                SQLITE, way, wanted, ConversationSort("updated", order), ConversationPageKey(NOON, 7), 50
            )
            plan = [row[3] for row in tx.conn.execute(f"EXPLAIN QUERY PLAN {SQLITE.text(sql)}", values)]
            begun = next(step for step in plan if step.startswith("SEARCH c"))
            assert begun.startswith(f"SEARCH c USING INDEX conversations_{index} (project=? AND "), plan
            sorts = plan[: plan.index(begun) + 2]
            assert ("USE TEMP B-TREE FOR RIGHT PART OF ORDER BY" in sorts) is (index == "by_hour"), plan
            assert "USE TEMP B-TREE FOR ORDER BY" not in sorts


@pytest.mark.sqlite
def test_message_after_a_message_does_not_change_the_index_by_change(tx: Any) -> None:
    state = Conversation(id="cnv_1", project=PROJECT.rowid, created_at=NOON, updated_at=NOON)
    state = tx.insert_conversation(state, CONTACT.rowid, {})
    counted = (
        "SELECT count(*) FROM conversations INDEXED BY conversations_by_change WHERE updated_at <> activity"
    )
    found = []
    for changes in (
        {"last_message_at": NOON + 5, "updated_at": NOON + 5},
        {"updated_at": NOON + 7},
        {"last_message_at": NOON + 9, "updated_at": NOON + 9},
    ):
        before, state = state, replace(state, revision=state.revision + 1, **changes)
        tx.save_conversation(before, state, {})
        found.append(tx.conn.execute(counted).fetchone()[0])
    assert found == [0, 1, 0]


@pytest.mark.parametrize(
    ("before", "after", "wanted", "found"),
    [
        ({}, {"plan": "gold"}, AttributeIs("plan", "gold"), 1),
        ({"plan": "gold"}, {"plan": "silver"}, AttributeIs("plan", "gold"), 0),
        ({"plan": 1}, {"plan": 1.5}, AttributeIs("plan", "1", "1"), 0),
        ({"plan": 1}, {"plan": -0.5}, AttributeIs("plan", "-0.5", "-0.5"), 1),
        ({"plan": 1}, {"plan": 1e300}, AttributeIs("plan", "1e300", "1e300"), 1),
        ({"plan": True}, {"of": ["plan"]}, AttributeIs("plan", "true", boolean=True), 0),
        ({"note": "a" * 64}, {"note": "a" * 65}, AttributeIs("note", "a" * 65), 1),
    ],
)
def test_current_attributes_are_found_and_none_of_deleted_conversations(
    tx: Any, before: dict[str, Any], after: dict[str, Any], wanted: AttributeIs, found: int
) -> None:
    state = Conversation(
        id="cnv_1", project=PROJECT.rowid, created_at=NOON, updated_at=NOON, attributes=before
    )
    state = tx.insert_conversation(state, CONTACT.rowid, {})
    tx.save_conversation(state, replace(state, revision=1, attributes=after), {})
    listed = tx.conversations(
        PROJECT.rowid, ConversationFilter(attributes=(wanted,)), ConversationSort(), None, 5
    )
    assert len(listed) == found
    rows = "SELECT count(*) FROM conversation_attributes"
    scalars = [value for value in after.values() if not isinstance(value, list)]
    assert tx.conn.execute(rows).fetchone() == (len(scalars),)
    tx.erase_conversation_rows(state.rowid)
    assert tx.conn.execute(rows).fetchone() == (0,)


@pytest.mark.sqlite
def test_selective_filter_uses_its_index_in_any_order(tx: Any) -> None:
    """A selective filter bounds the number of rows read, whatever the other filters are."""
    for number in range(40):
        fields = {"title": "x", "created_at": NOON + number, "updated_at": NOON + number}
        attributes = {"order": number, "plan": "gold"}
        stored(tx, number, {"project": PROJECT.rowid, "status": "OPEN", "attributes": attributes, **fields, "rating": 3 if number == 7 else None, "archived": number == 9})  # fmt: skip
    rare = [
        ConversationFilter(attributes=(AttributeIs("order", "7", "7"),), archived=False),
        ConversationFilter(rated=True, statuses=("OPEN",)),
        ConversationFilter(changed_since=NOON + 39, archived=False),
    ]
    looked: list[str] = []
    for wanted in rare:
        for sort in (ConversationSort("activity"), ConversationSort("created", "asc")):
            looked.clear()
            tx.conn.set_trace_callback(looked.append)
            assert len(tx.conversations(PROJECT.rowid, wanted, sort, None, 50)) == 1
            tx.conn.set_trace_callback(None)
            assert not [text for text in looked if "conversations_by_status" in text]
            assert not [text for text in looked if "conversations_by_creation" in text]


@pytest.mark.sqlite
def test_removing_attributes_reads_only_one_conversation(tx: Any) -> None:
    (trigger,) = tx.conn.execute("SELECT sql FROM sqlite_schema WHERE name = 'attributes_go'").fetchone()
    delete = trigger[trigger.index("DELETE FROM") : trigger.index(";")]
    for name, value in (
        ("old.attributes", """'{"plan": "gold"}'"""),
        ("old.project", "1"),
        ("old.rowid", "1"),
    ):
        delete = delete.replace(name, value)
    plan = [row[3] for row in tx.conn.execute(f"EXPLAIN QUERY PLAN {delete}")]
    assert plan[0].endswith("USING PRIMARY KEY (project=? AND name=? AND value=? AND conversation=?)"), plan
