"""The memory and disk space of pending deliveries to a dead endpoint, compared with the same database without them."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Final

import trio

from benchmarks import processes
from benchmarks.filling import SECRET, Filling, hook
from benchmarks.report import Cell, Section
from benchmarks.scale import Scale
from benchmarks.service import deskwire
from deskwire.engine.core.encryption import Encryption
from deskwire.engine.core.secret import Secrets
from deskwire.storage.sqlite.database import connect_writer
from deskwire.storage.sqlite.directory import FILE_NAME
from deskwire.storage.sqlite.store import open_store

_CONVERSATIONS: Final = 1_000
_LOOK_S: Final = 0.1


def measure(scale: Scale, directory: Path) -> list[Section]:
    """Measure the peak memory of a server in the seconds after its start, with the deliveries and without."""
    folder = directory / "backlog"
    receiver = processes.start("benchmarks.receiver", "dead", core=processes.LOAD)
    try:
        url = f"http://127.0.0.1:{json.loads(processes.line(receiver))[0]}/hook"
        wanted = json.dumps([str(folder), url, scale.backlog])
        pending = int(processes.answer("benchmarks.backlog", wanted, core=processes.SERVER))
        with_them = _most_mb(folder, scale.rate_s)
        _end_all(folder)
        without = _most_mb(folder, scale.rate_s)
    finally:
        processes.stop(receiver)
    rows: Sequence[tuple[Cell, ...]] = [
        ("none", without, None),
        (f"{pending:,} to a dead endpoint", with_them, with_them - without),
    ]
    note = "The most in the seconds after the start, while the endpoint's window in memory (1,000 deliveries) is full."
    title = "Resident memory with deliveries pending"
    return [Section("backlog", title, ("pending", "MB in all", "MB more"), rows, note)]


async def _fill(folder: str, url: str, messages: int) -> None:
    """Store messages and their deliveries, and print how many of these there are."""
    async with open_store(Path(folder), batch=256, readers=1, on_commit=lambda _: None) as store:
        filling = await Filling.begin(store, Path(folder))
        endpoint = await store.write(partial(hook, filling.project, Encryption(Secrets(SECRET)), url))
        await filling.create(min(_CONVERSATIONS, messages // 2))
        await filling.post(max(0, messages - 2 * min(_CONVERSATIONS, messages // 2)))
        last = await store.read(lambda reader: reader.pending_deliveries(endpoint.rowid, 0, 2 * messages))
        print(len(last))


def _end_all(folder: Path) -> None:
    with closing(connect_writer(folder / FILE_NAME)) as connection:
        connection.execute("UPDATE deliveries SET status = 'dropped'")


def _most_mb(folder: Path, for_s: float) -> float:
    with deskwire(folder, secret=SECRET, allow_private_webhooks="true") as server:
        most, until = 0.0, time.monotonic() + for_s
        while time.monotonic() < until:
            most = max(most, processes.resident_mb(server.process))
            time.sleep(_LOOK_S)
        return most


if __name__ == "__main__":
    trio.run(_fill, *json.loads(sys.stdin.read()))
