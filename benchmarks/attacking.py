"""The effect of one hostile machine without a credential on others: a client's rate before, beside and after it."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks import processes
from benchmarks.attacker import SITE, attacks
from benchmarks.generator import carried_out
from benchmarks.job import BEGUN
from benchmarks.report import Cell, Section, median
from benchmarks.scale import Scale
from benchmarks.service import Server, deskwire

_CONNECTIONS: Final = 4
_CALM_S: Final = 0.5
_ROUNDS: Final = 3
"""One round for this many rounds of other benchmarks, because each attack has its own server."""


@dataclass(frozen=True, slots=True)
class _Rates:
    """Messages a second in one round, and the number of the client's calls that failed."""

    before: float
    beside: float
    after: float
    failed: int


def measure(scale: Scale, directory: Path) -> list[Section]:
    """Attack after attack, each on a server of its own, and again in each round."""
    with deskwire(directory / "attacked") as server:
        names = list(attacks(server.port, ""))
    rows = [_row(name, _rounds(scale, directory, name)) for name in names]
    columns = ("attack", "before", "beside it", "after", "of before", "failed", "server's MB")
    note = (
        f"Messages a second that a client posts over {_CONNECTIONS} connections of its own, the attacker's machine being "
        "another address. Attacker and client share a core, the server has the other one."
    )
    return [Section("attacks", "POST a message beside one hostile machine", columns, rows, note)]


def _rounds(scale: Scale, directory: Path, name: str) -> tuple[list[_Rates], float]:
    with deskwire(directory / name.replace(" ", "-").replace("/", "")) as server:
        ids = server.create(_CONNECTIONS)
        keys = (server.stream_key(), _channel(server))
        rounds = [_round(scale, server, ids, name, keys) for _ in range(max(1, scale.rounds // _ROUNDS))]
        return rounds, processes.resident_mb(server.process)


def _channel(server: Server) -> str:
    """Return the id of a new channel of customers."""
    with server.api() as api:
        made = api.post("/channels", json={"name": "Shop", "origins": [SITE]})
        return str(made.raise_for_status().json()["id"])


def _round(scale: Scale, server: Server, ids: Sequence[str], name: str, keys: tuple[str, str]) -> _Rates:
    before = _rate(scale, server, ids)
    with _attacker(server.port, name, *keys):
        beside = _rate(scale, server, ids)
    time.sleep(_CALM_S)
    after = _rate(scale, server, ids)
    return _Rates(before[0], beside[0], after[0], before[1] + beside[1] + after[1])


def _rate(scale: Scale, server: Server, ids: Sequence[str]) -> tuple[float, int]:
    found = carried_out(server.posts(list(ids), **scale.load(_CONNECTIONS)))
    return found.rate, len(found.failures)


@contextmanager
def _attacker(port: int, name: str, *keys: str) -> Iterator[None]:
    process = processes.start("benchmarks.attacker", str(port), name, *keys, core=processes.LOAD)
    try:
        processes.line(process, BEGUN)
        yield
    finally:
        process.kill()
        processes.stop(process)


def _row(name: str, found: tuple[list[_Rates], float]) -> tuple[Cell, ...]:
    rounds, resident = found
    share = median(each.beside / each.before for each in rounds)
    before, beside, after = (
        median(getattr(each, phase) for each in rounds) for phase in ("before", "beside", "after")
    )
    return name, before, beside, after, share, sum(each.failed for each in rounds), resident
