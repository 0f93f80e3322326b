"""The events of a topic: a returning panel costs the events of its own contact, however many others the log has."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest

from deskwire.engine.events.types import Topic
from deskwire.storage.sqlite.database import connect_reader, migrate
from deskwire.storage.sqlite.directory import FILE_NAME
from deskwire.storage.sqlite.transaction import SqliteReader


@pytest.mark.parametrize("kind", ["conversation", "contact"])
def test_events_of_a_topic_are_found_by_their_subject(
    tmp_path: Path, kind: Literal["conversation", "contact"]
) -> None:
    path = tmp_path / FILE_NAME
    migrate(path)
    reader = SqliteReader(connect_reader(path))
    statements: list[str] = []
    reader.conn.set_trace_callback(statements.append)
    reader.topic_events(Topic(1, kind, "u1"), 7, 10, frozenset())
    reader.conn.set_trace_callback(None)
    (statement,) = statements
    plan = [step[3] for step in reader.conn.execute(f"EXPLAIN QUERY PLAN {statement}")]
    of_events = [step for step in plan if step.startswith(("SEARCH e ", "SCAN e"))]
    # By one position, or by the subject: never all events after the stream's start.
    assert of_events
    assert not [step for step in of_events if "=?" not in step]
    reader.conn.close()
