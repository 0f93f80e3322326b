"""The reads of a backend: a conversation, its messages, and the project's feed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Final

from benchmarks import references
from benchmarks.filling import fill_directory
from benchmarks.references import ASGI
from benchmarks.report import Cell, Section
from benchmarks.scale import Scale
from benchmarks.service import Server, deskwire
from benchmarks.taking import in_turn, middle, ratio, take

_CONVERSATIONS: Final = 100
_MESSAGES: Final = 60
"""Messages of each conversation, so that a page of 50 is full."""
_KB: Final = 1_000


def paths(ids: list[str], feed_after: str) -> dict[str, list[str]]:
    """Return the paths to read, by kind: of these conversations, and of the feed behind an event's id."""
    one = "/v3/s2s/conversations"
    return {
        "a conversation": [f"{one}/{each}" for each in ids],
        "50 messages": [f"{one}/{each}/messages?limit=50" for each in ids],
        "a page of the feed, 50 events": [f"/v3/s2s/events?after={feed_after}"],
    }


def first_event(server: Server, conversation: str) -> str:
    """Return the id of a conversation's first event."""
    with server.api() as api:
        found = api.get(f"/s2s/conversations/{conversation}/events", params={"limit": 1}).raise_for_status()
    return str(found.json()["items"][0]["id"])


def measure(scale: Scale, directory: Path) -> list[Section]:
    """Measure each read in turn, compared with an empty answer on stock Hypercorn."""
    where = directory / "reading"
    ids = fill_directory(where, _CONVERSATIONS, _CONVERSATIONS * _MESSAGES)
    with ExitStack() as stack:
        empty = stack.enter_context(references.hypercorn("asgi"))
        ours = stack.enter_context(deskwire(where))
        rows = [row for connections in scale.read_by for row in _rows(scale, empty, ours, ids, connections)]
    columns = (
        "what",
        "connections",
        "answers/s",
        "p50 ms",
        "p99 ms",
        "worst ms",
        "server's µs",
        "of ASGI",
        "KB an answer",
    )
    return [Section("read", "Read", columns, rows)]


def _rows(
    scale: Scale, empty: Server, ours: Server, ids: list[str], connections: int
) -> Iterator[tuple[Cell, ...]]:
    wanted = paths(ids, first_event(ours, ids[0]))
    targets = [
        (what, partial(take, ours, ours.gets(some, **scale.load(connections))))
        for what, some in wanted.items()
    ]
    targets.insert(0, (ASGI, partial(take, empty, empty.gets(["/"], **scale.load(connections)))))
    taken = in_turn(scale.rounds, targets)
    for what, found in taken.items():
        of_all = middle(found)
        size = _size_kb(ours, wanted[what][0]) if what in wanted else None
        yield (
            what,
            connections,
            of_all.rate,
            of_all.p50,
            of_all.p99,
            of_all.worst,
            of_all.us,
            ratio(taken, what, ASGI),
            size,
        )


def _size_kb(server: Server, path: str) -> float:
    with server.api() as api:
        return len(api.get(path.removeprefix("/v3")).raise_for_status().content) / _KB
