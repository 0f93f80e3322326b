"""`python -m benchmarks`: measures, shows and saves. See docs/performance.md."""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Final

import click
from rich.console import Console

from benchmarks import (
    backlog,
    delivering,
    draining,
    engine,
    fanout,
    importing,
    isolation,
    memory,
    posting,
    processes,
    starting,
    ticketing,
)
from benchmarks.report import Section, machine, machine_line, save, show
from benchmarks.scale import DEFAULT, FULL, QUICK, Scale

BENCHMARKS: Final[Mapping[str, Callable[[Scale, Path], list[Section]]]] = {
    "post": posting.measure,
    "deliver": delivering.measure,
    "fan-out": fanout.measure,
    "drain": draining.measure,
    "isolation": isolation.measure,
    "backlog": backlog.measure,
    "memory": memory.measure,
    "engine": engine.measure,
    "start": starting.measure,
    "tickets": ticketing.measure,
    "import": importing.measure,
}
_RESULTS: Final = Path(__file__).parent / "results"
_WIDTH_IN_A_PIPE: Final = 140


@click.command()
@click.option("--quick", "scale", flag_value="quick", help="Only prove that everything works; takes seconds.")
@click.option(
    "--full", "scale", flag_value="full", help="More rounds, conversations and messages; takes long."
)
@click.option(
    "--only", multiple=True, type=click.Choice(list(BENCHMARKS)), help="Some benchmarks; repeatable."
)
@click.option("--out", type=click.Path(path_type=Path), default=_RESULTS, help="Folder of the saved results.")
@click.option("--data", type=click.Path(path_type=Path), help="Folder for databases; on the disk to measure.")
def main(scale: str | None, only: tuple[str, ...], out: Path, data: Path | None) -> None:
    """Measure Deskwire on this machine."""
    console = Console(width=None if sys.stdout.isatty() else _WIDTH_IN_A_PIPE)
    sizes = {"quick": QUICK, "full": FULL}.get(scale or "", DEFAULT)
    processes.allow_files()
    found, began = machine(), time.monotonic()
    console.print(machine_line(found))
    sections: list[Section] = []
    with tempfile.TemporaryDirectory(prefix="deskwire-benchmark-", dir=data) as directory:
        for name in only or BENCHMARKS:
            for section in BENCHMARKS[name](sizes, Path(directory)):
                show(console, section)
                sections.append(section)
    path = save(out, found, asdict(sizes), sections)
    console.print(f"{time.monotonic() - began:.0f} s; saved as {path}")


if __name__ == "__main__":
    main(prog_name="python -m benchmarks")
