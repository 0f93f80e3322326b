"""A receiver that recovers: how fast held deliveries are sent, and how late new events are during that time.

The stored circuit of its endpoint is open; the first probe closes it. The project's other endpoint was healthy all
the time. New events go to both.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Final

import trio

from benchmarks import processes
from benchmarks.filling import SECRET, Filling, hook
from benchmarks.generator import load
from benchmarks.report import Cell, Section, percentile
from benchmarks.scale import Scale
from benchmarks.service import Server, deskwire
from deskwire.engine.core.clock import wall_clock
from deskwire.engine.core.encryption import Encryption
from deskwire.engine.core.secret import Secrets
from deskwire.storage.sqlite.database import connect_writer
from deskwire.storage.sqlite.directory import FILE_NAME
from deskwire.storage.sqlite.store import open_store

_CONVERSATIONS: Final = 1_000
_LIVE: Final = 8
_AIM_PER_S: Final = 5_000
_LOOK_S: Final = 0.05
_GIVE_UP_S: Final = 240.0
_HOUR_MS: Final = 3_600_000
_OPEN: Final = "UPDATE endpoints SET failed_attempts = 20, failing_since = ?1, probes = 1, probe_at = ?1 + ?2, open_reason = 'away'"
_COLUMNS: Final = (
    "held",
    "deliveries/s",
    "server's µs",
    "new ones at",
    "messages",
    "p50 ms",
    "p99 ms",
    "most ms",
)


class _Receiver:
    """A process that counts requests and reports their ages."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        (port,) = json.loads(processes.line(process))
        self.url = f"http://127.0.0.1:{port}/hook"
        self.held = 0
        self.ages: list[float] = []

    def look(self) -> None:
        """Take the requests since the last call; held deliveries carry no time."""
        report = json.loads(processes.ask(self._process, "take"))
        self.held += report["requests"] - len(report["ages"])
        self.ages += report["ages"]

    def late(self) -> Iterator[Cell]:
        """Yield the number of received messages, and percentiles of their ages."""
        self.ages.sort()
        yield len(self.ages)
        yield from (percentile(self.ages, share) for share in (0.5, 0.99, 1.0))


def measure(scale: Scale, directory: Path) -> list[Section]:
    """Start with all deliveries held, have a probe sent, and post until everything has arrived."""
    folder = directory / "catching-up"
    with ExitStack() as stack:
        back, other = (stack.enter_context(_receiving()) for _ in range(2))
        wanted = json.dumps([str(folder), back.url, scale.backlog])
        processes.answer("benchmarks.catching_up", wanted, core=processes.SERVER)
        settings = {"secret": SECRET, "allow_private_webhooks": "true"}
        server = stack.enter_context(deskwire(folder, **settings))
        rows = list(_caught_up(scale, server, back, other))
    note = f"New messages come at {scale.rate} a second, and go to both. The receivers answer at once, over plain HTTP."
    return [Section("catching-up", "A receiver that comes back", _COLUMNS, rows, note)]


@contextmanager
def _receiving() -> Iterator[_Receiver]:
    process = processes.start("benchmarks.receiver", "measured", core=processes.LOAD)
    try:
        yield _Receiver(process)
    finally:
        processes.stop(process)


def _caught_up(scale: Scale, server: Server, back: _Receiver, other: _Receiver) -> Iterator[tuple[Cell, ...]]:
    ids, posts_s = server.create(_LIVE), max(1.0, scale.backlog / _AIM_PER_S)
    posts = server.posts(ids, connections=_LIVE, for_s=posts_s, rate=scale.rate)
    with server.api() as api, ThreadPoolExecutor(1) as pool:
        (endpoint,) = api.get("/s2s/webhooks").raise_for_status().json()["items"]
        api.post("/s2s/webhooks", json={"url": other.url}).raise_for_status()
        posting = pool.submit(load, posts)
        began, cpu = time.monotonic(), processes.cpu_s(server.process)
        api.post(f"/s2s/webhooks/{endpoint['id']}/test").raise_for_status()
        _wait(lambda: back.held >= scale.backlog, (back,))
        elapsed, now = time.monotonic() - began, processes.cpu_s(server.process)
        posted = posting.result().answers
        _wait(lambda: min(len(back.ages), len(other.ages)) >= posted, (back, other))
    us = None if cpu is None or now is None else (now - cpu) * 1e6 / scale.backlog
    for where, receiver in (("the same", back), ("another", other)):
        yield scale.backlog, scale.backlog / elapsed, us, where, *receiver.late()


def _wait(over: Callable[[], bool], receivers: Sequence[_Receiver]) -> None:
    deadline = time.monotonic() + _GIVE_UP_S
    while not over():
        if time.monotonic() > deadline:
            raise RuntimeError("not all deliveries have come")
        time.sleep(_LOOK_S)
        for receiver in receivers:
            receiver.look()


async def _fill(folder: str, url: str, messages: int) -> None:
    """Store this many deliveries to an endpoint whose circuit is open, and is probed only on request."""
    async with open_store(Path(folder), batch=256, readers=1, on_commit=lambda _: None) as store:
        filling = await Filling.begin(store, Path(folder))
        conversations = min(_CONVERSATIONS, messages // 2)
        await filling.create(conversations)
        await store.write(partial(hook, filling.project, Encryption(Secrets(SECRET)), url))
        await filling.post(messages)
    with closing(connect_writer(Path(folder) / FILE_NAME)) as connection:
        connection.execute(_OPEN, (wall_clock(), _HOUR_MS))


if __name__ == "__main__":
    trio.run(_fill, *json.loads(sys.stdin.read()))
