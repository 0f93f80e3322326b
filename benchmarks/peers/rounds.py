"""Rounds of one operation on several peers in turn. A round with a refused or wrong answer does not count, and its reason is kept."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Final

from benchmarks.generator import carried_out
from benchmarks.job import Job, Outcome
from benchmarks.peers import process_tree
from benchmarks.peers.peer import Running
from benchmarks.report import percentile

_REASON_LENGTH: Final = 160


@dataclass(frozen=True, slots=True)
class Round:
    """Answers a second, their times in ms, and the processor time in ms for each of the service and of its database."""

    rate: float
    p50: float
    p99: float
    worst: float
    service_ms: float
    database_ms: float
    load_core: float


@dataclass(slots=True)
class Rounds:
    """The rounds of one peer, in order; None for those that are thrown away, with their reasons."""

    taken: list[Round | None] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)

    def middle(self) -> Round | None:
        """Return the median of each figure; None without a round that counts."""
        good = [each for each in self.taken if each is not None]
        if not good:
            return None
        names = Round.__slots__
        return Round(*(median(getattr(each, name) for each in good) for name in names))


def in_turn(count: int, peers: Mapping[str, Callable[[], Round | str]]) -> dict[str, Rounds]:
    """Take a round of each peer in turn, every other time in the opposite order; a peer may return why it does not count."""
    found = {name: Rounds() for name in peers}
    for number in range(count):
        for name in list(peers)[:: 1 if number % 2 == 0 else -1]:
            result = peers[name]()
            found[name].taken.append(result if isinstance(result, Round) else None)
            found[name].reasons += [result] if isinstance(result, str) else []
    return found


def factor(ours: Rounds, theirs: Rounds) -> float | None:
    """Return our rate over theirs, the median of the ratios of pairs of rounds that both count; None without such a pair."""
    pairs = zip(ours.taken, theirs.taken, strict=True)
    ratios = [this.rate / that.rate for this, that in pairs if this is not None and that is not None]
    return median(ratios) if ratios else None


def take(
    running: Running,
    job: Job,
    load: Callable[[Job], Outcome] = carried_out,
    *,
    beside: Iterable[int] = (),
) -> Round | str:
    """Wait until the core is quiet and carry out a job; return its figures, or why it does not count.

    Args:
        beside: the processes of the other peers, which may still work on requests that an earlier round has abandoned.
    """
    try:
        process_tree.wait_until_quiet((*running.service, *running.database, *beside))
        before = [process_tree.cpu_s(each) for each in (running.service, running.database)]
        outcome = load(job)
        after = [process_tree.cpu_s(each) for each in (running.service, running.database)]
    except (OSError, RuntimeError) as problem:  # TimeoutError is an OSError
        return f"{type(problem).__name__}: {problem}"[:_REASON_LENGTH]
    return judged(outcome, *(1e3 * (late - early) for late, early in zip(after, before, strict=True)))


def judged(outcome: Outcome, service_ms: float, database_ms: float) -> Round | str:
    """Return the figures of an outcome, or why it does not count: one refused or wrong answer is enough."""
    if outcome.failures:
        first = " ".join(outcome.failures[0].split())
        return f"{len(outcome.failures)} of {outcome.answers} answers: {first}"[:_REASON_LENGTH]
    if not outcome.latencies:
        return "no answer came in time"
    p50, p99, worst = (percentile(outcome.latencies, share) for share in (0.5, 0.99, 1.0))
    each = (service_ms / outcome.answers, database_ms / outcome.answers)
    return Round(outcome.rate, p50, p99, worst, *each, outcome.busy)


def thrown_away(found: Sequence[Rounds]) -> tuple[int, int]:
    """Return how many rounds were thrown away, and how many there were."""
    return sum(each is None for rounds in found for each in rounds.taken), sum(
        len(each.taken) for each in found
    )
