"""The event table: positions found by bisection, the window, and what pruning leaves."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlite_utils import Database

from deskwire.engine.core.ids import new_id
from deskwire.engine.core.values import replace
from deskwire.engine.events.types import (
    AGENTS,
    CATALOG,
    EXTENSIONS,
    REGISTRY,
    STORED,
    EventDraft,
    StoredEvent,
    Topic,
)
from deskwire.storage.sqlite.migrations.apply import execute_script
from deskwire.storage.sqlite.migrations.list import SCRIPTS
from tests.support.builders import NOON, OTHER_PROJECT, PROJECT, found_projects
from tests.support.stores import Transactions, chosen, forget_directories

DRAFT = EventDraft("message.created", 1, {})
TYPES = sorted({*STORED, *AGENTS, *EXTENSIONS})


class Table:
    """The log's table, in one transaction after the other."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._transactions = Transactions(directory)
        self.tx: Any = self._transactions.begun()
        found_projects(self.tx)

    def commit(self) -> None:
        """Commit, and go on in another transaction."""
        self._transactions.commit(self.tx)
        self.tx = self._transactions.begun()

    def take_back(self, work: Callable[[], object]) -> None:
        """Do something in a separate transaction, and roll it back."""
        self.commit()
        work()
        self._transactions.roll_back()
        self.tx = self._transactions.begun()

    def restart(self) -> None:
        """Commit, close, and open the store again, like another process."""
        self._transactions.commit(self.tx)
        self.close()
        self._transactions = Transactions(self._directory)
        self.tx = self._transactions.begun()

    def close(self) -> None:
        """End."""
        self._transactions.close()


@contextmanager
def tables(directory: Path) -> Iterator[Table]:
    """A table on a fresh store."""
    opened = Table(directory)
    try:
        yield opened
    finally:
        opened.close()


@contextmanager
def table(directory: Path) -> Iterator[Any]:
    """A transaction on a fresh store."""
    with tables(directory) as opened:
        yield opened.tx


@contextmanager
def passing() -> Iterator[Path]:
    """Yield a directory for one of many examples; its store is removed after the block."""
    with TemporaryDirectory() as directory:
        try:
            yield Path(directory)
        finally:
            forget_directories()


def append(tx: Any, at: int, conversation: int | None = None, sequence: int = 1) -> Any:
    return tx.append_event(PROJECT, replace(DRAFT, sequence=sequence), conversation, at)


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.integers(-2_000, 5_000)),
        st.tuples(st.just("roll back"), st.integers(1, 5)),
        st.tuples(st.just("erase"), st.integers(1, 3)),
        st.tuples(st.just("prune"), st.integers(1, 10)),
        st.tuples(st.just("restart"), st.just(0)),
    ),
    max_size=40,
)


@pytest.mark.thorough
@given(STEPS)
@settings(max_examples=60)
def test_the_log_is_a_list_that_only_grows_at_its_end(steps: list[tuple[str, int]]) -> None:
    """Against a plain list, with holes, erased and pruned events, and a clock that may run backwards."""
    model: list[tuple[StoredEvent, int]] = []
    everything: list[StoredEvent] = []
    pruned: str | None = None
    now, sequence = NOON, 0
    spent: tuple[int, str | None] = (0, None)
    with passing() as directory, tables(directory) as log:
        for step, value in steps:
            if step == "append":
                now, sequence = now + value, sequence + 1
                event = append(log.tx, now, conversation=1 + sequence % 3, sequence=sequence)
                assert not everything or (event.position, event.id) > (
                    everything[-1].position,
                    everything[-1].id,
                )
                model.append((event, now))
                everything.append(event)
            elif step == "roll back":
                log.take_back(partial(append_some, log, value, now))
            elif step == "erase":
                spent = newest_of(model, spent)
                log.tx.erase_events(value)
                model = [(event, at) for event, at in model if event.conversation != value]
            elif step == "prune":
                candidates = model[:-1][:value]
                old = [event for event, at in candidates if at < now]
                assert log.tx.prune_events(now, value, NOON) == len(old)
                model = [(event, at) for event, at in model if event not in old]
                pruned = old[-1].id if old else pruned
            else:
                log.restart()
            log.commit()
            stored = [event for event, _ in model]
            assert list(log.tx.events(PROJECT.rowid, 0, 1_000, frozenset())) == stored
            assert log.tx.event_window(PROJECT.rowid) == (pruned, newest_of(model, spent)[1])
        check_positions(log.tx, [event for event, _ in model], everything)


def append_some(log: Table, count: int, at: int) -> None:
    for sequence in range(count):
        append(log.tx, at, conversation=99, sequence=sequence)


