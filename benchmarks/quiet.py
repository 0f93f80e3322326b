"""The delay of the first event after quiet, on each stream: agents' server-sent events, and the realtime stream of a backend.

Agents' streams write at most every 50 ms, which must not delay an event that nothing came before.
"""

from __future__ import annotations

import json
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from benchmarks import processes
from benchmarks.agents import agents_tokens
from benchmarks.delivering import observing, watch
from benchmarks.generator import load
from benchmarks.observer import Watch
from benchmarks.report import Cell, Section, percentile
from benchmarks.scale import Scale
from benchmarks.service import deskwire

_RATE: Final = 4
"""Messages a second, so that each comes after a quarter of a second of quiet."""
_ARRIVAL_S: Final = 0.5


def measure(scale: Scale, directory: Path) -> list[Section]:
    """Post message after message, and take their ages at both streams."""
    folder = directory / "quiet"
    with ExitStack() as stack:
        server = stack.enter_context(deskwire(folder))
        (token,) = agents_tokens(server, 1)
        agent = Watch(server.port, project=server.project, agent_token=token)
        watches = {"agents' events": agent, "the realtime stream": watch(server, folder)}
        streams = {name: stack.enter_context(observing(watch)) for name, watch in watches.items()}
        posts = server.posts(server.create(1), connections=1, for_s=scale.quiet_s, rate=_RATE)
        load(posts)
        time.sleep(_ARRIVAL_S)
        rows = [_row(name, json.loads(processes.ask(stream, "ages"))) for name, stream in streams.items()]
    columns = ("stream", "messages", "p50 ms", "p99 ms", "worst ms")
    note = f"From the sending of a message to its event; {_RATE} messages a second to one conversation."
    return [Section("quiet", "The first event after quiet", columns, rows, note)]


def _row(name: str, ages: list[float]) -> tuple[Cell, ...]:
    ages.sort()
    return name, len(ages), *(percentile(ages, share) for share in (0.5, 0.99, 1.0))
