"""The output for people and scripts: a live table on a terminal, otherwise text or JSON lines."""

from __future__ import annotations

import json
import sys
from collections import Counter, OrderedDict
from types import TracebackType
from typing import Any, Final, Protocol, Self

import trio
from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from deskwire.commands.listen.feed import FeedEvent
from deskwire.commands.listen.forward import ForwardStep
from deskwire.commands.shell.output import visible

ROWS: Final = 20
_FRAME_S: Final = 0.1
_OVER: Final = frozenset({"delivered", "failed"})
_STYLES: Final = {"delivered": "green", "failed": "red", "retrying": "yellow", "waiting": "yellow"}


class ListenOutput(Protocol):
    """The output of a run, as a context manager."""

    def __enter__(self) -> Self:
        """Start the output."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Restore the terminal, with the final state shown."""

    def note(self, line: str) -> None:
        """Show a line for people."""

    def step(self, step: ForwardStep) -> None:
        """Show the state of a delivery."""

    def event(self, event: FeedEvent) -> None:
        """Show an event that is not forwarded."""

    async def run(self) -> None:
        """Update the output until cancelled."""


class LineOutput:
    """One line per finished event on stdout, and everything else on stderr."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def note(self, line: str) -> None:
        print(visible(line), file=sys.stderr, flush=True)

    def step(self, step: ForwardStep) -> None:
        if step.state in _OVER:
            print(self.line(step), flush=True)
        elif step.state == "retrying":
            self.note(_sentence(step))

    def event(self, event: FeedEvent) -> None:
        print(self.printed(event), flush=True)

    def printed(self, event: FeedEvent) -> str:
        """Return the line for an event that is not forwarded."""
        kind, conversation, sequence = subject(event)
        return f"{kind:<25} {conversation:<30} {sequence:>6}  {visible(event.id)}"

    def line(self, step: ForwardStep) -> str:
        """Return the line for stdout."""
        kind, conversation, sequence, status, latency = cells(step)
        return f"{kind:<25} {conversation:<30} {sequence:>6}  {status}  {latency}".rstrip()

    async def run(self) -> None:
        await trio.sleep_forever()


class JsonOutput(LineOutput):
    """One JSON object per event; otherwise like `LineOutput`."""

    def line(self, step: ForwardStep) -> str:
        return json.dumps(document(step))  # ASCII only, which can't contain terminal escapes

    def printed(self, event: FeedEvent) -> str:
        """Return the event itself."""
        return json.dumps(json.loads(event.body), separators=(",", ":"))


class LiveTable:
    """A table of the newest events that is updated in place, with notes above it."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._steps: OrderedDict[str, ForwardStep] = OrderedDict()
        self._counts: Counter[str] = Counter()
        self._changed = trio.Event()
        self._live = Live(self.table(), console=console, auto_refresh=False)

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.update(self.table())
        self._live.stop()

    def note(self, line: str) -> None:
        self._console.print(Text(visible(line)))

    def step(self, step: ForwardStep) -> None:
        self._steps[step.delivery.id] = step
        if step.state in _OVER:
            self._counts[step.state] += 1
        while len(self._steps) > ROWS:
            self._steps.popitem(last=False)
        self._changed.set()

    def event(self, event: FeedEvent) -> None:
        self.note(LineOutput().printed(event))

    def table(self) -> Table:
        """Return the current table."""
        caption = f"{self._counts['delivered']} delivered, {self._counts['failed']} failed; Ctrl-C ends"
        grid = Table("Type", caption=caption, caption_justify="left")
        grid.add_column("Conversation", overflow="fold")
        grid.add_column("Sequence", justify="right")
        grid.add_column("Status")
        grid.add_column("Latency", justify="right")
        for step in self._steps.values():
            grid.add_row(*map(Text, cells(step)), style=_STYLES.get(step.state))
        return grid

    async def run(self) -> None:
        while True:
            await self._changed.wait()
            self._changed = trio.Event()
            self._live.update(self.table(), refresh=True)
            await trio.sleep(_FRAME_S)


def cells(step: ForwardStep) -> tuple[str, str, str, str, str]:
    """Return type, conversation, sequence, status and latency, safe for a terminal."""
    attempt = step.attempt
    latency = "" if attempt is None else f"{attempt.latency_ms} ms"
    return (*subject(step.delivery.event), visible(_status(step)), latency)


def subject(event: FeedEvent) -> tuple[str, str, str]:
    """Return type, conversation and sequence, safe for a terminal."""
    sequence = "-" if event.sequence is None else str(event.sequence)
    return visible(event.type), visible(event.conversation or "-"), sequence


def document(step: ForwardStep) -> dict[str, Any]:
    """Return a finished delivery for scripts."""
    event, attempt = step.delivery.event, step.attempt
    assert attempt is not None
    return {
        "eventId": event.id,
        "type": event.type,
        "conversationId": event.conversation,
        "sequence": event.sequence,
        "deliveryId": step.delivery.id,
        "result": step.state,
        "attempts": attempt.number,
        "status": attempt.status,
        "latencyMs": attempt.latency_ms,
        "error": attempt.error,
    }


def _status(step: ForwardStep) -> str:
    attempt = step.attempt
    if step.state == "waiting":
        return "receiver is down, waiting"
    if attempt is None:
        return step.state
    if step.state == "retrying":
        return f"{attempt.error}, again in {step.again_in_s:.0f} s"
    if step.state == "failed":
        times = "1 attempt" if attempt.number == 1 else f"{attempt.number} attempts"
        return f"failed after {times}: {attempt.error}"
    return str(attempt.status)


def _sentence(step: ForwardStep) -> str:
    kind, conversation, sequence, status, _ = cells(step)
    return f"{kind} {conversation} {sequence}: {status}"
