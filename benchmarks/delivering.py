"""The age of a message when it reaches a stream consumer and a webhook receiver, and their cost."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

from benchmarks import processes, references
from benchmarks.generator import load
from benchmarks.observer import Watch
from benchmarks.references import NATS
from benchmarks.report import Cell, Section, median, percentile
from benchmarks.scale import Scale
from benchmarks.service import Server, deskwire
from benchmarks.taking import Taken, in_turn, middle, ratio, take
from deskwire.engine.core.secret import derived_key
from deskwire.program.secret_file import installation_secrets

_SPREAD: Final = 64
_CONNECTIONS: Final = 64
_PAUSE_S: Final = 0.4
_DRAIN_S: Final = 60.0
_ALONE: Final = "Deskwire, no reader"
_CONSUMER: Final = "Deskwire, one consumer"
_BOTH: Final = "Deskwire, one consumer and one webhook"
_NATS_ALONE: Final = f"{NATS}, no reader"
_NATS_CONSUMER: Final = f"{NATS}, one consumer"
_HALF: Final = 0.5


@dataclass(slots=True)
class _Target:
    """A server with its readers; `late` has each round's frames a second, their p99, and webhooks a second."""

    server: Server
    ids: Sequence[str]
    frames: subprocess.Popen[str] | None = None
    hooks: subprocess.Popen[str] | None = None
    late: list[tuple[float | None, float | None, float | None]] = field(default_factory=list)

    def take_all(self) -> tuple[list[float], list[float]]:
        """Return the ages of all frames and webhooks since the last call."""
        frames = [] if self.frames is None else json.loads(processes.ask(self.frames, "take"))
        hooks = [] if self.hooks is None else json.loads(processes.ask(self.hooks, "take"))["ages"]
        return frames, hooks

    def drain(self, wanted: int | None = None) -> tuple[list[float], list[float]]:
        """Wait for `wanted` of each, or until no more arrive, or for the timeout; return the ages of all."""
        frames, hooks = list[float](), list[float]()
        deadline = time.monotonic() + _DRAIN_S
        while (self.frames or self.hooks) and time.monotonic() < deadline:
            time.sleep(_PAUSE_S)
            more = self.take_all()
            frames += more[0]
            hooks += more[1]
            counts = [len(came) for came, reader in ((frames, self.frames), (hooks, self.hooks)) if reader]
            if min(counts) >= wanted if wanted is not None else not any(more):
                break
        return frames, hooks

    def maximum(self, scale: Scale, connections: int) -> Taken:
        """Post as fast as the server responds, and measure the deliveries during that time."""
        self.drain()
        began = time.monotonic()
        job = self.server.posts(list(self.ids), **scale.load(connections))
        taken = take(self.server, job)
        elapsed, (frames, hooks) = time.monotonic() - began, self.take_all()
        self.late.append(
            (
                len(frames) / elapsed if self.frames else None,
                percentile(sorted(frames), 0.99) if frames else None,
                len(hooks) / elapsed if self.hooks else None,
            )
        )
        return taken


def measure(scale: Scale, directory: Path) -> list[Section]:
    """Measure the maximum rate of all in turn, then the ages of frames at half of it, and of all at a small rate."""
    rows, found = list[tuple[Cell, ...]](), dict[str, list[Taken]]()
    with ExitStack() as stack:
        targets = dict(_targets(stack, directory))
        for connections in scale.connections:
            found = in_turn(
                scale.rounds,
                [(label, partial(each.maximum, scale, connections)) for label, each in targets.items()],
            )
            rows += [_maximum_row(label, connections, found, target) for label, target in targets.items()]
        half = {
            label: middle(found[label]).rate * _HALF
            for label in (_CONSUMER, _NATS_CONSUMER)
            if label in found
        }
        late = [row for label, rate in half.items() for row in _late(scale, label, targets[label], rate)]
        late += _late(scale, _BOTH, targets[_BOTH], scale.rate)
    columns = (
        "read by",
        "connections",
        "POST/s",
        "server's µs",
        "share",
        "frames/s",
        "frame p99 ms",
        "webhooks/s",
    )
    note = (
        f"{_SPREAD} conversations. Share: of the same server's rate without readers. Frames and webhooks are those that came "
        "while posts did; the rest of them comes afterwards."
    )
    return [
        Section("maximum", "POST with and without readers", columns, rows, note),
        Section(
            "latency",
            "POST until …",
            ("until", "messages/s", "messages", "p50 ms", "p99 ms", "most ms"),
            late,
        ),
    ]


