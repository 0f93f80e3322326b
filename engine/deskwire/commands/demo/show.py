"""A demo as a process shows it: progress on the way, the report at the end, an exit status."""

from __future__ import annotations

import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Final

import orjson
import trio
from rich.console import Console

from deskwire.commands.demo.desk.run import place_of, run_desk
from deskwire.commands.demo.errors import DemoError
from deskwire.commands.demo.figures import Report
from deskwire.commands.demo.launch import OwnService
from deskwire.commands.demo.output import WIDTH_IN_A_PIPE, progress, tables, verdict
from deskwire.commands.demo.run import Plan, first_failure, run_demo
from deskwire.logs import setup as logs

SIGNALLED: Final = 128  # a shell's exit status for a signal is this and its number


async def show_demo(plan: Plan, as_json: bool, *, desk: bool = False) -> int:
    """Carry out the plan and print what came of it; the exit status, 0 if nothing is missing or wrong.

    With `desk`, an inbox is filled behind that and is there until a signal; that is then its ordinary end.

    SIGINT and SIGTERM end it early, in order: the endpoint and the demo's own service are gone then, too.
    """
    logs.configure("auto", "warning", sys.stderr)  # stdout is for the figures
    console = Console(stderr=True, soft_wrap=True)
    stopped_by: list[int] = []
    report: Report | None = None
    shown: list[Report] = []

    async def show(passed: Report, own: OwnService) -> None:
        _print(passed, as_json)
        shown.append(passed)
        await run_desk(place_of(own.directory / "data"), lambda line: print(line, flush=True))

    with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_stop_at_signal, signals, nursery.cancel_scope, stopped_by)
            report = await _report(plan, console, show if desk else None)
            nursery.cancel_scope.cancel()
    if stopped_by and shown:
        return 0 if shown[0].passed else 1
    if stopped_by:
        console.print("Stopped.")
        return SIGNALLED + stopped_by[0]
    if report is None:
        return 1
    _print(report, as_json)
    return 0 if report.passed else 1


async def show_desk(data: Path) -> int:
    """Fill the inbox of the service that has this data directory, and leave it so until a signal; the exit status."""
    logs.configure("auto", "warning", sys.stderr)
    failure: DemoError | None = None
    with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_stop_at_signal, signals, nursery.cancel_scope, [])
            try:
                await run_desk(place_of(data), lambda line: print(line, flush=True))
            except* DemoError as group:
                failure = first_failure(group)
            nursery.cancel_scope.cancel()
    if failure is not None:
        print(failure, file=sys.stderr)
    return 0 if failure is None else 1


async def _stop_at_signal(
    signals: AsyncIterator[int], scope: trio.CancelScope, stopped_by: list[int]
) -> None:
    async for number in signals:
        stopped_by.append(number)
        scope.cancel()


async def _report(
    plan: Plan, console: Console, afterwards: Callable[[Report, OwnService], Awaitable[None]] | None
) -> Report | None:
    """Return the report, or None behind the words on why there is none."""
    try:
        with progress(console, len(plan.chats)) as advance:
            return await run_demo(
                plan, lambda line: console.print(line, highlight=False), advance, afterwards
            )
    except DemoError as error:
        console.print(str(error), style="red", markup=False, highlight=False)
        return None


def _print(report: Report, as_json: bool) -> None:
    if as_json:
        print(orjson.dumps(report.document(), option=orjson.OPT_INDENT_2).decode())
        return
    out = Console(width=None if sys.stdout.isatty() else WIDTH_IN_A_PIPE)
    for table in tables(report):
        out.print(table)
    colour = "green" if report.passed else "red"
    out.print(verdict(report), style=colour, markup=False, highlight=False, soft_wrap=True)
