"""The rate limit of log events that repeat while something is unavailable (issue 39, finding 8)."""

from __future__ import annotations

import io
import re
from contextlib import suppress
from pathlib import Path

import orjson
import pytest
import structlog

from deskwire.config.settings import LogLevel
from deskwire.logs import setup
from deskwire.logs.repeated import INTERVAL_S, REPEATED, RepeatedEvents

ROOT = Path(__file__).parents[2]


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def passed(limit: RepeatedEvents, event: str, count: int = 1) -> list[dict[str, object]]:
    """Return the entries that pass, of `count` repetitions."""
    entries: list[dict[str, object]] = []
    for number in range(count):
        with suppress(structlog.DropEvent):
            entries.append(dict(limit(None, "warning", {"event": event, "number": number})))
    return entries


def test_first_event_passes_at_once_and_repetitions_of_the_minute_are_counted() -> None:
    clock = Clock()
    limit = RepeatedEvents(frozenset({"storage.connection_lost"}), clock)
    assert passed(limit, "storage.connection_lost", 200) == [
        {"event": "storage.connection_lost", "number": 0}
    ]
    clock.now += INTERVAL_S
    assert passed(limit, "storage.connection_lost", 2) == [
        {"event": "storage.connection_lost", "number": 0, "omitted": 199}
    ]
    clock.now += INTERVAL_S
    assert passed(limit, "storage.connection_lost")[0]["omitted"] == 1


def test_event_that_was_not_repeated_has_no_count() -> None:
    clock = Clock()
    limit = RepeatedEvents(frozenset({"node.beat_failed"}), clock)
    passed(limit, "node.beat_failed")
    clock.now += INTERVAL_S
    assert passed(limit, "node.beat_failed") == [{"event": "node.beat_failed", "number": 0}]


def test_each_event_has_its_own_minute_and_others_pass_untouched() -> None:
    limit = RepeatedEvents(frozenset({"a", "b"}), Clock())
    assert len(passed(limit, "a", 3)) == len(passed(limit, "b", 3)) == 1
    assert len(passed(limit, "http.request", 3)) == 3


@pytest.mark.parametrize(("level", "lines"), [("info", 1), ("debug", 5)])
def test_log_has_one_line_and_with_debug_all(level: LogLevel, lines: int) -> None:
    stream = io.StringIO()
    setup.configure("json", level, stream)
    for _ in range(5):
        structlog.get_logger("t").warning("storage.connection_lost", error="gone")
    written = [orjson.loads(line) for line in stream.getvalue().splitlines()]
    assert [each["event"] for each in written] == ["storage.connection_lost"] * lines


def test_every_limited_event_is_one_that_the_code_logs() -> None:
    sources = [path for layer in ("engine", "http", "storage") for path in (ROOT / layer).rglob("*.py")]
    text = "\n".join(path.read_text() for path in sources if path.name != "repeated.py")
    assert {event for event in REPEATED if not re.search(rf'"{re.escape(event)}"', text)} == set()
