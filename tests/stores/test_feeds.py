"""The events of a project on SQLite, which adds them to the table of project events in batches."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deskwire.engine.accounts.people import Project
from deskwire.engine.events.types import NAMEABLE, STORED, EventDraft, StoredEvent
from deskwire.storage.tables.events.events import TAIL
from tests.stores.test_events import Table, passing, table, tables
from tests.support.builders import NOON, OTHER_PROJECT, PROJECT

pytestmark = pytest.mark.sqlite
ADDED = "SELECT count(*), max(position) FROM project_events"
KINDS = {"shown": "message.created", "agents": "ticket.created", "named": "contact.changed"}
"""A type of each level."""

APPENDED = st.tuples(
    st.just("append"),
    st.sampled_from((PROJECT, OTHER_PROJECT)),
    st.sampled_from([*KINDS]),
    st.integers(1, 90),
)
STEPS = st.lists(
    st.one_of(
        APPENDED,
        APPENDED,
        st.tuples(st.just("roll back"), st.just(PROJECT), st.just("shown"), st.integers(1, 90)),
        st.tuples(st.just("direct"), st.just(PROJECT), st.just("shown"), st.integers(1, 40)),
        st.tuples(st.just("erase"), st.just(PROJECT), st.just("shown"), st.integers(1, 3)),
        st.tuples(st.just("prune"), st.just(PROJECT), st.just("shown"), st.integers(1, 150)),
        st.tuples(st.just("restart"), st.just(PROJECT), st.just("shown"), st.just(0)),
    ),
    max_size=14,
)


def append(tx: Any, project: Project, kind: str, count: int, *, directed: bool = False) -> list[StoredEvent]:
    """Append `count` events, to three lanes in turn."""
    draft = EventDraft(KINDS[kind], None, {})
    lanes = (1, 2, 3)
    return [
        tx.append_event(project, draft, lanes[number % 3], NOON, directed=directed) for number in range(count)
    ]


@pytest.mark.thorough
@given(STEPS, st.integers(0, 400), st.integers(1, 120))
@settings(max_examples=60)
def test_a_project_has_its_events_in_order_from_either_end(
    steps: list[tuple[str, Project, str, int]], bound: int, limit: int
) -> None:
    """Compare with a plain list, with gaps, erased and pruned events, and events for one endpoint alone."""
    model: list[StoredEvent] = []
    with passing() as directory, tables(directory) as log:
        for step, project, kind, value in steps:
            if step == "append":
                model += append(log.tx, project, kind, value)
            elif step == "roll back":
                log.take_back(partial(append_later, log, value))
            elif step == "direct":
                model += append(log.tx, project, kind, value, directed=True)
            elif step == "erase":
                log.tx.erase_events(value)
                model = [event for event in model if event.conversation != value]
            elif step == "prune":
                pruned = log.tx.prune_events(NOON + 1, value, NOON)
                model = model[pruned:]
            else:
                log.restart()
            log.commit()
            for each in (PROJECT, OTHER_PROJECT):
                check(
                    log.tx,
                    each.rowid,
                    [event for event in model if event.project == each.rowid],
                    bound,
                    limit,
                )
        assert log.tx.conn.execute(
            "SELECT count(*) FROM project_events l LEFT JOIN events e ON e.position = l.position AND e.project = l.project "
            "WHERE e.position IS NULL"
        ).fetchone() == (0,)


def append_later(log: Table, count: int) -> None:
    append(log.tx, PROJECT, "shown", count)


def check(tx: Any, project: int, mine: list[StoredEvent], bound: int, limit: int) -> None:
    """Check that each query finds the right events of the project."""
    shown = [event for event in mine if not event.internal]
    told = [event for event in mine if not event.on_no_stream]
    behind = [event for event in shown if event.position > bound]
    upto = [event for event in shown if event.position <= bound]
    assert list(tx.events(project, bound, limit, frozenset())) == behind[:limit]
    assert list(tx.events(project, bound, limit, frozenset({"message.created"}))) == behind[:limit]
    assert list(tx.events(project, bound, limit, frozenset({"conversation.closed"}))) == []
    assert tx.count_events_after(project, bound, limit) == len(behind[:limit])
    assert tx.event_id_at(project, bound) == (upto[-1].id if upto else None)
    assert list(tx.agents_events(project, bound, limit)) == [e for e in told if e.position > bound][:limit]
    assert tx.newest_event(project) == ((told[-1].position, told[-1].id) if told else None)
    assert tx.newest_id_of_any_event(project) == (mine[-1].id if mine else None)
    named = frozenset(KINDS.values())
    assert (
        list(tx.named_events(project, bound, limit, named)) == [e for e in mine if e.position > bound][:limit]
    )
    before = [event for event in reversed(mine) if event.position < bound]
    assert list(tx.newest_events(project, bound, limit, named, None)) == before[:limit]
    newest = tx.newest_events(project, None, limit, frozenset({"message.created"}), None)
    assert list(newest) == shown[::-1][:limit]


def test_events_are_added_to_the_table_with_the_first_event_of_the_next_batch(tmp_path: Path) -> None:
    with table(tmp_path) as tx:
        append(tx, PROJECT, "shown", TAIL - 1)
        assert tx.conn.execute(ADDED).fetchone() == (0, None)
        append(tx, OTHER_PROJECT, "agents", 1)  # any event at the position where a batch begins
        assert tx.conn.execute(ADDED).fetchone() == (TAIL - 1, TAIL - 1)
        append(tx, PROJECT, "shown", TAIL - 1)
        assert tx.conn.execute(ADDED).fetchone() == (TAIL - 1, TAIL - 1)
        append(tx, PROJECT, "shown", 1, directed=True)
        assert tx.conn.execute(ADDED).fetchone() == (2 * TAIL - 2, 2 * TAIL - 1)


def test_rows_removed_by_a_rollback_are_added_again(tmp_path: Path) -> None:
    with tables(tmp_path) as log:
        first = append(log.tx, PROJECT, "shown", 10)
        log.take_back(partial(append_later, log, 2 * TAIL))
        (last,) = append(log.tx, PROJECT, "shown", 1)
        assert log.tx.conn.execute(ADDED).fetchone() == (10, 10)
        assert list(log.tx.events(PROJECT.rowid, 0, 99, frozenset())) == [*first, last]


def test_project_reads_only_the_newest_event_of_others(tmp_path: Path) -> None:
    """With one event of the other project among many, the steps of SQLite's virtual machine do not grow."""

    def steps(work: Any) -> int:
        taken = 0

        def count() -> None:
            nonlocal taken
            taken += 1

        tx.conn.set_progress_handler(count, 1)
        work()
        tx.conn.set_progress_handler(None, 0)
        return taken

    with table(tmp_path) as tx:
        mine = OTHER_PROJECT.rowid
        asked = (
            partial(tx.events, mine, 0, 50, frozenset()),
            partial(tx.newest_events, mine, None, 50, frozenset({"message.created"}), None),
            partial(tx.count_events_after, mine, 0, 50),
            partial(tx.newest_event, mine),
        )
        for _ in range(2):
            append(tx, OTHER_PROJECT, "shown", 1)
            append(tx, PROJECT, "shown", 2 * TAIL - 1)
        few = [steps(each) for each in asked]
        append(tx, PROJECT, "shown", 20 * TAIL)
        assert [steps(each) for each in asked] == few


def test_each_query_of_a_project_uses_an_index_and_sorts_nothing(tmp_path: Path) -> None:
    with table(tmp_path) as tx:
        queries: list[str] = []
        tx.conn.set_trace_callback(queries.append)
        tx.events(1, 5, 10, frozenset())
        tx.agents_events(1, 5, 10)
        tx.named_events(1, 5, 10, frozenset(NAMEABLE | STORED))
        tx.newest_events(1, 5, 10, frozenset(NAMEABLE | STORED), None)
        tx.event_id_at(1, 5)
        tx.count_events_after(1, 5, 10)
        tx.newest_event_id(1)
        tx.newest_id_of_any_event(1)
        tx.conn.set_trace_callback(None)
        found = {"SEARCH l USING PRIMARY KEY", "SEARCH l USING COVERING INDEX"}
        for query in queries:
            plan = [row[-1] for row in tx.conn.execute(f"EXPLAIN QUERY PLAN {query}")]
            assert [step for step in plan if step.startswith(tuple(found))], plan
            assert not [step for step in plan if step.startswith(("SCAN events", "SCAN e", "SCAN l"))], plan
            assert not [step for step in plan if "TEMP B-TREE" in step], plan
        assert len(queries) == 8
