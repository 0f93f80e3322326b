"""The time of searches while typing, of indexing, and of erasures from the index."""

from __future__ import annotations

import json
import random
import sqlite3
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import httpx
import trio

from benchmarks import processes
from benchmarks.filling import found
from benchmarks.generator import load
from benchmarks.job import Job
from benchmarks.report import TIMES, Cell, Section, median_times
from benchmarks.scale import Scale
from benchmarks.service import Server, deskwire
from deskwire.engine.accounts.people import Project
from deskwire.engine.conversations.conversation import AuthorType
from deskwire.engine.core.clock import wall_clock
from deskwire.engine.importing.batch import import_batch
from deskwire.engine.importing.records import ContactRecord, ConversationRecord, MessageRecord, Record
from deskwire.storage.sqlite.directory import FILE_NAME as DATABASE
from deskwire.storage.sqlite.search.file import FILE_NAME, prepared
from deskwire.storage.sqlite.store import open_store

MESSAGES_EACH: Final = 6
_VOCABULARY: Final = 60_000
_AT_ONCE: Final = 300
_ERASED: Final = 20
_PATIENCE_S: Final = 7_200.0
_LOOK_S: Final = 0.05


def measure(scale: Scale, directory: Path) -> list[Section]:
    """Fill a database as an import does, let the service index it, time each kind of query, and erase."""
    where = directory / "search"
    where.mkdir()
    processes.answer("benchmarks.searching", json.dumps([str(where), scale.searched]), core=processes.SERVER)
    with deskwire(where) as server:
        making_s = complete(server)
        index_mb = sum(path.stat().st_size for path in where.glob(f"{FILE_NAME}*")) / 1e6
        rows = [_row(scale, server, name, queries) for name, queries in _queries()]
        erasing_s = _erased(server)
    columns = ("query", *TIMES)
    title = f"Searches in {scale.searched:,} conversations, {scale.searched * MESSAGES_EACH:,} messages"
    note = "One request under way, from the request to its response, hits and all; the server has one core."
    kept = [(scale.searched * MESSAGES_EACH, making_s, index_mb, erasing_s)]
    names = ("messages", "made in s", "index MB", f"{_ERASED} deleted and overwritten in s")
    return [Section("search", title, columns, rows, note), Section("index", "The search index", names, kept)]


def vocabulary() -> list[str]:
    """Return made-up words, the same each time."""
    dice, words = random.Random(1), dict[str, None]()
    begins = (
        "",
        *"bcdfghlmnprstvw",
        "br",
        "ch",
        "cl",
        "co",
        "fr",
        "in",
        "pr",
        "qu",
        "re",
        "st",
        "sh",
        "th",
        "tr",
        "un",
    )
    middles, ends = ("a", "e", "i", "o", "u", "ai", "ea", "ou", "io"), ("", *"nrstlm", "nd", "st", "ck", "ng")
    while len(words) < _VOCABULARY:
        parts = (
            dice.choice(begins) + dice.choice(middles) + dice.choice(ends)
            for _ in range(dice.choice((1, 2, 2, 3, 3, 4)))
        )
        words["".join(parts)] = None
    return list(words)


def texts(count: int) -> Iterator[str]:
    """Yield messages of about 25 words with the frequencies of a language; some have an order number or an address."""
    dice, words = random.Random(2), vocabulary()
    weights = list(accumulate(1 / (rank + 2.7) ** 1.05 for rank in range(len(words))))
    for _ in range(count):
        length = min(120, max(2, int(dice.expovariate(1 / 14)) + 2))
        text = dice.choices(words, cum_weights=weights, k=length)
        if dice.random() < 0.12:
            text.append(f"A-{dice.randrange(10**6):06}")
        if dice.random() < 0.04:
            text.append(f"{dice.choice(words)}.{dice.choice(words)}@{dice.choice(words)}.org")
        yield " ".join(text)


