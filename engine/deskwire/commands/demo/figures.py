"""A replay in figures: the commands, and the results of each channel."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

from msgspec import Struct, field, to_builtins

from deskwire.commands.demo.checks.check import Timelines, forgeries, last_sequences, problems, timelines
from deskwire.commands.demo.checks.effects import matches
from deskwire.commands.demo.checks.history import FEED, OUTCOMES, WEBHOOK, History

PROBLEMS_SHOWN: Final = 10


class Latency(Struct, frozen=True):
    """Milliseconds from the request that was sent to the event's arrival."""

    p50: float
    p99: float
    most: float


class ChannelFigures(Struct, frozen=True):
    """The figures of one channel.

    Args:
        events: different events of this replay.
        missing: numbers of conversations that never came.
        bad_signatures: None on channels without signatures.
        latency_ms: None where there is none, as with what is fetched at the end.
    """

    events: int
    missing: int
    duplicates: int
    out_of_order: int
    bad_signatures: int | None
    latency_ms: Latency | None


class Run(Struct, frozen=True):
    """The figures that only the run itself knows.

    Args:
        seconds: from the first command to the last response.
        put_off: requests answered with 429 or 503 and sent again.
    """

    chats: int
    seconds: float
    put_off: int = 0
    reconnects: int = 0


class Report(Struct, frozen=True):
    """The report at the end."""

    run: Run
    commands: dict[str, int]
    events: int
    channels: dict[str, ChannelFigures]
    problems: Sequence[str] = field(default_factory=tuple)

    @property
    def passed(self) -> bool:
        """True if nothing is missing or wrong."""
        return not self.problems

    def document(self) -> dict[str, Any]:
        """Return the report for scripts; JSON types only."""
        commands = sum(self.commands.values())
        return {
            "passed": self.passed,
            "problemCount": len(self.problems),
            "problems": list(self.problems[:PROBLEMS_SHOWN]),
            "chats": self.run.chats,
            "commands": {"sent": commands, **self.commands, "putOff": self.run.put_off},
            "seconds": round(self.run.seconds, 3),
            "commandsPerSecond": round(commands / self.run.seconds, 1) if self.run.seconds else None,
            "events": self.events,
            "streamReconnects": self.run.reconnects,
            "channels": {name: _camel(to_builtins(each)) for name, each in self.channels.items()},
        }


def report(history: History, run: Run, more: Sequence[str] = ()) -> Report:
    """Judge a history.

    Args:
        more: problems outside of it.
    """
    channels = timelines(history)
    outcomes = Counter(command.outcome for command in history.commands)
    return Report(
        run=run,
        commands={name: outcomes[name] for name in OUTCOMES},
        events=len({seen.id for channel in channels.values() for seen in channel.events}),
        channels={name: _figures(history, channels, name) for name in channels},
        problems=(*problems(history, channels), *more, *_nothing_done(history)),
    )


def _nothing_done(history: History) -> list[str]:
    """Return a problem if nothing was replayed: a replay that shows nothing must not pass as one that shows no fault."""
    return [] if any(command.effects for command in history.commands) else ["no command was acknowledged"]


def _figures(history: History, channels: Timelines, name: str) -> ChannelFigures:
    channel = channels[name]
    last = last_sequences(history, channels)
    numbered = channel.by_conversation()
    signed = sum(1 for _ in forgeries(history)) if name == WEBHOOK else None
    return ChannelFigures(
        events=len(channel.events),
        missing=sum(highest - len(numbered.get(each, {})) for each, highest in last.items()),
        duplicates=len(channel.duplicates),
        out_of_order=len(channel.inversions),
        bad_signatures=signed,
        latency_ms=None if name == FEED else _latency(history, channels, name),
    )


def _latency(history: History, channels: Timelines, name: str) -> Latency | None:
    waits = sorted(
        (match.seen.arrival.at - match.command.sent_at) * 1000
        for match in matches(history, channels[name])
        if match.seen is not None
    )
    if not waits:
        return None
    return Latency(round(_rank(waits, 0.5), 2), round(_rank(waits, 0.99), 2), round(waits[-1], 2))


def _rank(ordered: Sequence[float], share: float) -> float:
    """Return the value that `share` of all do not exceed (nearest rank)."""
    return ordered[max(0, -int(-share * len(ordered) // 1) - 1)]


def _camel(names: dict[str, Any]) -> dict[str, Any]:
    def name_of(snake: str) -> str:
        first, *rest = snake.split("_")
        return first + "".join(word.capitalize() for word in rest)

    return {
        name_of(name): _camel(value) if isinstance(value, dict) else value for name, value in names.items()
    }
