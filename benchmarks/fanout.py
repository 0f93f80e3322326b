"""The rate of frames to many consumers, and to one, beside trio-websocket sending the same bytes."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks import processes
from benchmarks.crowd import Crowd
from benchmarks.fanning import KEY_ID, STREAM_KEY, TOKEN_KEY, conversation_id
from benchmarks.report import Cell, Section, median
from benchmarks.scale import Scale

_BURSTS = (1, 16)
_HELD = (1, 100)
"""Channels per connection: a backend has many channels on few connections."""
_COLUMNS = (
    "server",
    "events in a row",
    "frames/s",
    "of trio-websocket",
    "server's µs a frame",
    "load's core",
)
_NOTE = "Frames of about 1 KB that were counted by the consumers; events come from the log, without HTTP and commits."


@dataclass(frozen=True, slots=True)
class _Figures:
    """Received frames a second, the share of a core for counting them, and the server's processor time in µs a frame."""

    rate: float
    busy: float
    spent: float | None


@dataclass(frozen=True, slots=True)
class _Target:
    """A server with connected consumers that hold `channels` channels."""

    label: str
    server: subprocess.Popen[str]
    crowd: subprocess.Popen[str]
    channels: int

    def rate(self, each: int, burst: int) -> _Figures:
        """Send frames, and return the resulting figures."""
        before = processes.cpu_s(self.server)
        frames = each * self.channels
        processes.tell(self.crowd, str(frames))
        processes.tell(self.server, f"{each} {burst}")
        elapsed, busy = json.loads(processes.line(self.crowd))
        after = processes.cpu_s(self.server)
        spent = None if before is None or after is None else (after - before) * 1e6 / frames
        return _Figures(frames / elapsed, busy, spent)


def measure(scale: Scale, directory: Path) -> list[Section]:
    """Measure all servers in turn, round by round."""
    many, each = scale.fan_consumers, scale.fan_frames
    sections: list[Section] = []
    for held in _HELD:
        with ExitStack() as stack:
            targets = [
                stack.enter_context(_target("trio-websocket", directory, many, held)),
                stack.enter_context(_target("Deskwire", directory / f"fan-{held}", many, held)),
            ]
            rows = [row for burst in _BURSTS for row in _compare(scale, targets, each, burst)]
        title = f"Frames of {many:,} channels, {held} on a connection"
        sections.append(Section(f"fan-out-{held}", title, _COLUMNS, rows, _NOTE))
    with ExitStack() as stack:
        one = [
            stack.enter_context(_target("trio-websocket", directory, 1, 1)),
            stack.enter_context(_target("Deskwire", directory / "one", 1, 1)),
        ]
        single = _compare(scale, one, each * many, 1)
    return [*sections, Section("consumer", "Frames to one consumer", _COLUMNS, single, _NOTE)]


def _compare(scale: Scale, targets: list[_Target], each: int, burst: int) -> list[tuple[Cell, ...]]:
    taken: dict[str, list[_Figures]] = {target.label: [] for target in targets}
    for _ in range(scale.rounds):
        for target in targets:
            taken[target.label].append(target.rate(each, burst))
    base = taken[targets[0].label]
    return [
        (
            label,
            burst,
            median(each.rate for each in found),
            median(each.rate / other.rate for each, other in zip(found, base, strict=True)),
            _median_or_none([each.spent for each in found]),
            median(each.busy for each in found),
        )
        for label, found in taken.items()
    ]


def _median_or_none(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return median(known) if known else None


@contextmanager
def _target(label: str, directory: Path, many: int, held: int) -> Iterator[_Target]:
    ours = label.startswith("Deskwire")
    kind = "deskwire" if ours else "trio-websocket"
    if ours:
        directory.mkdir()
    server = processes.start("benchmarks.fanning", kind, str(directory), str(many), core=processes.SERVER)
    crowd = processes.start("benchmarks.crowd", core=processes.LOAD)
    try:
        port, project_id = json.loads(processes.line(server))
        channels = [f"private-conversation-{conversation_id(number)}" for number in range(many)]
        job = Crowd(port, "/", channels, each=held)
        if ours:
            key = TOKEN_KEY.hex()
            job = Crowd(port, f"/app/{STREAM_KEY}", channels, project_id, STREAM_KEY, KEY_ID, key, each=held)
        if processes.ask(crowd, job.encode()) != "in place":
            raise RuntimeError("the consumers are not in place")
        yield _Target(label, server, crowd, many)
    finally:
        processes.stop(crowd)
        processes.stop(server)
