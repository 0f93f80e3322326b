"""Readers of the ages of messages when a subscriber is notified: by a webhook, by server-sent events, and by long polls."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from benchmarks import processes
from benchmarks.delivering import observing
from benchmarks.observer import Watch

Ages = Callable[[], list[float]]
"""Returns the ages (ms) of the messages since its last call."""


@contextmanager
def webhook() -> Iterator[tuple[str, Ages]]:
    """Run a receiver; yield its URL, and its ages."""
    process = processes.start("benchmarks.receiver", "measured", core=processes.LOAD)

    def ages() -> list[float]:
        found: list[float] = json.loads(processes.ask(process, "take"))["ages"]
        return found

    try:
        (port,) = json.loads(processes.line(process))
        yield f"http://127.0.0.1:{port}/hook", ages
    finally:
        processes.stop(process)


@contextmanager
def stream(source: Watch) -> Iterator[Ages]:
    """Run a consumer of one of Deskwire's streams."""
    with observing(source) as process:
        yield lambda: list[float](json.loads(processes.ask(process, "take")))


@contextmanager
def long_poll(port: int, token: str) -> Iterator[Ages]:
    """Run a client of Synapse that waits for new messages."""
    process = processes.start("benchmarks.peers.long_poll", core=processes.LOAD)
    try:
        if processes.ask(process, json.dumps({"port": port, "token": token})) != "in place":
            raise RuntimeError("the client is not in place")
        yield lambda: list[float](json.loads(processes.ask(process, "take")))
    finally:
        processes.stop(process)
