"""Real chats as their backend would send them: creations, messages, changes, closings and ratings, with reads in between."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import Final

from benchmarks.generator import load
from benchmarks.job import Call, Job
from benchmarks.report import Cell, Section
from benchmarks.scale import Scale
from benchmarks.service import Server, deskwire
from benchmarks.taking import in_turn, middle, take
from deskwire.commands.demo.chats import Chat, ChatStep, load_chats, script

DIALOGUES: Final = Path(__file__).parents[2] / "shared" / "data" / "dialogues.jsonl"
"""Beside a checkout; `BENCHMARK_CHATS` names another file of the form that `deskwire demo --data` takes."""
_READ_EVERY: Final = 4
_ONE: Final = "/v3/s2s/conversations"


def source() -> Path:
    """Return the path of the chats, whether or not it exists."""
    return Path(os.environ.get("BENCHMARK_CHATS", DIALOGUES))


def measure(scale: Scale, directory: Path) -> list[Section]:
    """Play all chats concurrently, at each number of connections; return nothing if there are none."""
    if not source().exists():
        print(f"chats: left out, as there is no {source().name}")
        return []
    chats = load_chats(source())[: scale.chats]
    with deskwire(directory / "chats") as server:
        rows = [row for connections in scale.connections for row in _row(scale, server, chats, connections)]
    note = (
        f"{len(chats)} chats at the same time: {len(chats[0].turns)} turns in the first; a message or a change in "
        f"{_READ_EVERY - 1} of {_READ_EVERY} requests, a page of messages in the others."
    )
    columns = (
        "load",
        "connections",
        "requests/s",
        "p50 ms",
        "p99 ms",
        "worst ms",
        "server's µs",
        "load's core",
    )
    return [Section("chats", "Real chats", columns, rows, note)]


def _row(scale: Scale, server: Server, chats: Sequence[Chat], connections: int) -> Iterator[tuple[Cell, ...]]:
    calls = list(_calls(server, chats))
    job = Job(server.port, calls=calls, key=server.key, **scale.load(connections))
    found = middle(in_turn(scale.rounds, [("chats", partial(take, server, job))])["chats"])
    yield "mixed", connections, found.rate, found.p50, found.p99, found.worst, found.us, found.busy


def _calls(server: Server, chats: Sequence[Chat]) -> Iterator[Call]:
    """Yield one turn of each chat after the other, then the next ones; each chat in a new conversation."""
    scripts = [list(script(chat, number, f"chat-{number}")) for number, chat in enumerate(chats, 1)]
    creations = [Call("POST", _ONE, json.dumps(steps[0].body)) for steps in scripts]
    created = load(
        Job(server.port, calls=creations, key=server.key, connections=1, count=len(creations), keep=True)
    )
    ids = [json.loads(body)["id"] for body in created.bodies]
    sent = 0
    for turn in zip_longest(*(steps[1:] for steps in scripts)):
        for conversation, step in zip(ids, turn, strict=True):
            if step is None:
                continue
            yield _call(conversation, step)
            sent += 1
            if sent % (_READ_EVERY - 1) == 0:
                yield Call("GET", f"{_ONE}/{conversation}/messages?limit=50")


def _call(conversation: str, step: ChatStep) -> Call:
    return Call(step.method, f"{_ONE}/{conversation}{step.path}", json.dumps(step.body))
