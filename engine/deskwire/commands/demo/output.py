"""The output for people: a progress bar or plain lines on the way, a table and a verdict at the end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from deskwire.commands.demo.figures import PROBLEMS_SHOWN, ChannelFigures, Report

LINES: Final = 10  # plain progress lines in a run, about
WIDTH_IN_A_PIPE: Final = 120  # characters


@contextmanager
def progress(console: Console, chats: int) -> Iterator[Callable[[], None]]:
    """Show how many chats are over. Yield the function to call for each."""
    if not console.is_terminal:
        yield _lines(console, chats)
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("Chats", total=chats)

        def advance() -> None:
            bar.advance(task)
            if bar.finished:
                bar.stop()  # what comes next may take long, and is no part of it

        yield advance


def _lines(console: Console, chats: int) -> Callable[[], None]:
    every, done = max(1, chats // LINES), 0

    def advance() -> None:
        nonlocal done
        done += 1
        if done % every == 0 or done == chats:
            console.print(f"{done} of {chats} chats replayed", highlight=False)

    return advance


def tables(report: Report) -> Iterator[Table]:
    """Yield the report as tables."""
    run, total = report.run, sum(report.commands.values())
    requests = Table(title="Commands", title_justify="left")
    for name in ("chats", "commands", *report.commands, "put off", "per second"):
        requests.add_column(name, justify="right")
    speed = f"{total / run.seconds:,.0f}" if run.seconds else "-"
    counts = (run.chats, total, *report.commands.values(), run.put_off)
    requests.add_row(*(f"{count:,}" for count in counts), speed)
    yield requests
    came = Table(title=f"Events: {report.events:,}", title_justify="left")
    came.add_column("channel")
    for name in ("delivered", "gaps", "duplicates", "out of order", "bad signatures", "p50 ms", "p99 ms"):
        came.add_column(name, justify="right")
    for name, channel in report.channels.items():
        came.add_row(name, *_cells(channel))
    yield came


def _cells(channel: ChannelFigures) -> Iterator[str]:
    for count in (channel.events, channel.missing, channel.duplicates, channel.out_of_order):
        yield f"{count:,}"
    yield "-" if channel.bad_signatures is None else f"{channel.bad_signatures:,}"
    waits = channel.latency_ms
    yield from ("-", "-") if waits is None else (f"{waits.p50:,.1f}", f"{waits.p99:,.1f}")


def verdict(report: Report) -> str:
    """Return the verdict in one line, and behind a bad one the first problems."""
    if report.passed:
        channels = " and ".join(report.channels)
        besides = [f"{count} {what}" for count, what in _besides(report) if count]
        more = f" ({', '.join(besides)})" if besides else ""
        return f"PASSED: every acknowledged command is on {channels}, once numbered, the same bytes{more}."
    count = len(report.problems)
    lines = [f"FAILED: {count} {'thing is' if count == 1 else 'things are'} missing or wrong."]
    lines += [f"  {each}" for each in report.problems[:PROBLEMS_SHOWN]]
    if count > PROBLEMS_SHOWN:
        lines.append(f"  ... and {count - PROBLEMS_SHOWN} more")
    return "\n".join(lines)


def _besides(report: Report) -> Iterator[tuple[int, str]]:
    yield report.commands["unacknowledged"], "without an answer, which may have happened or not"
    again = "reconnection" if report.run.reconnects == 1 else "reconnections"
    yield report.run.reconnects, f"{again} of the stream"
