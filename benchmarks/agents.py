"""The stream of agents: the cost of its readers for posts, and how fast a disconnected reader catches up."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Final

import httpx

from benchmarks import processes
from benchmarks.report import Cell, Section
from benchmarks.scale import Scale
from benchmarks.service import Server, deskwire
from benchmarks.taking import in_turn, middle, ratio, take

_PAGES: Final = 100
_EACH: Final = 20
_PASSWORD: Final = "a long enough password"
_BEGINNING: Final = f"evt_{'0' * 26}"


def measure(scale: Scale, directory: Path) -> list[Section]:
    """Post with and without pages that follow, in turn; then have one page read all events."""
    with (
        deskwire(directory / "without") as alone,
        deskwire(directory / "with") as followed,
    ):
        tokens = agents_tokens(followed, _PAGES)
        with _pages(followed, tokens[:1]):
            pass  # the memory that only the first page takes
        before = processes.resident_mb(followed.process)
        with _pages(followed, tokens) as pages:
            opened = processes.resident_mb(followed.process)
            labels = {"0": alone, f"{_PAGES}": followed}
            targets = []
            for label, server in labels.items():
                job = server.posts(server.create(64), **scale.load(16))
                targets.append((label, partial(take, server, job)))
            taken = in_turn(scale.rounds, targets)
            processes.ask(pages, str(_events(followed)))
        caught_up = _catching_up(followed, tokens[0])

    def rows() -> Iterator[tuple[Cell, ...]]:
        for label, found in taken.items():
            of_all = middle(found)
            base = middle(taken["0"]).us
            each = None if of_all.us is None or base is None else (of_all.us - base) / max(1, int(label))
            memory = (opened - before) * 1_000 / _PAGES if int(label) else 0.0
            yield (
                label,
                of_all.rate,
                of_all.p50,
                of_all.p99,
                of_all.worst,
                of_all.us,
                ratio(taken, label, "0"),
                each,
                memory,
            )

    columns = (
        "pages",
        "POST/s",
        "p50 ms",
        "p99 ms",
        "worst ms",
        "server's µs",
        "share",
        "µs each",
        "KB each",
    )
    note = "Each page gets each event; µs each: the server's processor time for an event and a page."
    return [
        Section("agents", "POST while agents' pages follow, 16 connections", columns, list(rows()), note),
        Section(
            "agents-away",
            "A page that catches up",
            ("events", "events/s"),
            [caught_up],
            "Read from the disk, from the first event on.",
        ),
    ]


def agents_tokens(server: Server, count: int) -> list[str]:
    """Return a token for each page, for as many agents as are needed."""
    agents = [_agent(server, number) for number in range(-(-count // _EACH))]
    return [agents[number % len(agents)] for number in range(count)]


def _agent(server: Server, number: int) -> str:
    url, owner = f"http://127.0.0.1:{server.port}/v3", {"Authorization": f"Bearer {server.token}"}
    email = f"agent-{number}@example.com"
    with httpx.Client(base_url=url, timeout=60) as api:
        organisation = api.get("/organisations", headers=owner).json()["items"][0]["id"]
        body = {"email": email, "name": "Agent", "role": "agent"}
        hired = api.post(f"/organisations/{organisation}/members", json=body, headers=owner)
        password = hired.raise_for_status().json()["password"]
        signed = api.post(
            "/auth/token", json={"email": email, "password": password, "newPassword": _PASSWORD}
        )
        return str(signed.raise_for_status().json()["token"])


@contextmanager
def _pages(server: Server, tokens: list[str], after: str = "") -> Iterator[subprocess.Popen[str]]:
    """Open a page with each of these tokens."""
    process = processes.start("benchmarks.pages", core=processes.LOAD)
    try:
        asked = {"port": server.port, "project": server.project, "tokens": tokens, "after": after}
        assert processes.ask(process, json.dumps(asked)) == "open"
        yield process
    finally:
        processes.stop(process)


def _events(server: Server) -> int:
    """Return the number of events, all of which are newer than the pages."""
    with server.api() as api:
        count, after = 0, ""
        while True:
            page = api.get("/s2s/events", params={"limit": 200, **({"after": after} if after else {})}).json()
            count += len(page["items"])
            if page["nextCursor"] is None:
                return count
            after = page["nextCursor"]


def _catching_up(server: Server, token: str) -> tuple[Cell, ...]:
    """Have one page read all events, and return their number and the rate."""
    count = _events(server)
    with _pages(server, [token], _BEGINNING) as page:
        seconds = float(processes.ask(page, str(count)))
    return count, count / seconds
