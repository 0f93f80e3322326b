"""The demo as a process shows it: progress, the report at the end, and an exit status."""

from __future__ import annotations

import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Final

import orjson
import trio
from rich.console import Console
from rich.table import Table

from deskwire.commands.demo.client import DemoError
from deskwire.commands.demo.inbox import read_demo_project, run_inbox
from deskwire.commands.demo.replay import PROBLEMS_SHOWN_MAX, ReplayOptions, ReplayReport, run_replay
from deskwire.commands.demo.service import OwnService
from deskwire.logs import setup as logs

_SIGNALLED: Final = 128  # a shell's exit status for a signal is this plus the signal's number
_PROGRESS_LINES: Final = 10  # in a run, about
_PIPE_WIDTH: Final = 120  # characters
_log: Final = partial(print, flush=True)


async def show_demo(options: ReplayOptions, as_json: bool, *, desk: bool = False) -> int:
    """Replay the chats, print the report, and return the exit status: 0 if nothing is missing or wrong.

    With `desk`, an inbox is filled afterwards and stays until a signal, which is then the regular end.
    Otherwise SIGINT and SIGTERM end the demo early; the endpoint and the own service are then removed, too.
    """
    shown: list[ReplayReport] = []
    console = Console(stderr=True, soft_wrap=True)

    async def show(report: ReplayReport, own: OwnService) -> None:
        _print(report, as_json)
        shown.append(report)
        await run_inbox(read_demo_project(own.directory / "data"), _log)

    report: ReplayReport | None = None
    async with _until_signal() as stopped_by:
        log = partial(console.print, highlight=False)
        advance = _progress(log, len(options.chats))
        report = await _run(console, lambda: run_replay(options, log, advance, show if desk else None))
    if stopped_by and shown:
        return 0 if not shown[0].problems else 1
    if stopped_by:
        console.print("Stopped.")
        return _SIGNALLED + stopped_by[0]
    if report is None:
        return 1
    _print(report, as_json)
    return 0 if not report.problems else 1


async def show_inbox(data: Path) -> int:
    """Fill the inbox of the service with this data directory, until a signal. Return the exit status."""
    console = Console(stderr=True, soft_wrap=True)

    async def fill() -> None:
        await run_inbox(read_demo_project(data), _log)

    async with _until_signal() as stopped_by:
        await _run(console, fill)
    return 0 if stopped_by else 1


@asynccontextmanager
async def _until_signal() -> AsyncIterator[list[int]]:
    """Cancel the block at SIGINT or SIGTERM. Yield a list that then has the signal's number."""
    logs.configure("auto", "warning", sys.stderr)  # stdout is for the figures
    stopped_by: list[int] = []
    with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async with trio.open_nursery() as nursery:

            async def stop_at_signal() -> None:
                async for number in signals:
                    stopped_by.append(number)
                    nursery.cancel_scope.cancel()

            nursery.start_soon(stop_at_signal)
            yield stopped_by
            nursery.cancel_scope.cancel()


async def _run(console: Console, act: Callable[[], Awaitable[ReplayReport | None]]) -> ReplayReport | None:
    """Return the result; None after a DemoError, whose text is printed."""
    reasons: list[str] = []
    try:
        return await act()
    except* DemoError as group:
        reasons += _reasons(group)
    console.print(reasons[0], style="red", markup=False, highlight=False)
    return None


def _reasons(group: BaseExceptionGroup[DemoError]) -> Iterator[str]:
    for each in group.exceptions:
        if isinstance(each, BaseExceptionGroup):
            yield from _reasons(each)
        else:
            yield str(each)


def _progress(log: Callable[[str], None], chats: int) -> Callable[[], None]:
    """Return the function to call after each chat, which logs a line now and then."""
    every, done = max(1, chats // _PROGRESS_LINES), 0

    def advance() -> None:
        nonlocal done
        done += 1
        if done % every == 0 or done == chats:
            log(f"{done} of {chats} chats replayed")

    return advance


def _print(report: ReplayReport, as_json: bool) -> None:
    if as_json:
        print(orjson.dumps(report.document(), option=orjson.OPT_INDENT_2).decode())
        return
    out = Console(width=None if sys.stdout.isatty() else _PIPE_WIDTH)
    out.print(_table(report))
    out.print(
        _verdict(report),
        style="red" if report.problems else "green",
        markup=False,
        highlight=False,
        soft_wrap=True,
    )


def _table(report: ReplayReport) -> Table:
    speed = f"{report.commands / report.seconds:,.0f}" if report.seconds else "-"
    title = f"{report.commands:,} commands, {speed} a second; {report.events:,} events"
    table = Table(title=title, title_justify="left")
    table.add_column("channel")
    for name in ("delivered", "gaps", "duplicates", "out of order", "bad signatures", "p50 ms", "p99 ms"):
        table.add_column(name, justify="right")
    for name, each in report.channels.items():
        signatures = "-" if each.bad_signatures is None else f"{each.bad_signatures:,}"
        latency = each.latency_ms
        times = ("-", "-") if latency is None else (f"{latency['p50']:,.1f}", f"{latency['p99']:,.1f}")
        counts = (each.events, each.missing, each.duplicates, each.out_of_order)
        table.add_row(name, *(f"{count:,}" for count in counts), signatures, *times)
    return table


def _verdict(report: ReplayReport) -> str:
    """Return the verdict in one line, and after a bad one the first problems."""
    problems = report.problems
    if not problems:
        channels = " and ".join(report.channels)
        return f"PASSED: every acknowledged command is on {channels}, once numbered, the same bytes."
    lines = [
        f"FAILED: {len(problems)} {'thing is' if len(problems) == 1 else 'things are'} missing or wrong."
    ]
    lines += [f"  {each}" for each in problems[:PROBLEMS_SHOWN_MAX]]
    if len(problems) > PROBLEMS_SHOWN_MAX:
        lines.append(f"  ... and {len(problems) - PROBLEMS_SHOWN_MAX} more")
    return "\n".join(lines)
