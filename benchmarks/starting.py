"""The time until the program is ready: at its first start, with messages stored, and after `kill -9` under load."""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path
from typing import Final

from benchmarks.generator import load_until_killed
from benchmarks.report import Cell, Section, median
from benchmarks.scale import Scale
from benchmarks.service import Server, deskwire
from benchmarks.stored import Stored, stored

_SPREAD: Final = 64
_CONNECTIONS: Final = 64
_LONG_S: Final = 60.0
_KB: Final = 1_000
_PAGE: Final = 200


def measure(scale: Scale, directory: Path) -> list[Section]:
    """Start on each directory in turn; then kill and recover on the smallest and the largest."""
    databases = [stored(directory, messages, "starting") for messages in scale.stored]
    taken: dict[int, list[tuple[float, float]]] = {messages: [] for messages in (0, *scale.stored)}
    _timed_start(directory / "compiling")
    for _ in range(scale.rounds):
        fresh = directory / "started"
        shutil.rmtree(fresh, ignore_errors=True)
        taken[0].append(_timed_start(fresh))
        for each in databases:
            taken[each.messages].append(_timed_start(each.directory))
    rows: list[tuple[Cell, ...]] = [(0, *map(median, zip(*taken[0], strict=True)), None, None)]
    for each in databases:
        seconds = map(median, zip(*taken[each.messages], strict=True))
        rows.append((each.messages, *seconds, each.size_mb, each.messages / each.took_s))
    columns = (
        "messages stored",
        "ready after s",
        "first list after s",
        "database MB",
        "filled at messages/s",
    )
    note = (
        "The first start makes the demo project, with a password to hash. The list is the first request: the newest 50 "
        "conversations. Filling is in bulk, through the store."
    )
    started = Section("start", "Start of the program", columns, rows, note)
    return [started, _recoveries(scale, [databases[0], databases[-1]])]


def _timed_start(folder: Path) -> tuple[float, float]:
    """Return the seconds until the program is ready, and until it has answered its first request."""
    began = time.perf_counter()
    with deskwire(folder) as server:
        ready = time.perf_counter() - began
        with server.api() as api:
            asked = time.perf_counter()  # without the time that the client needs to load its certificates
            api.get("/s2s/conversations", params={"limit": 50}).raise_for_status()
            return ready, ready + time.perf_counter() - asked


def _recoveries(scale: Scale, databases: list[Stored]) -> Section:
    rows: list[tuple[Cell, ...]] = []
    for each in databases:
        found = [_recovery(scale, each) for _ in range(scale.kills)]
        acknowledged, wal, ready, missing = zip(*found, strict=True)
        rows.append((each.messages, len(found), sum(acknowledged), sum(missing), median(wal), median(ready)))
    columns = (
        "messages stored",
        "kills",
        "acknowledged",
        "of them missing",
        "log to recover KB",
        "ready after s",
    )
    title = f"After kill -9, {_CONNECTIONS} connections posting"
    note = (
        "Every acknowledged message is asked for again. A killed program leaves the system's cache of the disk alone: this is "
        "no loss of power."
    )
    return Section("recovery", title, columns, rows, note)


def _recovery(scale: Scale, database: Stored) -> tuple[int, float, float, int]:
    """Return acknowledged messages, KB of SQLite's log, seconds until ready, and lost acknowledged messages."""
    chosen = database.ids[:_SPREAD]
    with deskwire(database.directory) as server:
        job = server.posts(chosen, connections=_CONNECTIONS, for_s=_LONG_S, keep=True)
        outcome = load_until_killed(job, server.process, scale.load_s)
    wal = sum(each.stat().st_size for each in database.directory.glob("*-wal")) / _KB
    began = time.perf_counter()
    with deskwire(database.directory) as server:
        ready = time.perf_counter() - began
        acknowledged = {json.loads(body)["id"] for body in outcome.bodies}
        return len(acknowledged), wal, ready, len(acknowledged - _found(server, chosen))


def _found(server: Server, chosen: list[str]) -> set[str]:
    """Return the ids of all messages of these conversations."""
    found = set[str]()
    with server.api() as api:
        for conversation in chosen:
            path, behind, items = (
                f"/s2s/conversations/{conversation}/messages",
                dict[str, str](),
                [None] * _PAGE,
            )
            while len(items) == _PAGE:
                items = api.get(path, params={"limit": _PAGE, **behind}).raise_for_status().json()["items"]
                found |= {item["id"] for item in items}
                behind = {"after": items[-1]["id"]} if items else behind
    return found
