"""`python -m benchmarks`: takes, prints and saves measurements. See docs/performance.md and figures.md beside this module."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from types import FrameType
from typing import Final

import click
from rich.console import Console

from benchmarks import (
    agents,
    attacking,
    backlog,
    busy_hour,
    catching_up,
    chats,
    crowded,
    days,
    delivering,
    delivery_days,
    draining,
    engine,
    fanout,
    generator,
    growing,
    idempotency,
    importing,
    inboxing,
    isolation,
    large,
    long_threads,
    memory,
    nodes,
    panels,
    posting,
    processes,
    quiet,
    reading,
    references,
    rendering,
    searching,
    starting,
    tail,
    ticketing,
)
from benchmarks.peers import comparing
from benchmarks.report import Section, machine, machine_line, save, show
from benchmarks.scale import DEFAULT, FULL, QUICK, Scale

BENCHMARKS: Final[Mapping[str, Callable[[Scale, Path], list[Section]]]] = {
    "post": posting.measure,
    "deliver": delivering.measure,
    "read": reading.measure,
    "tail": tail.measure,
    "chats": chats.measure,
    "idempotency": idempotency.measure,
    "crowded": crowded.measure,
    "growth": growing.measure,
    "start": starting.measure,
    "memory": memory.measure,
    "fan-out": fanout.measure,
    "drain": draining.measure,
    "isolation": isolation.measure,
    "backlog": backlog.measure,
    "catching-up": catching_up.measure,
    "engine": engine.measure,
    "nodes": nodes.measure,
    "days": days.measure,
    "delivery-days": delivery_days.measure,
    "tickets": ticketing.measure,
    "search": searching.measure,
    "inbox": inboxing.measure,
    "busy-hour": busy_hour.measure,
    "long-threads": long_threads.measure,
    "import": importing.measure,
    "agents": agents.measure,
    "quiet": quiet.measure,
    "panels": panels.measure,
    "attacks": attacking.measure,
    "large": large.measure,
    "peers": comparing.measure,
}
_BY_NAME_ALONE: Final = frozenset({"large", "peers"})
"""Benchmarks that a run without `--only` leaves out: they fill for many minutes, or install other systems."""
_RESULTS: Final = Path(__file__).parent / "results"
_PAGE: Final = Path(__file__).with_name("figures.md")
_PEERS_PAGE: Final = Path(__file__).parents[1] / "docs/performance.md"
_PICTURES: Final = "../docs/performance"
"""The plots of that page: docs/performance.md shows some of them."""
_WIDTH_IN_A_PIPE: Final = 140
_LIMIT_S: Final = 420
"""Of one benchmark; with `--full` four times that."""
_LARGE_LIMIT_S: Final = 4 * 3_600
"""Of one that is run by its name alone."""


@click.command()
@click.option(
    "--quick", "scale", flag_value="quick", help="Only prove that everything works; takes a minute."
)
@click.option(
    "--full", "scale", flag_value="full", help="More rounds, conversations and tickets; takes long."
)
@click.option(
    "--only", multiple=True, type=click.Choice(list(BENCHMARKS)), help="Some benchmarks; repeatable."
)
@click.option("--out", type=click.Path(path_type=Path), default=_RESULTS, help="Folder of the saved results.")
@click.option("--data", type=click.Path(path_type=Path), help="Folder for databases; on the disk to measure.")
@click.option(
    "--conversations",
    type=click.IntRange(min=100),
    multiple=True,
    help="Sizes of the databases of `--only large`, smallest first; repeatable.",
)
@click.option("--kept", help="Folder where these databases, or the packages of peers, stay for the next run.")
@click.option(
    "--render", is_flag=True, help="Measure nothing: write the last saved run into benchmarks/figures.md."
)
@click.option("--page", type=click.Path(path_type=Path), default=_PAGE, help="Where to write it instead.")
def main(
    scale: str | None,
    only: tuple[str, ...],
    out: Path,
    data: Path | None,
    conversations: tuple[int, ...],
    kept: str | None,
    render: bool,
    page: Path,
) -> None:
    """Measure Deskwire on this machine."""
    console = Console(width=None if sys.stdout.isatty() else _WIDTH_IN_A_PIPE)
    if render:
        _render(console, out, page)
        return
    sizes = replace({"quick": QUICK, "full": FULL}.get(scale or "", DEFAULT), kept=kept)
    if conversations:
        sizes = replace(sizes, histories=conversations)
    processes.allow_files()
    found = machine() | {"load": generator.name(), "load before": os.getloadavg()[0]}
    console.print(machine_line(found))
    for line in references.missing():
        console.print(line)
    began = time.monotonic()
    sections, failed = list[Section](), list[str]()
    with tempfile.TemporaryDirectory(prefix="deskwire-benchmark-", dir=data) as directory:
        for name in only or [name for name in BENCHMARKS if name not in _BY_NAME_ALONE]:
            limit_s = _LARGE_LIMIT_S if name in _BY_NAME_ALONE else _LIMIT_S * (4 if scale == "full" else 1)
            more, problem = _measure(name, sizes, Path(directory), limit_s)
            for section in more:
                show(console, section)
            sections += more
            if problem:
                console.print(f"{name} failed: {problem}")
                failed.append(name)
    path = save(out, found, asdict(sizes), sections, failed)
    console.print(f"{time.monotonic() - began:.0f} s; saved as {path}")
    sys.exit(1 if failed else 0)


def _measure(name: str, sizes: Scale, directory: Path, limit_s: int) -> tuple[list[Section], str]:
    """Return the figures, or the reason for their absence, so that a failing benchmark does not end the run."""
    began = time.monotonic()
    try:
        with _within(limit_s):
            return BENCHMARKS[name](sizes, directory), ""
    except Exception as problem:  # noqa: BLE001  # whatever it is, it is shown, and the run ends with status 1
        return [], f"{type(problem).__name__}: {problem} (after {time.monotonic() - began:.0f} s)"


@contextmanager
def _within(seconds: int) -> Iterator[None]:
    """Raise TimeoutError in this thread if the block takes longer."""

    def late(_number: int, _frame: FrameType | None) -> None:
        raise TimeoutError(f"not done within {seconds} s")

    signal.signal(signal.SIGALRM, late)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)


def _render(console: Console, out: Path, page: Path) -> None:
    saved = rendering.newest(out)
    if saved is None:
        raise click.ClickException(f"There is no saved run in {out}: measure first.")
    pictures = _PICTURES if page == _PAGE else rendering.PICTURES
    written = rendering.render(saved, page, pictures)
    written += rendering.render_peers(saved, _PEERS_PAGE if page == _PAGE else page)
    for path in written:
        console.print(f"written: {path}")
    if not written:
        console.print(
            f"{saved} has no figures for {page}: docs/performance.md reports those of days in its own words."
        )


if __name__ == "__main__":
    main(prog_name="python -m benchmarks")