def _queries() -> Iterator[tuple[str, list[str]]]:
    words, dice = vocabulary(), random.Random(3)
    long = [word for word in words if len(word) > 3]
    yield "a common word", long[:40]
    yield "a rare word", dice.sample(long[20_000:], 40)
    yield "one letter", list("abcdehilmnoprstuvw")
    yield "two letters, common", [word[:2] for word in long[:40]]
    yield "three letters, common", [word[:3] for word in long[:200:5]]
    yield "four letters, common", [word[:4] for word in long[:200:5]]
    yield "three common words", [" ".join(dice.sample(long[:200], 3)) for _ in range(40)]
    yield (
        "three common beginnings",
        [" ".join(word[:2] for word in dice.sample(long[:200], 3)) for _ in range(40)],
    )
    yield "a part of an order number", [f"A-{number}" for number in range(100, 140)]
    yield "nothing", [f"{word}qqq" for word in long[:40]]


def _row(scale: Scale, server: Server, name: str, queries: list[str]) -> tuple[Cell, ...]:
    """Send these queries in turn."""
    job = Job(
        server.port,
        [f"/v3/search?q={quote(query)}" for query in queries],
        method="GET",
        key=server.token,
        project=server.project,
        connections=1,
        warm_s=scale.warm_s,
        for_s=max(1.0, scale.list_s),
    )
    return name, *median_times([load(job).latencies for _ in range(scale.rounds)])


def dashboard(server: Server) -> httpx.Client:
    """Return a client with the credential of the project's owner."""
    headers = {"Authorization": f"Bearer {server.token}", "project": server.project}
    return httpx.Client(base_url=f"http://127.0.0.1:{server.port}", headers=headers, timeout=60)


def complete(server: Server) -> float:
    """Return the seconds until the index is complete."""
    began = time.perf_counter()
    with dashboard(server) as api:
        while time.perf_counter() - began < _PATIENCE_S:
            if api.get("/v3/search", params={"q": "x"}).raise_for_status().json()["behind"] is None:
                return time.perf_counter() - began
            time.sleep(_LOOK_S)
    raise RuntimeError("the index is not complete")


def leave_out(directory: Path) -> None:
    """Mark an incomplete index as complete, because the server would continue to index during other measurements."""
    database = directory / DATABASE
    with closing(sqlite3.connect(prepared(database))) as index, index:
        index.execute("ATTACH ? AS main_file", (str(database),))
        index.execute(
            "UPDATE state SET complete = 1, (message, message_id) = "
            "(SELECT rowid, id FROM main_file.messages ORDER BY rowid DESC LIMIT 1), "
            "conversation = (SELECT max(rowid) FROM main_file.conversations) WHERE NOT complete"
        )


def _erased(server: Server) -> float:
    """Return the seconds until conversations are deleted and none of their bytes is left in any file."""
    with dashboard(server) as api:
        items: list[Any] = (
            api.get("/v3/conversations", params={"limit": _ERASED}).raise_for_status().json()["items"]
        )
        began = time.perf_counter()
        for item in items:
            api.delete(f"/v3/conversations/{item['id']}").raise_for_status()
        while "deskwire_storage_scrub_pending 0" not in api.get("/metrics").raise_for_status().text:
            time.sleep(_LOOK_S)
        return time.perf_counter() - began


async def _fill(folder: str, count: int) -> None:
    """Import this many conversations into a fresh directory."""
    directory, written = Path(folder), texts(count * MESSAGES_EACH)
    async with open_store(directory, batch=256, readers=1, on_commit=lambda _: None) as store:
        project = await found(store, directory)
        for first in range(0, count, _AT_ONCE):
            numbers = range(first, min(first + _AT_ONCE, count))
            await store.write(partial(_import, project, list(_records(numbers, written))))


def _import(project: Project, records: list[Record], tx: Any) -> None:
    outcome = import_batch(tx, project, records, wall_clock(), None)
    assert not outcome.refused, outcome.refused[0]


def _records(numbers: range, written: Iterator[str]) -> Iterator[Record]:
    at = wall_clock() - 10**9
    for number in numbers:
        contact = ContactRecord(f"user-{number}", f"Person {number}")
        yield ConversationRecord(number + 1, f"c{number}", contact, at + number, {}, title=f"Case {number}")
        for turn in range(MESSAGES_EACH):
            author: AuthorType = "contact" if turn % 2 == 0 else "bot"
            text, name = next(written), f"m{number}-{turn}"
            yield MessageRecord(
                number + 1, name, f"c{number}", author, None, None, text, turn == 5, at + number + turn
            )


if __name__ == "__main__":
    trio.run(_fill, *json.loads(sys.stdin.read()))