def newest_of(model: list[tuple[StoredEvent, int]], spent: tuple[int, str | None]) -> tuple[int, str | None]:
    """Return position and id of the newest event ever made, whether it is stored or erased."""
    last = (model[-1][0].position, model[-1][0].id) if model else (0, None)
    return last if last[0] > spent[0] else spent


def check_positions(tx: Any, stored: list[StoredEvent], everything: list[StoredEvent]) -> None:
    """Check that reading on from an id's position gives exactly the events with larger ids."""
    between = [new_id("evt", NOON + step) for step in range(0, 60_000, 7_000)]
    for event_id in [event.id for event in everything] + between + ["evt_", "evt_~"]:
        position = tx.event_position(PROJECT.rowid, event_id)
        behind = [event.id for event in tx.events(PROJECT.rowid, position, 1_000, frozenset())]
        assert behind == [event.id for event in stored if event.id > event_id]
    for event in stored:  # also before a hole
        assert tx.event_position(PROJECT.rowid, event.id) == event.position


@pytest.mark.sqlite
def test_a_position_is_found_across_projects(tmp_path: Path) -> None:
    with table(tmp_path) as tx:
        mine = append(tx, NOON)
        theirs = tx.append_event(OTHER_PROJECT, DRAFT, None, NOON)
        last = append(tx, NOON)
        assert [tx.event_position(PROJECT.rowid, event.id) for event in (mine, theirs, last)] == [1, 2, 3]
        assert [event.id for event in tx.events(PROJECT.rowid, 2, 9, frozenset())] == [last.id]


@pytest.mark.sqlite
def test_bisection_stays_cheap_in_a_long_log_with_a_large_hole(tmp_path: Path) -> None:
    with table(tmp_path) as tx:
        events = [append(tx, NOON + n) for n in range(3_000)]
        tx.conn.execute("DELETE FROM events WHERE position BETWEEN 500 AND 2500")
        statements: list[str] = []
        tx.conn.set_trace_callback(statements.append)
        for event in random.Random(1).sample(events, 50):
            statements.clear()
            position = tx.event_position(PROJECT.rowid, event.id)
            assert len(statements) <= 14
            expected = event.position if event.position not in range(500, 2501) else 499
            assert 499 <= position <= 2500 if expected == 499 else position == expected
        tx.conn.set_trace_callback(None)


def test_pruning_never_removes_the_newest_event_so_that_no_position_comes_twice(tmp_path: Path) -> None:
    with tables(tmp_path) as log:
        tx = log.tx
        events = [append(tx, NOON + n) for n in range(5)]
        log.commit()
        tx = log.tx
        assert tx.prune_events(NOON + 1_000_000, 3, NOON) == 3
        assert tx.prune_events(NOON + 1_000_000, 3, NOON) == 1
        assert tx.prune_events(NOON + 1_000_000, 3, NOON) == 0
        assert tx.event_window(PROJECT.rowid) == (events[3].id, events[4].id)
        log.restart()
        assert append(log.tx, NOON).position == events[-1].position + 1


def test_pruning_an_empty_log_finds_nothing(tmp_path: Path) -> None:
    with table(tmp_path) as tx:
        assert tx.prune_events(NOON, 10, NOON) == 0
        assert tx.event_window(PROJECT.rowid) == (None, None)


def test_a_conversations_events_come_by_sequence(tmp_path: Path) -> None:
    with table(tmp_path) as tx:
        for sequence in (1, 2, 3):
            append(tx, NOON, conversation=7, sequence=sequence)
            append(tx, NOON, conversation=8, sequence=sequence)
        bodies = tx.conversation_events(7, 1, 10)
        assert [orjson.loads(body)["sequence"] for body in bodies] == [2, 3]
        assert len(tx.conversation_events(7, 0, 2)) == 2


def test_deletions_are_found_by_object_even_from_before_the_index() -> None:
    """Their rows refer to nothing; the lanes of a conversation and of its contact end with them."""
    about = {"conversation": {"id": "cnv_1", "contact": {"userId": "ada"}}, "reason": "manual"}
    with passing() as directory, table(directory) as tx:
        if chosen() == "sqlite":
            tx.conn.execute("DROP INDEX deletions_by_conversation")
            tx.conn.execute("DROP INDEX deletions_by_contact")
        gone = tx.append_event(PROJECT, EventDraft("conversation.deleted", 3, about), None, NOON)
        if chosen() == "sqlite":
            execute_script(Database(tx.conn), SCRIPTS["m0003_what_outlives_its_subject"])
        other = {"conversation": {"id": "cnv_2", "contact": {"userId": "bob"}}}
        tx.append_event(PROJECT, EventDraft("conversation.deleted", 1, other), None, NOON)
        for lane in (Topic(PROJECT.rowid, "conversation", "cnv_1"), Topic(PROJECT.rowid, "contact", "ada")):
            assert list(tx.topic_events(lane, 0, 10, frozenset())) == [gone]
            assert not tx.topic_events(lane, gone.position, 10, frozenset())
            assert not tx.topic_events(lane._replace(project=OTHER_PROJECT.rowid), 0, 10, frozenset())
            assert not tx.topic_events(lane, 0, 10, frozenset({"message.created"}))


