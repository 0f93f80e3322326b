"""The position of a read as an event id: the feed accepts it as a cursor, and lists every later commit after it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deskwire.engine.core.ids import is_id
from deskwire.engine.core.values import replace
from deskwire.engine.events.log import NO_EVENT_ID, read_position
from deskwire.engine.events.project_events import settings_changed
from deskwire.engine.events.types import EventDraft
from tests.stores.test_events import passing, tables
from tests.support.builders import NOON, OTHER_PROJECT, PROJECT

DRAFT = EventDraft("message.created", 1, {})
STEPS = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(["public", "internal", "another project's"]), st.integers(-500, 2_000)),
        st.tuples(st.just("erase"), st.integers(1, 3)),
        st.tuples(st.just("prune"), st.integers(1, 10)),
        st.tuples(st.just("read"), st.just(0)),
    ),
    max_size=40,
)


def accepted(tx: Any, event_id: str) -> bool | None:
    """Return whether the feed lists events after this id: None for an id in the future, False if it left the window."""
    pruned, newest = tx.event_window(PROJECT.rowid)
    if event_id > (newest or NO_EVENT_ID):
        return None
    return pruned is None or event_id >= pruned


@pytest.mark.thorough
@given(STEPS)
@settings(max_examples=150)
def test_feed_lists_events_after_a_read_or_refuses_the_position(
    steps: list[tuple[str, int]],
) -> None:
    now, sequence = NOON, 0
    reads: list[str] = []
    since: list[list[str]] = []
    with passing() as directory, tables(directory) as log:
        for step, value in [*steps, ("read", 0)]:
            if step == "erase":
                log.tx.erase_events(value)
                gone = set(_conversations(sequence, value))
                since = [[each for each in ids if each.partition(" ")[2] not in gone] for ids in since]
            elif step == "prune":
                log.tx.prune_events(now, value, NOON)
            elif step == "read":
                reads.append(read_position(log.tx, PROJECT.rowid))
                since.append([])
                assert is_id(reads[-1], "evt")
                assert accepted(log.tx, reads[-1])
                assert _behind(log.tx, reads[-1]) == []
            else:
                now, sequence = now + value, sequence + 1
                event = _appended(log.tx, step, sequence, now)
                if step == "public":
                    for ids in since:
                        ids.append(f"{event.id} {sequence}")
            log.commit()
        for read, expected in zip(reads, since, strict=True):
            if accepted(log.tx, read):
                assert _behind(log.tx, read) == [each.partition(" ")[0] for each in expected]
            else:
                assert accepted(log.tx, read) is False


def _appended(tx: Any, kind: str, sequence: int, at: int) -> Any:
    if kind == "internal":
        return tx.append_event(PROJECT, settings_changed("teams", None), None, at)
    project = PROJECT if kind == "public" else OTHER_PROJECT
    conversation = 1 + sequence % 3 if kind == "public" else None
    return tx.append_event(project, replace(DRAFT, sequence=sequence), conversation, at)


def _conversations(newest: int, conversation: int) -> list[str]:
    return [str(number) for number in range(1, newest + 1) if 1 + number % 3 == conversation]


def _behind(tx: Any, event_id: str) -> list[str]:
    position = tx.event_position(PROJECT.rowid, event_id)
    return [event.id for event in tx.events(PROJECT.rowid, position, 1_000, frozenset())]