def _targets(stack: ExitStack, directory: Path) -> Iterator[tuple[str, _Target]]:
    envelope = ""
    for label in (_ALONE, _CONSUMER, _BOTH):
        where = directory / f"delivering-{len(label)}"
        server = stack.enter_context(deskwire(where, allow_private_webhooks="true"))
        target = _Target(server, server.create(_SPREAD))
        envelope = envelope or server.envelope(target.ids[0])
        if label != _ALONE:
            target.frames = stack.enter_context(observing(watch(server, where)))
        if label == _BOTH:
            target.hooks = stack.enter_context(receiving(server))
        yield label, target
    if references.nats_server():
        for label in (_NATS_ALONE, _NATS_CONSUMER):
            pushed = label == _NATS_CONSUMER
            where = directory / f"delivering-nats-{pushed}"
            server = stack.enter_context(references.nats(where, envelope, pushed=pushed))
            frames = stack.enter_context(observing(Watch(server.port))) if pushed else None
            yield label, _Target(server, [str(number) for number in range(_SPREAD)], frames)


def watch(server: Server, directory: Path, secret: str | None = None) -> Watch:
    """Return the project's channel as a source; `secret` is the installation's if it has no file of it."""
    token_key = derived_key(installation_secrets(directory, secret).current, "stream").hex()
    channel = f"private-project-{server.project}"
    return Watch(server.port, channel, server.project, server.stream_key(), server.key_id(), token_key)


@contextmanager
def observing(source: Watch) -> Iterator[subprocess.Popen[str]]:
    """Run a consumer of a source that reports ages."""
    process = processes.start("benchmarks.observer", core=processes.LOAD)
    try:
        if processes.ask(process, source.encode()) != "in place":
            raise RuntimeError("the consumer is not in place")
        yield process
    finally:
        processes.stop(process)


@contextmanager
def receiving(server: Server) -> Iterator[subprocess.Popen[str]]:
    """Run a receiver that is a webhook of the server's project."""
    process = processes.start("benchmarks.receiver", "measured", core=processes.LOAD)
    try:
        (port,) = json.loads(processes.line(process))
        with server.api() as api:
            api.post("/s2s/webhooks", json={"url": f"http://127.0.0.1:{port}/hook"}).raise_for_status()
        yield process
    finally:
        processes.stop(process)


def _maximum_row(
    label: str, connections: int, taken: dict[str, list[Taken]], target: _Target
) -> tuple[Cell, ...]:
    found, rounds = middle(taken[label]), target.late
    target.late = []
    late = [[each for each in column if each is not None] for column in zip(*rounds, strict=True)]
    alone = _NATS_ALONE if label.startswith(NATS) else _ALONE
    return (
        label,
        connections,
        found.rate,
        found.us,
        ratio(taken, label, alone),
        *(median(each) if each else None for each in late),
    )


def _late(scale: Scale, label: str, target: _Target, rate: float) -> Iterator[tuple[Cell, ...]]:
    """Measure ages at a fixed rate, with our own generator; an answer counts from the time its request was due."""

    def job(for_s: float) -> list[float]:
        how = {"connections": _CONNECTIONS, "for_s": for_s, "rate": rate}
        return load(target.server.posts(list(target.ids), **how)).latencies

    job(scale.warm_s)
    target.drain()
    answers = job(scale.rate_s)
    frames, hooks = target.drain(len(answers))
    ways = {"its answer": answers, "its frame": frames, "its webhook": hooks}
    for way, found in ways.items():
        if found:
            found.sort()
            shares = (percentile(found, share) for share in (0.5, 0.99, 1.0))
            yield f"{way}; {label}", rate, len(found), *shares
