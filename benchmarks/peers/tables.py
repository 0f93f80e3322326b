"""The tables of a comparison with peers: figures with factors, state, and notes on each peer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from benchmarks.peers.peer import Facts
from benchmarks.peers.rounds import Round, Rounds, factor, thrown_away
from benchmarks.report import Cell, Section, median, percentile, text
from benchmarks.scale import Scale


@dataclass(slots=True)
class State:
    """Seconds from a start to the first answer, MB of service and database, and ages (ms, sorted) at each kind of subscriber."""

    starts: list[float] = field(default_factory=list)
    idle_mb: tuple[float, float] = (0.0, 0.0)
    used_mb: tuple[float, float] = (0.0, 0.0)
    ages: dict[str, list[float]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Compared:
    """Peers that took turns, Deskwire first: facts and state by name, and rounds by operation, connections and name."""

    facts: Mapping[str, Facts]
    rounds: Mapping[tuple[str, int], Mapping[str, Rounds]]
    states: Mapping[str, State]


def sections(scale: Scale, compared: Sequence[Compared], absent: Mapping[str, str]) -> list[Section]:
    """Return the tables of several comparisons side by side; `absent` has the reasons of peers that are not measured."""
    names = [name for each in compared for name in each.facts]
    return [_figures(scale, compared, names), _states(scale, compared, names), _about(compared, absent)]


def _figures(scale: Scale, compared: Sequence[Compared], names: Sequence[str]) -> Section:
    rows: list[tuple[Cell, ...]] = [
        (what, connections, *(cell for each in compared for cell in _cells(each, what, connections)))
        for what, connections in compared[0].rounds
    ]
    bad = [thrown_away(list(by_name.values())) for each in compared for by_name in each.rounds.values()]
    away, all_rounds = (sum(counts) for counts in zip(*bad, strict=True))
    reasons = {
        reason: f"{name}, {what}, {connections} connections: {reason}"
        for each in compared
        for (what, connections), by_name in each.rounds.items()
        for name, found in by_name.items()
        for reason in found.reasons
    }
    note = (
        f"{scale.peer_conversations:,} conversations. Answers a second; p50 / p99 / worst ms; processor ms of the service "
        "(+ of its database) for each; **Deskwire's rate over it** on the same database. Servers on one core, load on "
        f"another; medians of {scale.rounds} rounds in turn, the load's own core at most {_busiest(compared):.2f} busy. Every answer was "
        f"checked; rounds thrown away: {away} of {all_rounds}."
    )
    note += "".join(f" {each}." for each in list(reasons.values())[:3])
    return Section(
        "peers", "Beside systems that do the same job", ("operation", "connections", *names), rows, note
    )


def _cells(compared: Compared, what: str, connections: int) -> Iterator[str]:
    by_name = compared.rounds[what, connections]
    ours = by_name[next(iter(compared.facts))]
    for name in compared.facts:
        found = by_name.get(name)
        middle = None if found is None else found.middle()
        if found is None or middle is None:
            yield "-"
        elif found is ours:
            yield _figures_of(middle)
        else:
            ratio = factor(ours, found)
            yield _figures_of(middle) + ("" if ratio is None else f" **{_short(ratio)}x**")


def _figures_of(middle: Round) -> str:
    times = "/".join(map(_short, (middle.p50, middle.p99, middle.worst)))
    database = f"+{_short(middle.database_ms)}" if middle.database_ms else ""
    return f"{text(middle.rate)}; {times}; {_short(middle.service_ms)}{database}"


def _short(value: float) -> str:
    """Return a figure with two significant digits, or all before the point."""
    return f"{value:,.0f}" if value >= 10 else f"{value:.1f}" if value >= 1 else f"{value:.2f}"


def _busiest(compared: Sequence[Compared]) -> float:
    """Return the greatest share of its core that the load took in a round that counts."""
    found = (rounds for each in compared for by_name in each.rounds.values() for rounds in by_name.values())
    return max((each.load_core for rounds in found for each in rounds.taken if each is not None), default=0.0)


def _states(scale: Scale, compared: Sequence[Compared], names: Sequence[str]) -> Section:
    states = [each.states[name] for each in compared for name in each.facts]
    ways = dict.fromkeys(way for state in states for way in state.ages)
    rows: list[tuple[Cell, ...]] = [
        ("memory idle, MB", *(_megabytes(state.idle_mb) for state in states)),
        ("after these loads, MB", *(_megabytes(state.used_mb) for state in states)),
        ("start to first answer, s", *(median(state.starts) for state in states)),
        *((f"{way}, ms", *(_age(state.ages.get(way)) for state in states)) for way in ways),
    ]
    note = (
        "Memory: PSS of all processes of the service (+ of its database). Start: until a read is answered. Subscribers: p50 / "
        f"worst of {scale.peer_messages} messages, from sending one to its notification."
    )
    return Section(
        "peers-state", "Memory, start and subscribers of the same systems", ("what", *names), rows, note
    )


def _megabytes(figures: tuple[float, float]) -> str:
    service, database = figures
    return f"{service:.0f}" + (f"+{database:.0f}" if database else "")


def _age(ages: Sequence[float] | None) -> str:
    return f"{_short(percentile(ages, 0.5))} / {_short(ages[-1])}" if ages else "none"


def _about(compared: Sequence[Compared], absent: Mapping[str, str]) -> Section:
    rows: list[tuple[Cell, ...]] = [
        (each.system, each.synced, each.leaves_out, each.favours)
        for found in compared
        for each in found.facts.values()
    ]
    rows += [(name, "not measured", reason, "-") for name, reason in absent.items()]
    columns = ("system", "synced before the answer", "leaves out", "done in its favour")
    return Section("peers-about", "The compared systems", columns, rows)