def test_pruning_a_deletion_wants_its_bytes_overwritten_as_it_names_a_contact(tmp_path: Path) -> None:
    with table(tmp_path) as tx:
        append(tx, NOON, 1)
        append(tx, NOON + 1)
        append(tx, NOON + 2, 1, 2)
        assert (tx.prune_events(NOON + 1, 10, NOON), tx.scrub_wanted) == (1, False)
        assert (tx.prune_events(NOON + 2, 10, NOON), tx.scrub_wanted) == (1, True)


@given(st.lists(st.tuples(st.sampled_from(TYPES), st.integers(1, 2)), max_size=12), st.integers(0, 12))
@settings(max_examples=60)
def test_events_for_agents_are_in_no_other_query(made: list[tuple[str, int]], after: int) -> None:
    with passing() as directory, table(directory) as tx:
        tx.conn.execute(
            "INSERT INTO contacts (rowid, id, project, user_id, created_at, updated_at) VALUES (8, 'con_8', 1, 'ada', 0, 0)"
        )
        about = {"conversation": {"id": "cnv_1", "contact": {"userId": "ada"}}}
        events = []
        for number, (kind, project) in enumerate(made, 1):
            sequence = number if REGISTRY[kind].numbered else None
            of = PROJECT if project == 1 else OTHER_PROJECT
            events.append(
                tx.append_event(of, EventDraft(kind, sequence, about), (None, -8)[number % 2], NOON)
            )
        mine = [event for event in events if event.project == PROJECT.rowid]
        shown = [event for event in mine if event.type in CATALOG]
        behind = [event for event in shown if event.position > after]
        before = [event.id for event in shown if event.position <= after]
        assert list(tx.events(PROJECT.rowid, after, 100, frozenset())) == behind
        assert tx.count_events_after(PROJECT.rowid, after, 100) == len(behind)
        assert tx.event_id_at(PROJECT.rowid, after) == (before[-1] if before else None)
        lanes = (Topic(PROJECT.rowid, "conversation", "cnv_1"), Topic(PROJECT.rowid, "contact", "ada"))
        for lane in lanes:
            assert not [
                each for each in tx.topic_events(lane, 0, 100, frozenset()) if each.type not in CATALOG
            ]
        agents = [each for each in mine if each.position > after and not each.on_no_stream]
        assert list(tx.agents_events(PROJECT.rowid, after, 100)) == agents
        assert list(tx.agents_events(PROJECT.rowid, after, 1)) == agents[:1]
        told = [event for event in mine if not event.on_no_stream]
        assert tx.newest_event_id(PROJECT.rowid) == (told[-1].id if told else None)
        for names in ({"message.created", "ticket.created", "survey.deleted"}, {"ticket.changed"}):
            named = [each for each in mine if each.position > after and each.type in names]
            assert list(tx.named_events(PROJECT.rowid, after, 100, frozenset(names))) == named
            assert list(tx.named_events(PROJECT.rowid, after, 1, frozenset(names))) == named[:1]
        assert not [event for event in tx.published if event.internal and event.topics]


def test_events_for_agents_cannot_be_delivered_directed_or_numbered(tmp_path: Path) -> None:
    with table(tmp_path) as tx:
        told = tx.append_event(PROJECT, EventDraft("memory.changed", None, {}), None, NOON)
        with pytest.raises(AssertionError):
            tx.insert_delivery(1, told, None, None, NOON)
        with pytest.raises(AssertionError):
            tx.append_event(PROJECT, EventDraft("memory.changed", 1, {}), None, NOON)
        with pytest.raises(AssertionError):
            tx.append_event(PROJECT, EventDraft("memory.changed", None, {}), None, NOON, directed=True)


def test_ticket_erasure_erases_its_events_without_reusing_positions(tmp_path: Path) -> None:
    with tables(tmp_path) as log:
        tx = log.tx
        kept = tx.append_event(PROJECT, EventDraft("ticket.created", None, {}), None, NOON, ticket=1)
        gone = tx.append_event(PROJECT, EventDraft("ticket.created", None, {}), None, NOON, ticket=2)
        tx.erase_ticket_events(2)
        assert list(tx.agents_events(PROJECT.rowid, 0, 10)) == [kept]
        log.restart()
        again = log.tx.append_event(PROJECT, DRAFT, None, NOON)
        assert (again.position, again.id > gone.id) == (gone.position + 1, True)
