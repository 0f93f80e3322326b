"""Figures of one server under one job, and of several in turn, so that a disturbance affects all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from benchmarks import processes
from benchmarks.generator import load
from benchmarks.job import Job, Outcome
from benchmarks.report import median, times
from benchmarks.service import Server


@dataclass(frozen=True, slots=True)
class Taken:
    """Answers a second, milliseconds that one takes (`worst`: the slowest one), the server's processor time for each in µs, the generator's share."""

    rate: float
    p50: float
    p99: float
    worst: float
    us: float | None
    busy: float


def take(server: Server, job: Job, load: Callable[[Job], Outcome] = load) -> Taken:
    """Carry out the job, and measure the server's processor time."""
    before = processes.cpu_s(server.process)
    outcome = load(job)
    after = processes.cpu_s(server.process)
    us = None if before is None or after is None else (after - before) * 1e6 / max(1, outcome.answers)
    return Taken(outcome.rate, *times(outcome.latencies), us, outcome.busy)


def in_turn(rounds: int, targets: Sequence[tuple[str, Callable[[], Taken]]]) -> dict[str, list[Taken]]:
    """Take each target's figure in each round; return them by label, in the rounds' order."""
    taken: dict[str, list[Taken]] = {label: [] for label, _ in targets}
    for number in range(rounds):
        for label, figure in targets if number % 2 == 0 else targets[::-1]:
            taken[label].append(figure())
    return taken


def middle(rounds: Sequence[Taken]) -> Taken:
    """Return the median of each figure."""
    rate, p50, p99, worst, busy = (
        median(getattr(each, name) for each in rounds) for name in ("rate", "p50", "p99", "worst", "busy")
    )
    return Taken(rate, p50, p99, worst, median_or_none(each.us for each in rounds), busy)


def median_or_none(values: Iterable[float | None]) -> float | None:
    """Return the median of the known values; None if there are none."""
    known = [value for value in values if value is not None]
    return median(known) if known else None


def ratio(taken: Mapping[str, Sequence[Taken]], label: str, base: str) -> float | None:
    """Return the median of the rounds' ratios of rates, each taken within seconds; None without the base."""
    if base not in taken:
        return None
    return median(this.rate / that.rate for this, that in zip(taken[label], taken[base], strict=True))
