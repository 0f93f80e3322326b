"""The rate of imports, their share of the server's core, and their effect on concurrent posts."""

from __future__ import annotations

import io
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import httpx
import orjson

from benchmarks import processes
from benchmarks.generator import load
from benchmarks.report import TIMES, Cell, Section, median, times
from benchmarks.scale import Scale
from benchmarks.service import TEXT, Server, deskwire
from deskwire.commands.import_.run import parts

_KINDS: Final = (
    ("10 messages each", 10, False),
    ("1,000 messages each", 1_000, False),
    ("10 messages each, with events", 10, True),
)
_AGAIN: Final = "10 messages each, all there already"
_SPREAD: Final = 64
_HEADERS: Final = {"Content-Type": "application/x-ndjson"}


def measure(scale: Scale, directory: Path) -> list[Section]:
    """Import each kind of history in each round, then post during an import."""
    labels = (*(label for label, *_ in _KINDS), _AGAIN)
    taken: dict[str, list[tuple[float, float | None]]] = {label: [] for label in labels}
    with deskwire(directory / "importing") as server:
        for number in range(scale.rounds):
            for label, each, events in _KINDS:
                body = _history(f"{number}.{each}.{events}", scale.imported, each)
                taken[label].append(_taken(server, body, scale.imported, events=events))
            body = _history(f"{number}.10.False", scale.imported, 10)
            taken[_AGAIN].append(_taken(server, body, scale.imported, events=False))
        beside = _beside(scale, server)
    rows = [_row(scale, label, figures) for label, figures in taken.items()]
    columns = ("conversations with", "messages", "messages/s", "server's CPU, us", "messages/s of CPU")
    note = (
        "Each line of about 400 bytes, 1,000 lines a request, one request under way; the server has one core."
    )
    latency = Section(
        "import-beside",
        f"POST a message at {scale.rate} a second",
        ("beside", "posts", *TIMES),
        beside,
    )
    return [Section("import", "Import histories", columns, rows, note), latency]


def _row(
    scale: Scale, label: str, figures: list[tuple[float, float | None]]
) -> tuple[str, int, float, float | None, float | None]:
    rate = median(rate for rate, _ in figures)
    costs = [cost for _, cost in figures if cost is not None]
    cost = median(costs) if costs else None
    return label, scale.imported, rate, cost, 1e6 / cost if cost else None


def _history(name: str, messages: int, each: int) -> bytes:
    """Return conversations with `each` messages."""
    return b"".join(orjson.dumps(record) + b"\n" for record in _records(name, messages, each))


def _records(name: str, messages: int, each: int) -> Iterator[dict[str, object]]:
    at = "2024-03-{:02}T09:{:02}:{:02}Z"
    for number in range(messages):
        thread, place = f"{name}-{number // each}", number % each
        if not place:
            contact = {"userId": thread, "name": "Ada Lovelace"}
            given = {"contact": contact, "status": "CLOSED", "createdAt": at.format(1, 0, 0)}
            yield {"type": "conversation", "externalId": thread, **given}
        author = {"type": "agent", "name": "Grace"} if place % 2 else {"type": "contact"}
        when = at.format(1 + number % 28, place % 60, number % 60)
        content = {"conversation": thread, "author": author, "text": TEXT, "createdAt": when}
        yield {"type": "message", "externalId": f"{thread}-{place}", **content}


def _taken(server: Server, body: bytes, messages: int, *, events: bool) -> tuple[float, float | None]:
    """Return messages a second, and the server's processor time for one in µs."""
    with server.api() as api:
        began, before = time.perf_counter(), processes.cpu_s(server.process)
        for part in parts(io.BytesIO(body)):
            _post(api, part.content, events=events)
        seconds, after = time.perf_counter() - began, processes.cpu_s(server.process)
    cost = None if before is None or after is None else (after - before) / messages * 1e6
    return messages / seconds, cost


def _post(api: httpx.Client, content: bytes, *, events: bool = False) -> None:
    params = {"events": "true"} if events else {}
    response = api.post("/s2s/import", content=content, headers=_HEADERS, params=params)
    if response.raise_for_status().json()["refused"]:
        raise RuntimeError(f"lines were refused: {response.text[:500]}")


def _beside(scale: Scale, server: Server) -> list[tuple[Cell, ...]]:
    """Return the latencies of posts alone, and during an import."""
    job = server.posts(server.create(_SPREAD), connections=16, rate=scale.rate, for_s=scale.rate_s)
    rows = list[tuple[Cell, ...]]()
    for label, messages in (("nothing", 0), ("an import", scale.imported)):
        with _importing(server, messages):
            outcome = load(job)
        rows.append((label, len(outcome.latencies), *times(outcome.latencies)))
    return rows


@contextmanager
def _importing(server: Server, messages: int) -> Iterator[None]:
    """Import until the end, if there are any messages."""
    over = threading.Event()

    def run() -> None:
        number = 0
        with server.api() as api:
            while messages and not over.is_set():
                number += 1
                for part in parts(io.BytesIO(_history(f"beside.{number}", messages, 10))):
                    if over.is_set():
                        return
                    _post(api, part.content)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
